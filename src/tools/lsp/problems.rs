//! What is wrong with a file: asked of the parsers, the verifier and FileCheck, and converted to the editor's diagnostics.

use super::diagnostic::translated;
use super::document::{Document, Kind, MOST_TEXT};
use super::project::Project;
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::{Laws, Registry, Strictness, resolve, text};
use crate::frontend::{dialect, script};
use crate::ir::{Graph, NoLaws, OpId, ParseOptions, ParsedModule, Type, parse_module, verify_module};
use crate::rewrite;
use crate::tools::filecheck;
use lsp_types as lsp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of reported problems.
const MOST: usize = 100;

/// Everything that is wrong with a document, in the order of its places.
pub(super) fn problems(document: &Document, project: &Project) -> Vec<lsp::Diagnostic> {
    if document.text().len() > MOST_TEXT {
        let (bytes, most) = (document.text().len(), MOST_TEXT);
        return vec![whole_file(format!("the file has {bytes} bytes; files above {most} are not analyzed"))];
    }
    let registry = &project.registry;
    let found = match document.kind {
        Kind::Graph => graph(document, registry),
        Kind::Rules => rules(&document.source, registry),
        Kind::Dialect => dialect(document, project).into_iter().collect(),
        Kind::Script => script::compile_source(registry, &document.source).err().into_iter().collect(),
        Kind::Other => Vec::new(),
    };
    let mut all: Vec<lsp::Diagnostic> = found.iter().map(|error| translated(document, error)).collect();
    all.extend(checks(document));
    all.sort_by_key(|d| (d.range.start.line, d.range.start.character));
    all.truncate(MOST);
    all
}

/// A remark on a file as a whole.
pub(super) fn whole_file(message: String) -> lsp::Diagnostic {
    lsp::Diagnostic {
        severity: Some(lsp::DiagnosticSeverity::INFORMATION),
        source: Some("flambeau".into()),
        message,
        ..lsp::Diagnostic::default()
    }
}

/// The text as a module, each op with its place; types that the text leaves out come from schemas.
pub(super) fn parsed(document: &Document, registry: &Registry) -> Result<ParsedModule, Vec<Diagnostic>> {
    let result_type = |graph: &Graph, op: OpId, n: usize| -> Option<Type> {
        let row = resolve(registry, graph, op).ok()?;
        row.schema().ok()?.returns.get(n).map(|r| r.ty.clone())
    };
    let options =
        ParseOptions { result_types: Some(&result_type), record_places: true, ..ParseOptions::default() };
    parse_module(&document.source, &options)
}

/// Errors of the text and its structure; of ops that no dialect declares, and of bad operands, warnings.
fn graph(document: &Document, registry: &Registry) -> Vec<Diagnostic> {
    let parsed = match parsed(document, registry) {
        Ok(parsed) => parsed,
        Err(errors) => return errors,
    };
    let places = |function| parsed.places.get(&function).cloned();
    let errors = verify_module(&parsed.module, &NoLaws, &places);
    if !errors.is_empty() {
        return errors;
    }
    let laws = Laws::new(registry, Strictness::Ops);
    verify_module(&parsed.module, &laws, &places).into_iter().map(Diagnostic::warning).collect()
}

fn rules(source: &Arc<Source>, registry: &Registry) -> Vec<Diagnostic> {
    match rewrite::parse(source) {
        Ok(rules) => rules.iter().filter_map(|rule| rewrite::compile(registry, rule).err()).collect(),
        Err(error) => vec![error],
    }
}

/// What is wrong with a dialect. While it is written only its grammar is asked; once saved, all of it is loaded, since
/// rows live as long as the process.
fn dialect(document: &Document, project: &Project) -> Option<Diagnostic> {
    if document.changed {
        return text::parse_dialect(&document.source).err();
    }
    dialect::load(&project.registry_without(&document.uri), &document.source).err()
}

/// What is wrong with `CHECK` lines, for each way in which a `RUN` line has FileCheck read this file.
fn checks(document: &Document) -> Vec<lsp::Diagnostic> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (line, options) in check_runs(document.text()) {
        for problem in filecheck::problems(document.text(), &options) {
            let (start, end) = if problem.message.starts_with("no check strings") {
                line
            } else {
                let rest = document.text().get(problem.start..).unwrap_or_default();
                let word = rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len()).max(1);
                (problem.start, problem.end.max(problem.start + word))
            };
            if seen.insert((start, problem.message.clone())) {
                found.push(lsp::Diagnostic {
                    range: document.range(start, end),
                    severity: Some(lsp::DiagnosticSeverity::ERROR),
                    source: Some("FileCheck".into()),
                    message: problem.message,
                    ..lsp::Diagnostic::default()
                });
            }
        }
    }
    found
}

/// The calls of FileCheck on the file itself: the place of the line and the options.
pub(super) fn check_runs(text: &str) -> Vec<((usize, usize), filecheck::Options)> {
    let mut runs = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let place = (offset, offset + line.trim_end().len());
        offset += line.len();
        let Some((_, commands)) = line.split_once("RUN:") else { continue };
        for command in commands.split('|') {
            let words: Vec<&str> = command.split_whitespace().collect();
            let Some(at) = words.iter().position(|w| *w == "FileCheck" || *w == "filecheck") else {
                continue;
            };
            let words = words.get(at + 1..).unwrap_or_default();
            if words.contains(&"%s") {
                runs.push((place, check_options(words)));
            }
        }
    }
    runs
}

fn check_options(words: &[&str]) -> filecheck::Options {
    let mut options = filecheck::Options { strict_whitespace: true, ..filecheck::Options::default() };
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        if let Some(define) = option.strip_prefix('D') {
            options.defines.push(define.to_string());
            continue;
        }
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let list = match name {
            "check-prefix" | "check-prefixes" => &mut options.check_prefixes,
            "comment-prefixes" => &mut options.comment_prefixes,
            "allow-unused-prefixes" => {
                options.allow_unused_prefixes = value != Some("false");
                continue;
            }
            _ => continue,
        };
        list.extend(value.or_else(|| words.next()).into_iter().flat_map(|v| v.split(',')).map(String::from));
    }
    options
}
