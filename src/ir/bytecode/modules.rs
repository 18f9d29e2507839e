//! Modules as bytes: schemas, graphs and places of functions, and what classes, interfaces, enums and named tuples are.
//! Symbols and types are shared by all that is in a module.
//!
//! ```text
//! module     functions, classes, interfaces, enums, named tuples; before each kind how many follow
//! function   name; schema; graph; place, if there is one
//! schema     name; overload; arguments; results; two flags
//! ```

use super::Outside;
use super::read::{Reader, all_of};
use super::write::{Writer, written};
use crate::ir::module::Property;
use crate::ir::{
    AliasInfo, Argument, Attr, ClassAttribute, ClassDef, ClassKind, EnumDef, Function, InterfaceDef, Module,
    NamedTupleDef, Schema, Symbol, Type,
};
use indexmap::IndexMap;

/// The bytes of a module, with its tensors and sources in `outside`, as [`super::write()`] has them of a graph.
pub fn write_module(module: &Module, outside: &mut Outside) -> Option<Vec<u8>> {
    written(outside, |writer| {
        writer.each_of(module.functions.values(), Writer::function)?;
        writer.definitions(module)
    })
}

/// The module that bytes are of, all of them, with the tensors and sources of `outside`. None where they are of none.
pub fn read_module(bytes: &[u8], outside: &Outside) -> Option<Module> {
    all_of(bytes, outside, |reader| {
        let functions = reader.table(|r| r.function().map(|function| (function.name, function)))?;
        let classes = reader.table(|r| r.class().map(|class| (class.name, class)))?;
        let interfaces = reader.table(|r| r.interface().map(|interface| (interface.name, interface)))?;
        let enums = reader.table(|r| r.enumeration().map(|def| (def.name, def)))?;
        let named_tuples = reader.table(|r| {
            let name = r.symbol()?;
            Some((name, NamedTupleDef { ty: r.ty()?, defaults: r.list(Reader::attr)? }))
        })?;
        Some(Module { functions, classes, interfaces, enums, named_tuples })
    })
}

/// The functions of the second module that the first one does not have, or has differently; within that, None where the two differ in
/// anything but functions. None where there are no bytes to compare.
pub fn differences(before: &Module, after: &Module, outside: &mut Outside) -> Option<Option<Vec<Symbol>>> {
    let mut differ = Vec::new();
    let mut others = [Vec::new(), Vec::new()];
    written(outside, |writer| {
        for (name, function) in &after.functions {
            let before = before.functions.get(name);
            let before = before.map(|function| writer.alone(|w| w.function(function)));
            let after = writer.alone(|w| w.function(function))?;
            if before.is_none_or(|before| before.as_ref() != Some(&after)) {
                differ.push(*name);
            }
        }
        for (bytes, module) in others.iter_mut().zip([before, after]) {
            *bytes = writer.alone(|w| w.definitions(module))?;
        }
        Some(())
    })?;
    let [before, after] = others;
    Some((before == after).then_some(differ))
}

/// The bytes of constants with their types.
pub fn write_constants(constants: &[(Type, Attr)], outside: &mut Outside) -> Option<Vec<u8>> {
    written(outside, |writer| {
        writer.each(constants, |w, (ty, attr)| {
            w.ty(ty)?;
            w.attr(attr)
        })
    })
}

