//! Dictionaries: ordered by insertion. PyTorch has a row for each type of keys; the kernels do not care.

use super::list::nothing;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::lists;
use crate::dialects::{Args, OpDef, Outputs, container, one};
use crate::ir::{Type, TypeKind};
use crate::value::{Dict, DictKey, Value};

/// The rows.
#[rustfmt::skip] // one line a row
pub static OPS: &[OpDef] = &[
    container("aten::len.Dict_str(Dict(str, t) self) -> int", len),
    container("aten::len.Dict_int(Dict(int, t) self) -> int", len),
    container("aten::len.Dict_bool(Dict(bool, t) self) -> int", len),
    container("aten::len.Dict_float(Dict(float, t) self) -> int", len),
    container("aten::len.Dict_complex(Dict(complex, t) self) -> int", len),
    container("aten::len.Dict_Tensor(Dict(Tensor, t) self) -> int", len),
    container("aten::__getitem__.Dict_str(Dict(str, t) self, str key) -> t(*)", get_item),
    container("aten::__getitem__.Dict_int(Dict(int, t) self, int key) -> t(*)", get_item),
    container("aten::__getitem__.Dict_bool(Dict(bool, t) self, bool key) -> t(*)", get_item),
    container("aten::__getitem__.Dict_float(Dict(float, t) self, float key) -> t(*)", get_item),
    container("aten::__getitem__.Dict_complex(Dict(complex, t) self, complex key) -> t(*)", get_item),
    container("aten::__getitem__.Dict_Tensor(Dict(Tensor, t) self, Tensor key) -> t(*)", get_item),
    container("aten::get.str(Dict(str, t) self, str key) -> t(*)?", get),
    container("aten::get.default_str(Dict(str, t) self, str key, t default_value) -> t(*)", get_default),
    container("aten::get.int(Dict(int, t) self, int key) -> t(*)?", get),
    container("aten::get.default_int(Dict(int, t) self, int key, t default_value) -> t(*)", get_default),
    container("aten::get.bool(Dict(bool, t) self, bool key) -> t(*)?", get),
    container("aten::get.default_bool(Dict(bool, t) self, bool key, t default_value) -> t(*)", get_default),
    container("aten::get.float(Dict(float, t) self, float key) -> t(*)?", get),
    container("aten::get.default_float(Dict(float, t) self, float key, t default_value) -> t(*)", get_default),
    container("aten::get.complex(Dict(complex, t) self, complex key) -> t(*)?", get),
    container("aten::get.default_complex(Dict(complex, t) self, complex key, t default_value) -> t(*)", get_default),
    container("aten::get.Tensor(Dict(Tensor, t) self, Tensor key) -> t(*)?", get),
    container("aten::get.default_Tensor(Dict(Tensor, t) self, Tensor key, t default_value) -> t(*)", get_default),
    container("aten::setdefault.str(Dict(str, t)(a!) self, str(b -> *) key, t(c -> *) default_value) -> t(*)", set_default),
    container("aten::setdefault.int(Dict(int, t)(a!) self, int(b -> *) key, t(c -> *) default_value) -> t(*)", set_default),
    container("aten::setdefault.bool(Dict(bool, t)(a!) self, bool(b -> *) key, t(c -> *) default_value) -> t(*)", set_default),
    container("aten::setdefault.float(Dict(float, t)(a!) self, float(b -> *) key, t(c -> *) default_value) -> t(*)", set_default),
    container("aten::setdefault.complex(Dict(complex, t)(a!) self, complex(b -> *) key, t(c -> *) default_value) -> t(*)", set_default),
    container("aten::setdefault.Tensor(Dict(Tensor, t)(a!) self, Tensor(b -> *) key, t(c -> *) default_value) -> t(*)", set_default),
    container("aten::pop.Dict_str(Dict(str, t)(a!) self, str key) -> t(*)", pop),
    container("aten::pop.Dict_default_str(Dict(str, t)(a!) self, str key, t default_value) -> t(*)", pop_default),
    container("aten::pop.Dict_int(Dict(int, t)(a!) self, int key) -> t(*)", pop),
    container("aten::pop.Dict_default_int(Dict(int, t)(a!) self, int key, t default_value) -> t(*)", pop_default),
    container("aten::pop.Dict_bool(Dict(bool, t)(a!) self, bool key) -> t(*)", pop),
    container("aten::pop.Dict_default_bool(Dict(bool, t)(a!) self, bool key, t default_value) -> t(*)", pop_default),
    container("aten::pop.Dict_float(Dict(float, t)(a!) self, float key) -> t(*)", pop),
    container("aten::pop.Dict_default_float(Dict(float, t)(a!) self, float key, t default_value) -> t(*)", pop_default),
    container("aten::pop.Dict_complex(Dict(complex, t)(a!) self, complex key) -> t(*)", pop),
    container("aten::pop.Dict_default_complex(Dict(complex, t)(a!) self, complex key, t default_value) -> t(*)", pop_default),
    container("aten::pop.Dict_Tensor(Dict(Tensor, t)(a!) self, Tensor key) -> t(*)", pop),
    container("aten::pop.Dict_default_Tensor(Dict(Tensor, t)(a!) self, Tensor key, t default_value) -> t(*)", pop_default),
    container("aten::popitem.str(Dict(str, t)(a!) self) -> ((str, t))", pop_item),
    container("aten::popitem.int(Dict(int, t)(a!) self) -> ((int, t))", pop_item),
    container("aten::popitem.bool(Dict(bool, t)(a!) self) -> ((bool, t))", pop_item),
    container("aten::popitem.float(Dict(float, t)(a!) self) -> ((float, t))", pop_item),
    container("aten::popitem.complex(Dict(complex, t)(a!) self) -> ((complex, t))", pop_item),
    container("aten::popitem.Tensor(Dict(Tensor, t)(a!) self) -> ((Tensor, t))", pop_item),
    container("aten::Delete.Dict_str(Dict(str, t)(a!) self, str key) -> ()", delete),
    container("aten::Delete.Dict_int(Dict(int, t)(a!) self, int key) -> ()", delete),
    container("aten::Delete.Dict_bool(Dict(bool, t)(a!) self, bool key) -> ()", delete),
    container("aten::Delete.Dict_float(Dict(float, t)(a!) self, float key) -> ()", delete),
    container("aten::Delete.Dict_complex(Dict(complex, t)(a!) self, complex key) -> ()", delete),
    container("aten::Delete.Dict_Tensor(Dict(Tensor, t)(a!) self, Tensor key) -> ()", delete),
    container("aten::_set_item.str(Dict(str, t)(a!) l, str(b -> *) idx, t(c -> *) v) -> ()", set_item),
    container("aten::_set_item.int(Dict(int, t)(a!) l, int(b -> *) idx, t(c -> *) v) -> ()", set_item),
    container("aten::_set_item.bool(Dict(bool, t)(a!) l, bool(b -> *) idx, t(c -> *) v) -> ()", set_item),
    container("aten::_set_item.float(Dict(float, t)(a!) l, float(b -> *) idx, t(c -> *) v) -> ()", set_item),
    container("aten::_set_item.complex(Dict(complex, t)(a!) l, complex(b -> *) idx, t(c -> *) v) -> ()", set_item),
    container("aten::_set_item.Tensor(Dict(Tensor, t)(a!) l, Tensor(b -> *) idx, t(c -> *) v) -> ()", set_item),
    container("aten::__contains__.str(Dict(str, t) dict, str key) -> bool", contains),
    container("aten::__contains__.int(Dict(int, t) dict, int key) -> bool", contains),
    container("aten::__contains__.bool(Dict(bool, t) dict, bool key) -> bool", contains),
    container("aten::__contains__.float(Dict(float, t) dict, float key) -> bool", contains),
    container("aten::__contains__.complex(Dict(complex, t) dict, complex key) -> bool", contains),
    container("aten::__contains__.Tensor(Dict(Tensor, t) dict, Tensor key) -> bool", contains),
    container("aten::update.str(Dict(str, t)(a!) self, Dict(str, t)(a!) to_add) -> ()", update),
    container("aten::update.int(Dict(int, t)(a!) self, Dict(int, t)(a!) to_add) -> ()", update),
    container("aten::update.bool(Dict(bool, t)(a!) self, Dict(bool, t)(a!) to_add) -> ()", update),
    container("aten::update.float(Dict(float, t)(a!) self, Dict(float, t)(a!) to_add) -> ()", update),
    container("aten::update.complex(Dict(complex, t)(a!) self, Dict(complex, t)(a!) to_add) -> ()", update),
    container("aten::update.Tensor(Dict(Tensor, t)(a!) self, Dict(Tensor, t)(a!) to_add) -> ()", update),
    container("aten::keys.str(Dict(str, t) self) -> str[](*)", keys),
    container("aten::keys.int(Dict(int, t) self) -> int[](*)", keys),
    container("aten::keys.bool(Dict(bool, t) self) -> bool[](*)", keys),
    container("aten::keys.float(Dict(float, t) self) -> float[](*)", keys),
    container("aten::keys.complex(Dict(complex, t) self) -> complex[](*)", keys),
    container("aten::keys.Tensor(Dict(Tensor, t) self) -> Tensor[](*)", keys),
    container("aten::values.str(Dict(str, t) self) -> t[](*)", values).infer(lists::some),
    container("aten::values.int(Dict(int, t) self) -> t[](*)", values).infer(lists::some),
    container("aten::values.bool(Dict(bool, t) self) -> t[](*)", values).infer(lists::some),
    container("aten::values.float(Dict(float, t) self) -> t[](*)", values).infer(lists::some),
    container("aten::values.complex(Dict(complex, t) self) -> t[](*)", values).infer(lists::some),
    container("aten::values.Tensor(Dict(Tensor, t) self) -> t[](*)", values).infer(lists::some),
    container("aten::items.str(Dict(str, t) self) -> ((str, t)[])", items),
    container("aten::items.int(Dict(int, t) self) -> ((int, t)[])", items),
    container("aten::items.bool(Dict(bool, t) self) -> ((bool, t)[])", items),
    container("aten::items.float(Dict(float, t) self) -> ((float, t)[])", items),
    container("aten::items.complex(Dict(complex, t) self) -> ((complex, t)[])", items),
    container("aten::items.Tensor(Dict(Tensor, t) self) -> ((Tensor, t)[])", items),
    container("aten::clear.str(Dict(str, t)(a!) self) -> ()", clear),
    container("aten::clear.int(Dict(int, t)(a!) self) -> ()", clear),
    container("aten::clear.bool(Dict(bool, t)(a!) self) -> ()", clear),
    container("aten::clear.float(Dict(float, t)(a!) self) -> ()", clear),
    container("aten::clear.complex(Dict(complex, t)(a!) self) -> ()", clear),
    container("aten::clear.Tensor(Dict(Tensor, t)(a!) self) -> ()", clear),
    container("aten::copy.Dict_str(Dict(str, t)(a) self) -> Dict(str, t)", copy),
    container("aten::copy.Dict_int(Dict(int, t)(a) self) -> Dict(int, t)", copy),
    container("aten::copy.Dict_bool(Dict(bool, t)(a) self) -> Dict(bool, t)", copy),
    container("aten::copy.Dict_float(Dict(float, t)(a) self) -> Dict(float, t)", copy),
    container("aten::copy.Dict_complex(Dict(complex, t)(a) self) -> Dict(complex, t)", copy),
    container("aten::copy.Dict_Tensor(Dict(Tensor, t)(a) self) -> Dict(Tensor, t)", copy),
    container("aten::dict() -> Dict(str, Tensor)", empty),
    container("aten::dict.str((str, tVal)[] inputs) -> Dict(str, tVal)", from_pairs),
    container("aten::dict.Dict_str(Dict(str, t)(a) self) -> Dict(str, t)", copy),
    container("aten::dict.int((int, tVal)[] inputs) -> Dict(int, tVal)", from_pairs),
    container("aten::dict.Dict_int(Dict(int, t)(a) self) -> Dict(int, t)", copy),
    container("aten::dict.bool((bool, tVal)[] inputs) -> Dict(bool, tVal)", from_pairs),
    container("aten::dict.Dict_bool(Dict(bool, t)(a) self) -> Dict(bool, t)", copy),
    container("aten::dict.float((float, tVal)[] inputs) -> Dict(float, tVal)", from_pairs),
    container("aten::dict.Dict_float(Dict(float, t)(a) self) -> Dict(float, t)", copy),
    container("aten::dict.complex((complex, tVal)[] inputs) -> Dict(complex, tVal)", from_pairs),
    container("aten::dict.Dict_complex(Dict(complex, t)(a) self) -> Dict(complex, t)", copy),
    container("aten::dict.Tensor((Tensor, tVal)[] inputs) -> Dict(Tensor, tVal)", from_pairs),
    container("aten::dict.Dict_Tensor(Dict(Tensor, t)(a) self) -> Dict(Tensor, t)", copy),
];

