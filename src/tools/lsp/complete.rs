//! What may stand at a place that is being written.

use super::document::{Document, Kind};
use super::features::{attribute_names, row_attributes};
use super::problems::check_runs;
use super::project::Project;
use lsp_types as lsp;
use std::collections::BTreeSet;

/// Suggestions at once; the client asks again when more is written.
const MOST: usize = 400;

/// Attributes that ops of the `prim` dialect have, by kind.
const ATTRIBUTES: &[(&str, &[&str])] = &[
    ("prim::Constant", &["value"]),
    ("prim::GetAttr", &["name"]),
    ("prim::SetAttr", &["name"]),
    ("prim::CallMethod", &["name"]),
    ("prim::PythonOp", &["^", "pyname", "cconv"]),
    ("prim::FusionGroup", &["Subgraph", "device"]),
    ("prim::TupleSlice", &["beg", "end"]),
];

/// Types of graph text.
const TYPES: &[&str] = &[
    "Tensor",
    "int",
    "float",
    "bool",
    "str",
    "complex",
    "Scalar",
    "NoneType",
    "Device",
    "Any",
    "Tensor[]",
    "int[]",
    "float[]",
    "Tensor?",
    "int?",
    "Dict(str, Tensor)",
    "Future(Tensor)",
    "Float(*, *)",
    "Long(*)",
    "Generator",
];

/// The suffixes of a check, and what they ask.
const CHECKS: &[(&str, &str)] = &[
    ("", "somewhere after the previous match"),
    ("-NEXT", "on the next line"),
    ("-SAME", "on the same line"),
    ("-EMPTY", "the next line is empty"),
    ("-NOT", "not before the next match"),
    ("-DAG", "in any order among its neighbours"),
    ("-LABEL", "cuts the input into regions"),
    ("-COUNT-2", "an exact count of matches"),
    ("{LITERAL}", "without variables and expressions"),
];

/// Suggestions for a place.
pub(super) fn complete(document: &Document, project: &Project, at: lsp::Position) -> lsp::CompletionList {
    let offset = document.offset(at);
    let text = document.text();
    let line_start = text.get(..offset).and_then(|t| t.rfind('\n')).map_or(0, |at| at + 1);
    let line = text.get(line_start..offset).unwrap_or_default();
    let mut list = List { document, offset, items: Vec::new(), full: false };
    if let Some(word) = check_variable(document, line) {
        list.variables(word);
    } else if let Some(prefix) = check_word(document, line) {
        list.checks(prefix);
    } else if line.trim_start().starts_with(['#', '/']) && document.kind != Kind::Script {
        // Comments are the writer's own.
    } else {
        match document.kind {
            Kind::Graph => graph(&mut list, project, line),
            Kind::Rules => rules(&mut list, project, line),
            Kind::Dialect => dialect(&mut list, project, line),
            Kind::Script | Kind::Other => {}
        }
    }
    lsp::CompletionList { is_incomplete: list.full, items: list.items }
}

/// The end of a line that is made of certain letters.
fn tail(line: &str, part: impl Fn(char) -> bool) -> &str {
    let start = line.char_indices().rev().take_while(|(_, c)| part(*c)).last().map_or(line.len(), |(i, _)| i);
    line.get(start..).unwrap_or_default()
}

/// The beginning of a check on this line, if one is being written.
fn check_word<'l>(document: &Document, line: &'l str) -> Option<&'l str> {
    let word = tail(line, |c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let before = line.get(..line.len() - word.len())?;
    let is_comment = matches!(before.trim(), "#" | "//" | ";" | "");
    let runs = check_runs(document.text());
    if !is_comment || runs.is_empty() || word.is_empty() {
        return None;
    }
    let prefixes = runs.iter().flat_map(|(_, options)| options.check_prefixes.iter().map(String::as_str));
    let fits = |prefix: &str| prefix.starts_with(word) || word.starts_with(prefix);
    prefixes.chain(["CHECK"]).any(fits).then_some(word)
}

