//! The body of a function: its ops as statements.

use super::inline::{self, is_unused_placeholder};
use super::text::Text;
use super::{Context, File, names};
use crate::diag::{Diagnostic, Result, Span};
use crate::ir::unify;
use crate::ir::{Attr, BlockId, Graph, OpId, Type, TypeKind, ValueId};
use hashbrown::HashMap;
use indexmap::IndexSet;

/// Expressions of this length (with the indentation) are not put into others.
const LONG: usize = 40;
/// Deeper blocks are refused.
const MAX_LEVEL: usize = 400;

/// Whether the types of what a block gives are stated where that is assigned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Typing {
    None,
    /// Of the only one.
    Stated,
    /// Of each that its value does not determine.
    WhereNeeded,
}

/// Prints one graph.
pub(super) struct Body<'c, 'f> {
    pub(super) cx: &'c Context<'c>,
    pub(super) graph: &'c Graph,
    file: &'f mut File,
    level: usize,
    inlined: Vec<bool>,
    /// What stands for each value: its name, or its expression.
    texts: Vec<Option<Text>>,
    /// How many arguments of an op have been given names because something long came after them.
    split_up_to: HashMap<OpId, usize>,
    /// Names of constants that are too long to stand in their uses.
    long_constants: HashMap<String, Text>,
}

impl<'c, 'f> Body<'c, 'f> {
    pub(super) fn new(cx: &'c Context<'c>, file: &'f mut File, graph: &'c Graph, level: usize) -> Self {
        let texts = vec![None; graph.value_capacity()];
        Body {
            cx,
            file,
            graph,
            level,
            inlined: inline::inlined(graph),
            texts,
            split_up_to: HashMap::new(),
            long_constants: HashMap::new(),
        }
    }

    /// Lets a name or expression stand for a value.
    pub(super) fn assign(&mut self, value: ValueId, text: Text) {
        self.texts[value.index()] = Some(text);
    }

    /// The statements, with the return at the end.
    pub(super) fn print(&mut self) -> Result<()> {
        // Constants come first, in the order of use; short ones stand in their uses instead.
        for op in self.constants() {
            self.expression_statement(op)?;
        }
        let root = self.graph.root();
        self.block(root)?;
        if !self.graph.outputs().is_empty() {
            let mut line = Text::from("return ", None);
            self.list(&mut line, self.graph.outputs(), "", "")?;
            self.line(&line);
        } else if self.graph.first_op(root).is_none() {
            self.line(&Text::from("pass", None));
        }
        Ok(())
    }

    /// Constants in the order of their first use.
    fn constants(&self) -> IndexSet<OpId> {
        let graph = self.graph;
        let mut found = IndexSet::new();
        let mut note = |op: OpId| {
            let defs = graph.operands(op).iter().filter_map(|v| graph.def_op(*v));
            found.extend(defs.filter(|def| graph.kind(*def) == inline::constant()));
        };
        // Blocks end with what they give, so a block's end is a step of its own.
        let mut work = vec![Err(graph.root())];
        while let Some(step) = work.pop() {
            match step {
                Ok(end) => note(end),
                Err(block) => {
                    let mut steps = Vec::new();
                    for op in graph.block_ops(block) {
                        steps.push(Ok(op));
                        steps.extend(graph.nested_blocks(op).iter().map(|b| Err(*b)));
                    }
                    steps.push(Ok(graph.terminator(block)));
                    work.extend(steps.into_iter().rev());
                }
            }
        }
        found
    }

    fn block(&mut self, block: BlockId) -> Result<()> {
        if self.level > MAX_LEVEL {
            return Err(Diagnostic::unsupported(format!(
                "blocks nested more than {MAX_LEVEL} deep as Python"
            )));
        }
        let level = self.level;
        for op in self.graph.block_ops(block).collect::<Vec<_>>() {
            self.op(op).map_err(|e| e.at_opt(self.place(op).as_ref()))?;
        }
        if self.level != level {
            return Err(Diagnostic::unsupported("a `with` that does not end in its own block, as Python"));
        }
        Ok(())
    }

