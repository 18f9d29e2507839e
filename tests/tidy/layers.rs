//! Layers point one way: a module uses those before it in the list, never those after.

use super::{sources::rust_files, verdict};
use libtest_mimic::Failed;

/// Each group may use the groups before it; members of one group do not use each other.
const LAYERS: &[&[&str]] = &[
    &["diag"],
    &["resources"],
    &["tensor"],
    &["ir"],
    &["value"],
    &["kernels"],
    &["dialects"],
    &["eval"],
    &["analysis"],
    &["frontend", "rewrite"],
    &["passes"],
    &["autodiff"],
    &["lowering"],
    &["backends"],
    &["runtime"],
    &["training"],
    &["toolkit"],
    &["tools"],
];

pub(super) fn layers_point_left() -> Result<(), Failed> {
    let mut findings = Vec::new();
    for (path, text) in rust_files("src") {
        let Some(own) = layer_of(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for target in uses(line) {
                let Some(other) = place(target) else { continue };
                let allowed = other < own.1 || target == own.0;
                if !allowed {
                    findings.push(format!("{path}:{}: {} uses {target}", number + 1, own.0));
                }
            }
        }
    }
    verdict("layers that point right", findings)
}

/// The layer a file belongs to, with its place in the order.
fn layer_of(path: &str) -> Option<(String, usize)> {
    let first = path.strip_prefix("src/")?.split('/').next()?;
    place(first).map(|at| (first.to_string(), at))
}

fn place(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|group| group.contains(&layer))
}

/// Layers that a line names as `crate::layer`.
fn uses(line: &str) -> Vec<&str> {
    line.match_indices("crate::")
        .map(|(at, _)| {
            let rest = &line[at + "crate::".len()..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            &rest[..end]
        })
        .collect()
}
