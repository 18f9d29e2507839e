//! Custom classes: what PyTorch writes in C++ and registers with `torch::class_`, such as packed parameters. A class is
//! one row, as an op is: how an instance is made from what its `__getstate__` gave, and how that is made from an
//! instance. What ops compute with an instance stands in their rows.

use crate::diag::{Diagnostic, Result};
use crate::ir::Symbol;
use crate::value::{Native, Object, Value};

/// Qualified names of custom classes begin so.
const PREFIX: &str = "__torch__.torch.classes.";

/// A custom class: one row.
#[derive(Clone, Copy, Debug)]
pub struct CustomClass {
    /// Qualified name (`__torch__.torch.classes.xnnpack.LinearOpContext`).
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// What an instance holds, from the state that an archive has of it. The state is not to be trusted.
    pub set_state: fn(&Value) -> Result<Native>,
    /// The state that an archive gets of an instance.
    pub get_state: fn(&Object) -> Result<Value>,
    /// Methods, each with the op that it calls with the instance as first argument (`quantized::linear_unpack`).
    pub methods: &'static [(&'static str, &'static str)],
}

impl CustomClass {
    /// An instance from the state that an archive has of it.
    pub fn restore(&self, state: &Value) -> Result<Object> {
        let native = (self.set_state)(state).map_err(|mut error| {
            let report = error.report_mut();
            report.message = format!("the state of a {}: {}", self.name, report.message);
            error
        })?;
        Ok(Object::with_native(Symbol::new(self.name), native))
    }
}

/// Whether a class is written in C++, by its name, as PyTorch judges too.
pub fn is_custom_class(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// What is said where an instance of a class is needed that only PyTorch has.
pub fn unknown_class(name: &str) -> Diagnostic {
    let short = name.strip_prefix(PREFIX).unwrap_or(name);
    let namespace = short.split('.').next().unwrap_or_default();
    let origin = origin(namespace).unwrap_or("a library that registers it with torch::class_");
    Diagnostic::unsupported(format!("custom class torch.classes.{short} is not supported"))
        .note(format!("it is written in C++ and comes from {origin}"))
        .hint("save the model without it: from the unoptimized module, or with plain tensors in its place")
}

/// Where the ops and custom classes of a namespace come from that is not built in here, as text.
pub(super) fn origin(namespace: &str) -> Option<&'static str> {
    Some(match namespace {
        "xnnpack" | "prepacked" => "torch.utils.mobile_optimizer: weights packed for XNNPACK",
        "quantized" | "_quantized" | "rnn" | "quantized_decomposed" => "PyTorch's quantization",
        "sparse" => "PyTorch's sparse quantized layers",
        "mkldnn" | "mkldnn_prepacked" | "onednn" => "PyTorch's oneDNN: weights packed for Intel CPUs",
        "vulkan" | "vulkan_prepack" | "vulkan_quantized" => "torch.utils.mobile_optimizer, for Vulkan GPUs",
        "metal" | "metal_prepack" => "torch.utils.mobile_optimizer, for Metal GPUs",
        "dist_rpc" | "dist_c10d" | "c10d" | "_c10d_functional" | "rpc" => "torch.distributed",
        "profiler" => "torch.profiler",
        "static_runtime" => "PyTorch's static runtime",
        "tensorrt" => "Torch-TensorRT: an engine that needs the GPU that it was built for",
        "neuron" => "AWS Neuron: a program that needs its device",
        "torchaudio" => "the package torchaudio",
        "transformers" | "transformers_msa" => "the package transformers",
        "torchtext" => "the package torchtext",
        "torch_scatter" | "torch_sparse" | "torch_cluster" | "torch_spline_conv" | "pyg" => {
            "a package of PyTorch Geometric"
        }
        "fbgemm" => "the package fbgemm_gpu",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Registry;

    #[test]
    fn every_class_is_a_custom_class_and_its_methods_are_ops() {
        let registry = Registry::builtin();
        for class in registry.custom_classes() {
            assert!(is_custom_class(class.name), "{}", class.name);
            for (method, op) in class.methods {
                let overloads = registry.overloads(Symbol::new(op));
                assert!(!overloads.is_empty(), "{}.{method} calls {op}, which does not exist", class.name);
            }
        }
    }

    #[test]
    fn a_state_that_does_not_fit_is_an_error() {
        for class in Registry::builtin().custom_classes() {
            for state in
                [Value::None, Value::Int(3), Value::tuple(vec![]), Value::tuple(vec![Value::Int(1); 9])]
            {
                assert!(class.restore(&state).is_err(), "{} takes {state:?}", class.name);
            }
        }
    }
}
