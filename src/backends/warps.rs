//! How a kernel's iterations are shared by the threads of a warp: what writes its code and what launches it must agree. Knows no
//! form of code.

use crate::dialects::loops::{For, Kernel, Mark, Order, Stmt};

/// Threads of a warp.
pub const WARP: u32 = 32;

/// The threads that an iteration of a kernel's parallel loop takes: a warp where a vector loop stands within it, else 1. A launch
/// has that many threads for each, neighbouring ones, in groups of whole warps.
pub fn threads(kernel: &Kernel) -> u32 {
    let shares = |s: &Stmt| matches!(s, Stmt::For(l) if lanes(l).is_some());
    let within = |s: &Stmt| match s {
        Stmt::For(l) if l.mark.is_parallel() => l.body.iter().any(|inner| inner.any(&shares)),
        _ => false,
    };
    if kernel.extent.is_some() && kernel.body.iter().any(|s| s.any(&within)) { WARP } else { 1 }
}

/// The threads of a warp that share the iterations of a loop: those of a vector loop, as many as it has partial results if it
/// has some. None where one thread runs them all.
pub fn lanes(l: &For) -> Option<u32> {
    if l.mark != Mark::Vector {
        return None;
    }
    match l.order {
        _ if l.carried.is_empty() => Some(WARP),
        Order::Lanes(n) if n <= WARP && l.carried.iter().all(|c| c.combine.is_some()) => Some(n),
        _ => None,
    }
}
