//! What a value is: its kinds, and the lists, dictionaries, tuples and objects that hold values in turn. Only definitions; what
//! containers do stands in `container` and `object`, what is asked of values in the module above.

use super::{SharedGenerator, Text, future};
use crate::ir::types::TupleNames;
use crate::ir::{Symbol, Type};
use crate::resources::Charge;
use crate::tensor::{Device, Tensor};
use indexmap::IndexMap;
use num_complex::Complex64;
use parking_lot::RwLock;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

/// A value that a program computes with.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `None`
    #[default]
    None,
    /// A tensor.
    Tensor(Tensor),
    /// 64-bit integer. Dtypes, layouts and memory formats are integers too.
    Int(i64),
    /// 64-bit float.
    Float(f64),
    /// Two 64-bit floats.
    Complex(Complex64),
    /// Truth value.
    Bool(bool),
    /// Text.
    Str(Text),
    /// Shared list.
    List(List),
    /// Shared dictionary in insertion order.
    Dict(Dict),
    /// Immutable tuple, named or not.
    Tuple(Tuple),
    /// Instance of a script class or a module.
    Object(Object),
    /// Member of an enum class.
    Enum(Arc<EnumValue>),
    /// A device.
    Device(Arc<Device>),
    /// A random generator that a program or a host made.
    Generator(SharedGenerator),
    /// Result of `fork`.
    Future(Future),
    /// A function as a value, by qualified name.
    Function(Symbol),
    /// The value of a variable that the compiler proved is never read.
    Uninitialized,
}

/// A value to come. Clones wait for the same one.
pub type Future = future::Future<Value>;

/// A shared list. It knows its element type, as an empty one must.
#[derive(Clone)]
pub struct List(pub(super) Arc<ListInner>);

pub(super) struct ListInner {
    pub(super) element: Type,
    /// See [`List::share_with_calls`].
    pub(super) shared: AtomicBool,
    pub(super) items: RwLock<Items>,
}

/// Elements and what their memory is charged to.
pub(super) struct Items {
    pub(super) values: Vec<Value>,
    pub(super) charge: Charge,
}

/// A key of a dictionary. Floats compare as numbers, tensors by identity.
#[derive(Clone, Debug)]
pub enum DictKey {
    /// Text.
    Str(Arc<str>),
    /// Integer.
    Int(i64),
    /// Float.
    Float(f64),
    /// Complex number.
    Complex(Complex64),
    /// Truth value.
    Bool(bool),
    /// A tensor, by identity.
    Tensor(Tensor),
    /// A device, by name.
    Device(Arc<Device>),
}

/// The entries of a dictionary in insertion order.
pub type Entries = IndexMap<DictKey, Value>;

/// A shared dictionary in insertion order.
#[derive(Clone)]
pub struct Dict(pub(super) Arc<DictInner>);

pub(super) struct DictInner {
    pub(super) key: Type,
    pub(super) value: Type,
    /// See [`List::share_with_calls`].
    pub(super) shared: AtomicBool,
    pub(super) entries: RwLock<Charged>,
}

/// Entries and what their memory is charged to.
pub(super) struct Charged {
    pub(super) entries: Entries,
    pub(super) charge: Charge,
}

/// An immutable tuple; a named one knows its name and fields.
#[derive(Clone)]
pub struct Tuple(pub(super) Arc<TupleInner>);

pub(super) struct TupleInner {
    pub(super) items: Vec<Value>,
    pub(super) names: Option<Arc<TupleNames>>,
    pub(super) _charge: Charge,
    /// The type, once it was requested: tuples that share parts would be walked through again and again.
    pub(super) ty: OnceLock<Type>,
}

/// What an instance of a custom class holds in place of attributes. It is immutable, or guards itself.
pub type Native = Arc<dyn Any + Send + Sync>;

/// An instance of a script class or module: attribute values by name, in slot order. An instance of a custom class
/// (`__torch__.torch.classes.NAMESPACE.NAME`, written in C++ by PyTorch) has something native instead.
#[derive(Clone)]
pub struct Object(pub(super) Arc<ObjectInner>);

pub(super) struct ObjectInner {
    pub(super) class: Symbol,
    pub(super) fields: RwLock<Fields>,
    /// How often an attribute was set.
    pub(super) changes: AtomicU64,
    pub(super) native: Option<Native>,
}

/// Attribute values and what their memory is charged to.
pub(super) struct Fields {
    pub(super) values: IndexMap<Symbol, Value>,
    pub(super) charge: Charge,
}

/// A member of an enum class.
#[derive(Clone, Debug)]
pub struct EnumValue {
    /// Qualified name of the class.
    pub class: Symbol,
    /// Name of the member.
    pub name: Symbol,
    /// Its value: int, float or str.
    pub value: Value,
}