    /// Whether the type of what is assigned does not determine that of the variable.
    fn needs_type(&self, target: ValueId, value: ValueId) -> bool {
        let (target, value) = (self.graph.ty(target), self.graph.ty(value));
        target != value && target.unshaped() != value.unshaped()
    }

    /// `target : T = value`, with the type where it is needed.
    fn typed_assignment(&mut self, target: ValueId, value: ValueId, place: Option<&Span>) -> Result<()> {
        let mut line = self.value(target)?.clone();
        if self.needs_type(target, value) {
            let colon = if place.is_some() { ": " } else { " : " };
            line.push(&format!("{colon}{}", self.cx.type_text(self.graph.ty(target))?), place);
        }
        line.push(" = ", place);
        line.push_text(self.value(value)?);
        self.line(&line);
        Ok(())
    }

    /// How the results of a condition are assigned in its first arm. PyTorch states the type of an optional or union
    /// that is the only one, and none of several; where the branches do not determine the type of a result, all are stated.
    fn statement_of_types(&self, targets: &[ValueId], yes: &[ValueId], no: &[ValueId]) -> Typing {
        let is_known = |((target, yes), no): ((&ValueId, &ValueId), &ValueId)| {
            let (target, yes, no) = (self.graph.ty(*target), self.graph.ty(*yes), self.graph.ty(*no));
            let joined = unify::unify_as(&yes.unshaped(), &no.unshaped(), self.cx.module, false, None);
            joined.is_some_and(|ty| ty == target.unshaped())
        };
        if !targets.iter().zip(yes).zip(no).all(is_known) {
            return Typing::WhereNeeded;
        }
        match targets {
            [only] if matches!(self.graph.ty(*only).kind(), TypeKind::Optional(_) | TypeKind::Union(_)) => {
                Typing::Stated
            }
            _ => Typing::None,
        }
    }

    /// A block inside a statement, and what its results are assigned to.
    fn nested(
        &mut self,
        block: BlockId,
        targets: &[ValueId],
        results: &[ValueId],
        typing: Typing,
    ) -> Result<()> {
        self.level += 1;
        let before = self.file.text.len();
        self.block(block)?;
        let needed = targets.iter().zip(results).any(|(t, v)| self.needs_type(*t, *v));
        if let (Typing::Stated, [target], [value]) = (typing, targets, results) {
            let mut line = self.value(*target)?.clone();
            line.push(&format!(" : {} = ", self.cx.type_text(self.graph.ty(*target))?), None);
            line.push_text(self.value(*value)?);
            self.line(&line);
        } else if typing == Typing::WhereNeeded && needed {
            for (target, value) in targets.iter().zip(results) {
                self.typed_assignment(*target, *value, None)?;
            }
        } else if !targets.is_empty() {
            let mut line = Text::default();
            self.list(&mut line, targets, "", " = ")?;
            self.list(&mut line, results, "", "")?;
            self.line(&line);
        }
        if self.file.text.len() == before {
            self.line(&Text::from("pass", None));
        }
        self.level -= 1;
        Ok(())
    }

