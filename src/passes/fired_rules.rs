//! Which rewrite rules fired in the passes of a tool that asks: it hands a [`FiredRules`] to them. No pass itself.

use indexmap::IndexMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// How often each rule made two things equal that were not, in the order of first firing.
#[derive(Debug, Default)]
pub struct FiredRules(Mutex<IndexMap<Arc<str>, usize>>);

impl FiredRules {
    /// Adds what fired in a pass.
    pub(super) fn add(&self, fired: &IndexMap<Arc<str>, usize>) {
        let mut all = self.0.lock();
        for (rule, times) in fired {
            *all.entry(Arc::clone(rule)).or_default() += times;
        }
    }

    /// The rules that fired so far.
    pub fn all(&self) -> Vec<(Arc<str>, usize)> {
        self.0.lock().iter().map(|(rule, times)| (Arc::clone(rule), *times)).collect()
    }
}
