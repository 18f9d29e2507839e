//! Memory whose size comes from outside (of a program, a file, a tensor) is asked for in ways that can fail:
//! `vec![x; n]` and `with_capacity` end the process where the memory cannot be had. In kernels and readers they stand
//! where the number is small or follows from what is held already, and only there.

use super::{sources::rust_files, verdict};
use libtest_mimic::Failed;
use std::collections::BTreeMap;

/// Where the rule holds.
const PLACES: &[&str] = &[
    "src/kernels/",
    "src/dialects/",
    "src/tensor/",
    "src/frontend/archive/",
    "src/tools/case.rs",
    "src/tools/numpy.rs",
];

/// As many as a tensor has dimensions, an op has operands or a graph has values.
const FEW: &str = "few";
/// As many as there are elements of something that is held already, once or twice.
const HELD: &str = "held";
/// At most a row, a line or a block of a result whose memory was asked for before.
const PART: &str = "part";

/// How often they stand in a file, and why they may.
const KNOWN: &[(&str, usize, &str)] = &[
    ("src/dialects/aten/chain.rs", 1, FEW),
    ("src/dialects/aten/contraction.rs", 1, FEW),
    ("src/dialects/aten/convolution.rs", 2, FEW),
    ("src/dialects/aten/create.rs", 2, FEW),
    ("src/dialects/aten/einsum.rs", 5, FEW),
    ("src/dialects/aten/histogram.rs", 1, HELD),
    ("src/dialects/aten/join.rs", 1, FEW),
    ("src/dialects/aten/kernels/depthwise.rs", 1, PART),
    ("src/dialects/aten/kernels/fourier.rs", 2, PART),
    ("src/dialects/aten/kernels/gemm.rs", 2, PART),
    ("src/dialects/aten/kernels/linalg/eigen.rs", 2, PART),
    ("src/dialects/aten/kernels/linalg/factor.rs", 1, PART),
    ("src/dialects/aten/kernels/linalg/hermitian.rs", 2, PART),
    ("src/dialects/aten/kernels/linalg/indefinite.rs", 1, PART),
    ("src/dialects/aten/kernels/linalg/mod.rs", 1, PART),
    ("src/dialects/aten/kernels/linalg/orthogonal.rs", 1, PART),
    ("src/dialects/aten/kernels/linalg/singular.rs", 3, PART),
    ("src/dialects/aten/kernels/product.rs", 1, FEW),
    ("src/dialects/aten/kernels/rows.rs", 3, FEW),
    ("src/dialects/aten/label_loss.rs", 1, PART),
    ("src/dialects/aten/linalg_factor.rs", 1, FEW),
    ("src/dialects/aten/matrix.rs", 2, FEW),
    ("src/dialects/aten/order.rs", 2, HELD),
    ("src/dialects/aten/pool.rs", 2, PART),
    ("src/dialects/aten/resample.rs", 1, FEW),
    ("src/dialects/aten/sample.rs", 1, FEW),
    ("src/dialects/aten/sizes.rs", 1, FEW),
    ("src/dialects/aten/sort.rs", 1, HELD),
    ("src/dialects/aten/split.rs", 1, HELD),
    ("src/dialects/aten/text_case.rs", 2, HELD),
    ("src/dialects/aten/text_find.rs", 1, HELD),
    ("src/dialects/loops/decode.rs", 1, FEW),
    ("src/dialects/loops/reach.rs", 3, FEW),
    ("src/dialects/prim/constant.rs", 1, FEW),
    ("src/dialects/quantized/arith.rs", 1, HELD),
    ("src/dialects/quantized/conv.rs", 1, HELD),
    ("src/dialects/quantized/packed.rs", 1, HELD),
    ("src/dialects/quantized/pool.rs", 1, HELD),
    ("src/dialects/quantized/recurrent.rs", 2, HELD),
    ("src/dialects/scalar.rs", 3, FEW),
    ("src/dialects/shapes/mod.rs", 1, FEW),
    ("src/dialects/shapes/products.rs", 2, FEW),
    ("src/dialects/shapes/views.rs", 1, FEW),
    ("src/dialects/text/parse.rs", 1, FEW),
    ("src/dialects/torchvision/boxes.rs", 1, HELD),
    ("src/frontend/archive/debug.rs", 2, HELD),
    ("src/frontend/archive/load.rs", 3, HELD),
    ("src/frontend/archive/mobile/classes.rs", 1, HELD),
    ("src/frontend/archive/emit.rs", 2, HELD),
    ("src/frontend/archive/mobile/steps.rs", 2, HELD),
    ("src/frontend/archive/mobile/translate.rs", 1, HELD),
    ("src/frontend/archive/pickle/finish.rs", 4, HELD),
    ("src/frontend/archive/pickle/machine.rs", 1, HELD),
    ("src/frontend/archive/pickle/write.rs", 1, HELD),
    ("src/frontend/archive/save.rs", 1, HELD),
    ("src/frontend/archive/zip.rs", 2, HELD),
    ("src/kernels/resize.rs", 1, PART),
    ("src/tensor/pointwise.rs", 3, HELD),
    ("src/tensor/view.rs", 3, FEW),
];