    fn op(&mut self, op: OpId) -> Result<()> {
        let graph = self.graph;
        let kind = graph.kind(op);
        if kind == inline::constant() || is_unused_placeholder(graph, op) {
            return Ok(());
        }
        let place = self.place(op);
        let place = place.as_ref();
        match kind.as_str() {
            "prim::If" => self.branch(op),
            "prim::Loop" => self.iterate(op),
            "prim::TupleUnpack" | "prim::ListUnpack" => {
                let mut line = Text::from("", place);
                if graph.result_count(op) > 0 {
                    self.name_results(&graph.results(op));
                    self.list(&mut line, &graph.results(op), "", ", = ")?;
                }
                line.push_text(self.operand(op, 0)?);
                self.line(&line);
                Ok(())
            }
            "prim::SetAttr" => {
                let name = self.text_attr(op, "name")?;
                if !names::is_identifier(&name) {
                    return Err(Diagnostic::unsupported(format!(
                        "setting the attribute \"{name}\" in Python"
                    )));
                }
                let mut line = Text::from("", place);
                line.push_text(self.operand(op, 0)?);
                line.push(&format!(".{name} = "), place);
                line.push_text(self.operand(op, 1)?);
                self.line(&line);
                Ok(())
            }
            "prim::fork" => self.closure(op, "__forked_function", "fork"),
            "prim::awaitable" => self.closure(op, "__awaitable_function", "awaitable"),
            "prim::Enter" => {
                let mut line = Text::from("with ", place);
                line.push_text(self.operand(op, 0)?);
                if let Some(value) = graph.result(op, 0).filter(|v| graph.has_uses(*v)) {
                    self.name_results(&[value]);
                    line.push(" as ", place);
                    line.push_text(self.value(value)?);
                }
                line.push(":", place);
                self.line(&line);
                self.level += 1;
                Ok(())
            }
            "prim::Exit" => {
                if graph.prev(op).is_some_and(|prev| graph.kind(prev) == inline::enter()) {
                    self.line(&Text::from("pass", place));
                }
                self.level = self.level.saturating_sub(1);
                Ok(())
            }
            "prim::ModuleContainerIndex" => {
                let Some(value) = graph.result(op, 0) else { return Ok(()) };
                self.name_results(&[value]);
                let ty = self.cx.type_text(graph.ty(value))?;
                let mut line = self.value(value)?.clone();
                line.push(&format!(" : {ty} = "), place);
                line.push_text(self.operand(op, 0)?);
                line.push("[", place);
                line.push_text(self.operand(op, 1)?);
                line.push("]", place);
                self.line(&line);
                Ok(())
            }
            _ => self.expression_statement(op),
        }
    }

    /// An op that is an expression: kept for its use, or assigned to names.
    fn expression_statement(&mut self, op: OpId) -> Result<()> {
        let text = self.expression(op)?;
        let is_constant = self.graph.kind(op) == inline::constant();
        let is_long = text.len() + self.level * 2 >= LONG;
        let value = self.graph.result(op, 0);
        // `None` alone would lose its Optional type.
        let typed = value
            .map(|v| self.graph.ty(v))
            .filter(|ty| is_constant && text.as_str() == "None" && **ty != Type::none());
        if let (Some(value), Some(ty)) = (value, typed) {
            let ty = self.cx.type_text(ty)?;
            self.name_results(&[value]);
            let mut line = self.value(value)?.clone();
            line.push(&format!(" : {ty} = None"), None);
            self.line(&line);
            return Ok(());
        }
        let Some(value) = value else { return self.define(op, &text) };
        if is_constant && is_long {
            // Equal constants have one name.
            let known = self.long_constants.get(text.as_str()).cloned();
            if let Some(name) = known {
                self.assign(value, name);
                return Ok(());
            }
            self.define(op, &text)?;
            let name = self.value(value)?.clone();
            self.long_constants.insert(text.as_str().to_string(), name);
            return Ok(());
        }
        if !self.inlined[op.index()] {
            return self.define(op, &text);
        }
        self.assign(value, text);
        if is_long && !is_constant { self.split(value) } else { Ok(()) }
    }

    /// `a, b = text`
    fn define(&mut self, op: OpId, text: &Text) -> Result<()> {
        let results = self.graph.results(op);
        self.name_results(&results);
        let mut line = Text::default();
        if !results.is_empty() {
            self.list(&mut line, &results, "", " = ")?;
        }
        line.push_text(text);
        self.line(&line);
        Ok(())
    }

