//! Hover, definition, uses, rename, outline.

use super::document::{Document, Kind};
use super::index::{Line, Value};
use super::problems::parsed;
use super::project::Project;
use crate::dialects::constraint::{Law, Parameter};
use crate::dialects::{Effects, Family, Op, Registry, Variant, resolve};
use crate::ir::{Attr, Symbol};
use lsp_types as lsp;
use std::ops::Range;

/// Overloads that a hover shows.
const OVERLOADS: usize = 12;
/// Values that an outline shows.
const OUTLINE: usize = 5_000;

/// What stands at a place.
pub(super) fn hover(document: &Document, project: &Project, at: lsp::Position) -> Option<lsp::Hover> {
    let offset = document.offset(at);
    if let Some(value) = document.index.value_at(offset) {
        let place = value.uses.iter().find(|r| holds(r, offset)).unwrap_or(&value.place);
        return Some(shown(document, place, value_text(document, project, value)));
    }
    let place = match document.index.kind_at(offset) {
        Some(op) => op.kind.clone(),
        None => word_at(document.text(), offset)?,
    };
    let name = document.text().get(place.clone())?;
    let text = op_text(document, project, name, offset)?;
    Some(shown(document, &place, text))
}

fn holds(range: &Range<usize>, offset: usize) -> bool {
    range.start <= offset && offset <= range.end
}

fn shown(document: &Document, place: &Range<usize>, text: String) -> lsp::Hover {
    lsp::Hover {
        contents: lsp::HoverContents::Markup(lsp::MarkupContent {
            kind: lsp::MarkupKind::Markdown,
            value: text,
        }),
        range: Some(document.range(place.start, place.end)),
    }
}

/// The name of an op around an offset, as rules and dialects write it.
pub(super) fn word_at(text: &str, offset: usize) -> Option<Range<usize>> {
    let place = letters_at(text, offset)?;
    let word = text.get(place.clone())?.trim_end_matches([':', '.']);
    word.contains("::").then_some(place.start..place.start + word.len())
}

/// The letters, digits, `_`, `:` and `.` around an offset.
fn letters_at(text: &str, offset: usize) -> Option<Range<usize>> {
    let part = |c: char| c.is_alphanumeric() || "_:.".contains(c);
    let before = text.get(..offset)?.char_indices().rev().take_while(|(_, c)| part(*c));
    let start = before.last().map_or(offset, |(i, _)| i);
    let rest = text.get(start..)?;
    Some(start..start + rest.find(|c| !part(c)).unwrap_or(rest.len()))
}

fn value_text(document: &Document, project: &Project, value: &Value) -> String {
    let text = |range: &Range<usize>| document.text().get(range.clone()).unwrap_or_default();
    let op = value.op.and_then(|op| document.index.ops.get(op));
    let ty = match &value.ty {
        Some(ty) => text(ty).split_whitespace().collect::<Vec<_>>().join(" "),
        None => inferred(document, project, value).unwrap_or_else(|| "Tensor".into()),
    };
    let mut out = format!("```flambeau-ir\n{} : {ty}\n```\n", text(&value.place));
    match op {
        Some(op) => out.push_str(&format!("\nresult of\n```flambeau-ir\n{}\n```\n", text(&op.whole))),
        None => out.push_str("\ninput of a graph or block\n"),
    }
    let uses = value.uses.len();
    out.push_str(&format!("\n{uses} use{}", if uses == 1 { "" } else { "s" }));
    out
}

/// The type of a result that the text leaves out.
fn inferred(document: &Document, project: &Project, value: &Value) -> Option<String> {
    let op = document.index.ops.get(value.op?)?;
    let number = document.index.values.iter().position(|v| v == value)? - op.results.start;
    at_op(document, &project.registry, op.whole.start, |graph, id| {
        graph.result(id, number).map(|v| graph.ty(v).to_string())
    })
}

/// Asks something of the op that stands on the line of an offset, if the text is good.
fn at_op<T>(
    document: &Document,
    registry: &Registry,
    offset: usize,
    ask: impl Fn(&crate::ir::Graph, crate::ir::OpId) -> Option<T>,
) -> Option<T> {
    let parsed = parsed(document, registry).ok()?;
    let (line, _) = document.source.line_column(offset);
    for (name, function) in &parsed.module.functions {
        let Some(places) = parsed.places.get(name) else { continue };
        let ops = function.graph.all_ops();
        let found = ops.iter().find(|op| places.span(**op).is_some_and(|s| s.line_column().0 == line));
        if let Some(op) = found {
            return ask(&function.graph, *op);
        }
    }
    None
}

