//! Classes, interfaces, named tuples, enums and function headers.

use super::body::Body;
use super::names::is_identifier;
use super::text::Text;
use super::{Context, File};
use crate::diag::{Diagnostic, Result};
use crate::dialects::prim::constant;
use crate::ir::text::number::write_quoted;
use crate::ir::{
    Argument, Attr, ClassDef, ClassKind, EnumDef, Function, InterfaceDef, NamedTupleDef, Symbol, Type,
    TypeKind,
};

impl File {
    /// Prints what a qualified name stands for.
    pub(super) fn item(&mut self, cx: &Context<'_>, name: Symbol) -> Result<()> {
        let module = cx.module;
        if let Some(class) = module.classes.get(&name) {
            self.class(cx, class)
        } else if let Some(interface) = module.interfaces.get(&name) {
            self.interface(cx, interface)
        } else if let Some(tuple) = module.named_tuples.get(&name) {
            self.named_tuple(cx, name, tuple)
        } else if let Some(members) = module.enums.get(&name) {
            self.enumeration(cx, members)
        } else if let Some(function) = module.functions.get(&name) {
            self.function(cx, function, 0, true)
        } else {
            Err(Diagnostic::unsupported(format!("{name} is used and not defined, so it cannot be printed")))
        }
    }

    fn class(&mut self, cx: &Context<'_>, class: &ClassDef) -> Result<()> {
        let is_module = class.kind == ClassKind::Module;
        self.line(0, &format!("class {}{}:", last(class.name), if is_module { "(Module)" } else { "" }));
        let start = self.text.len();
        if is_module {
            let list =
                |names: Vec<Symbol>| -> String { names.iter().map(|name| format!("\"{name}\", ")).collect() };
            let named = |keep: fn(&crate::ir::ClassAttribute) -> bool| {
                list(class.attributes.iter().filter(|a| keep(a)).map(|a| a.name).collect())
            };
            self.line(1, &format!("__parameters__ = [{}]", named(|a| a.is_parameter)));
            self.line(1, &format!("__buffers__ = [{}]", named(|a| a.is_buffer)));
            if !class.forward_pre_hooks.is_empty() {
                self.line(1, &format!("__forward_pre_hooks__ = [{}]", list(class.forward_pre_hooks.clone())));
            }
            if !class.forward_hooks.is_empty() {
                self.line(1, &format!("__forward_hooks__ = [{}]", list(class.forward_hooks.clone())));
            }
        }
        for (n, attribute) in class.attributes.iter().enumerate() {
            let ty = cx.type_text(&attribute.ty)?;
            if is_identifier(attribute.name.as_str()) {
                self.line(1, &format!("{} : {ty}", attribute.name));
                continue;
            }
            if n == 0 {
                self.line(1, "__annotations__ = []");
            }
            let mut quoted = String::new();
            write_quoted(&mut quoted, attribute.name.as_str());
            self.line(1, &format!("__annotations__[{quoted}] = {ty}"));
        }
        for (name, (ty, value)) in &class.constants {
            let value = constant::value(&[(Symbol::new("value"), value.clone())], Some(ty))?;
            self.line(1, &format!("{name} : Final[{}] = {}", cx.type_text(ty)?, cx.constant(&value)?));
        }
        let hooks = class.forward_hooks.iter().chain(&class.forward_pre_hooks);
        let hooks: Vec<Symbol> = hooks.copied().collect();
        let is_hook = |name: &Symbol| hooks.contains(name);
        let plain = class.methods.iter().filter(|(name, _)| !is_hook(name));
        let mut methods: Vec<(Symbol, Symbol)> = plain.map(|(n, f)| (*n, *f)).collect();
        for hook in hooks.iter().filter_map(|h| class.methods.get_key_value(h)) {
            if !methods.contains(&(*hook.0, *hook.1)) {
                methods.push((*hook.0, *hook.1));
            }
        }
        for (_, function) in methods {
            let function = cx.module.functions.get(&function);
            let function =
                function.ok_or_else(|| Diagnostic::internal("a class has a method without a body"))?;
            self.function(cx, function, 1, true)?;
        }
        if self.text.len() == start {
            self.line(1, "pass");
        }
        Ok(())
    }

