//! Classes of archives: modules, script classes, named tuples, enums, interfaces.

use super::{Compiler, Emitter, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{Class, Def, Expr, ExprKind, Stmt, StmtKind};
use crate::ir::schema::{Argument, Schema};
use crate::ir::{
    Attr, ClassAttribute, ClassDef, ClassKind, EnumDef, InterfaceDef, Module, NamedTupleDef, Symbol, Type,
};
use indexmap::IndexMap;
use std::rc::Rc;

impl Compiler {
    /// Defines a class of an archive from its text. Methods are compiled when they are needed.
    pub(super) fn define_class(&mut self, name: Symbol, class: &Class, span: &Span) -> Result<()> {
        let base = class.base.as_ref().and_then(super::types::dotted);
        match base.as_deref() {
            Some("NamedTuple") => define_named_tuple(self, name, class),
            Some("Enum") => define_enum(self, name, class),
            Some("Interface") => define_interface(self, name, class, false),
            Some("ModuleInterface") => define_interface(self, name, class, true),
            Some("Module") => define_class(self, name, class, ClassKind::Module),
            None => define_class(self, name, class, ClassKind::Script),
            Some(other) => error(span, format!("class {name} has the base {other}, which is not supported")),
        }
    }

    /// Reads types and constants outside of any function.
    pub(super) fn scratch(&mut self) -> Emitter<'_> {
        Emitter::new(self, String::new())
    }

    /// The type that an expression names in a finished module.
    pub(in crate::frontend::script) fn annotation(module: &Module, expr: &Expr) -> Result<Type> {
        let mut unit = Compiler::new(Default::default());
        unit.module = Module {
            functions: IndexMap::new(),
            classes: module.classes.clone(),
            interfaces: module.interfaces.clone(),
            enums: module.enums.clone(),
            named_tuples: module.named_tuples.clone(),
        };
        unit.scratch().type_of(expr)
    }
}

fn define_class(unit: &mut Compiler, name: Symbol, class: &Class, kind: ClassKind) -> Result<()> {
    // The class is known by name before its attributes are read, as they may speak of it.
    unit.module.classes.insert(name, ClassDef::new(name, kind));
    let mut def = ClassDef::new(name, kind);
    let (mut parameters, mut buffers) = (Vec::new(), Vec::new());
    for stmt in &class.body {
        match &stmt.kind {
            StmtKind::Def(method) => declare_method(unit, &mut def, name, method),
            StmtKind::Assign { targets, annotation, value } => {
                let [target] = targets.as_slice() else { continue };
                match (&target.kind, annotation, value) {
                    (ExprKind::Name(n), None, Some(list)) if n == "__parameters__" => {
                        parameters = strings(list)
                    }
                    (ExprKind::Name(n), None, Some(list)) if n == "__buffers__" => buffers = strings(list),
                    (ExprKind::Name(n), None, Some(_)) if n == "__annotations__" => {}
                    (ExprKind::Name(n), None, Some(list)) if n == "__forward_hooks__" => {
                        def.forward_hooks = strings(list).iter().map(|s| Symbol::new(s)).collect();
                    }
                    (ExprKind::Name(n), None, Some(list)) if n == "__forward_pre_hooks__" => {
                        def.forward_pre_hooks = strings(list).iter().map(|s| Symbol::new(s)).collect();
                    }
                    (ExprKind::Name(attribute), Some(annotation), None) => {
                        let ty = unit.scratch().type_of(annotation)?;
                        add(&mut def, attribute, ty);
                    }
                    (ExprKind::Name(constant), Some(annotation), Some(value)) => {
                        let mut reader = unit.scratch();
                        let ty = reader.type_of(annotation)?;
                        let value = reader.constant_expr(value)?;
                        def.constants.insert(Symbol::new(constant), (ty, value));
                    }
                    (ExprKind::Subscript { indices, .. }, None, Some(annotation)) => {
                        // `__annotations__["0"] = T`, for names that are not identifiers.
                        if let [Expr { kind: ExprKind::Str(attribute), .. }] = indices.as_slice() {
                            let ty = unit.scratch().type_of(annotation)?;
                            add(&mut def, attribute, ty);
                        }
                    }
                    _ => return unexpected(stmt),
                }
            }
            StmtKind::Pass => {}
            _ => return unexpected(stmt),
        }
    }
    for attribute in &mut def.attributes {
        attribute.is_parameter = parameters.iter().any(|p| attribute.name == p.as_str());
        attribute.is_buffer = buffers.iter().any(|b| attribute.name == b.as_str());
    }
    unit.module.classes.insert(name, def);
    Ok(())
}

