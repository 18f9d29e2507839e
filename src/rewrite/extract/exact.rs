//! Exact extraction for small functions: a branch-and-bound search for the cheapest acyclic choice of one node for
//! each class that is needed. Sharing counts: a class is paid for once. What is left over of the budget of steps
//! makes no difference: the best choice found so far is a valid one.
//!
//! A class is decided at a time, those with the fewest choices first. What is sure to follow is counted at once: a
//! class brings along all that every way to make it needs, and each of these costs at least its cheapest node. It
//! knows nothing of places and identity: writing the choice back decides whether it is allowed there.

use crate::ir::{Graph, OpId, Type};
use crate::rewrite::cost::CostModel;
use crate::rewrite::egraph::enter::Loaded;
use crate::rewrite::egraph::enter::op_of;
use crate::rewrite::egraph::language::{Head, Node, OpHead};
use crate::rewrite::egraph::saturate::Saturation;
use egg::Id;
use hashbrown::{HashMap, HashSet};

/// Functions that need more classes are not searched.
const MAX_CLASSES: usize = 192;
/// Steps of a search.
const MAX_STEPS: usize = 20_000;
/// One op more or less weighs more than all preferences together.
const WEIGHT: u64 = 1 << 12;

/// A set of classes by their number.
type Set = [u64; MAX_CLASSES / 64];

/// One way to make a class.
struct Choice {
    /// Cost, and below it what is preferred among equals.
    cost: u64,
    children: Vec<usize>,
    node: Node,
}

/// What is to be decided.
pub(super) struct Problem {
    ids: Vec<Id>,
    /// The ways to make each class, the cheapest first.
    choices: Vec<Vec<Choice>>,
    /// Classes that are needed whatever is chosen.
    roots: Vec<usize>,
    /// All that each class brings along, itself among it.
    must: Vec<Set>,
}

/// What the ways to make a class follow from.
struct Source<'a> {
    loaded: &'a Loaded,
    own: &'a HashMap<OpId, Node>,
    /// Nodes of the program and right sides of rules: preferred among equals.
    kept: HashSet<&'a Node>,
    model: CostModel,
}

impl Problem {
    /// The classes that the function needs; none where they are too many, or where there is nothing to decide.
    pub(in crate::rewrite) fn of(
        graph: &Graph,
        run: &Saturation<'_>,
        own: &HashMap<OpId, Node>,
        produced: &HashSet<Node>,
        model: CostModel,
    ) -> Option<Problem> {
        if run.firings.is_empty() || own.len() > MAX_CLASSES {
            return None;
        }
        let loaded = &run.loaded;
        let mut found = Problem { ids: Vec::new(), choices: Vec::new(), roots: Vec::new(), must: Vec::new() };
        let mut numbers: HashMap<Id, usize> = HashMap::new();
        for value in
            graph.all_ops().into_iter().flat_map(|op| graph.results(op)).chain(graph.inputs().to_vec())
        {
            let is_root = graph.uses(value).any(|used| !own.contains_key(&used.op));
            if let (true, Some(id)) = (is_root, loaded.class_of.get(&value)) {
                let root = found.number(&mut numbers, loaded.egraph.find(*id));
                if !found.roots.contains(&root) {
                    found.roots.push(root);
                }
            }
        }
        let kept: HashSet<&Node> = own.values().chain(produced).collect();
        let source = Source { loaded, own, kept, model };
        let mut done = 0;
        while done < found.ids.len() {
            if found.ids.len() > MAX_CLASSES {
                return None;
            }
            let id = found.ids[done];
            let choices = found.ways(&mut numbers, &source, id);
            found.choices.push(choices);
            done += 1;
        }
        if found.choices.iter().all(|choices| choices.len() < 2) {
            return None;
        }
        found.must = found.brought_along();
        Some(found)
    }

    fn number(&mut self, numbers: &mut HashMap<Id, usize>, id: Id) -> usize {
        *numbers.entry(id).or_insert_with(|| {
            self.ids.push(id);
            self.ids.len() - 1
        })
    }

    /// The ways to make a class, without those that another one is as good as in every respect.
    fn ways(&mut self, numbers: &mut HashMap<Id, usize>, source: &Source<'_>, id: Id) -> Vec<Choice> {
        let loaded = source.loaded;
        let class = &loaded.egraph[id];
        let free = |node: &&Node| matches!(loaded.head(node), Head::Constant(..) | Head::Leaf(_));
        if let Some(node) = class.nodes.iter().find(free) {
            return vec![Choice { cost: 0, children: Vec::new(), node: node.clone() }];
        }
        let mut ways: Vec<(u64, Vec<Id>, &Node)> = Vec::new();
        for node in &class.nodes {
            if let Head::Op(OpHead { pin: Some((op, _)), .. }) = loaded.head(node)
                && !source.own.contains_key(op)
            {
                // A choice between blocks does not make a value.
                continue;
            }
            let ty = |id: Id| &loaded.egraph[loaded.egraph.find(id)].data.ty;
            let operands: Vec<&Type> = node.children.iter().map(|c| ty(*c)).collect();
            let cost = op_of(loaded, node).map_or(0, |head| source.model.cost(&head.op, &operands, ty(id)));
            let mut children: Vec<Id> = node.children.iter().map(|c| loaded.egraph.find(*c)).collect();
            children.sort_unstable();
            children.dedup();
            if !children.contains(&id) {
                let cost =
                    cost.min(u64::MAX / WEIGHT / 1024) * WEIGHT + u64::from(!source.kept.contains(node));
                ways.push((cost, children, node));
            }
        }
        let better = |a: &(u64, Vec<Id>, &Node), b: &(u64, Vec<Id>, &Node)| {
            a.0 <= b.0 && a.1.iter().all(|child| b.1.contains(child))
        };
        let mut kept: Vec<(u64, Vec<Id>, &Node)> = Vec::new();
        for way in ways {
            if !kept.iter().any(|known| better(known, &way)) {
                kept.retain(|known| !better(&way, known));
                kept.push(way);
            }
        }
        kept.sort_by_key(|(cost, children, _)| (*cost, children.len()));
        let mut choices = Vec::new();
        for (cost, children, node) in kept {
            let children = children.into_iter().map(|child| self.number(numbers, child)).collect();
            choices.push(Choice { cost, children, node: node.clone() });
        }
        choices
    }

