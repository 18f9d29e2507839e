//! What types say of gradients: which values have one, hold one, or are read for one. Knows no graph.

use crate::ir::{TensorType, Type, TypeKind};

/// The type of a gradient of a value: dtype and sizes are the value's, and it lies as who gives it has it.
pub(super) fn of_any_layout(ty: &Type) -> Type {
    match ty.as_tensor() {
        Some(tensor) if tensor.sizes.as_deref().is_none_or(|sizes| !sizes.is_empty()) => {
            Type::new(TypeKind::Tensor(TensorType { strides: None, ..tensor.clone() }))
        }
        _ => ty.clone(),
    }
}

/// Whether it is that of a list of tensors.
pub(super) fn is_tensor_list(ty: &Type) -> bool {
    matches!(ty.kind(), TypeKind::List(element) if element.is_tensor())
}

/// Whether a value of this type may have a gradient.
pub(super) fn may_be_followed(ty: &Type) -> bool {
    match (ty.as_tensor(), ty.kind()) {
        (Some(tensor), _) => tensor.dtype.is_none_or(|dtype| dtype.is_floating() || dtype.is_complex()),
        (None, TypeKind::Optional(inner)) => inner.is_tensor(),
        _ => is_tensor_list(ty),
    }
}

/// Whether a value of this type may hold one that has a gradient.
pub(super) fn may_hold(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Int
        | TypeKind::Float
        | TypeKind::Bool
        | TypeKind::Complex
        | TypeKind::Number
        | TypeKind::Str
        | TypeKind::Device
        | TypeKind::None => false,
        TypeKind::Tensor(_) => may_be_followed(ty),
        TypeKind::Optional(inner) | TypeKind::List(inner) => may_hold(inner),
        TypeKind::Tuple(items, _) => items.iter().any(may_hold),
        _ => true,
    }
}

/// Whether a value of this type has elements that a backward may read.
pub(super) fn holds_elements(ty: Option<&Type>) -> bool {
    ty.is_some_and(|ty| {
        ty.is_tensor() || is_tensor_list(ty) || matches!(ty.kind(), TypeKind::Optional(t) if t.is_tensor())
    })
}
