//! Which number stands for which kind of type: those without parts in a table, the others by constants.

use crate::ir::TypeKind;

/// An attribute that was there before: its number follows. Others have the numbers below.
pub(super) const SAME: u64 = 22;

/// Types without parts, by number.
pub(super) const PLAIN: &[TypeKind] = &[
    TypeKind::Any,
    TypeKind::AnyList,
    TypeKind::AnyTuple,
    TypeKind::AnyEnum,
    TypeKind::AnyClass,
    TypeKind::Number,
    TypeKind::Int,
    TypeKind::Float,
    TypeKind::Complex,
    TypeKind::Bool,
    TypeKind::Str,
    TypeKind::None,
    TypeKind::Device,
    TypeKind::ScalarType,
    TypeKind::Layout,
    TypeKind::MemoryFormat,
    TypeKind::QScheme,
    TypeKind::Stream,
    TypeKind::Generator,
    TypeKind::Storage,
    TypeKind::Capsule,
    TypeKind::PyObject,
    TypeKind::SymInt,
    TypeKind::SymFloat,
    TypeKind::SymBool,
];

pub(super) const TENSOR: u64 = 64;
pub(super) const LIST: u64 = 65;
pub(super) const DICT: u64 = 66;
pub(super) const TUPLE: u64 = 67;
pub(super) const NAMED_TUPLE: u64 = 68;
pub(super) const OPTIONAL: u64 = 69;
pub(super) const UNION: u64 = 70;
pub(super) const FUTURE: u64 = 71;
pub(super) const AWAIT: u64 = 72;
pub(super) const RREF: u64 = 73;
pub(super) const VAR: u64 = 74;
pub(super) const FUNCTION: u64 = 75;
pub(super) const CLASS: u64 = 76;
pub(super) const INTERFACE: u64 = 77;
pub(super) const ENUM: u64 = 78;
pub(super) const DIALECT: u64 = 79;