/// What the registry says of an op; the overload that is meant stands first.
fn op_text(document: &Document, project: &Project, name: &str, offset: usize) -> Option<String> {
    let registry = &project.registry;
    // A rule may name an overload after a dot.
    let (base, overload) = match name.rsplit_once('.') {
        Some((base, overload)) if Symbol::existing(name).is_none_or(|s| registry.overloads(s).is_empty()) => {
            (base, Some(overload))
        }
        _ => (name, None),
    };
    let rows = Symbol::existing(base).map(|symbol| registry.overloads(symbol)).unwrap_or_default();
    if rows.is_empty() {
        let namespace = base.split("::").next().unwrap_or_default();
        let known = registry.names().any(|other| other.namespace() == namespace);
        return Some(match known {
            true => format!("`{base}`: the dialect `{namespace}` has no such op; it is treated as opaque"),
            false => format!("`{base}`: no dialect declares `{namespace}`; the op is treated as opaque"),
        });
    }
    let meant = match overload {
        Some(overload) => registry.find(base, overload).cloned(),
        None if document.kind == Kind::Graph => at_op(document, registry, offset, |graph, id| {
            let row = resolve(registry, graph, id).ok()?;
            (graph.kind(id) == base).then_some(row)
        }),
        None => None,
    };
    let first = meant.as_ref().or_else(|| rows.first())?;
    let others = rows.iter().filter(|row| meant.as_ref().is_some_and(|m| !m.same(row)) || meant.is_none());
    let mut out = String::from("```\n");
    if meant.is_some() {
        out.push_str(&format!("{}\n", first.schema_text()));
    } else {
        rows.iter().take(OVERLOADS).for_each(|row| out.push_str(&format!("{}\n", row.schema_text())));
    }
    out.push_str("```\n");
    out.push_str(&row_text(first));
    if meant.is_some() && others.clone().next().is_some() {
        out.push_str("\n\nother overloads\n```\n");
        others.take(OVERLOADS).for_each(|row| out.push_str(&format!("{}\n", row.schema_text())));
        out.push_str("```");
    }
    Some(out)
}

/// A row as text.
fn row_text(row: &Op) -> String {
    let def = row.def();
    let mut parts = Vec::new();
    if !def.summary.is_empty() {
        parts.push(def.summary.to_string());
    }
    parts.push(
        match def.family {
            Family::Elementwise => "elementwise",
            Family::Reduce => "reduction",
            Family::View => "view: shares storage with its operand",
            Family::Create => "makes a tensor",
            Family::Contraction => "contraction",
            Family::Gather => "moves elements by index",
            Family::Composite => "defined over other ops",
            Family::Opaque => "has a kernel of its own",
            Family::Host => "works on numbers and text",
            Family::Container => "works on lists, dictionaries and tuples",
            Family::Control => "runs blocks or calls functions",
        }
        .to_string(),
    );
    match row.variant() {
        Variant::InPlace => parts.push("writes its result into its first operand".into()),
        Variant::Out => parts.push("writes its result into `out`".into()),
        Variant::Plain => {}
    }
    let effects = [
        (Effects::READS_WORLD, "reads more than its operands"),
        (Effects::WRITES_WORLD, "changes more than its results"),
        (Effects::RANDOM, "draws random numbers"),
        (Effects::NEVER_RETURNS, "always raises"),
    ];
    let own = effects.iter().filter(|(effect, _)| def.effects.contains(*effect));
    parts.extend(own.map(|(_, text)| text.to_string()));
    let attributes: Vec<String> = row_attributes(row).map(|p| format!("- `{}`", p.to_text())).collect();
    if !attributes.is_empty() {
        parts.push(format!("attributes\n{}", attributes.join("\n")));
    }
    if let Some(grad) = def.grad {
        parts.push(format!("derivative\n```\n{}\n```", grad.trim()));
    }
    if let Some(meaning) = def.meaning {
        parts.push(format!("meaning\n```python\n{}\n```", meaning.trim()));
    }
    parts.join("\n\n")
}

