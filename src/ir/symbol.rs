//! Interned names: op kinds (`aten::add`), attribute names, class and function names.
//!
//! Symbols compare by number and are never ordered or printed by it, so that the order in which threads
//! intern cannot show. The table only grows; its entries live as long as the process, and `resources::names` counts and
//! bounds them. Reading a name takes no lock.

use crate::resources::names;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::fmt;
use std::sync::{LazyLock, OnceLock};

/// An interned name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Symbol(u32);

/// Numbers by name.
static NUMBERS: LazyLock<RwLock<HashMap<&'static str, u32>>> = LazyLock::new(RwLock::default);

/// Names by number, in segments of `FIRST`, `FIRST`, `2 * FIRST`, `4 * FIRST`, ... places. A segment never moves, so that
/// readers never wait for writers.
static NAMES: [OnceLock<Segment>; SEGMENTS] = [const { OnceLock::new() }; SEGMENTS];

type Segment = Box<[OnceLock<&'static str>]>;

const FIRST: u32 = 1 << 12;
const SEGMENTS: usize = 21;

/// The segment of a number, the number of the segment's first place, and how many places the segment has.
fn place(number: u32) -> (usize, u32, u32) {
    match number / FIRST {
        0 => (0, 0, FIRST),
        blocks => {
            let power = blocks.ilog2();
            (power as usize + 1, FIRST << power, FIRST << power)
        }
    }
}

impl Symbol {
    /// Interns a name.
    pub fn new(name: &str) -> Symbol {
        if let Some(symbol) = Symbol::existing(name) {
            return symbol;
        }
        let mut numbers = NUMBERS.write();
        if let Some(number) = numbers.get(name) {
            return Symbol(*number);
        }
        let name: &'static str = Box::leak(name.into());
        let number = numbers.len() as u32;
        let (segment, first, len) = place(number);
        let segment = NAMES[segment].get_or_init(|| (0..len).map(|_| OnceLock::new()).collect());
        // The place is empty: the table of numbers is locked, and each number is given once.
        let _ = segment[(number - first) as usize].set(name);
        numbers.insert(name, number);
        drop(numbers);
        names::interned(name.len());
        Symbol(number)
    }

    /// The symbol of a name that was interned before.
    pub fn existing(name: &str) -> Option<Symbol> {
        NUMBERS.read().get(name).map(|number| Symbol(*number))
    }

    /// The number under which the name is interned: for tables, never for order or output.
    pub fn index(self) -> u32 {
        self.0
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        let (segment, first, _) = place(self.0);
        let name = NAMES[segment].get().and_then(|segment| segment[(self.0 - first) as usize].get());
        // A symbol exists only after its name was set.
        name.copied().unwrap_or_default()
    }

    /// The part before `::`, empty where there is none.
    pub fn namespace(self) -> &'static str {
        self.as_str().split_once("::").map_or("", |(namespace, _)| namespace)
    }

    /// The part after the first `::`, or the whole name.
    pub fn base(self) -> &'static str {
        let name = self.as_str();
        name.split_once("::").map_or(name, |(_, base)| base)
    }
}

impl From<&str> for Symbol {
    fn from(name: &str) -> Symbol {
        Symbol::new(name)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<str> for Symbol {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Symbol {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

/// Functions that give symbols of fixed names, interned once: `kinds! { load "prim::Load" }` makes `load()`.
#[macro_export]
macro_rules! kinds {
    ($($function:ident $name:literal),* $(,)?) => {
        struct Kinds { $($function: $crate::ir::Symbol),* }
        static KINDS: std::sync::LazyLock<Kinds> =
            std::sync::LazyLock::new(|| Kinds { $($function: $crate::ir::Symbol::new($name)),* });
        $(pub(super) fn $function() -> $crate::ir::Symbol { KINDS.$function })*
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_join_without_gaps() {
        let mut end = 0;
        for segment in 0..SEGMENTS {
            let (at, first, len) = place(end);
            assert_eq!((at, first), (segment, end));
            assert_eq!(place(first + (len - 1)), (segment, first, len));
            end = first.wrapping_add(len);
        }
        assert_eq!(end, 0, "the segments hold all numbers");
    }

    #[test]
    fn names_are_counted_once() {
        let name = "names-test".repeat(10_000);
        let before = names::taken();
        Symbol::new(&name);
        let after = names::taken();
        assert!(after >= before + 100_000);
        Symbol::new(&name);
        assert!(names::taken() < after + 100_000 && names::check().is_ok());
    }

    #[test]
    fn names_come_back_from_any_thread() {
        let name = |n: usize| format!("symbol-test::{n}");
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(move || (0..9000).map(|n| Symbol::new(&name(n))).collect::<Vec<_>>()))
            .collect();
        let all: Vec<Vec<Symbol>> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(all.iter().all(|one| *one == all[0]));
        assert!(all[0].iter().enumerate().all(|(n, symbol)| *symbol == *name(n).as_str()));
    }
}
