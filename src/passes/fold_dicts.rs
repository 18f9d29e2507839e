//! Looks up in dictionaries that are made in the graph with constant keys: what is asked of such a dictionary (an item, whether
//! a key is there, how many there are) is known where it is made, unless an item that is set may change it.
//!
//! A dictionary that anything else uses stays: items may be taken out, or it may escape. So does one with an item that is
//! computed and that would become unused: dead code goes, with random numbers that it draws and errors that it raises.
//! `peephole` has PyTorch's rules of the same: one or two keys, and nothing set.

use super::{Context, constants, dce};
use crate::diag::Result;
use crate::ir::{Graph, OpId, ValueId};
use crate::value::{DictKey, Value};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for made in graph.all_ops() {
        if !graph.is_live(made) || graph.kind(made) != "prim::DictConstruct" {
            continue;
        }
        let Some(made) = Made::of(graph, made) else { continue };
        let answers: Vec<_> = made.questions.iter().map(|op| (*op, made.answer(graph, *op))).collect();
        if !made.stays_needed(graph, &answers) {
            continue;
        }
        for (op, answer) in answers {
            let Some(answer) = answer else { continue };
            if !context.step(|| format!("knows {}", graph.op_line(op).trim())) {
                return Ok(changed);
            }
            changed |= put(graph, op, answer);
        }
    }
    Ok(dce::without_aliases(graph, context) || changed)
}

/// A dictionary that nothing but its graph sees.
struct Made {
    /// Keys with what stands under them when it is made; of equal ones the last counts.
    items: Vec<(DictKey, ValueId)>,
    /// All values that it is made of.
    given: Vec<ValueId>,
    /// Ops that set an item, with its key, None for one that only the run knows, and the item.
    set: Vec<(OpId, Option<DictKey>, ValueId)>,
    /// The ops that ask it something.
    questions: Vec<OpId>,
}

/// What a question's op becomes.
enum Answer {
    Same(ValueId),
    Constant(Value),
}

impl Made {
    fn of(graph: &Graph, made: OpId) -> Option<Made> {
        let (mut items, mut given): (Vec<(DictKey, ValueId)>, Vec<ValueId>) = Default::default();
        for pair in graph.operands(made).chunks_exact(2) {
            let key = key_of(graph, pair[0])?;
            given.push(pair[1]);
            match items.iter_mut().find(|(known, _)| *known == key) {
                Some((_, value)) => *value = pair[1],
                None => items.push((key, pair[1])),
            }
        }
        let mut found = Made { items, given, set: Vec::new(), questions: Vec::new() };
        for used in graph.uses(graph.result(made, 0)?) {
            match (graph.kind(used.op).as_str(), used.index) {
                ("aten::_set_item", 0) => {
                    let (key, item) = (graph.operand(used.op, 1)?, graph.operand(used.op, 2)?);
                    found.set.push((used.op, key_of(graph, key), item));
                }
                ("aten::len" | "aten::__contains__" | "aten::__getitem__" | "aten::get", 0) => {
                    found.questions.push(used.op);
                }
                _ => return None,
            }
        }
        Some(found)
    }

    /// Whether all that would run before still runs when questions have their answers: one is left that is needed, or each
    /// item is an answer that is needed, a constant or an argument.
    fn stays_needed(&self, graph: &Graph, answers: &[(OpId, Option<Answer>)]) -> bool {
        let is_set = |user: OpId| self.set.iter().any(|(op, ..)| *op == user);
        let is_needed =
            |op: OpId| graph.results(op).iter().any(|v| graph.uses(*v).any(|used| !is_set(used.op)));
        if answers.iter().any(|(op, answer)| answer.is_none() && is_needed(*op)) {
            return true;
        }
        let is_answer = |value: ValueId| {
            let same = |(op, answer): &(OpId, Option<Answer>)| {
                matches!(answer, Some(Answer::Same(found)) if *found == value) && is_needed(*op)
            };
            answers.iter().any(same)
        };
        let may_go = |value: ValueId| graph.def_op(value).is_none_or(|op| graph.kind(op) == "prim::Constant");
        let mut values = self.given.iter().chain(self.set.iter().map(|(_, _, item)| item));
        values.all(|value| is_answer(*value) || may_go(*value))
    }

    /// What an op finds out. None where only the run knows, or where it raises.
    fn answer(&self, graph: &Graph, op: OpId) -> Option<Answer> {
        let operands = graph.operands(op);
        if graph.kind(op) == "aten::len" {
            return self.set.is_empty().then(|| Answer::Constant(Value::Int(self.items.len() as i64)));
        }
        let key = key_of(graph, *operands.get(1)?)?;
        let item = self.items.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        let is_set = self.set.iter().any(|(_, set, _)| set.as_ref().is_none_or(|set| *set == key));
        if graph.kind(op) == "aten::__contains__" {
            // What is there stays there.
            return (item.is_some() || !is_set).then(|| Answer::Constant(Value::Bool(item.is_some())));
        }
        let default = || operands.get(2).copied();
        item.or_else(default).filter(|_| !is_set).map(Answer::Same)
    }
}

pub(super) fn key_of(graph: &Graph, value: ValueId) -> Option<DictKey> {
    match constants::value_of(graph, value)? {
        // Tensors are keys by what object they are.
        Value::Tensor(_) => None,
        key => DictKey::new(&key).ok(),
    }
}

fn put(graph: &mut Graph, op: OpId, answer: Answer) -> bool {
    let value = match answer {
        Answer::Same(value) => Some(value),
        Answer::Constant(value) => constants::insert_before(graph, op, &value),
    };
    if let Some(value) = value {
        graph.replace_op(op, &[value]);
    }
    value.is_some()
}
