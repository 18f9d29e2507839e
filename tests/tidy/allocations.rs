//! Memory whose size comes from outside (of a program, a file, a tensor) is asked for in ways that can fail: `vec![x; n]`,
//! `with_capacity`, `resize`, `reserve` and `repeat` end the process where the memory cannot be had. They stand, in all of the
//! library and its crates, where the count is that of something that is held already, which is seen here, or where the table
//! says why the number is small. clippy can refuse a function, but not by what it is given.

use super::{sources::rust_files, verdict};
use libtest_mimic::Failed;
use std::collections::BTreeMap;

/// As many as a tensor has dimensions, an op has operands, or a schema says (16 bits).
const FEW: &str = "few";
/// As many as there are elements of something that is held already, once or twice.
const HELD: &str = "held";
/// At most a row, a line or a block of a result whose memory was asked for before.
const PART: &str = "part";
/// The memory, or room for it, was asked for just before, in a way that can fail.
const ASKED: &str = "asked";
/// The number was compared with a limit before.
const BOUND: &str = "bound";
/// A line or a depth of what is printed.
const SHOWN: &str = "shown";

/// How often others stand in a file, and why they may.
const KNOWN: &[(&str, usize, &str)] = &[
    ("crates/filecheck/src/number.rs", 1, HELD),
    ("crates/filecheck/src/regex/captures.rs", 5, HELD),
    ("crates/filecheck/src/regex/mod.rs", 1, HELD),
    ("crates/filecheck/src/regex/program.rs", 1, BOUND),
    ("crates/filecheck/src/source.rs", 2, HELD),
    ("crates/lit/src/builtin.rs", 1, HELD),
    ("crates/lit/src/exec.rs", 1, SHOWN),
    ("crates/lit/src/report.rs", 3, SHOWN),
    ("crates/lit/src/reporter.rs", 2, SHOWN),
    ("src/analysis/alias/memory.rs", 4, HELD),
    ("src/analysis/alias/mod.rs", 1, HELD),
    ("src/analysis/alias/solution.rs", 2, HELD),
    ("src/backends/cache/entry.rs", 1, FEW),
    ("src/backends/interp/mod.rs", 1, BOUND),
    ("src/backends/llvm/emit.rs", 1, FEW),
    ("src/backends/llvm/ir.rs", 1, FEW),
    ("src/diag/torch.rs", 2, SHOWN),
    ("src/dialects/args.rs", 1, FEW),
    ("src/dialects/aten/chain.rs", 4, FEW),
    ("src/dialects/aten/convolution.rs", 4, FEW),
    ("src/dialects/aten/einsum.rs", 1, FEW),
    ("src/dialects/aten/embed.rs", 2, ASKED),
    ("src/dialects/aten/fbgemm.rs", 1, ASKED),
    ("src/dialects/aten/histogram.rs", 1, HELD),
    ("src/kernels/conv/depthwise.rs", 1, PART),
    ("src/kernels/matrix/gemm.rs", 2, PART),
    ("src/kernels/linalg/eigen.rs", 2, PART),
    ("src/kernels/linalg/factor.rs", 1, PART),
    ("src/kernels/linalg/hermitian.rs", 2, PART),
    ("src/kernels/linalg/indefinite.rs", 1, PART),
    ("src/kernels/linalg/mod.rs", 1, PART),
    ("src/kernels/linalg/orthogonal.rs", 1, PART),
    ("src/kernels/linalg/singular.rs", 2, PART),
    ("src/dialects/aten/label_loss.rs", 1, PART),
    ("src/dialects/aten/order.rs", 1, HELD),
    ("src/dialects/aten/pool.rs", 3, PART),
    ("src/dialects/aten/resample.rs", 1, FEW),
    ("src/dialects/aten/sample.rs", 1, FEW),
    ("src/dialects/aten/text_case.rs", 2, BOUND),
    ("src/dialects/quantized/conv.rs", 1, HELD),
    ("src/dialects/quantized/pool.rs", 1, HELD),
    ("src/dialects/quantized/recurrent.rs", 1, HELD),
    ("src/dialects/shapes/operands.rs", 1, FEW),
    ("src/dialects/shapes/products.rs", 2, FEW),
    ("src/dialects/shapes/views.rs", 1, FEW),
    ("src/eval/register.rs", 4, PART),
    ("src/frontend/archive/emit.rs", 1, HELD),
    ("src/frontend/archive/objects.rs", 1, ASKED),
    ("src/frontend/archive/mobile/steps.rs", 1, BOUND),
    ("src/frontend/archive/pickle/machine.rs", 1, BOUND),
    ("src/frontend/archive/zip.rs", 1, BOUND),
    ("src/frontend/script/emit/assign.rs", 1, FEW),
    ("src/frontend/script/emit/call.rs", 1, FEW),
    ("src/frontend/script/emit/index.rs", 1, FEW),
    ("src/frontend/script/emit/matching.rs", 2, FEW),
    ("src/frontend/script/layout.rs", 3, BOUND),
    ("src/ir/edit/uses.rs", 3, HELD),
    ("src/ir/mlir/build.rs", 1, HELD),
    ("src/ir/text/names.rs", 2, HELD),
    ("src/ir/text/parser.rs", 2, HELD),
    ("src/ir/text/printer.rs", 1, HELD),
    ("src/ir/text/schema.rs", 3, FEW),
    ("src/ir/verify.rs", 2, HELD),
    ("src/kernels/float/scratch.rs", 1, ASKED),
    ("src/kernels/images/resize.rs", 1, PART),
    ("src/lowering/by_op/text.rs", 1, FEW),
    ("src/lowering/nest.rs", 1, FEW),
    ("src/passes/input_shapes.rs", 1, FEW),
    ("src/passes/manager/timing.rs", 1, SHOWN),
    ("src/passes/remove_mutation.rs", 1, HELD),
    ("src/resources/budget.rs", 1, ASKED),
    ("src/resources/memory.rs", 3, ASKED),
    ("src/resources/pool.rs", 1, ASKED),
    ("src/rewrite/check/steps.rs", 1, FEW),
    ("src/rewrite/load/compile.rs", 1, FEW),
    ("src/rewrite/direct/directed.rs", 1, FEW),
    ("src/runtime/arguments.rs", 1, FEW),
    ("src/runtime/code.rs", 2, FEW),
    ("src/runtime/code/blocks.rs", 1, FEW),
    ("src/runtime/interpreter.rs", 1, FEW),
    ("src/tensor/view.rs", 1, FEW),
    ("src/tools/curve.rs", 1, SHOWN),
    ("src/tools/demo.rs", 1, SHOWN),
    ("src/tools/dot.rs", 5, SHOWN),
    ("src/tools/gradients.rs", 1, SHOWN),
    ("src/tools/lsp/format.rs", 3, SHOWN),
    ("src/tools/table.rs", 1, SHOWN),
    ("src/tools/view/layers.rs", 7, HELD),
    ("src/value/python_text.rs", 4, SHOWN),
    ("src/value/tensor_text.rs", 1, SHOWN),
    ("src/value/generator.rs", 1, ASKED),
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
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in rust_files("src").into_iter().chain(rust_files("crates")) {
        if path.contains("/tests") || path.ends_with("_tests.rs") || path.contains("/benches") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        let counts: Vec<String> = counts(code).into_iter().filter(|count| !is_held(count)).collect();
        if !counts.is_empty() {
            found.insert(path, counts);
        }
    }
    let known: BTreeMap<&str, usize> = KNOWN.iter().map(|(path, count, _)| (*path, *count)).collect();
    let mut findings = Vec::new();
    for (path, counts) in &found {
        let allowed = known.get(path.as_str()).copied().unwrap_or(0);
        if counts.len() > allowed {
            findings.push(format!(
                "{path}: {} allocations that cannot fail, {allowed} are known to be small; use resources::memory: {}",
                counts.len(),
                counts.join("; ")
            ));
        }
    }
    for (path, count) in known {
        if found.get(path).map_or(0, Vec::len) < count {
            findings.push(format!(
                "{path}: fewer than the {count} that tests/tidy/allocations.rs knows; lower it"
            ));
        }
    }
    refuses_by_size()?;
    verdict("memory by size from outside", findings)
}