    fn interface(&mut self, cx: &Context<'_>, interface: &InterfaceDef) -> Result<()> {
        let base = if interface.is_module { "ModuleInterface" } else { "Interface" };
        self.line(0, &format!("class {}({base}):", last(interface.name)));
        for (name, schema) in &interface.methods {
            let mut line = format!("def {name}(self");
            for argument in schema.arguments.iter().skip(1) {
                line.push_str(&format!(", {}: {}", argument.name, cx.type_text(&argument.ty)?));
            }
            line.push_str(&format!(") -> {}:", cx.type_text(&returned(&schema.returns))?));
            self.line(1, &line);
            self.line(2, "pass");
        }
        Ok(())
    }

    fn named_tuple(&mut self, cx: &Context<'_>, name: Symbol, def: &NamedTupleDef) -> Result<()> {
        let TypeKind::Tuple(elements, Some(names)) = def.ty.kind() else {
            return Err(Diagnostic::internal("a named tuple whose type is none"));
        };
        self.line(0, &format!("class {}(NamedTuple):", last(name)));
        let plain = names.fields.len().saturating_sub(def.defaults.len());
        for (n, (field, ty)) in names.fields.iter().zip(elements.iter()).enumerate() {
            let mut line = format!("{field} : {}", cx.type_text(ty)?);
            if let Some(default) = n.checked_sub(plain).and_then(|n| def.defaults.get(n)) {
                let value = constant::value(&[(Symbol::new("value"), default.clone())], Some(ty))?;
                line.push_str(&format!(" = {}", cx.constant(&value)?));
            }
            self.line(1, &line);
        }
        Ok(())
    }

    fn enumeration(&mut self, cx: &Context<'_>, def: &EnumDef) -> Result<()> {
        self.line(0, &format!("class {}(Enum):", last(def.name)));
        for (name, value) in &def.members {
            let value = constant::value(&[(Symbol::new("value"), value.clone())], Some(&def.value_type))?;
            self.line(1, &format!("{name} = {}", cx.constant(&value)?));
        }
        Ok(())
    }

    /// `def f(a: int,\n    b: int=1) -> int:` and the body.
    pub(super) fn function(
        &mut self,
        cx: &Context<'_>,
        function: &Function,
        level: usize,
        typed_self: bool,
    ) -> Result<()> {
        self.names.start_function();
        let inputs = function.graph.inputs();
        if inputs.len() != function.schema.arguments.len() {
            return Err(Diagnostic::verify(format!("{} has other inputs than arguments", function.name)));
        }
        let mut header = format!("def {}(", last(function.name));
        let mut parameters = Vec::with_capacity(inputs.len());
        for (n, argument) in function.schema.arguments.iter().enumerate() {
            let name = self.names.fresh(argument.name.as_str());
            header.push_str(if n == 0 { "" } else { ",\n    " });
            header.push_str(&name);
            if n > 0 || typed_self {
                header.push_str(&format!(": {}", cx.type_text(&argument.ty)?));
            }
            if let Some(default) = &argument.default {
                header.push_str(&format!("={}", default_text(cx, default, &argument.ty)?));
            }
            parameters.push(name);
        }
        header.push_str(&format!(") -> {}:", cx.type_text(&returned(&function.schema.returns))?));
        self.line(level, &header);
        let graph = super::loops::printable(&function.graph);
        let mut body = Body::new(cx, self, &graph, level + 1);
        for (input, name) in graph.inputs().to_vec().into_iter().zip(parameters) {
            body.assign(input, Text::from(name, None));
        }
        body.print()
    }

    fn line(&mut self, level: usize, line: &str) {
        self.indent(level);
        self.text.push(line, None);
        self.text.push("\n", None);
    }
}

fn default_text(cx: &Context<'_>, default: &Attr, ty: &Type) -> Result<String> {
    cx.constant(&constant::value(&[(Symbol::new("value"), default.clone())], Some(ty))?)
}

/// The type of what a function gives; several results are a tuple.
fn returned(returns: &[Argument]) -> Type {
    match returns {
        [one] => one.ty.clone(),
        [] => Type::none(),
        many => Type::tuple(many.iter().map(|r| r.ty.clone()).collect::<Vec<_>>()),
    }
}

/// The last component of a qualified name.
fn last(name: Symbol) -> &'static str {
    let name = name.as_str();
    name.rsplit_once('.').map_or(name, |(_, last)| last)
}
