//! Allocations whose size comes from outside: of a program, a file or a tensor. They fail as an error, within the memory
//! limit of the run, where `vec!` and `Vec::with_capacity` would end the process.
//!
//! [`Scratch`] is what kernels work in: it is charged to the run as long as it lives, as storages of tensors are.

use super::Charge;
use super::{budget, machine, pages};
use crate::diag::{Diagnostic, Result};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The error of an allocation that cannot be had, in PyTorch's wording.
pub fn no_memory(bytes: usize) -> Diagnostic {
    Diagnostic::runtime(format!(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} bytes. Error code 12 (Cannot allocate \
         memory)"
    ))
}

/// Fails where one allocation is larger than the memory of the machine with its swap. An allocator that reserves addresses
/// alone would have it, and the system would end the process when it is written to.
pub fn expect_memory(bytes: usize) -> Result<()> {
    /// What no machine is asked about.
    const FEW: usize = 1 << 30;
    if bytes > FEW && bytes > machine::memory() {
        return Err(no_memory(bytes));
    }
    Ok(())
}

/// Elements that are charged to the run that asked for them; dropping credits them.
pub struct Scratch<T> {
    items: Vec<T>,
    charge: Charge,
}

/// No elements, with room for `n`.
pub fn reserved<T>(n: usize) -> Result<Scratch<T>> {
    let charge = Charge::new(n.saturating_mul(size_of::<T>()))?;
    Ok(Scratch { items: with_room(n)?, charge })
}

/// `n` times the same.
pub fn filled<T: Clone>(n: usize, value: T) -> Result<Scratch<T>> {
    let mut out = reserved(n)?;
    out.items.resize(n, value);
    Ok(out)
}

/// What `fill` pushes into a vector that has room for `n` elements; it pushes no more than these.
pub fn built<T>(n: usize, fill: impl FnOnce(&mut Vec<T>)) -> Result<Scratch<T>> {
    let mut out = reserved(n)?;
    fill(&mut out.items);
    out.charge.follow(out.items.capacity() * size_of::<T>());
    Ok(out)
}

/// The elements of an iterator, however many there are.
pub fn collected<T>(elements: impl IntoIterator<Item = T>) -> Result<Scratch<T>> {
    let elements = elements.into_iter();
    let mut out = reserved(elements.size_hint().0)?;
    for element in elements {
        out.push(element)?;
    }
    Ok(out)
}

/// The elements of an iterator of results, or its first error.
pub fn try_collected<T>(elements: impl IntoIterator<Item = Result<T>>) -> Result<Scratch<T>> {
    let elements = elements.into_iter();
    // A failing iterator says 0; the upper bound is what it gives where nothing fails.
    let mut out = reserved(elements.size_hint().1.filter(|n| *n <= 1 << 40).unwrap_or(0))?;
    for element in elements {
        out.push(element?)?;
    }
    Ok(out)
}

/// A copy.
pub fn copied<T: Clone>(elements: &[T]) -> Result<Scratch<T>> {
    let mut out = reserved(elements.len())?;
    out.items.extend_from_slice(elements);
    Ok(out)
}

/// What was allocated where nothing can fail; beyond the limit the run ends at its next check.
pub fn taken<T>(items: Vec<T>) -> Scratch<T> {
    let charge = Charge::taken(items.capacity() * size_of::<T>());
    Scratch { items, charge }
}

/// An empty vector with room for `n` elements, for what a run keeps and charges by other means, or a host asked for.
pub fn vec_reserved<T>(n: usize) -> Result<Vec<T>> {
    budget::expect_room(n.saturating_mul(size_of::<T>()))?;
    with_room(n)
}

/// An empty text with room for `bytes` bytes, likewise.
pub fn text_reserved(bytes: usize) -> Result<String> {
    budget::expect_room(bytes)?;
    expect_memory(bytes)?;
    let mut out = String::new();
    out.try_reserve_exact(bytes).map_err(|_| no_memory(bytes))?;
    Ok(out)
}

fn with_room<T>(n: usize) -> Result<Vec<T>> {
    let bytes = n.saturating_mul(size_of::<T>());
    expect_memory(bytes)?;
    let mut out = Vec::new();
    out.try_reserve_exact(n).map_err(|_| no_memory(bytes))?;
    pages::ask_for_large(out.as_ptr(), out.capacity() * size_of::<T>());
    Ok(out)
}

/// An error where `n` elements of a type cannot be had now: for work that allocates them where it cannot fail.
pub fn expect<T>(n: usize) -> Result<()> {
    reserved::<T>(n).map(drop)
}

impl<T> Scratch<T> {
    /// Adds an element. Fails where there is no room for it.
    #[inline]
    pub fn push(&mut self, element: T) -> Result<()> {
        if self.items.len() == self.items.capacity() {
            self.grow(1)?;
        }
        self.items.push(element);
        Ok(())
    }

    /// Adds elements. Fails where there is no room for them.
    pub fn extend(&mut self, elements: impl IntoIterator<Item = T>) -> Result<()> {
        let elements = elements.into_iter();
        let more = elements.size_hint().0;
        if self.items.capacity() - self.items.len() < more {
            self.grow(more)?;
        }
        elements.into_iter().try_for_each(|element| self.push(element))
    }

    /// Keeps the first `n` elements.
    pub fn truncate(&mut self, n: usize) {
        self.items.truncate(n);
    }