    /// For each class, all classes that every way to make it needs.
    fn brought_along(&self) -> Vec<Set> {
        let mut must = vec![[u64::MAX; MAX_CLASSES / 64]; self.ids.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for (n, choices) in self.choices.iter().enumerate() {
                let mut all = if choices.is_empty() { must[n] } else { [u64::MAX; MAX_CLASSES / 64] };
                for choice in choices {
                    let mut needs = Set::default();
                    for child in &choice.children {
                        needs.iter_mut().zip(must[*child]).for_each(|(a, b)| *a |= b);
                    }
                    all.iter_mut().zip(needs).for_each(|(a, b)| *a &= b);
                }
                all[n / 64] |= 1 << (n % 64);
                changed |= all != must[n];
                must[n] = all;
            }
        }
        must
    }

    /// The cheapest choice that costs less than `bound`, as far as the budget lasts.
    pub(super) fn solve(&self, bound: u64) -> Option<HashMap<Id, Node>> {
        let mut search = Search {
            problem: self,
            chosen: vec![None; self.ids.len()],
            needed: vec![0; self.ids.len()],
            cost: 0,
            least: self.choices.iter().map(|c| c.first().map_or(0, |c| c.cost)).collect(),
            best: bound.saturating_mul(WEIGHT),
            found: None,
            steps: 0,
        };
        self.roots.iter().for_each(|root| search.needed[*root] += 1);
        search.step();
        let found = search.found?;
        let nodes = found.iter().enumerate().filter_map(|(n, choice)| {
            choice.map(|choice| (self.ids[n], self.choices[n][choice].node.clone()))
        });
        Some(nodes.collect())
    }
}

struct Search<'p> {
    problem: &'p Problem,
    chosen: Vec<Option<usize>>,
    /// How many roots and chosen nodes need a class.
    needed: Vec<u32>,
    cost: u64,
    /// What each class costs at least.
    least: Vec<u64>,
    /// A choice must cost less than this.
    best: u64,
    found: Option<Vec<Option<usize>>>,
    steps: usize,
}

impl Search<'_> {
    fn step(&mut self) {
        self.steps += 1;
        let open = |n: &usize| self.needed[*n] > 0 && self.chosen[*n].is_none();
        if self.steps > MAX_STEPS || self.cost + self.sure() >= self.best {
            return;
        }
        let fewest = |n: &usize| self.problem.choices[*n].len();
        let Some(n) = (0..self.chosen.len()).filter(open).min_by_key(fewest) else {
            self.best = self.cost;
            self.found = Some(self.chosen.clone());
            return;
        };
        for (which, choice) in self.problem.choices[n].iter().enumerate() {
            if choice.children.iter().any(|child| self.reaches(*child, n)) {
                continue;
            }
            self.chosen[n] = Some(which);
            self.cost += choice.cost;
            choice.children.iter().for_each(|child| self.needed[*child] += 1);
            self.step();
            choice.children.iter().for_each(|child| self.needed[*child] -= 1);
            self.cost -= choice.cost;
            self.chosen[n] = None;
        }
    }

    /// What the classes cost at least that are needed and not decided.
    fn sure(&self) -> u64 {
        let mut sure = Set::default();
        for (n, needed) in self.needed.iter().enumerate() {
            if *needed > 0 && self.chosen[n].is_none() {
                sure.iter_mut().zip(self.problem.must[n]).for_each(|(a, b)| *a |= b);
            }
        }
        let open = |n: &usize| sure[n / 64] >> (n % 64) & 1 == 1 && self.chosen[*n].is_none();
        (0..self.chosen.len()).filter(open).map(|n| self.least[n]).sum()
    }

    /// Whether a class takes another one, by what is chosen.
    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = Set::default();
        let mut work = vec![from];
        while let Some(n) = work.pop() {
            if n == to {
                return true;
            }
            if seen[n / 64] >> (n % 64) & 1 == 1 {
                continue;
            }
            seen[n / 64] |= 1 << (n % 64);
            if let Some(choice) = self.chosen[n] {
                work.extend(&self.problem.choices[n][choice].children);
            }
        }
        false
    }
}
