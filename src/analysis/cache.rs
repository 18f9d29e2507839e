//! Analyses of a graph that are computed once and asked for often. The pass manager keeps one cache a function and
//! drops what a pass did not preserve.

use crate::dialects::Registry;
use crate::ir::{Graph, Module};
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::sync::Arc;

/// Something that is computed from a graph and stays true until the graph changes.
pub trait Analysis: Any + Send + Sync + Sized {
    /// The name under which it logs (`alias`).
    const NAME: &'static str;

    /// Computes it.
    fn compute(graph: &Graph, registry: &Registry, module: &Module) -> Self;
}

/// The analyses of one graph that are known to hold.
#[derive(Default)]
pub struct AnalysisCache {
    known: RefCell<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>,
    computed: RefCell<usize>,
}

impl AnalysisCache {
    /// The analysis of a graph, computed if it is not known to hold.
    pub fn get<A: Analysis>(&self, graph: &Graph, registry: &Registry, module: &Module) -> Arc<A> {
        let key = TypeId::of::<A>();
        let known = self.known.borrow().iter().find(|(k, _)| *k == key).map(|(_, a)| Arc::clone(a));
        if let Some(analysis) = known.and_then(|a| a.downcast::<A>().ok()) {
            return analysis;
        }
        let analysis = Arc::new(A::compute(graph, registry, module));
        *self.computed.borrow_mut() += 1;
        self.known.borrow_mut().push((key, Arc::clone(&analysis) as Arc<dyn Any + Send + Sync>));
        analysis
    }

    /// Forgets everything: the graph has changed.
    pub fn clear(&self) {
        self.known.borrow_mut().clear();
    }

    /// Forgets everything but these.
    pub fn keep_only(&self, preserved: &[TypeId]) {
        self.known.borrow_mut().retain(|(key, _)| preserved.contains(key));
    }

    /// How many analyses were computed so far.
    pub fn computed(&self) -> usize {
        *self.computed.borrow()
    }
}