fn key_error(key: &Value) -> Diagnostic {
    Diagnostic::runtime(format!("KeyError: {}", key.to_text()))
}

fn len(args: &Args<'_>) -> Result<Outputs> {
    one(args.dict(0)?.len() as i64)
}

fn get_item(args: &Args<'_>) -> Result<Outputs> {
    let key = args.value(1)?;
    one(args.dict(0)?.get(key)?.ok_or_else(|| key_error(key))?)
}

fn get(args: &Args<'_>) -> Result<Outputs> {
    one(args.dict(0)?.get(args.value(1)?)?.unwrap_or_default())
}

fn get_default(args: &Args<'_>) -> Result<Outputs> {
    let found = args.dict(0)?.get(args.value(1)?)?;
    one(match found {
        Some(value) => value,
        None => args.value(2)?.clone(),
    })
}

fn set_default(args: &Args<'_>) -> Result<Outputs> {
    let key = DictKey::new(args.value(1)?)?;
    let default = args.value(2)?;
    one(args.dict(0)?.entries_mut().entry(key).or_insert_with(|| default.clone()).clone())
}

fn take(args: &Args<'_>) -> Result<Option<Value>> {
    let key = DictKey::new(args.value(1)?)?;
    Ok(args.dict(0)?.entries_mut().shift_remove(&key))
}