/// The beginning of a variable in a check, after `[[`.
fn check_variable<'l>(document: &Document, line: &'l str) -> Option<&'l str> {
    let word = tail(line, |c| c.is_ascii_alphanumeric() || "_$".contains(c));
    let before = line.get(..line.len() - word.len())?;
    let opens = before.ends_with("[[") || before.ends_with("[[#");
    (opens && !check_runs(document.text()).is_empty()).then_some(word)
}

/// Keywords with their meanings.
type Keywords = &'static [(&'static str, &'static str)];

const RULE_KEYWORDS: Keywords =
    &[("rule ", "a law and what it promises"), ("group ", "rules with a name in common")];

const CONTRACTS: Keywords = &[
    ("exact ", "same dtype, sizes and bits"),
    ("nan-relaxed ", "exact where nothing is NaN or infinite"),
    ("fast-math ", "within the tolerance on finite inputs of moderate size"),
];

const CONDITIONS: Keywords = &[
    ("same_type(", "two values of one dtype and size"),
    ("same_shape(", "two values of one size"),
    ("same_dtype(", "two values of one dtype"),
    ("is_float(", "a floating point tensor or number"),
    ("is_integral(", "an integer tensor or number"),
    ("is_const(", "a constant"),
    ("one_use(", "no other op uses it"),
    ("dtype(", "the dtype"),
    ("rank(", "the number of dimensions"),
    ("size(", "one size"),
    ("sizes(", "all sizes"),
    ("numel(", "the number of elements"),
];

const ITEMS: Keywords = &[
    ("op ", "an op with its schema"),
    ("type ", "a type with parameters"),
    ("attribute ", "an attribute with parameters"),
    ("dialect ", "the name of the dialect"),
];

const FIELDS: Keywords = &[
    ("summary ", "one sentence"),
    ("meaning", "TorchScript over other ops, below it"),
    ("grad ", "the derivative by an argument"),
    ("surrogate ", "a derivative that is meant to be another function"),
    ("facts ", "laws for rules and tests"),
    ("traits ", "derived forms and demands"),
    ("effects ", "what it does besides computing"),
    ("tolerance ", "how exact it is"),
    ("attribute ", "an attribute of the op"),
];

const FACTS: Keywords = &[
    ("commutative", "f(a, b) = f(b, a)"),
    ("associative", "f(f(a, b), c) = f(a, f(b, c))"),
    ("identity(", "f(a, e) = a"),
    ("absorbing(", "f(a, e) = e"),
    ("two-sided ", "the fact after it, 'identity' or 'absorbing', holds with the operands exchanged too"),
    ("reflexive(", "f(a, a) = v"),
    ("negates(", "not f(a, b) = g(a, b)"),
    ("odd", "f(-a) = -f(a)"),
    ("even", "f(-a) = f(a)"),
    ("idempotent", "f(f(a)) = f(a), or f(a, a) = a"),
    ("involution", "f(f(a)) = a"),
    ("nan-relaxed ", "the fact after it holds for floats but for NaN, infinities and the sign of zero"),
    ("fast-math ", "the fact after it holds for floats nearly"),
    ("detached", "no gradient flows through it"),
];

const TRAITS: Keywords = &[
    ("inplace", "the form that writes its first argument"),
    ("out(", "the form that writes `out`"),
    ("same_type", "operands and results have one type"),
    ("blocks(", "the number of nested blocks"),
];

const EFFECTS: Keywords = &[
    ("none", "it only computes"),
    ("reads_world", "it reads more than its operands"),
    ("writes_world", "it changes more than its results"),
    ("random", "it draws random numbers"),
    ("may_raise", "it may raise"),
    ("identity", "its result is an object of its own"),
    ("never_returns", "it always raises"),
    ("all", "anything"),
];

const TOLERANCES: Keywords =
    &[("exact", "to the bit"), ("rounding", "one rounding"), ("accumulation", "a sum's rounding")];

const PARAMETERS: Keywords = &[
    ("int", "a number"),
    ("float", "a number"),
    ("str", "a text"),
    ("bool", "a truth value"),
    ("type", "a type"),
    ("int[]", "numbers"),
    ("float[]", "numbers"),
    ("str[]", "texts"),
    ("tensor", "a tensor"),
    ("graph", "a graph"),
    ("any", "anything"),
];