impl Writer<'_> {
    fn each_of<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Option<()>,
    ) -> Option<()> {
        self.number(items.len() as u64);
        items.into_iter().try_for_each(|item| write(self, item))
    }

    /// All but the functions.
    fn definitions(&mut self, module: &Module) -> Option<()> {
        let Module { functions: _, classes, interfaces, enums, named_tuples } = module;
        self.each_of(classes.values(), Writer::class)?;
        self.each_of(interfaces.values(), Writer::interface)?;
        self.each_of(enums.values(), Writer::enumeration)?;
        self.each_of(named_tuples.iter(), |w, (name, def)| {
            w.symbol(*name);
            w.ty(&def.ty)?;
            w.each(&def.defaults, |w, attr| w.attr(attr))
        })
    }

    fn function(&mut self, function: &Function) -> Option<()> {
        let Function { name, schema, graph, span } = function;
        self.symbol(*name);
        self.schema(schema)?;
        self.graph(graph)?;
        self.flag(span.is_some());
        if let Some(span) = span {
            self.span(span);
        }
        Some(())
    }

    fn schema(&mut self, schema: &Schema) -> Option<()> {
        let Schema { name, overload, arguments, returns, is_vararg, is_varret } = schema;
        self.symbol(*name);
        self.symbol(*overload);
        self.each(arguments, Writer::argument)?;
        self.each(returns, Writer::argument)?;
        self.flag(*is_vararg);
        self.flag(*is_varret);
        Some(())
    }

    fn argument(&mut self, argument: &Argument) -> Option<()> {
        let Argument { name, ty, real_ty, fixed_length, default, keyword_only, alias, is_out } = argument;
        self.symbol(*name);
        self.ty(ty)?;
        self.ty(real_ty)?;
        // One more than the length, and 0 for none.
        self.number(fixed_length.map_or(0, |n| (n as u64).saturating_add(1)));
        self.flag(default.is_some());
        if let Some(default) = default {
            self.attr(default)?;
        }
        self.flag(*keyword_only);
        self.flag(*is_out);
        self.alias(alias.as_ref())
    }

    fn alias(&mut self, alias: Option<&AliasInfo>) -> Option<()> {
        self.flag(alias.is_some());
        let Some(AliasInfo { before, after, is_write, wildcard_before, wildcard_after, contained }) = alias
        else {
            return Some(());
        };
        self.symbols(before);
        self.symbols(after);
        [is_write, wildcard_before, wildcard_after].into_iter().for_each(|flag| self.flag(*flag));
        self.deeper(|w| w.each(contained, |w, inner| w.alias(inner.as_ref())))
    }

    fn symbols(&mut self, symbols: &[Symbol]) {
        self.number(symbols.len() as u64);
        symbols.iter().for_each(|symbol| self.symbol(*symbol));
    }

    fn pairs(&mut self, pairs: &IndexMap<Symbol, Symbol>) {
        self.number(pairs.len() as u64);
        for (name, function) in pairs {
            self.symbol(*name);
            self.symbol(*function);
        }
    }

    fn class(&mut self, class: &ClassDef) -> Option<()> {
        let ClassDef {
            name,
            kind,
            attributes,
            constants,
            methods,
            static_methods,
            properties,
            forward_pre_hooks,
            forward_hooks,
        } = class;
        self.symbol(*name);
        self.flag(*kind == ClassKind::Module);
        self.each(attributes, |w, ClassAttribute { name, ty, is_parameter, is_buffer }| {
            w.symbol(*name);
            w.flag(*is_parameter);
            w.flag(*is_buffer);
            w.ty(ty)
        })?;
        self.each_of(constants.iter(), |w, (name, (ty, attr))| {
            w.symbol(*name);
            w.ty(ty)?;
            w.attr(attr)
        })?;
        self.pairs(methods);
        self.pairs(static_methods);
        self.each_of(properties.iter(), |w, (name, Property { getter, setter })| {
            w.symbol(*name);
            w.symbol(*getter);
            w.flag(setter.is_some());
            setter.iter().for_each(|setter| w.symbol(*setter));
            Some(())
        })?;
        self.symbols(forward_pre_hooks);
        self.symbols(forward_hooks);
        Some(())
    }

    fn interface(&mut self, interface: &InterfaceDef) -> Option<()> {
        let InterfaceDef { name, is_module, methods } = interface;
        self.symbol(*name);
        self.flag(*is_module);
        self.each_of(methods.iter(), |w, (name, schema)| {
            w.symbol(*name);
            w.schema(schema)
        })
    }

    fn enumeration(&mut self, def: &EnumDef) -> Option<()> {
        let EnumDef { name, value_type, members } = def;
        self.symbol(*name);
        self.ty(value_type)?;
        self.each(members, |w, (name, value)| {
            w.symbol(*name);
            w.attr(value)
        })
    }
}

