//! The values of a graph by the names that a text gives them. Keys are ranges of the text, so that nothing is
//! copied; plain numbers, which most values are called, index a vector.

use crate::ir::ValueId;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Names of one graph.
pub(in crate::ir) struct Names<'a> {
    text: &'a str,
    /// By number; `u32::MAX` where the number names nothing.
    numbered: Vec<u32>,
    /// Numbers that name something, as long as they are few: many graphs in one text then share the table, and none
    /// has to clear all of it.
    few: Vec<u32>,
    /// Too many to list.
    many: bool,
    /// Whether a graph was read before this one.
    later: bool,
    named: HashTable<Entry>,
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    len: u32,
    value: u32,
}

/// A number without leading zeros below the limit, so that a short text cannot ask for a large table.
fn as_number(name: &str, limit: usize) -> Option<usize> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() > 9 || bytes[0] == b'0' && bytes.len() > 1 {
        return None;
    }
    let mut number = 0usize;
    for b in bytes {
        if !b.is_ascii_digit() {
            return None;
        }
        number = number * 10 + usize::from(b - b'0');
    }
    (number <= limit).then_some(number)
}

impl<'a> Names<'a> {
    /// No names yet; `text` is what all later ranges mean.
    pub(in crate::ir) fn new(text: &'a str) -> Names<'a> {
        Names {
            text,
            numbered: Vec::new(),
            few: Vec::new(),
            many: false,
            later: false,
            named: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Clears all names, in time linear in their number.
    pub(in crate::ir) fn clear(&mut self) {
        self.later |= !self.numbered.is_empty() || !self.named.is_empty();
        if std::mem::take(&mut self.many) {
            self.numbered.clear();
        }
        for number in self.few.drain(..) {
            if let Some(value) = self.numbered.get_mut(number as usize) {
                *value = u32::MAX;
            }
        }
        if self.named.len() < self.named.capacity() / Self::SPARSE {
            self.named = HashTable::new();
        }
        self.named.clear();
    }

    /// A table filled less than one in this many slots is cleared name by name.
    const SPARSE: usize = 8;

    /// The value of a name.
    #[inline]
    pub(in crate::ir) fn get(&self, name: &str) -> Option<ValueId> {
        if let Some(number) = as_number(name, self.text.len()) {
            return self.numbered.get(number).filter(|v| **v != u32::MAX).map(|v| ValueId(*v));
        }
        let hash = self.hasher.hash_one(name);
        self.named.find(hash, |e| key(self.text, e) == name).map(|e| ValueId(e.value))
    }

    /// Gives a name, which starts at a byte offset of the text, to a value. Says whether another had it before.
    #[inline]
    pub(in crate::ir) fn insert(&mut self, start: usize, name: &str, value: ValueId) -> bool {
        if let Some(number) = as_number(name, self.text.len()) {
            if self.numbered.len() <= number {
                self.numbered.resize(number + 1, u32::MAX);
            }
            if !self.many {
                self.few.push(number as u32);
                if self.few.len() > self.numbered.len() / Self::SPARSE {
                    self.few = Vec::new();
                    self.many = true;
                }
            }
            return std::mem::replace(&mut self.numbered[number], value.0) != u32::MAX;
        }
        let hash = self.hasher.hash_one(name);
        if let Some(entry) = self.named.find_mut(hash, |e| key(self.text, e) == name) {
            entry.value = value.0;
            return true;
        }
        if self.named.is_empty() && !self.later {
            // About one name for this many bytes of typical text; growing step by step would rehash all.
            const BYTES_A_NAME: usize = 48;
            let (text, hasher) = (self.text, &self.hasher);
            let expected = self.text.len().saturating_sub(start) / BYTES_A_NAME;
            self.named.reserve(expected, |e| hasher.hash_one(key(text, e)));
        }
        let entry = Entry { start: start as u32, len: name.len() as u32, value: value.0 };
        let (text, hasher) = (self.text, &self.hasher);
        self.named.insert_unique(hash, entry, |e| hasher.hash_one(key(text, e)));
        false
    }

    /// All names that are not numbers, in no order: for suggestions, which look for the nearest.
    pub(in crate::ir) fn all(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.named.iter().map(|e| key(self.text, e))
    }
}

fn key<'a>(text: &'a str, entry: &Entry) -> &'a str {
    let start = entry.start as usize;
    text.get(start..start + entry.len as usize).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_graph_are_unknown_in_the_next() {
        let text = "x".repeat(4000);
        let mut names = Names::new(&text);
        for round in 0..3 {
            // Few numbers of a large table, then many, then few again.
            let numbers: Vec<usize> = if round == 1 { (0..1000).collect() } else { vec![3999, 7] };
            for n in &numbers {
                let name = n.to_string();
                assert_eq!(names.get(&name), None, "{n}");
                assert!(!names.insert(0, &name, ValueId(*n as u32)));
                assert!(names.insert(0, &name, ValueId(*n as u32)));
                assert_eq!(names.get(&name), Some(ValueId(*n as u32)));
            }
            assert!(!names.insert(round, &text[round..round + 5], ValueId(1)));
            names.clear();
            assert!(numbers.iter().all(|n| names.get(&n.to_string()).is_none()));
            assert_eq!(names.get("xxxxx"), None);
        }
    }
}