fn rules(list: &mut List<'_>, project: &Project, line: &str) {
    let word = tail(line, |c| c.is_alphanumeric() || "_:.-".contains(c));
    let before = line.get(..line.len() - word.len()).unwrap_or_default();
    let words: Vec<&str> = before.split_whitespace().collect();
    match words.as_slice() {
        [] => list.words(RULE_KEYWORDS, word),
        ["rule", _] => list.words(CONTRACTS, word),
        _ => {
            let word = tail(line, |c| c.is_alphanumeric() || "_:.".contains(c));
            if words.contains(&"if") {
                list.words(CONDITIONS, word);
            } else {
                list.ops(project, word);
            }
        }
    }
}

fn dialect(list: &mut List<'_>, project: &Project, line: &str) {
    let word = tail(line, |c| c.is_alphanumeric() || "_:.".contains(c));
    let before = line.get(..line.len() - word.len()).unwrap_or_default();
    let first = before.split_whitespace().next().unwrap_or_default();
    match first {
        "" if before.is_empty() => list.words(ITEMS, word),
        "" => {
            list.words(FIELDS, word);
            list.ops(project, word);
        }
        "facts" => list.words(FACTS, word),
        "traits" => list.words(TRAITS, word),
        "effects" => list.words(EFFECTS, word),
        "tolerance" => list.words(TOLERANCES, word),
        "attribute" | "type" if before.trim_end().ends_with(':') => list.words(PARAMETERS, word),
        // Arguments and results of a schema.
        "op" if before.ends_with(['(', ' ']) && before.contains('(') => list.types(project, word),
        "op" | "attribute" | "type" | "summary" | "dialect" => {}
        _ => list.ops(project, word),
    }
}

fn graph(list: &mut List<'_>, project: &Project, line: &str) {
    let name = |c: char| c.is_alphanumeric() || "_.".contains(c);
    let word = tail(line, name);
    let before = line.get(..line.len() - word.len()).unwrap_or_default();
    if before.ends_with('%') {
        list.values(word);
        return;
    }
    // After the kind of an op, inside of square brackets.
    let inside =
        list.document.index.op_around(list.offset).filter(|op| {
            op.attributes.as_ref().is_some_and(|a| a.start <= list.offset && list.offset <= a.end)
        });
    if let Some(op) = inside {
        if before.ends_with(['[', ',', ' ']) {
            let kind = list.document.text().get(op.kind.clone()).unwrap_or_default();
            list.attributes(project, kind, word);
        }
        return;
    }
    let kind = tail(line, |c| c.is_alphanumeric() || "_:.".contains(c));
    let before_kind = line.get(..line.len() - kind.len()).unwrap_or_default().trim_end();
    if before.trim_end().ends_with(':') && !before.ends_with("::") {
        list.types(project, word);
    } else if before_kind.ends_with('=') || before_kind.is_empty() {
        list.ops(project, kind);
    }
}

struct List<'d> {
    document: &'d Document,
    offset: usize,
    items: Vec<lsp::CompletionItem>,
    full: bool,
}