    /// Keeps the elements that `keep` is true of.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.retain(keep);
    }

    /// Removes all elements and keeps their room.
    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// As many elements as asked for, new ones with this value.
    pub fn resize(&mut self, n: usize, value: T) -> Result<()>
    where
        T: Clone,
    {
        if n > self.items.capacity() {
            self.grow(n - self.items.len())?;
        }
        self.items.resize(n, value);
        Ok(())
    }

    /// The elements without their charge: the caller accounts for them.
    pub fn into_vec(self) -> Vec<T> {
        self.items
    }

    /// Room for `more` elements beyond those there are, at least twice the room there was.
    #[cold]
    fn grow(&mut self, more: usize) -> Result<()> {
        let wanted =
            self.items.len().saturating_add(more).max(self.items.capacity().saturating_mul(2)).max(4);
        let bytes = wanted.saturating_mul(size_of::<T>());
        expect_memory(bytes)?;
        self.charge.resize(bytes)?;
        self.items.try_reserve_exact(wanted - self.items.len()).map_err(|_| no_memory(bytes))
    }
}

impl<T> From<Vec<T>> for Scratch<T> {
    fn from(items: Vec<T>) -> Scratch<T> {
        taken(items)
    }
}

impl<T> Default for Scratch<T> {
    fn default() -> Scratch<T> {
        Scratch { items: Vec::new(), charge: Charge::default() }
    }
}

impl<T> Deref for Scratch<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for Scratch<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

/// For weights that are prepared for kernels and copied with their object; a copy beyond the limit ends the run at its next
/// check.
impl<T: Clone> Clone for Scratch<T> {
    fn clone(&self) -> Scratch<T> {
        taken(self.items.clone())
    }
}

impl<T: fmt::Debug> fmt::Debug for Scratch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}

impl<T: PartialEq, O: AsRef<[T]>> PartialEq<O> for Scratch<T> {
    fn eq(&self, other: &O) -> bool {
        self.items.as_slice() == other.as_ref()
    }
}

impl<T> AsRef<[T]> for Scratch<T> {
    fn as_ref(&self) -> &[T] {
        &self.items
    }
}

impl<T> IntoIterator for Scratch<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;
    fn into_iter(self) -> IntoIter<T> {
        IntoIter { items: self.items.into_iter(), _charge: self.charge }
    }
}

impl<'a, T> IntoIterator for &'a Scratch<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Scratch<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter_mut()
    }
}

/// Iterators whose elements become a [`Scratch`].
pub trait Collect: Iterator + Sized {
    /// All elements. Fails where there is no room for them.
    fn scratch(self) -> Result<Scratch<Self::Item>> {
        collected(self)
    }

    /// All elements of an iterator of results, or its first error.
    fn try_scratch<T>(self) -> Result<Scratch<T>>
    where
        Self: Iterator<Item = Result<T>>,
    {
        try_collected(self)
    }
}

impl<I: Iterator> Collect for I {}

/// The elements of a [`Scratch`], one by one; all of it is charged until the end.
pub struct IntoIter<T> {
    items: std::vec::IntoIter<T>,
    _charge: Charge,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;
    #[inline]
    fn next(&mut self) -> Option<T> {
        self.items.next()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}

impl<T> DoubleEndedIterator for IntoIter<T> {
    fn next_back(&mut self) -> Option<T> {
        self.items.next_back()
    }
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
            assert!(filled(n, 0u64).is_err() && expect::<u64>(n).is_err() && vec_reserved::<u64>(n).is_err());
            assert!(collected((0..n).map(|_| 0u64)).is_err());
        }
        let all = machine::memory();
        assert!(expect_memory(all).is_ok() && (all == usize::MAX || expect_memory(all + 1).is_err()));
        assert_eq!(filled(3, 7).expect("small"), [7, 7, 7]);
        assert_eq!(collected([1, 2]).expect("small"), [1, 2]);
        assert_eq!(try_collected([Ok(1), Ok(2)]).expect("small"), [1, 2]);
        assert!(try_collected([Ok(1), Err(no_memory(1))]).is_err());
    }

    #[test]
    fn the_limit_of_a_run_counts_what_lives() {
        let limits = Limits { bytes: Some(1 << 20), ..Limits::default() };
        let budget = Arc::new(Budget::new(limits));
        let _installed = budget.install();
        let first = filled(3 << 18, 0u8).expect("below the limit");
        assert!(filled(3 << 18, 0u8).is_err(), "both together exceed it");
        assert_eq!(budget.live_bytes(), 3 << 18);
        drop(first);
        let again = filled(3 << 18, 0u8).expect("what is dropped is given back");
        assert_eq!(again.into_iter().len(), 3 << 18);
        assert_eq!(budget.live_bytes(), 0);
    }

    #[test]
    fn what_grows_is_charged() {
        let limits = Limits { bytes: Some(1 << 12), ..Limits::default() };
        let budget = Arc::new(Budget::new(limits));
        let _installed = budget.install();
        let mut grown: Scratch<u64> = Scratch::default();
        let error = (0..).try_for_each(|n| grown.push(n)).expect_err("ends at the limit");
        assert!(error.message().contains("memory limit of 4.0 KiB"), "{error}");
        assert!(grown.len() >= 256 && budget.live_bytes() >= 2048, "{}", grown.len());
        let endless = (0u64..).map(Ok);
        assert!(try_collected(endless).is_err() && collected(0u64..).is_err());
        grown.clear();
        assert!(grown.extend(0..1 << 20).is_err() && grown.resize(1 << 20, 0).is_err());
    }
}