/// Copies of all elements of a tensor that no run is charged for: for hosts, and no kernel.
const UNCHARGED: &[&str] = &[".to_vec::<", ".to_vec_as::<", ".to_scalars(", "Tensor::to_vec"];

/// Where few numbers, one a channel, live on in an object.
const MAY: &[&str] = &["src/dialects/fusion/layer.rs", "src/dialects/quantized/convert.rs"];

/// What kernels work in is charged to the run: they take elements by `elements` and `elements_as`.
pub(super) fn kernels_are_charged() -> Result<(), Failed> {
    let mut findings = Vec::new();
    for (path, text) in rust_files("src").into_iter().chain(rust_files("crates")) {
        let is_kernel = path.starts_with("src/kernels/") || path.starts_with("src/dialects/");
        if !is_kernel || path.contains("/tests") || MAY.contains(&path.as_str()) {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for (number, line) in code.lines().enumerate() {
            if UNCHARGED.iter().any(|call| line.contains(call)) {
                findings.push(format!("{path}:{}: elements that no run is charged for", number + 1));
            }
        }
    }
    verdict("work memory of kernels", findings)
}

pub(super) fn sizes_from_outside_can_fail() -> Result<(), Failed> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in rust_files("src").into_iter().chain(rust_files("crates")) {
        let is_test = path.contains("/tests") || path.ends_with("_tests.rs");
        if is_test || !PLACES.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        let count = code.lines().filter(|line| allocates(line)).count();
        if count > 0 {
            found.insert(path, count);
        }
    }
    let known: BTreeMap<&str, usize> = KNOWN.iter().map(|(path, count, _)| (*path, *count)).collect();
    let mut findings = Vec::new();
    for (path, count) in &found {
        let allowed = known.get(path.as_str()).copied().unwrap_or(0);
        if *count > allowed {
            findings.push(format!(
                "{path}: {count} allocations that cannot fail, {allowed} are known to be small; use resources::memory"
            ));
        }
    }
    for (path, count) in known {
        if found.get(path).copied().unwrap_or(0) < count {
            findings.push(format!(
                "{path}: fewer than the {count} that tests/tidy/allocations.rs knows; lower it"
            ));
        }
    }
    verdict("memory by size from outside", findings)
}

/// Whether a line asks for memory by a number that is no constant.
fn allocates(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or("");
    let is_constant = |count: &str| {
        !count.is_empty() && count.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    let repeated = code.split("vec![").skip(1).any(|rest| {
        let inner = rest.split(']').next().unwrap_or("");
        inner.rsplit_once("; ").is_some_and(|(_, count)| !is_constant(count))
    });
    repeated || code.contains("with_capacity(")
}
