//! The alias analysis against PyTorch's: the recorded graphs of tests/golden/aliasing, each with what PyTorch answers for
//! every pair of values, every value and moves of ops. Answers that are known to be better here are named in the graphs.

use flambeau::analysis::{AliasDb, Side};
use flambeau::dialects::Registry;
use flambeau::ir::{BlockId, Graph, Naming, OpId, ParseOptions, ValueId, parse_graph_source};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fs;

const FILE: &str = "tests/golden/aliasing/pytorch.jsonl";

/// The one trial.
pub fn trials() -> Vec<Trial> {
    vec![Trial::test("alias_answers::pytorch", || compare(FILE))]
}

/// Compares all graphs of a file; all that differ are reported.
fn compare(file: &str) -> Result<(), Failed> {
    let registry = Registry::builtin();
    let (mut graphs, mut wrong) = (0, Vec::new());
    for line in fs::read_to_string(file)?.lines() {
        let case: Json = serde_json::from_str(line)?;
        graphs += 1;
        wrong.extend(Case::of(&registry, &case)?.differences()?);
    }
    if graphs < 100 {
        return Err(format!("{file} has {graphs} graphs only").into());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

struct Case<'a> {
    registry: &'a Registry,
    case: &'a Json,
    graph: Graph,
    db: AliasDb,
    /// In order of appearance.
    values: Vec<ValueId>,
}

impl<'a> Case<'a> {
    fn of(registry: &'a Registry, case: &'a Json) -> Result<Case<'a>, Failed> {
        let text = case["graph"].as_str().unwrap_or_default();
        let source = flambeau::diag::Source::new("graph", text.to_string());
        let options = ParseOptions { naming: Naming::Keep, ..ParseOptions::default() };
        let graph = parse_graph_source(&source, &options).map_err(|e| format!("{e:?}"))?;
        let db = AliasDb::new(registry, None, &graph);
        let mut values = graph.inputs().to_vec();
        appear(&graph, graph.root(), &mut values);
        Ok(Case { registry, case, graph, db, values })
    }

    /// `NAME: pair %a %b: true here`, where PyTorch says otherwise and the case does not say that it may.
    fn differences(&self) -> Result<Vec<String>, Failed> {
        let mut found = BTreeSet::new();
        for (n, a) in self.values.iter().enumerate() {
            let written = self.db.has_writers(*a);
            if written != self.bit("written", None, n)? {
                found.insert((format!("written {}", self.name(*a)), written));
            }
            for (m, b) in self.values[..=n].iter().enumerate() {
                let alias = self.db.may_contain_alias(*a, *b);
                if alias != self.bit("pairs", Some(n), m)? {
                    found.insert((format!("pair {} {}", self.name(*a), self.name(*b)), alias));
                }
            }
        }
        for (field, side) in [("before", Side::Before), ("after", Side::After)] {
            self.moves(field, side, &mut found)?;
        }
        let known: BTreeSet<&str> =
            self.case["differs"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let name = self.case["name"].as_str().unwrap_or_default();
        let stale = known.iter().filter(|k| !found.iter().any(|(what, _)| what == *k));
        let mut wrong: Vec<String> = stale.map(|what| format!("{name}: {what} does not differ")).collect();
        let new = found.iter().filter(|(what, _)| !known.contains(what.as_str()));
        wrong.extend(new.map(|(what, here)| format!("{name}: {what}: {here} here")));
        Ok(wrong)
    }

    fn moves(&self, field: &str, side: Side, found: &mut BTreeSet<(String, bool)>) -> Result<(), Failed> {
        if self.case[field].is_null() {
            return Ok(());
        }
        let ops: Vec<OpId> = self.graph.block_ops(self.graph.root()).collect();
        for (n, op) in ops.iter().enumerate() {
            for (m, anchor) in ops.iter().enumerate() {
                let may = self.db.can_move(&self.graph, self.registry, *op, side, *anchor);
                if may != self.bit(field, Some(n), m)? {
                    let line = |op: OpId| self.graph.op_line(op).trim().to_string();
                    found.insert((format!("move '{}' {field} '{}'", line(*op), line(*anchor)), may));
                }
            }
        }
        Ok(())
    }

    /// The bit `m` of a row of a field.
    fn bit(&self, field: &str, row: Option<usize>, m: usize) -> Result<bool, Failed> {
        let rows = &self.case[field];
        let bits = row.map_or(rows, |n| &rows[n]).as_str().map(str::as_bytes);
        match bits.and_then(|bits| bits.get(m)) {
            Some(bit) => Ok(*bit == b'1'),
            None => Err(format!("{}: {field} is too short", self.case["name"]).into()),
        }
    }

    fn name(&self, value: ValueId) -> String {
        format!("%{}", self.graph.name(value).unwrap_or("?"))
    }
}

/// Adds the values of a block, and of those nested in it.
fn appear(graph: &Graph, block: BlockId, values: &mut Vec<ValueId>) {
    for op in graph.block_ops(block) {
        values.extend(graph.results(op));
        for inner in graph.nested_blocks(op) {
            values.extend(graph.params(*inner));
            appear(graph, *inner, values);
        }
    }
}
