//! Where rules look in a round: at classes that changed since the round before, and at those above them, as far up
//! as a left side sees down. What did not change matches as it did, and was tried then.

use super::enter::Loaded;
use super::language::{Head, is_number};
use crate::rewrite::load::rule::{CompiledRule, Term};
use egg::Id;
use hashbrown::HashMap;

/// How many levels below its root a left side reads.
pub(in crate::rewrite) fn depth(term: &Term) -> u8 {
    let below = |terms: &mut dyn Iterator<Item = &Term>| terms.map(depth).max().map_or(0, |d| d + 1);
    match term {
        Term::Op(node) => {
            let inner = below(&mut node.operands.iter().chain(node.blocks.iter().flatten()));
            inner + u8::from(node.result.is_some())
        }
        Term::List(_, items) => below(&mut items.iter()),
        Term::Variable(..) | Term::Rest(..) | Term::Constant(..) | Term::Compute(..) => 0,
    }
}

/// The classes of one round.
pub(in crate::rewrite) struct Agenda {
    /// By the row of an op that a class holds: classes, each with how far it lies above what changed.
    by_row: HashMap<usize, Vec<(Id, u8)>>,
    /// All of them.
    all: Vec<(Id, u8)>,
}

impl Agenda {
    /// Every class there is.
    pub(in crate::rewrite) fn of_all(loaded: &Loaded) -> Agenda {
        let mut all: Vec<(Id, u8)> = loaded.egraph.classes().map(|class| (class.id, 0)).collect();
        all.sort_unstable();
        Agenda::of(loaded, all)
    }

    /// The classes that changed, and those at most a number of levels above them; `above` are known to lie one level
    /// above something that did.
    pub(super) fn of_changed(loaded: &Loaded, changed: &[Id], above: &[Id], levels: u8) -> Agenda {
        let egraph = &loaded.egraph;
        let mut level: HashMap<Id, u8> = HashMap::new();
        let mut layer: Vec<Id> = Vec::new();
        let reach = |id: Id, n: u8, level: &mut HashMap<Id, u8>, next: &mut Vec<Id>| {
            let id = egraph.find(id);
            if !level.contains_key(&id) {
                level.insert(id, n);
                next.push(id);
            }
        };
        changed.iter().for_each(|id| reach(*id, 0, &mut level, &mut layer));
        for n in 1..=levels {
            let mut next = Vec::new();
            if n == 1 {
                above.iter().for_each(|id| reach(*id, n, &mut level, &mut next));
            }
            for id in &layer {
                egraph[*id].parents().for_each(|parent| reach(parent, n, &mut level, &mut next));
            }
            layer = next;
        }
        let mut all: Vec<(Id, u8)> = level.into_iter().collect();
        all.sort_unstable();
        Agenda::of(loaded, all)
    }

    fn of(loaded: &Loaded, all: Vec<(Id, u8)>) -> Agenda {
        let mut by_row: HashMap<usize, Vec<(Id, u8)>> = HashMap::new();
        for (id, level) in &all {
            let class = &loaded.egraph[*id];
            // No term of ops is looked for where a number is known.
            let nodes = if is_number(class.data.constant.as_ref()) { &[][..] } else { &class.nodes[..] };
            for node in nodes {
                let Head::Op(head) = loaded.head(node) else { continue };
                let known = by_row.entry(head.op.id()).or_default();
                if known.last().is_none_or(|(last, _)| last != id) {
                    known.push((*id, *level));
                }
            }
        }
        Agenda { by_row, all }
    }

    /// The classes where a rule may match that did not match before, each once and in order.
    pub(in crate::rewrite) fn candidates(&self, loaded: &Loaded, rule: &CompiledRule, depth: u8) -> Vec<Id> {
        let found = match &rule.left {
            Term::Op(node) if node.result.is_none() => {
                self.by_row.get(&node.op.id()).map_or(&[][..], Vec::as_slice)
            }
            _ => &self.all,
        };
        let near = found.iter().filter(|(_, level)| *level <= depth);
        let mut ids: Vec<Id> = near.map(|(id, _)| loaded.egraph.find(*id)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
