//! The audit of a dialect file: what an op's meaning writes, aliases and does besides computing must be what its schema and
//! its `effects` say, as passes trust these. Looks at the compiled meaning alone; nothing runs.

use crate::analysis::facts;
use crate::diag::{Diagnostic, Result, Span};
use crate::dialects::text::OpText;
use crate::dialects::{Effects, Registry, resolve};
use crate::ir::{AliasInfo, Argument, BlockId, Graph, OpId, Schema, ValueDef, ValueId};
use hashbrown::HashSet;

/// The effects that a meaning must not hide, with their names in dialect files. Whether an op may raise is not a promise.
const VISIBLE: &[(Effects, &str)] = &[(Effects::WRITES_WORLD, "writes_world"), (Effects::RANDOM, "random")];

/// Fails, with op and argument, if the meaning of an op writes or gives an argument without a mark, or has an effect that the
/// op does not declare. `graph` is the meaning; its first inputs are the arguments of `schema`.
pub(super) fn audit(registry: &Registry, op: &OpText, schema: &Schema, graph: &Graph) -> Result<()> {
    let audit = Audit { registry, graph };
    let fault = |message: String, at: OpId| {
        let span = op.meaning.as_ref().map(|(_, span)| first_line(span));
        let line = graph.op_line(at);
        Diagnostic::verify(format!("the meaning of {} {message}", op.name()))
            .at_opt(span.as_ref())
            .note(format!("by `{}`", line.trim()))
    };
    for at in graph.all_ops() {
        for written in audit.written(at) {
            for (n, argument) in audit.arguments(written, schema) {
                if !argument.alias.as_ref().is_some_and(|mark| mark.is_write) {
                    let error = fault(
                        format!("writes to its argument '{}', which has no mark `!`", argument.name),
                        at,
                    );
                    return Err(error.hint(format!(
                        "write `{}({}!) {}` in the schema, or have the meaning write to a clone",
                        argument.ty,
                        letter(n),
                        argument.name
                    )));
                }
            }
        }
        let effects = facts(registry, graph, at).effects;
        for (effect, name) in VISIBLE {
            if effects.contains(*effect) && !op.effects.contains(*effect) {
                let error = fault(format!("has the effect {name}, which the op does not declare"), at);
                return Err(error.hint(format!("write `effects {name}`")));
            }
        }
    }
    results(&audit, op, schema, &fault)
}

/// Results that are arguments, or views of them, must be marked so.
fn results(
    audit: &Audit<'_>,
    op: &OpText,
    schema: &Schema,
    fault: &dyn Fn(String, OpId) -> Diagnostic,
) -> Result<()> {
    let graph = audit.graph;
    for (n, result) in audit.results(schema).into_iter().enumerate() {
        let own = schema.returns.get(n).and_then(|r| r.alias.as_ref());
        for (at, argument) in audit.arguments(result, schema) {
            let marked = meets(own, argument.alias.as_ref());
            // What cannot be written may be shared.
            if !marked && argument.ty.is_tensor() {
                let end = graph.terminator(graph.root());
                let what = format!("gives its argument '{}', or a view of it, as result {n}", argument.name);
                let error = fault(format!("{what}, which no mark says"), end);
                return Err(error.hint(format!(
                    "mark argument and result with `({})`, or have the meaning give a clone: {}",
                    letter(at),
                    op.name()
                )));
            }
        }
    }
    Ok(())
}

struct Audit<'a> {
    registry: &'a Registry,
    graph: &'a Graph,
}