/// The attributes that a row declares.
pub(super) fn row_attributes(row: &Op) -> impl Iterator<Item = &'static Parameter> {
    row.def().laws.iter().filter_map(|law| match law {
        Law::Attribute(parameter) => Some(parameter),
        _ => None,
    })
}

/// Where a value, a function, or an op, type or attribute of a dialect file is given.
pub(super) fn definition(
    document: &Document,
    project: &Project,
    at: lsp::Position,
) -> Option<lsp::GotoDefinitionResponse> {
    let offset = document.offset(at);
    let own = match document.index.value_at(offset) {
        Some(value) => Some(value.place.clone()),
        None => function_at(document, offset),
    };
    let location = match own {
        Some(place) => {
            lsp::Location { uri: document.uri.clone(), range: document.range(place.start, place.end) }
        }
        None => declared(document, project, offset)?,
    };
    Some(lsp::GotoDefinitionResponse::Scalar(location))
}

/// Where a dialect file declares the name at an offset: the file itself, or one that the project names.
fn declared(document: &Document, project: &Project, offset: usize) -> Option<lsp::Location> {
    let place = match document.index.kind_at(offset) {
        Some(op) => op.kind.clone(),
        None => letters_at(document.text(), offset)?,
    };
    let name = document.text().get(place)?.trim_matches([':', '.']);
    if document.kind == Kind::Dialect
        && let Some(place) = declaration(document.text(), name)
    {
        return Some(lsp::Location {
            uri: document.uri.clone(),
            range: document.range(place.start, place.end),
        });
    }
    project.dialect_files(document).into_iter().find_map(|file| {
        let place = declaration(file.text(), name)?;
        Some(lsp::Location { uri: file.uri.clone(), range: file.range(place.start, place.end) })
    })
}