/// Calls that allocate by their first argument.
const CALLS: &[&str] =
    &["with_capacity(", ".resize(", ".resize_with(", ".reserve(", ".reserve_exact(", ".repeat("];

/// The counts by which code allocates.
fn counts(code: &str) -> Vec<String> {
    let code: Vec<&str> = code.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let code = code.join("\n");
    let mut out = Vec::new();
    for call in CALLS {
        for (at, _) in code.match_indices(call) {
            let arguments = parts(inside(&code[at + call.len()..]), ',');
            // `str::repeat` takes one argument; others of that name are methods of our own.
            if *call != ".repeat(" || arguments.len() == 1 {
                out.push(arguments[0].to_string());
            }
        }
    }
    for (at, start) in code.match_indices("vec![") {
        if let [_, count] = parts(inside(&code[at + start.len()..]), ';')[..] {
            out.push(count.to_string());
        }
    }
    out
}

/// Up to the bracket that closes what was opened before.
fn inside(code: &str) -> &str {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return &code[..at],
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    code
}

/// What stands between separators that are within no brackets.
fn parts(code: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut from, mut out) = (0, 0, Vec::new());
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ if c == separator && depth == 0 => {
                out.push(code[from..at].trim());
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    out.push(code[from..].trim());
    out
}

/// How counts end that are those of something that is held.
const SIZES: &[&str] = &[
    ".len()",
    ".value_capacity()",
    ".block_capacity()",
    ".op_capacity()",
    ".node_count()",
    ".op_count()",
    ".location_count()",
];

/// Whether a count is a constant, or follows from what is held: its size, a sum of two such, or a small multiple.
fn is_held(count: &str) -> bool {
    let count: String = count.chars().filter(|c| !c.is_whitespace()).collect();
    let name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '_' | ':');
    let bare = count.trim_start_matches("Self::").trim_end_matches("usize");
    if !bare.is_empty() && bare.chars().all(name) {
        return true;
    }
    if let [left, right] = parts(&count, '+')[..] {
        return is_held(left) && is_held(right);
    }
    let small = |n: &str| matches!(n, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8");
    if let [left, right] = parts(&count, '*')[..] {
        return (small(left) && is_held(right)) || (small(right) && is_held(left));
    }
    SIZES.iter().any(|size| count.ends_with(size)) && !count.contains(['-', '/', '<', '>', '='])
}

/// The check sees what it is there for.
fn refuses_by_size() -> Result<(), Failed> {
    let refused = "let a = Vec::with_capacity(n); let b = vec![0; rows * cols]; text.repeat(times); v.resize(n as usize, 0); \
                   v.reserve(header.count); vec![vec![0; items.len()]; n]";
    let held = "Vec::with_capacity(2 * items.len() + 1); vec![0; MAX]; vec![a, b]; v.resize(x.len() + y.len(), 0); self.repeat(a, b); \
                // Vec::with_capacity(n)";
    let odd = |code: &str| counts(code).iter().filter(|count| !is_held(count)).count();
    match (odd(refused), odd(held)) {
        (6, 0) => Ok(()),
        found => Err(format!("the check of allocations sees {found:?} where there are (6, 0)").into()),
    }
}
