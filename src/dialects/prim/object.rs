//! Objects of script classes and modules, and members of enum classes.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Effects, OpDef, Outputs, host, one};
use crate::ir::{Attr, Symbol, Type};
use crate::value::{EnumValue, Object, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("prim::CreateObject() -> Any", create)
        .effects(Effects::IDENTITY)
        .doc("an instance of a class, nothing set yet"),
    host("prim::GetAttr(Any self) -> Any", get)
        .effects(Effects::READS_WORLD)
        .doc("an attribute of an object"),
    host("prim::SetAttr(Any self, Any value) -> ()", set)
        .effects(Effects::WRITES_WORLD)
        .doc("sets an attribute of an object"),
    host("prim::EnumName(AnyEnumType enum) -> str", enum_name).doc("the name of a member of an enum class"),
    host("prim::EnumValue.int(AnyEnumType enum) -> int", enum_value).doc("the value of a member"),
    host("prim::EnumValue.float(AnyEnumType enum) -> float", enum_value).doc("the value of a member"),
    host("prim::EnumValue.str(AnyEnumType enum) -> str", enum_value).doc("the value of a member"),
    host("prim::ModuleContainerIndex.list(Any self, int ind) -> Any", member_at)
        .effects(Effects::READS_WORLD)
        .doc("a submodule of a list of modules"),
    host("prim::ModuleContainerIndex.dict(Any self, str ind) -> Any", member_at)
        .effects(Effects::READS_WORLD)
        .doc("a submodule of a dictionary of modules"),
    host("prim::id(AnyClassType? x) -> int", identity)
        .doc("a number that identifies an object while it lives"),
];

fn create(args: &Args<'_>) -> Result<Outputs> {
    match args.result_type(0).and_then(Type::class_name) {
        Some(class) => one(Value::Object(Object::new(class))),
        None => Err(Diagnostic::verify("the result of prim::CreateObject must have a class as its type")),
    }
}

fn attribute(args: &Args<'_>) -> Result<Symbol> {
    let name = args.attr("name").and_then(Attr::as_str).map(Symbol::new);
    name.ok_or_else(|| Diagnostic::verify(format!("{} needs an attribute 'name'", args.op.name())))
}

fn get(args: &Args<'_>) -> Result<Outputs> {
    let (object, name) = (args.value(0)?.to_object()?, attribute(args)?);
    match object.get(name) {
        Some(value) => one(value),
        None => Err(Diagnostic::raised(
            "AttributeError",
            format!("'{}' object has no attribute '{name}'", object.class()),
        )),
    }
}

fn set(args: &Args<'_>) -> Result<Outputs> {
    args.value(0)?.to_object()?.set(attribute(args)?, args.value(1)?.clone());
    Ok(SmallVec::new())
}

fn member<'a>(args: &Args<'a>) -> Result<&'a Arc<EnumValue>> {
    match args.value(0)? {
        Value::Enum(member) => Ok(member),
        other => Err(Diagnostic::runtime(format!("Expected an enum member but got {}", other.kind_name()))),
    }
}

fn enum_name(args: &Args<'_>) -> Result<Outputs> {
    one(Value::str(member(args)?.name.as_str()))
}

fn enum_value(args: &Args<'_>) -> Result<Outputs> {
    one(member(args)?.value.clone())
}

fn identity(args: &Args<'_>) -> Result<Outputs> {
    match args.value(0)? {
        Value::Object(object) => one(object.id() as i64),
        _ => one(0),
    }
}

/// Submodules of containers are attributes named by their place or key.
fn member_at(args: &Args<'_>) -> Result<Outputs> {
    let object = args.value(0)?.to_object()?;
    let name = match args.value(1)? {
        Value::Int(n) => n.to_string(),
        other => other.to_str()?.to_string(),
    };
    match object.get(Symbol::new(&name)) {
        Some(value) => one(value),
        None => Err(Diagnostic::runtime(format!(
            "{} does not have a field with name '{name}'",
            Type::class(object.class()).repr()
        ))),
    }
}