    /// Gives names to the expression of a value that became too long and to all that are evaluated before it in the
    /// same statement, so that the order of evaluation stays.
    fn split(&mut self, value: ValueId) -> Result<()> {
        let mut reversed = Vec::new();
        let mut next = self.graph.uses(value).next().map(|u| (u.op, u.index + 1));
        // From the user to its own user: there the arguments before it are meant, as it is still being written.
        while let Some((user, end)) = next.take() {
            let seen = self.split_up_to.get(&user).copied();
            let arguments = self.graph.operands(user).get(seen.unwrap_or(0)..end).unwrap_or_default();
            for argument in arguments.iter().rev() {
                let def = self.graph.def_op(*argument);
                let Some(def) = def.filter(|def| self.graph.kind(*def) != inline::constant()) else {
                    continue;
                };
                if self.inlined[def.index()] {
                    reversed.push((def, *argument));
                }
            }
            self.split_up_to.insert(user, end);
            let is_inlined = self.inlined.get(user.index()).copied().unwrap_or(false);
            if seen.is_none() && is_inlined {
                let result = self.graph.result(user, 0);
                next = result.and_then(|v| self.graph.uses(v).next()).map(|u| (u.op, u.index));
            }
        }
        for (def, argument) in reversed.into_iter().rev() {
            if let Some(text) = self.texts[argument.index()].clone() {
                self.define(def, &text)?;
            }
        }
        Ok(())
    }

    fn branch(&mut self, op: OpId) -> Result<()> {
        let graph = self.graph;
        let results = graph.results(op);
        let &[yes, no] = graph.nested_blocks(op) else {
            return Err(Diagnostic::verify("a prim::If without two blocks"));
        };
        self.name_results(&results);
        let place = self.place(op);
        let mut line = Text::from("if ", place.as_ref());
        line.push_text(self.operand(op, 0)?);
        line.push(":", place.as_ref());
        self.line(&line);
        let typing = self.statement_of_types(&results, graph.block_results(yes), graph.block_results(no));
        self.nested(yes, &results, graph.block_results(yes), typing)?;
        self.line(&Text::from("else:", place.as_ref()));
        self.nested(no, &results, graph.block_results(no), Typing::None)
    }

    fn iterate(&mut self, op: OpId) -> Result<()> {
        let graph = self.graph;
        let results = graph.results(op);
        let (&[body], Some((&trips, [condition, carried @ ..]))) =
            (graph.nested_blocks(op), graph.operands(op).split_first())
        else {
            return Err(Diagnostic::verify("a prim::Loop without a body, a count and a condition"));
        };
        let (params, gives) = (graph.params(body), graph.block_results(body));
        if params.len() != results.len() + 1 || carried.len() != results.len() || gives.len() != params.len()
        {
            return Err(Diagnostic::verify("a prim::Loop whose carried values do not match"));
        }
        let is_true = |value: Option<&ValueId>| value.and_then(|v| self.constant_int(*v)) == Some(1);
        let always = is_true(Some(condition)) && is_true(gives.first());
        let counted = self.constant_int(trips) != Some(i64::MAX);
        if counted && !always {
            return Err(Diagnostic::unsupported("a loop with a count and a condition, as Python"));
        }
        let place = self.place(op);
        // Inside and after the loop a carried value has one name.
        self.name_results(&results);
        for (param, result) in params[1..].iter().zip(&results) {
            self.texts[param.index()] = self.texts[result.index()].clone();
        }
        for (result, before) in results.iter().zip(carried) {
            self.typed_assignment(*result, *before, place.as_ref())?;
        }
        let counter = params[0];
        self.name_results(&[counter]);
        let counter_text = self.value(counter)?.clone();
        if counted {
            let mut line = Text::from("for ", place.as_ref());
            line.push_text(&counter_text);
            line.push(" in range(", place.as_ref());
            line.push_text(self.value(trips)?);
            line.push("):", place.as_ref());
            self.line(&line);
            return self.nested(body, &params[1..], &gives[1..], Typing::None);
        }
        // The counter is not used; its name serves the condition.
        let mut line = counter_text.clone();
        line.push(" = ", place.as_ref());
        line.push_text(self.value(*condition)?);
        self.line(&line);
        let mut line = Text::from("while ", place.as_ref());
        line.push_text(&counter_text);
        line.push(":", place.as_ref());
        self.line(&line);
        self.nested(body, params, gives, Typing::None)
    }