fn pop(args: &Args<'_>) -> Result<Outputs> {
    one(take(args)?.ok_or_else(|| args.value(1).map_or_else(|d| d, key_error))?)
}

fn pop_default(args: &Args<'_>) -> Result<Outputs> {
    one(match take(args)? {
        Some(value) => value,
        None => args.value(2)?.clone(),
    })
}

/// Takes the first entry, not the last as Python does.
fn pop_item(args: &Args<'_>) -> Result<Outputs> {
    match args.dict(0)?.entries_mut().shift_remove_index(0) {
        Some((key, value)) => one(Value::tuple(vec![key.to_value(), value])),
        None => Err(Diagnostic::runtime("popitem(): dictionary is empty")),
    }
}

fn delete(args: &Args<'_>) -> Result<Outputs> {
    pop(args)?;
    nothing()
}

fn set_item(args: &Args<'_>) -> Result<Outputs> {
    args.dict(0)?.insert(args.value(1)?, args.value(2)?.clone())?;
    nothing()
}

fn contains(args: &Args<'_>) -> Result<Outputs> {
    one(args.dict(0)?.get(args.value(1)?)?.is_some())
}

fn update(args: &Args<'_>) -> Result<Outputs> {
    // Copied first: a dictionary may be updated with itself.
    let other = args.dict(1)?.entries().clone();
    args.dict(0)?.entries_mut().extend(other);
    nothing()
}

