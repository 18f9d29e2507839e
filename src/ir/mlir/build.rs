//! Modules from trees of ops: what the ops of MLIR's generic form mean here.

use super::super::verify::TextPlaces;
use super::super::{
    Attr, BlockId, Function, Graph, Location, OpId, ParseOptions, ParsedModule, Symbol, Type, ValueId,
    derived_schema, parse_schema,
};
use super::attributes::expected;
use super::parse::{self, Op, Place, Region, Text, Use};
use super::{DECLARATIONS, GRAPH, RETURN, SUBGRAPHS, YIELD};
use crate::diag::{Diagnostic, Source};
use crate::ir::text::lexer::{Parsed, TextError};
use crate::ir::text::module_parse::parse_text;
use crate::ir::text::module_parse::resolve;
use bumpalo::Bump;
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// Reads a text in MLIR's generic form, as [`super`] describes it. What another dialect's ops hold is kept to the letter.
pub fn parse_mlir(source: &Arc<Source>, options: &ParseOptions) -> Result<ParsedModule, Vec<Diagnostic>> {
    crate::ir::text::parser::check_size(source)?;
    let one = |error: TextError| vec![error.into_diagnostic(source)];
    let arena = Bump::new();
    let text = parse::read(source.text(), &arena).map_err(one)?;
    let mut parsed = ParsedModule::default();
    let mut places = Vec::new();
    for op in &text.ops {
        item(&mut parsed, &mut places, &text, op, options).map_err(one)?;
    }
    if text.ops.is_empty() {
        let error = TextError::new(0, 1, format!("the text holds no `\"{GRAPH}\"`"));
        return Err(one(error));
    }
    resolve(&mut parsed.module);
    if options.record_places {
        for (name, starts) in places {
            parsed.places.insert(name, TextPlaces::new(Arc::clone(source), starts));
        }
    }
    Ok(parsed)
}

/// An op at the top of a text.
fn item(
    parsed: &mut ParsedModule,
    places: &mut Vec<(Symbol, Vec<u32>)>,
    text: &Text<'_, '_>,
    op: &Op<'_, '_>,
    options: &ParseOptions,
) -> Parsed<()> {
    let wrong = |message: String| TextError::meaning(op.start, op.start + 1, message);
    let string = |name: &str| match attribute(op, name) {
        Some(Attr::Str(text)) => Some(text),
        _ => None,
    };
    match op.name.as_str() {
        DECLARATIONS => {
            let declarations = string("text").ok_or_else(|| wrong("declarations have a `text`".into()))?;
            let source = Source::new("declarations", &*declarations);
            let module = parse_text(&source, &ParseOptions::default());
            let module = module
                .map_err(|errors| wrong(errors.first().map_or(String::new(), Diagnostic::to_string)))?;
            parsed.module = module.module;
        }
        GRAPH => {
            let name = Symbol::new(string("sym_name").as_deref().unwrap_or(""));
            let [region] = &op.regions[..] else { return Err(wrong(format!("`{GRAPH}` has one region"))) };
            let mut builder = Builder::new(text, options.drop_locations);
            builder.region(builder.graph.root(), region, RETURN)?;
            let arguments = attribute(op, "arg_names");
            let Builder { mut graph, starts, mut named, .. } = builder;
            if let Some(Attr::Strs(names)) = &arguments {
                named.iter_mut().zip(names.iter()).for_each(|((_, own), name)| *own = name);
            }
            name_values(&mut graph, &named);
            let schema = match string("schema") {
                Some(text) => parse_schema(&text).map_err(|error| wrong(error.to_string()))?,
                None => derived_schema(name, &graph),
            };
            let function = Function { name, schema, graph, span: None };
            if parsed.module.functions.insert(name, function).is_some() {
                return Err(wrong(format!("there are two graphs with the name \"{name}\"")));
            }
            places.push((name, starts));
        }
        other => {
            let error = wrong(format!("`\"{other}\"` is outside of a graph"));
            return Err(error
                .hint(format!("functions are `\"{GRAPH}\"() ({{ ... }}) {{sym_name = \"f\"}} : () -> ()`")));
        }
    }
    Ok(())
}