impl List<'_> {
    /// Adds a suggestion that replaces what is written of the word.
    fn add(&mut self, written: &str, label: &str, kind: lsp::CompletionItemKind, detail: Option<String>) {
        if self.items.len() >= MOST {
            self.full = true;
            return;
        }
        let range = self.document.range(self.offset - written.len(), self.offset);
        let edit = lsp::TextEdit { range, new_text: label.to_string() };
        self.items.push(lsp::CompletionItem {
            label: label.to_string(),
            kind: Some(kind),
            detail,
            text_edit: Some(lsp::CompletionTextEdit::Edit(edit)),
            ..lsp::CompletionItem::default()
        });
    }

    fn words(&mut self, words: Keywords, word: &str) {
        for (label, meaning) in words.iter().filter(|(label, _)| label.starts_with(word)) {
            self.add(word, label, lsp::CompletionItemKind::KEYWORD, Some(meaning.to_string()));
        }
    }

    /// Variables of checks that are defined above.
    fn variables(&mut self, word: &str) {
        let text = self.document.text().get(..self.offset).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for part in text.split("[[").skip(1) {
            let part = part.trim_start_matches('#');
            // `%x,N:` defines N in a format.
            let part =
                part.split_once(',').filter(|(format, _)| format.starts_with('%')).map_or(part, |p| p.1);
            let length = part.find(|c: char| !(c.is_ascii_alphanumeric() || "_$".contains(c)));
            let Some((name, behind)) = length.and_then(|length| part.split_at_checked(length)) else {
                continue;
            };
            if !name.is_empty() && behind.starts_with(':') && name.starts_with(word) && seen.insert(name) {
                self.add(word, name, lsp::CompletionItemKind::VARIABLE, None);
            }
        }
    }

    fn ops(&mut self, project: &Project, word: &str) {
        // A part after the colons is enough: `add` finds `aten::add`.
        for name in project.registry.names().map(|name| name.as_str()) {
            let base = name.split("::").nth(1).unwrap_or(name);
            if name.starts_with(word) || (!word.contains(':') && base.starts_with(word)) {
                let rows = crate::ir::Symbol::existing(name).map(|s| project.registry.overloads(s));
                let detail = rows.and_then(|rows| rows.first()).map(|row| row.schema_text().to_string());
                self.add(word, name, lsp::CompletionItemKind::FUNCTION, detail);
            }
        }
    }

    /// Values given before this place, in the same graph.
    fn values(&mut self, word: &str) {
        let document = self.document;
        let here = self.offset;
        let start = document.index.functions.iter().rfind(|f| f.whole.start <= here);
        let start = start.map_or(0, |f| f.whole.start);
        let mut seen = BTreeSet::new();
        let near = document.index.values.iter().rev();
        for value in near.filter(|v| start <= v.place.start && v.place.end < here) {
            let name = document.text().get(value.place.start + 1..value.place.end).unwrap_or_default();
            if name.starts_with(word) && seen.insert(name) {
                let ty = value.ty.clone().and_then(|ty| document.text().get(ty)).map(String::from);
                self.add(word, name, lsp::CompletionItemKind::VARIABLE, ty);
            }
        }
    }

    fn attributes(&mut self, project: &Project, kind: &str, word: &str) {
        let known = ATTRIBUTES.iter().filter(|(name, _)| *name == kind).flat_map(|(_, names)| names.iter());
        let mut names: Vec<String> = known.map(|name| name.to_string()).collect();
        let rows =
            crate::ir::Symbol::existing(kind).map(|s| project.registry.overloads(s)).unwrap_or_default();
        names.extend(rows.iter().flat_map(row_attributes).map(|p| p.name.as_str().to_string()));
        names.extend(attribute_names(self.document, &project.registry, kind));
        let mut seen = BTreeSet::new();
        for name in names {
            if name.starts_with(word) && seen.insert(name.clone()) {
                self.add(word, &format!("{name}="), lsp::CompletionItemKind::FIELD, Some(kind.to_string()));
            }
        }
    }

    fn types(&mut self, project: &Project, word: &str) {
        for declared in project.registry.declared_types() {
            let name = declared.name.as_str();
            if name.starts_with(word) {
                self.add(word, name, lsp::CompletionItemKind::CLASS, Some(declared.summary.clone()));
            }
        }
        for ty in TYPES.iter().filter(|ty| ty.starts_with(word)) {
            self.add(word, ty, lsp::CompletionItemKind::CLASS, None);
        }
    }

    fn checks(&mut self, word: &str) {
        let runs = check_runs(self.document.text());
        let mut prefixes: BTreeSet<&str> = BTreeSet::new();
        for (_, options) in &runs {
            prefixes.extend(options.check_prefixes.iter().map(String::as_str));
            if options.check_prefixes.is_empty() {
                prefixes.insert("CHECK");
            }
        }
        for prefix in prefixes {
            for (suffix, meaning) in CHECKS {
                let label = format!("{prefix}{suffix}:");
                if label.starts_with(word) {
                    self.add(word, &label, lsp::CompletionItemKind::KEYWORD, Some(meaning.to_string()));
                }
            }
        }
    }
}