fn keys(args: &Args<'_>) -> Result<Outputs> {
    let dict = args.dict(0)?;
    let keys = dict.entries().keys().map(DictKey::to_value).collect();
    one(Value::list(dict.key_type().clone(), keys))
}

fn values(args: &Args<'_>) -> Result<Outputs> {
    let dict = args.dict(0)?;
    let values = dict.entries().values().cloned().collect();
    one(Value::list(dict.value_type().clone(), values))
}

fn items(args: &Args<'_>) -> Result<Outputs> {
    let dict = args.dict(0)?;
    let pair = |(k, v): (&DictKey, &Value)| Value::tuple(vec![k.to_value(), v.clone()]);
    let items = dict.entries().iter().map(pair).collect();
    one(Value::list(Type::tuple(vec![dict.key_type().clone(), dict.value_type().clone()]), items))
}

fn clear(args: &Args<'_>) -> Result<Outputs> {
    args.dict(0)?.entries_mut().clear();
    nothing()
}

fn copy(args: &Args<'_>) -> Result<Outputs> {
    let dict = args.dict(0)?;
    let out = Dict::new(dict.key_type().clone(), dict.value_type().clone());
    *out.entries_mut() = dict.entries().clone();
    one(Value::Dict(out))
}

fn empty(_: &Args<'_>) -> Result<Outputs> {
    one(Value::Dict(Dict::new(Type::str(), Type::tensor())))
}

/// A dictionary of key-value pairs; of equal keys the last counts.
fn from_pairs(args: &Args<'_>) -> Result<Outputs> {
    let pairs = args.list(0)?;
    let (key, value) = match pairs.element_type().kind() {
        TypeKind::Tuple(parts, _) if parts.len() == 2 => (parts[0].clone(), parts[1].clone()),
        _ => (Type::str(), Type::tensor()),
    };
    let out = Dict::new(key, value);
    for pair in pairs.items().iter() {
        match pair.to_tuple()?.items() {
            [key, value] => out.insert(key, value.clone())?,
            other => {
                return Err(Diagnostic::runtime(format!(
                    "Expected a key and a value but found {} items",
                    other.len()
                )));
            }
        }
    }
    one(Value::Dict(out))
}