fn unexpected(stmt: &Stmt) -> Result<()> {
    error(&stmt.span, "Unexpected statement kind in the body of a class")
}

fn add(def: &mut ClassDef, name: &str, ty: Type) {
    def.attributes.push(ClassAttribute {
        name: Symbol::new(name),
        ty,
        is_parameter: false,
        is_buffer: false,
    });
}

fn declare_method(unit: &mut Compiler, def: &mut ClassDef, class: Symbol, method: &Def) {
    let function = Symbol::new(&format!("{class}.{}", method.name.name));
    def.methods.insert(Symbol::new(&method.name.name), function);
    unit.declare(function, Rc::new(method.clone()), Some(class));
}

/// The strings of a list literal.
fn strings(list: &Expr) -> Vec<String> {
    let ExprKind::List(items) = &list.kind else { return Vec::new() };
    items
        .iter()
        .filter_map(|item| match &item.kind {
            ExprKind::Str(text) => Some(text.clone()),
            ExprKind::Name(text) => Some(text.clone()),
            _ => None,
        })
        .collect()
}

fn define_named_tuple(unit: &mut Compiler, name: Symbol, class: &Class) -> Result<()> {
    let (mut fields, mut types, mut defaults) = (Vec::new(), Vec::new(), Vec::new());
    for stmt in &class.body {
        let StmtKind::Assign { targets, annotation: Some(annotation), value } = &stmt.kind else {
            return unexpected(stmt);
        };
        let [Expr { kind: ExprKind::Name(field), .. }] = targets.as_slice() else {
            return unexpected(stmt);
        };
        let mut reader = unit.scratch();
        types.push(reader.type_of(annotation)?);
        if let Some(value) = value {
            defaults.push(reader.constant_expr(value)?);
        }
        fields.push(Symbol::new(field));
    }
    let ty = Type::named_tuple(name, fields, types);
    unit.module.named_tuples.insert(name, NamedTupleDef { ty, defaults });
    Ok(())
}

fn define_enum(unit: &mut Compiler, name: Symbol, class: &Class) -> Result<()> {
    let mut members = Vec::new();
    for stmt in &class.body {
        let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else {
            return unexpected(stmt);
        };
        let [Expr { kind: ExprKind::Name(member), .. }] = targets.as_slice() else {
            return unexpected(stmt);
        };
        members.push((Symbol::new(member), unit.scratch().constant_expr(value)?));
    }
    let value_type = match members.first() {
        Some((_, Attr::Float(_))) => Type::float(),
        Some((_, Attr::Str(_))) => Type::str(),
        _ => Type::int(),
    };
    unit.module.enums.insert(name, EnumDef { name, value_type, members });
    Ok(())
}

fn define_interface(unit: &mut Compiler, name: Symbol, class: &Class, is_module: bool) -> Result<()> {
    let empty = InterfaceDef { name, is_module, methods: IndexMap::new() };
    unit.module.interfaces.insert(name, empty);
    let mut methods = IndexMap::new();
    for stmt in &class.body {
        let StmtKind::Def(def) = &stmt.kind else { continue };
        let mut reader = unit.scratch();
        let mut arguments = Vec::new();
        for (n, param) in def.decl.params.iter().enumerate() {
            let ty = match &param.annotation {
                _ if n == 0 => Type::interface(name),
                Some(annotation) => reader.type_of(annotation)?,
                None => Type::tensor(),
            };
            arguments.push(Argument::new(param.name.name.as_str(), ty));
        }
        let returns = match &def.decl.returns {
            Some(returns) => reader.type_of(returns)?,
            None => Type::tensor(),
        };
        let method = Symbol::new(&def.name.name);
        methods.insert(method, Schema::new(method, arguments, vec![Argument::new("", returns)]));
    }
    unit.module.interfaces.insert(name, InterfaceDef { name, is_module, methods });
    Ok(())
}