impl Reader<'_> {
    /// What has names, each once.
    fn table<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Option<(Symbol, T)>,
    ) -> Option<IndexMap<Symbol, T>> {
        let mut table = IndexMap::new();
        for _ in 0..self.number()? {
            let (name, item) = read(self)?;
            if table.insert(name, item).is_some() {
                return None;
            }
        }
        Some(table)
    }

    fn function(&mut self) -> Option<Function> {
        let (name, schema, graph) = (self.symbol()?, self.schema()?, self.graph()?);
        let span = if self.flag()? { Some(self.span()?) } else { None };
        Some(Function { name, schema, graph, span })
    }

    fn schema(&mut self) -> Option<Schema> {
        Some(Schema {
            name: self.symbol()?,
            overload: self.symbol()?,
            arguments: self.list(Self::argument)?,
            returns: self.list(Self::argument)?,
            is_vararg: self.flag()?,
            is_varret: self.flag()?,
        })
    }

    fn argument(&mut self) -> Option<Argument> {
        let (name, ty, real_ty) = (self.symbol()?, self.ty()?, self.ty()?);
        let fixed_length = self.index()?.checked_sub(1);
        let default = if self.flag()? { Some(self.attr()?) } else { None };
        let (keyword_only, is_out) = (self.flag()?, self.flag()?);
        let alias = self.alias()?;
        Some(Argument { name, ty, real_ty, fixed_length, default, keyword_only, alias, is_out })
    }

    #[expect(clippy::option_option, reason = "the inner one is read, the outer one says whether it could be")]
    fn alias(&mut self) -> Option<Option<AliasInfo>> {
        if !self.flag()? {
            return Some(None);
        }
        Some(Some(AliasInfo {
            before: self.list(Self::symbol)?,
            after: self.list(Self::symbol)?,
            is_write: self.flag()?,
            wildcard_before: self.flag()?,
            wildcard_after: self.flag()?,
            contained: self.deeper(|r| r.list(Self::alias))?,
        }))
    }

    fn pair(&mut self) -> Option<(Symbol, Symbol)> {
        Some((self.symbol()?, self.symbol()?))
    }

    fn class(&mut self) -> Option<ClassDef> {
        let name = self.symbol()?;
        Some(ClassDef {
            name,
            kind: if self.flag()? { ClassKind::Module } else { ClassKind::Script },
            attributes: self.list(|r| {
                let (name, is_parameter, is_buffer) = (r.symbol()?, r.flag()?, r.flag()?);
                Some(ClassAttribute { name, ty: r.ty()?, is_parameter, is_buffer })
            })?,
            constants: self.table(|r| Some((r.symbol()?, (r.ty()?, r.attr()?))))?,
            methods: self.table(Self::pair)?,
            static_methods: self.table(Self::pair)?,
            properties: self.table(|r| {
                let (name, getter) = r.pair()?;
                let setter = if r.flag()? { Some(r.symbol()?) } else { None };
                Some((name, Property { getter, setter }))
            })?,
            forward_pre_hooks: self.list(Self::symbol)?,
            forward_hooks: self.list(Self::symbol)?,
        })
    }

    fn interface(&mut self) -> Option<InterfaceDef> {
        let (name, is_module) = (self.symbol()?, self.flag()?);
        Some(InterfaceDef { name, is_module, methods: self.table(|r| Some((r.symbol()?, r.schema()?)))? })
    }

    fn enumeration(&mut self) -> Option<EnumDef> {
        let (name, value_type) = (self.symbol()?, self.ty()?);
        Some(EnumDef { name, value_type, members: self.list(|r| Some((r.symbol()?, r.attr()?)))? })
    }
}