    /// A closure is a function inside of the function.
    fn closure(&mut self, op: OpId, name: &str, call: &str) -> Result<()> {
        let Some(Attr::Graph(inner)) = self.graph.attr(op, "Subgraph") else {
            return Err(Diagnostic::verify(format!("a {} without a subgraph", self.graph.kind(op))));
        };
        let name = self.file.names.fresh(name);
        let place = self.place(op);
        self.line(&Text::from(format!("def {name}():"), place.as_ref()));
        let captured: Vec<Text> = (0..self.graph.operands(op).len())
            .map(|n| self.operand(op, n).cloned())
            .collect::<Result<_>>()?;
        let mut body = Body::new(self.cx, self.file, inner, self.level + 1);
        if inner.inputs().len() != captured.len() {
            return Err(Diagnostic::verify("a closure that captures another number of values than it takes"));
        }
        for (input, text) in inner.inputs().iter().zip(captured) {
            body.assign(*input, text);
        }
        body.print()?;
        self.define(op, &Text::from(format!("{call}({name})"), place.as_ref()))
    }

    /// Gives results names of their own.
    fn name_results(&mut self, results: &[ValueId]) {
        for value in results {
            let base = names::base(self.graph.name(*value));
            let name = self.file.names.fresh(base.as_deref().unwrap_or("_"));
            self.texts[value.index()] = Some(Text::from(name, None));
        }
    }

    /// A constant int or bool.
    pub(super) fn constant_int(&self, value: ValueId) -> Option<i64> {
        let def = self.graph.def_op(value).filter(|def| self.graph.kind(*def) == inline::constant())?;
        self.graph.attr(def, "value").and_then(Attr::as_int)
    }

    /// What stands for a value.
    pub(super) fn value(&self, value: ValueId) -> Result<&Text> {
        self.texts[value.index()].as_ref().ok_or_else(|| {
            Diagnostic::unsupported(format!(
                "%{} is used where it has no name, as Python",
                self.graph.display_name(value)
            ))
        })
    }

    /// What stands for an operand.
    pub(super) fn operand(&self, op: OpId, n: usize) -> Result<&Text> {
        let value = self.graph.operand(op, n);
        let value =
            value.ok_or_else(|| Diagnostic::verify(format!("{} lacks an operand", self.graph.kind(op))))?;
        self.value(value)
    }

    /// Values separated by commas.
    pub(super) fn list(&self, out: &mut Text, values: &[ValueId], open: &str, close: &str) -> Result<()> {
        out.push(open, None);
        for (n, value) in values.iter().enumerate() {
            out.push(if n == 0 { "" } else { ", " }, None);
            out.push_text(self.value(*value)?);
        }
        out.push(close, None);
        Ok(())
    }

    /// An attribute that is text.
    pub(super) fn text_attr(&self, op: OpId, name: &str) -> Result<String> {
        let text = self.graph.attr(op, name).and_then(Attr::as_str).map(str::to_string);
        text.ok_or_else(|| {
            Diagnostic::verify(format!("{} without an attribute '{name}'", self.graph.kind(op)))
        })
    }

    /// Where an op comes from.
    pub(super) fn place(&self, op: OpId) -> Option<Span> {
        let span = self.graph.location(op)?.span()?;
        Some((self.cx.origin)(span).unwrap_or_else(|| span.clone()))
    }

    fn line(&mut self, line: &Text) {
        self.file.indent(self.level);
        self.file.text.push_text(line);
        self.file.text.push("\n", None);
    }
}