/// The name after `op`, `type` or `attribute` in a dialect file: `quant::snap`, `quant.fixed`. Overloads count as the op.
fn declaration(text: &str, name: &str) -> Option<Range<usize>> {
    let dialect = text.lines().find_map(|line| line.strip_prefix("dialect ")?.split_whitespace().next())?;
    let own = name.strip_prefix(dialect)?.strip_prefix('.');
    // A rule may name an overload; the op's own name serves where there is none of this one.
    let base = name.rsplit_once('.').map_or(name, |(base, _)| base);
    for wanted in [name, base] {
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let start = offset;
            offset += line.len();
            let found = ["op ", "type ", "attribute "].iter().find_map(|word| {
                let rest = line.strip_prefix(word)?;
                let wanted = if *word == "op " { wanted } else { own? };
                let behind = rest.trim_start().strip_prefix(wanted)?;
                let at = start + line.len() - rest.trim_start().len();
                (!behind.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
                    .then_some(at..at + wanted.len())
            });
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// The name of the graph that a word names: `@f`, `name="f"`, or the kind of an op with a subgraph.
fn function_at(document: &Document, offset: usize) -> Option<Range<usize>> {
    let text = document.text();
    let word = text.get(letters_at(text, offset)?)?;
    let function = document.index.functions.iter().find(|function| {
        text.get(function.name.clone())
            .is_some_and(|name| !word.is_empty() && name.trim_start_matches('@') == word)
    })?;
    Some(function.name.clone())
}

/// All places of the value at a place.
fn places(document: &Document, at: lsp::Position) -> Option<&Value> {
    document.index.value_at(document.offset(at))
}

pub(super) fn references(
    document: &Document,
    at: lsp::Position,
    with_definition: bool,
) -> Option<Vec<lsp::Location>> {
    let value = places(document, at)?;
    let definition = with_definition.then_some(&value.place);
    let all = definition.into_iter().chain(&value.uses);
    let location =
        |r: &Range<usize>| lsp::Location { uri: document.uri.clone(), range: document.range(r.start, r.end) };
    Some(all.map(location).collect())
}

pub(super) fn highlights(document: &Document, at: lsp::Position) -> Option<Vec<lsp::DocumentHighlight>> {
    let value = places(document, at)?;
    let of = |r: &Range<usize>, kind| lsp::DocumentHighlight {
        range: document.range(r.start, r.end),
        kind: Some(kind),
    };
    let uses = value.uses.iter().map(|r| of(r, lsp::DocumentHighlightKind::READ));
    Some(std::iter::once(of(&value.place, lsp::DocumentHighlightKind::WRITE)).chain(uses).collect())
}

/// Gives a value another name. A name that the same graph gives already is refused.
pub(super) fn rename(
    document: &Document,
    at: lsp::Position,
    name: &str,
) -> Result<lsp::WorkspaceEdit, String> {
    let value = places(document, at).ok_or("there is no value here")?;
    let name = name.trim_start_matches('%');
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if name.is_empty() || !name.chars().all(good) {
        return Err(format!("'{name}' is not a valid value name: use letters, digits, '_' and '.'"));
    }
    let function = document.index.functions.iter().find(|f| holds(&f.whole, value.place.start));
    let taken = document.index.values.iter().any(|other| {
        other != value
            && function.is_none_or(|f| holds(&f.whole, other.place.start))
            && document
                .text()
                .get(other.place.clone())
                .is_some_and(|text| text.trim_start_matches('%') == name)
    });
    if taken {
        return Err(format!("%{name} is given already in this graph"));
    }
    let mut all: Vec<&Range<usize>> = std::iter::once(&value.place).chain(&value.uses).collect();
    all.sort_by_key(|r| r.start);
    let edit = |r: &Range<usize>| lsp::TextEdit {
        range: document.range(r.start, r.end),
        new_text: format!("%{name}"),
    };
    // The protocol's own type has an address as key.
    #[allow(clippy::mutable_key_type, reason = "the address is not changed")]
    let changes = [(document.uri.clone(), all.into_iter().map(edit).collect())].into();
    Ok(lsp::WorkspaceEdit { changes: Some(changes), ..lsp::WorkspaceEdit::default() })
}

/// Graphs, and in each its ops by their results.
#[allow(deprecated, reason = "the protocol's type has a field that it has replaced")]
pub(super) fn symbols(document: &Document) -> lsp::DocumentSymbolResponse {
    let text = |range: &Range<usize>| document.text().get(range.clone()).unwrap_or_default().to_string();
    let symbol = |name: String, detail, kind, whole: &Range<usize>, own: &Range<usize>| lsp::DocumentSymbol {
        name,
        detail,
        kind,
        tags: None,
        deprecated: None,
        range: document.range(whole.start, whole.end),
        selection_range: document.range(own.start, own.end),
        children: None,
    };
    let mut left = OUTLINE;
    let mut all = Vec::new();
    for (number, function) in document.index.functions.iter().enumerate() {
        let name = text(&function.name).trim_start_matches('@').to_string();
        let mut own = symbol(name, None, lsp::SymbolKind::FUNCTION, &function.whole, &function.name);
        let ops = document.index.ops.iter().filter(|op| op.function == number).take(left);
        let children: Vec<lsp::DocumentSymbol> = ops
            .map(|op| {
                let results = document.index.values.get(op.results.clone()).unwrap_or_default();
                let names: Vec<String> = results.iter().map(|v| text(&v.place)).collect();
                let kind = text(&op.kind);
                let name = if names.is_empty() { kind.clone() } else { names.join(", ") };
                symbol(name, Some(kind), lsp::SymbolKind::VARIABLE, &op.whole, &op.kind)
            })
            .collect();
        left -= children.len();
        own.children = Some(children);
        all.push(own);
    }
    if document.kind == Kind::Rules {
        all.extend(
            rule_names(document.text()).map(|r| symbol(text(&r), None, lsp::SymbolKind::FUNCTION, &r, &r)),
        );
    }
    debug_assert!(document.index.lines.iter().all(|(_, line, depth)| *line != Line::Graph || *depth == 0));
    lsp::DocumentSymbolResponse::Nested(all)
}

/// The names after the word `rule`.
fn rule_names(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut offset = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = offset;
        offset += line.len();
        let rest = line.strip_prefix("rule ")?;
        let word = rest.split_whitespace().next()?;
        let at = start + 5 + rest.find(word)?;
        Some(at..at + word.len())
    })
}

/// Attributes of a constant or of another op in this text, for completion.
pub(super) fn attribute_names(document: &Document, registry: &Registry, kind: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(parsed) = parsed(document, registry) {
        for function in parsed.module.functions.values() {
            for op in function.graph.all_ops() {
                if function.graph.kind(op) == kind {
                    let shown = |(name, attr): &(Symbol, Attr)| {
                        attr.as_graph().is_none().then(|| name.as_str().to_string())
                    };
                    names.extend(function.graph.attrs(op).iter().filter_map(shown));
                }
            }
        }
    }
    names
}