fn attribute(op: &Op<'_, '_>, name: &str) -> Option<Attr> {
    op.attributes.iter().find(|(own, _)| own == name).and_then(|(_, read)| read.attr(None))
}

/// A graph that is being made.
struct Builder<'t, 'a, 'b> {
    text: &'t Text<'a, 'b>,
    drop_locations: bool,
    graph: Graph,
    values: HashMap<&'a str, Vec<ValueId>>,
    /// What a name meant outside of the regions that are open.
    shadowed: Vec<(&'a str, Option<Vec<ValueId>>)>,
    /// The values in the order of their making, with their names in the text.
    named: Vec<(ValueId, &'a str)>,
    /// Start of each op by its index.
    starts: Vec<u32>,
}

impl<'t, 'a, 'b> Builder<'t, 'a, 'b> {
    fn new(text: &'t Text<'a, 'b>, drop_locations: bool) -> Self {
        let (values, shadowed) = (HashMap::new(), Vec::new());
        Builder {
            text,
            drop_locations,
            graph: Graph::new(),
            values,
            shadowed,
            named: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// The parameters and ops of a region. `end` is what its last op is called.
    fn region(&mut self, block: BlockId, region: &'t Region<'a, 'b>, end: &str) -> Parsed<()> {
        let outer = self.shadowed.len();
        for (name, ty) in &region.params {
            let value = self.graph.add_param(block, ty.clone());
            self.named.push((value, name));
            self.define(name, vec![value]);
        }
        let Some((last, ops)) = region.ops.split_last().filter(|(last, _)| last.name == end) else {
            let start = region.ops.last().map_or(region.start, |op| op.start);
            let error = TextError::meaning(start, start + 1, "the region has no end");
            return Err(error.hint(format!("its last op is `\"{end}\"(...) : (...) -> ()`")));
        };
        for op in ops {
            self.op(block, op)?;
        }
        let results = self.operands(last)?;
        let terminator = self.graph.terminator(block);
        self.graph.set_operands(terminator, &results);
        for (name, before) in self.shadowed.drain(outer..).rev() {
            match before {
                Some(values) => self.values.insert(name, values),
                None => self.values.remove(name),
            };
        }
        Ok(())
    }

    fn op(&mut self, block: BlockId, op: &'t Op<'a, 'b>) -> Parsed<()> {
        let wrong = |message: String| TextError::meaning(op.start, op.start + 1, message);
        let operands = self.operands(op)?;
        let kind = Symbol::new(&op.name.replacen('.', "::", 1));
        let node = self.graph.emit(block, kind, &operands, &op.result_types);
        let index = node.index();
        if self.starts.len() <= index {
            self.starts.resize(index + 1, u32::MAX);
        }
        self.starts[index] = op.start as u32;
        let results = self.graph.results(node).to_vec();
        let named = op.results.iter().map(|(_, count)| *count).fold(0usize, usize::saturating_add);
        if named != results.len() && !(named == 0 && results.is_empty()) {
            return Err(wrong(format!(
                "{named} results are named, and there are {} types of results",
                results.len()
            )));
        }
        let subgraphs = match attribute(op, SUBGRAPHS) {
            Some(Attr::Strs(names)) => names.to_vec(),
            _ => Vec::new(),
        };
        let Some(blocks) = op.regions.len().checked_sub(subgraphs.len()) else {
            return Err(wrong(format!("`{SUBGRAPHS}` names more graphs than there are regions")));
        };
        for region in &op.regions[..blocks] {
            let inner = self.graph.add_block(node);
            self.region(inner, region, YIELD)?;
        }
        for (name, read) in op.attributes.iter().filter(|(name, _)| name != SUBGRAPHS) {
            let expected = expected(&self.graph, &results, name).cloned();
            let attr = read.attr(expected.as_ref());
            let attr = attr.ok_or_else(|| wrong(format!("the attribute `{name}` cannot be read")))?;
            self.graph.set_attr(node, name.as_str(), attr);
        }
        for (name, region) in subgraphs.iter().zip(&op.regions[blocks..]) {
            let mut inner = Builder::new(self.text, self.drop_locations);
            inner.region(inner.graph.root(), region, RETURN)?;
            name_values(&mut inner.graph, &inner.named);
            self.graph.set_attr(node, &**name, Attr::Graph(Arc::new(inner.graph)));
        }
        self.locate(node, &op.location);
        let mut next = 0;
        for (name, count) in &op.results {
            let values: Vec<ValueId> = results[next..next + count].to_vec();
            next += count;
            // Of several values under one name none has it.
            self.named
                .extend(values.iter().map(|value| (*value, if values.len() == 1 { *name } else { "" })));
            self.define(name, values);
        }
        Ok(())
    }

    /// The values that an op uses, of the types that it says they have.
    fn operands(&self, op: &Op<'a, 'b>) -> Parsed<Vec<ValueId>> {
        if op.operands.len() != op.operand_types.len() {
            let (uses, types) = (op.operands.len(), op.operand_types.len());
            return Err(TextError::meaning(
                op.start,
                op.start + 1,
                format!("{uses} operands have {types} types"),
            ));
        }
        op.operands.iter().zip(&op.operand_types).map(|(operand, ty)| self.operand(operand, ty)).collect()
    }

    fn operand(&self, operand: &Use<'a>, ty: &Type) -> Parsed<ValueId> {
        let Use { start, name, index } = *operand;
        let wrong = |message: String| TextError::meaning(start, start + 1 + name.len(), message);
        let value = self.values.get(name).and_then(|values| values.get(index)).copied();
        let value = value.ok_or_else(|| wrong(format!("no value %{name} is visible here")))?;
        let own = self.graph.ty(value);
        if own != ty {
            return Err(wrong(format!("%{name} has the type {own}, and is used here as {ty}")));
        }
        Ok(value)
    }

    fn define(&mut self, name: &'a str, values: Vec<ValueId>) {
        let before = self.values.insert(name, values);
        self.shadowed.push((name, before));
    }

    fn locate(&mut self, op: OpId, place: &Place<'a>) {
        if self.drop_locations {
            return;
        }
        if let Some(location) = self.location(place, 0) {
            self.graph.set_location(op, location);
        }
    }

    /// A location; names of locations may name each other, which is followed a few steps.
    fn location(&self, place: &Place<'a>, steps: usize) -> Option<Location> {
        const MOST: usize = 8;
        match place {
            _ if steps > MOST => None,
            Place::Unknown => None,
            Place::Alias(name) => self.location(self.text.locations.get(name)?, steps + 1),
            Place::File(file, line, column) => Some(Location::file(Symbol::new(file), *line, *column)),
            Place::Scope(scope, inner) => {
                let scope = Some(Symbol::new(scope));
                let unknown =
                    Location { place: super::super::Place::Unknown, scope: None, inlined_from: None };
                Some(Location { scope, ..self.location(inner, steps + 1).unwrap_or(unknown) })
            }
        }
    }
}

/// Gives values their names of the text, without what keeps a subgraph's names apart. MLIR's numbers begin anew in each
/// region: where they do not distinguish values, all values without a name are numbered in order of definition.
fn name_values(graph: &mut Graph, named: &[(ValueId, &str)]) {
    let named: Vec<(ValueId, &str)> = named.iter().map(|(value, name)| (*value, own_name(name))).collect();
    let mut seen = HashSet::new();
    // The first value of a name has it.
    let named: Vec<(ValueId, &str)> =
        named.into_iter().map(|(value, name)| (value, if seen.insert(name) { name } else { "" })).collect();
    let number = |name: &str| name.parse().ok().filter(|number: &u32| *number < u32::MAX);
    let all_have_names = named.iter().all(|(_, name)| is_name(name) || number(name).is_some());
    let mut next = 0;
    for (value, name) in named {
        match number(name) {
            Some(n) if all_have_names => graph.set_number(value, n),
            None if is_name(name) => graph.set_name(value, name),
            _ => {
                graph.set_number(value, next);
                next += 1;
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('$') && !name.bytes().all(|b| b.is_ascii_digit())
}

fn own_name(name: &str) -> &str {
    match name.strip_prefix('$').and_then(|rest| rest.split_once('.')) {
        Some((digits, rest)) if digits.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => name,
    }
}
