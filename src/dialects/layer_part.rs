//! What an op may be of a layer that runs as one kernel: the contraction, or something that is done to its sums before
//! they are stored. Rows say it; the pass `fuse-layers` puts layers together.

use crate::kernels::float::Activation;
use crate::value::Value;

/// The part of a layer that an op may be. Arguments are found by the names that PyTorch's schemas give them.
#[derive(Clone, Copy, Debug)]
pub enum LayerPart {
    /// A convolution of images: `input`, `weight`, `bias`, `stride`, `padding`, `dilation`, `groups`; `transposed`, where
    /// there is such an argument, must be False.
    Convolution,
    /// A linear map of the last dimension: `input`, `weight`, `bias`.
    Linear,
    /// Normalization by statistics that are arguments: `input`, `weight`, `bias`, `running_mean`, `running_var`, `eps`;
    /// `training` must be False.
    Norm,
    /// The sum of the first two arguments; `alpha` must be 1.
    Sum,
    /// The product of the first two arguments.
    Product,
    /// The first argument over the second.
    Quotient,
    /// Products of the matrices of the first two arguments.
    Matmul,
    /// Softmax of the first argument along `dim`; `dtype` must be None.
    Softmax,
    /// The elements of the first argument in the same order, with other sizes.
    Reshape,
    /// Tensors of the list `tensors` side by side along `dim`.
    Join,
    /// `self` with zeros around it, by `pad`, where `mode` is "constant" and `value` 0; else something else.
    Pad,
    /// A function of each element of the first argument, which one follows from the others (None where it is no such
    /// function).
    Activation(fn(&[Value]) -> Option<Activation>),
}

/// A function as text and numbers, as ops of layers take it.
pub fn spelled(activation: Activation) -> (&'static str, Vec<f64>) {
    match activation {
        Activation::None => ("none", vec![]),
        Activation::Relu => ("relu", vec![]),
        Activation::Clamp(low, high) => ("clamp", vec![f64::from(low), f64::from(high)]),
        Activation::Silu => ("silu", vec![]),
        Activation::HardSwish => ("hardswish", vec![]),
        Activation::HardSigmoid => ("hardsigmoid", vec![]),
        Activation::Sigmoid => ("sigmoid", vec![]),
        Activation::Gelu => ("gelu", vec![]),
        Activation::GeluTanh => ("gelu_tanh", vec![]),
        Activation::Tanh => ("tanh", vec![]),
        Activation::LeakyRelu(slope) => ("leaky_relu", vec![f64::from(slope)]),
    }
}

/// The function that text and numbers spell.
pub fn read(name: &str, numbers: &[f64]) -> Option<Activation> {
    Some(match (name, numbers) {
        ("none", []) => Activation::None,
        ("relu", []) => Activation::Relu,
        ("clamp", [low, high]) => Activation::Clamp(*low as f32, *high as f32),
        ("silu", []) => Activation::Silu,
        ("hardswish", []) => Activation::HardSwish,
        ("hardsigmoid", []) => Activation::HardSigmoid,
        ("sigmoid", []) => Activation::Sigmoid,
        ("gelu", []) => Activation::Gelu,
        ("gelu_tanh", []) => Activation::GeluTanh,
        ("tanh", []) => Activation::Tanh,
        ("leaky_relu", [slope]) => Activation::LeakyRelu(*slope as f32),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_read_as_they_are_spelled() {
        use Activation as A;
        let all = [
            A::None,
            A::Relu,
            A::Clamp(-1.0, 6.0),
            A::Silu,
            A::HardSwish,
            A::HardSigmoid,
            A::Sigmoid,
            A::Gelu,
            A::GeluTanh,
            A::Tanh,
            A::LeakyRelu(0.25),
        ];
        for activation in all {
            let (name, numbers) = spelled(activation);
            assert_eq!(read(name, &numbers), Some(activation));
        }
        assert_eq!(read("relu", &[1.0]), None);
        assert_eq!(read("cube", &[]), None);
    }
}
