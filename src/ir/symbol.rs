//! Interned names: op kinds (`aten::add`), attribute names, class and function names.
//!
//! Symbols compare by number and are never ordered or printed by it, so that the order in which threads
//! intern cannot show. The table only grows; its entries live as long as the process.

use hashbrown::HashMap;
use parking_lot::RwLock;
use std::fmt;
use std::sync::LazyLock;

/// An interned name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Symbol(u32);

#[derive(Default)]
struct Table {
    by_name: HashMap<&'static str, u32>,
    names: Vec<&'static str>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

impl Symbol {
    /// Interns a name.
    pub fn new(name: &str) -> Symbol {
        if let Some(symbol) = Symbol::existing(name) {
            return symbol;
        }
        let mut table = TABLE.write();
        if let Some(id) = table.by_name.get(name) {
            return Symbol(*id);
        }
        let name: &'static str = Box::leak(name.into());
        let id = table.names.len() as u32;
        table.names.push(name);
        table.by_name.insert(name, id);
        Symbol(id)
    }

    /// The symbol of a name that somebody interned before.
    pub fn existing(name: &str) -> Option<Symbol> {
        TABLE.read().by_name.get(name).map(|id| Symbol(*id))
    }

    /// The number under which the name is interned: for tables, never for order or output.
    pub(super) fn index(self) -> u32 {
        self.0
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        TABLE.read().names[self.0 as usize]
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
macro_rules! kinds {
    ($($function:ident $name:literal),* $(,)?) => {
        struct Kinds { $($function: $crate::ir::Symbol),* }
        static KINDS: std::sync::LazyLock<Kinds> =
            std::sync::LazyLock::new(|| Kinds { $($function: $crate::ir::Symbol::new($name)),* });
        $(pub(super) fn $function() -> $crate::ir::Symbol { KINDS.$function })*
    };
}
pub(crate) use kinds;
