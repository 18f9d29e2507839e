//! Element types that kernels compute with, and the dialect's types in the IR.

use super::NAMESPACE;
use crate::ir::types::TypeParameter;
use crate::ir::{Symbol, TensorType, Type, TypeKind};
use crate::tensor::DType;

/// A scalar type. Floats of 16 bits are storage: they are computed as `F32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elem {
    /// Truth value; one byte in memory, any non-zero byte is true.
    Bool,
    /// Unsigned byte.
    U8,
    /// Signed integers, wrapping.
    I8,
    /// See [`Elem::I8`].
    I16,
    /// See [`Elem::I8`].
    I32,
    /// See [`Elem::I8`]; also the type of indices.
    I64,
    /// IEEE half.
    F16,
    /// The upper half of a float.
    BF16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
}

/// All of them, in order.
const ALL: [Elem; 10] = [
    Elem::Bool,
    Elem::U8,
    Elem::I8,
    Elem::I16,
    Elem::I32,
    Elem::I64,
    Elem::F16,
    Elem::BF16,
    Elem::F32,
    Elem::F64,
];

impl Elem {
    /// The name in type text: `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Elem::Bool => "bool",
            Elem::U8 => "u8",
            Elem::I8 => "i8",
            Elem::I16 => "i16",
            Elem::I32 => "i32",
            Elem::I64 => "i64",
            Elem::F16 => "f16",
            Elem::BF16 => "bf16",
            Elem::F32 => "f32",
            Elem::F64 => "f64",
        }
    }

    /// The element type of a name.
    pub fn from_name(name: &str) -> Option<Elem> {
        ALL.into_iter().find(|e| e.name() == name)
    }

    /// The element type of a tensor's dtype; None for complex and quantized ones, which stay out of kernels.
    pub fn of(dtype: DType) -> Option<Elem> {
        ALL.into_iter().find(|elem| elem.dtype() == dtype)
    }

    /// The least and the greatest number of an integer type; bools count as 0 and 1.
    pub fn int_range(self) -> Option<[i64; 2]> {
        Some(match self {
            Elem::Bool => [0, 1],
            Elem::U8 => [0, 255],
            Elem::I8 => [i8::MIN.into(), i8::MAX.into()],
            Elem::I16 => [i16::MIN.into(), i16::MAX.into()],
            Elem::I32 => [i32::MIN.into(), i32::MAX.into()],
            Elem::I64 => [i64::MIN, i64::MAX],
            Elem::F16 | Elem::BF16 | Elem::F32 | Elem::F64 => return None,
        })
    }

    /// The dtype of tensors with such elements.
    pub fn dtype(self) -> DType {
        match self {
            Elem::Bool => DType::Bool,
            Elem::U8 => DType::U8,
            Elem::I8 => DType::I8,
            Elem::I16 => DType::I16,
            Elem::I32 => DType::I32,
            Elem::I64 => DType::I64,
            Elem::F16 => DType::F16,
            Elem::BF16 => DType::BF16,
            Elem::F32 => DType::F32,
            Elem::F64 => DType::F64,
        }
    }

    /// Bytes in memory.
    pub fn size(self) -> usize {
        match self {
            Elem::Bool | Elem::U8 | Elem::I8 => 1,
            Elem::I16 | Elem::F16 | Elem::BF16 => 2,
            Elem::I32 | Elem::F32 => 4,
            Elem::I64 | Elem::F64 => 8,
        }
    }

    /// Whether it is a float.
    pub fn is_float(self) -> bool {
        matches!(self, Elem::F16 | Elem::BF16 | Elem::F32 | Elem::F64)
    }

    /// Whether it is an integer (a bool is not).
    pub fn is_int(self) -> bool {
        !self.is_float() && self != Elem::Bool
    }

    /// Whether its integers have a sign.
    pub fn is_signed(self) -> bool {
        !matches!(self, Elem::U8 | Elem::Bool)
    }

    /// `loop.f32`
    pub fn ty(self) -> Type {
        let (dialect, name) = (Symbol::new(NAMESPACE), Symbol::new(self.name()));
        Type::new(TypeKind::Dialect(dialect, name, [].into()))
    }

    /// `loop.buffer<loop.f32>`
    pub fn buffer(self) -> Type {
        let (dialect, name) = (Symbol::new(NAMESPACE), Symbol::new("buffer"));
        Type::new(TypeKind::Dialect(dialect, name, [TypeParameter::Type(self.ty())].into()))
    }

    /// The type by which a program's caller gives what a parameter of a kernel takes; None for other types.
    pub fn caller_type(ty: &Type) -> Option<Type> {
        let scalar = |elem: Elem| match elem {
            Elem::Bool => Type::new(TypeKind::Bool),
            elem if elem.is_float() => Type::new(TypeKind::Float),
            _ => Type::new(TypeKind::Int),
        };
        let tensor = |elem: Elem| {
            Type::new(TypeKind::Tensor(TensorType { dtype: Some(elem.dtype()), ..TensorType::default() }))
        };
        Elem::of_scalar_type(ty).map(scalar).or_else(|| Elem::of_buffer_type(ty).map(tensor))
    }

    /// The element type of a scalar type of the dialect.
    pub fn of_scalar_type(ty: &Type) -> Option<Elem> {
        match ty.kind() {
            TypeKind::Dialect(dialect, name, parameters)
                if *dialect == NAMESPACE && parameters.is_empty() =>
            {
                Elem::from_name(name.as_str())
            }
            _ => None,
        }
    }

    /// The element type of a buffer type of the dialect.
    pub fn of_buffer_type(ty: &Type) -> Option<Elem> {
        match ty.kind() {
            TypeKind::Dialect(dialect, name, parameters) if *dialect == NAMESPACE && *name == "buffer" => {
                match &parameters[..] {
                    [TypeParameter::Type(elem)] => Elem::of_scalar_type(elem),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
