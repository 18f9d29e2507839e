//! Allocations whose size comes from outside: of a program, a file or a tensor. They fail as an error, within the memory
//! limit of the run, where `vec!` and `Vec::with_capacity` would end the process.

use super::budget;
use crate::diag::{Diagnostic, Result};

/// The error of an allocation that cannot be had, in PyTorch's words.
pub fn no_memory(bytes: usize) -> Diagnostic {
    Diagnostic::runtime(format!(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} bytes. Error code 12 (Cannot allocate \
         memory)"
    ))
}

/// An empty vector with room for `n` elements.
pub fn reserved<T>(n: usize) -> Result<Vec<T>> {
    let bytes = n.saturating_mul(size_of::<T>());
    budget::expect_room(bytes)?;
    let mut out = Vec::new();
    out.try_reserve_exact(n).map_err(|_| no_memory(bytes))?;
    Ok(out)
}

/// `n` times the same.
pub fn filled<T: Clone>(n: usize, value: T) -> Result<Vec<T>> {
    let mut out = reserved(n)?;
    out.resize(n, value);
    Ok(out)
}

/// The elements of an iterator that says how many there are.
pub fn collected<T>(elements: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut out = reserved(elements.len())?;
    out.extend(elements);
    Ok(out)
}

/// An error where `n` elements of a type cannot be had now: for work that allocates them where it cannot fail.
pub fn expect<T>(n: usize) -> Result<()> {
    reserved::<T>(n).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{Budget, Limits};
    use std::sync::Arc;

    #[test]
    fn what_cannot_be_had_is_an_error() {
        for n in [usize::MAX, 1 << 60, 1 << 45] {
            let error = reserved::<u64>(n).expect_err("no machine has it");
            assert!(error.message().starts_with("DefaultCPUAllocator: can't allocate memory"), "{error}");
            assert!(filled(n, 0u64).is_err() && expect::<u64>(n).is_err());
            assert!(collected((0..n).map(|_| 0u64)).is_err());
        }
        assert_eq!(filled(3, 7).expect("small"), [7, 7, 7]);
        assert_eq!(collected(vec![1, 2].into_iter()).expect("small"), [1, 2]);
    }

    #[test]
    fn the_limit_of_a_run_counts() {
        let limits = Limits { bytes: Some(1 << 20), ..Limits::default() };
        let _budget = Arc::new(Budget::new(limits)).install();
        assert!(filled(1 << 10, 0u8).is_ok() && filled(1 << 21, 0u8).is_err());
    }
}