impl Audit<'_> {
    /// The operands that an op writes.
    fn written(&self, op: OpId) -> Vec<ValueId> {
        let Ok(row) = resolve(self.registry, self.graph, op) else { return Vec::new() };
        let Ok(schema) = row.marked_schema() else { return Vec::new() };
        let operands = self.graph.operands(op).iter();
        let marked = operands.zip(&schema.arguments);
        marked.filter(|(_, a)| a.alias.as_ref().is_some_and(|mark| mark.is_write)).map(|(v, _)| *v).collect()
    }

    /// The arguments that a value may be, or be a view of.
    fn arguments<'s>(&self, value: ValueId, schema: &'s Schema) -> Vec<(usize, &'s Argument)> {
        let roots = self.roots(value);
        let inputs = self.graph.inputs().iter().zip(&schema.arguments).enumerate();
        inputs
            .filter(|(_, (input, _))| roots.contains(*input))
            .map(|(n, (_, argument))| (n, argument))
            .collect()
    }

    /// Where the memory of a value comes from: through views, branches, loops and tuples that are taken apart.
    fn roots(&self, value: ValueId) -> HashSet<ValueId> {
        // A container that is made here is another object than what is in it.
        let contents = self.graph.ty(value).is_tensor();
        let mut seen = HashSet::new();
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.graph.def(value) {
                ValueDef::Param(block, n) => self.before_block(block, n, &mut work),
                ValueDef::Result(op, n) => self.before_op(op, n, contents, &mut work),
            }
        }
        seen
    }

    /// What the n-th parameter of a nested block may be: the first two of a loop are not memory.
    fn before_block(&self, block: BlockId, n: usize, work: &mut Vec<ValueId>) {
        let Some(owner) = self.graph.owner(block) else { return };
        if n > 0 {
            work.extend(self.graph.operand(owner, n + 1));
            work.extend(self.graph.block_results(block).get(n));
        }
    }

    fn before_op(&self, op: OpId, n: usize, contents: bool, work: &mut Vec<ValueId>) {
        let graph = self.graph;
        let blocks = graph.nested_blocks(op);
        if !blocks.is_empty() {
            let is_loop = graph.operands(op).len() > 1;
            let at = if is_loop { n + 1 } else { n };
            work.extend(blocks.iter().filter_map(|block| graph.block_results(*block).get(at)));
            work.extend(is_loop.then(|| graph.operand(op, n + 2)).flatten());
            return;
        }
        let Ok(row) = resolve(self.registry, graph, op) else { return };
        let Ok(schema) = row.marked_schema() else { return };
        if schema.is_varret || schema.is_vararg {
            // Tuples and lists: what is taken out was put in.
            if contents {
                work.extend(graph.operands(op));
            }
            return;
        }
        let Some(own) = schema.returns.get(n).and_then(|r| r.alias.as_ref()) else { return };
        let operands = graph.operands(op).iter().zip(&schema.arguments);
        work.extend(operands.filter(|(_, a)| meets(Some(own), a.alias.as_ref())).map(|(v, _)| *v));
    }

    /// The values of the op's results; a meaning of several gives them as a tuple.
    fn results(&self, schema: &Schema) -> Vec<ValueId> {
        let outputs = self.graph.outputs();
        match outputs {
            [tuple] if schema.returns.len() > 1 => {
                let made = self.graph.def_op(*tuple);
                made.map_or_else(|| vec![*tuple], |op| self.graph.operands(op).to_vec())
            }
            _ => outputs.to_vec(),
        }
    }
}

/// Whether marks say that a result may be (part of) an argument.
fn meets(result: Option<&AliasInfo>, argument: Option<&AliasInfo>) -> bool {
    let Some(result) = result else { return false };
    if result.wildcard_after {
        return true;
    }
    let Some(argument) = argument else { return false };
    let mut sets = result.before.iter().chain(&result.after);
    argument.wildcard_after || sets.any(|s| argument.before.contains(s) || argument.after.contains(s))
}

/// The alias set that a hint proposes for the n-th argument.
fn letter(n: usize) -> char {
    char::from(b'a' + (n % 26) as u8)
}

fn first_line(span: &Span) -> Span {
    let end = span.text().find('\n').unwrap_or(span.text().len());
    Span::new(span.source(), span.start(), span.start() + end)
}

#[cfg(test)]
mod tests {
    use super::super::load;
    use crate::diag::Source;
    use crate::dialects::Registry;

    fn error(schema: &str, effects: &str, body: &str) -> String {
        let body: String = body.lines().map(|line| format!("      {line}\n")).collect();
        let text =
            format!("dialect q\nop q::f{schema} {{\n  meaning\n    def f(x: Tensor):\n{body}{effects}}}\n");
        let loaded = load(&Registry::builtin(), &Source::new("q.dialect", text));
        loaded.err().map_or(String::new(), |e| e.to_string())
    }

    #[test]
    fn what_a_meaning_writes_and_gives_is_marked() {
        let plain = "(Tensor x) -> Tensor";
        for (schema, effects, body) in [
            (plain, "", "return x + 1"),
            (plain, "", "y = x.clone()\ny.add_(1)\nreturn y"),
            (plain, "", "y = x.clone()\nfor i in range(3):\n    y.view(-1).add_(i)\nreturn y"),
            (plain, "", "l = [x]\nl.append(x)\nreturn torch.cat(l)"),
            ("(Tensor(a!) x) -> Tensor(a!)", "", "return x.add_(1)"),
            ("(Tensor(a) x) -> Tensor(a)", "", "return x.view(-1)"),
            (plain, "  effects random\n", "return torch.rand_like(x)"),
        ] {
            assert_eq!(error(schema, effects, body), "", "{schema} {body}");
        }
        for (schema, body, part) in [
            (plain, "return x.add_(1)", "writes to its argument 'x'"),
            (plain, "x.view(-1)[0] = 1\nreturn x + 1", "writes to its argument 'x'"),
            (
                plain,
                "y = x\nfor i in range(3):\n    y = y.t()\n    y.mul_(2)\nreturn x + 1",
                "writes to its argument 'x'",
            ),
            (
                plain,
                "y = x + 1\nif bool(y.sum() > 0):\n    y = x\ny.mul_(2)\nreturn y + 1",
                "writes to its argument 'x'",
            ),
            (plain, "return x", "gives its argument 'x', or a view of it"),
            (plain, "return x.view(-1)", "gives its argument 'x', or a view of it"),
            (plain, "print(x)\nreturn x + 1", "has the effect writes_world"),
            (plain, "return torch.rand_like(x)", "has the effect random"),
        ] {
            let text = error(schema, "", body);
            assert!(text.contains(part) && text.contains("q.dialect:"), "{body}: {text}");
        }
    }
}
