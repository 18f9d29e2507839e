//! Semantic tokens: what each word of a file is, so that editors colour it without a grammar of their own.
//!
//! Words are read line by line; what the index knows of values, ops and types of graph text says the rest.

use super::document::{Document, Kind};
use super::problems::check_runs;
use super::project::Project;
use crate::dialects::text::KEYWORDS;
use crate::ir::Symbol;
use hashbrown::HashMap;
use lsp_types as lsp;
use std::ops::Range;

/// The kinds, in the order of the legend.
const KINDS: [lsp::SemanticTokenType; 11] = [
    lsp::SemanticTokenType::COMMENT,
    lsp::SemanticTokenType::KEYWORD,
    lsp::SemanticTokenType::STRING,
    lsp::SemanticTokenType::NUMBER,
    lsp::SemanticTokenType::VARIABLE,
    lsp::SemanticTokenType::PARAMETER,
    lsp::SemanticTokenType::FUNCTION,
    lsp::SemanticTokenType::TYPE,
    lsp::SemanticTokenType::PROPERTY,
    lsp::SemanticTokenType::MACRO,
    lsp::SemanticTokenType::CLASS,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Comment = 0,
    Keyword = 1,
    Text = 2,
    Number = 3,
    Value = 4,
    Input = 5,
    Op = 6,
    Type = 7,
    Attribute = 8,
    /// `RUN:` and checks.
    Directive = 9,
    /// A graph, rule or dialect where it is named.
    Name = 10,
}

/// Where something is given.
const DECLARATION: u32 = 1;
/// An op that no dialect declares.
const FOREIGN: u32 = 2;

/// What the numbers of tokens mean.
pub(super) fn legend() -> lsp::SemanticTokensLegend {
    lsp::SemanticTokensLegend {
        token_types: KINDS.to_vec(),
        token_modifiers: vec![
            lsp::SemanticTokenModifier::DECLARATION,
            lsp::SemanticTokenModifier::new("unknown"),
        ],
    }
}

/// All tokens of a file, in order; none for kinds of files that editors know themselves.
pub(super) fn tokens(document: &Document, project: &Project) -> Option<lsp::SemanticTokens> {
    if document.kind == Kind::Script {
        return None;
    }
    let mut reader = Reader::new(document, project);
    let mut offset = 0;
    for line in document.text().split_inclusive('\n') {
        reader.line(offset, line.trim_end_matches(['\n', '\r']));
        offset += line.len();
    }
    let mut data = Vec::with_capacity(reader.found.len());
    let mut last = lsp::Position::new(0, 0);
    for (place, token, modifiers) in reader.found {
        let range = document.range(place.start, place.end);
        let line = range.start.line - last.line;
        let from = if line == 0 { last.character } else { 0 };
        data.push(lsp::SemanticToken {
            delta_line: line,
            delta_start: range.start.character.saturating_sub(from),
            length: range.end.character.saturating_sub(range.start.character),
            token_type: token as u32,
            token_modifiers_bitset: modifiers,
        });
        last = range.start;
    }
    Some(lsp::SemanticTokens { result_id: None, data })
}

struct Reader<'d> {
    document: &'d Document,
    project: &'d Project,
    /// What a value is, by the place of its percent sign.
    values: HashMap<usize, (Token, u32)>,
    /// Where types are written.
    types: Vec<Range<usize>>,
    /// Where attributes of ops stand.
    attributes: Vec<Range<usize>>,
    /// Prefixes of checks.
    prefixes: Vec<String>,
    found: Vec<(Range<usize>, Token, u32)>,
}

impl<'d> Reader<'d> {
    fn new(document: &'d Document, project: &'d Project) -> Reader<'d> {
        let mut values = HashMap::new();
        for value in &document.index.values {
            let token = if value.op.is_some() { Token::Value } else { Token::Input };
            values.insert(value.place.start, (token, DECLARATION));
            values.extend(value.uses.iter().map(|place| (place.start, (token, 0))));
        }
        let mut prefixes: Vec<String> =
            check_runs(document.text()).into_iter().flat_map(|(_, options)| options.check_prefixes).collect();
        prefixes.extend(
            ["CHECK", "RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "DEFINE", "REDEFINE", "COM"]
                .map(String::from),
        );
        // The longest one that fits counts.
        prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
        Reader {
            document,
            project,
            values,
            types: document.index.values.iter().filter_map(|value| value.ty.clone()).collect(),
            attributes: document.index.ops.iter().filter_map(|op| op.attributes.clone()).collect(),
            prefixes,
            found: Vec::new(),
        }
    }

    fn add(&mut self, place: Range<usize>, token: Token, modifiers: u32) {
        if place.start < place.end {
            self.found.push((place, token, modifiers));
        }
    }

    fn line(&mut self, offset: usize, line: &str) {
        let indent = line.len() - line.trim_start().len();
        let content = line.get(indent..).unwrap_or_default();
        if content.starts_with(['#', ';']) || content.starts_with("//") || self.document.kind == Kind::Other {
            return self.comment(offset + indent, content);
        }
        let mut at = indent;
        while let Some(first) = line.get(at..).and_then(|rest| rest.chars().next()) {
            let rest = line.get(at..).unwrap_or_default();
            let place = |length: usize| offset + at..offset + at + length;
            let blank_before = line.get(..at).is_some_and(|before| before.ends_with([' ', '\t']));
            let length = match first {
                '#' | '/' if blank_before && (rest.starts_with("# ") || rest.starts_with("//")) => {
                    return self.comment(offset + at, rest);
                }
                '"' => {
                    let length = string_length(rest);
                    self.add(place(length), Token::Text, 0);
                    length
                }
                '%' => {
                    let length = 1 + run(rest.get(1..).unwrap_or_default(), |c| "_.".contains(c));
                    let (token, modifiers) =
                        self.values.get(&(offset + at)).copied().unwrap_or((Token::Value, 0));
                    self.add(place(length), token, modifiers);
                    length
                }
                '?' | '@' => {
                    let length = 1 + run(rest.get(1..).unwrap_or_default(), |c| "_.".contains(c));
                    let (token, modifiers) = match first {
                        '@' => (Token::Name, DECLARATION),
                        _ => (Token::Value, 0),
                    };
                    if length > 1 {
                        self.add(place(length), token, modifiers);
                    }
                    length
                }
                '0'..='9' => {
                    let length = run(rest, |c| "_.".contains(c));
                    self.add(place(length), Token::Number, 0);
                    length
                }
                c if c.is_alphabetic() || c == '_' => {
                    let length = run(rest, |c| "_.:".contains(c));
                    let word = rest.get(..length).unwrap_or_default().trim_end_matches([':', '.']);
                    let behind = rest.get(word.len()..).unwrap_or_default();
                    self.word(place(word.len()), word, behind, at == indent);
                    word.len().max(1)
                }
                other => other.len_utf8(),
            };
            at += length;
        }
    }

    fn word(&mut self, place: Range<usize>, word: &str, behind: &str, first: bool) {
        let within =
            |list: &[Range<usize>]| list.iter().any(|r| r.start <= place.start && place.end <= r.end);
        if word.contains("::") {
            // A rule may name an overload after a dot.
            let base = word.split('.').next().unwrap_or(word);
            let known = [word, base].iter().any(|name| {
                Symbol::existing(name).is_some_and(|name| !self.project.registry.overloads(name).is_empty())
            });
            let declares = self.document.kind == Kind::Dialect
                && self.document.text().get(..place.start).is_some_and(|before| before.ends_with("op "));
            let modifiers = if declares { DECLARATION } else { u32::from(!known) * FOREIGN };
            return self.add(place, Token::Op, modifiers);
        }
        let token = match self.document.kind {
            Kind::Graph if within(&self.types) => Token::Type,
            Kind::Graph if within(&self.attributes) && behind.trim_start().starts_with('=') => {
                Token::Attribute
            }
            Kind::Graph if first && is_block(word) => Token::Keyword,
            Kind::Graph => match word {
                "graph" | "return" | "with" | "schema" | "class" | "resource" => Token::Keyword,
                _ => return,
            },
            Kind::Rules => match word {
                "rule" | "group" if first => Token::Keyword,
                "exact" | "if" | "and" | "or" | "not" | "in" => Token::Keyword,
                // The first halves of `nan-relaxed` and `fast-math`, and the second ones.
                "nan" | "fast" if behind.starts_with('-') => Token::Keyword,
                "relaxed" | "math" => Token::Keyword,
                _ if behind.starts_with('(') => Token::Op,
                _ if is_type(word) => Token::Type,
                _ => return,
            },
            Kind::Dialect => match word {
                _ if first && KEYWORDS.contains(&word) => Token::Keyword,
                "where" | "and" | "in" | "def" | "return" | "if" | "else" | "for" | "while" => Token::Keyword,
                _ if is_type(word) => Token::Type,
                _ => return,
            },
            Kind::Script | Kind::Other => return,
        };
        self.add(place, token, 0);
    }

    /// A comment; what it says to lit and FileCheck stands out.
    fn comment(&mut self, start: usize, text: &str) {
        let is_comment =
            self.document.kind != Kind::Other || text.starts_with(['#', ';']) || text.starts_with("//");
        let directive = self.prefixes.iter().find_map(|prefix| {
            let at = text.match_indices(prefix.as_str()).map(|(at, _)| at).find(|at| {
                !text
                    .get(..*at)
                    .is_some_and(|b| b.ends_with(|c: char| c.is_alphanumeric() || "-_".contains(c)))
            })?;
            let behind = text.get(at + prefix.len()..)?;
            let length = behind
                .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || "-{}".contains(c)))?;
            behind.get(length..)?.starts_with(':').then_some(at..at + prefix.len() + length + 1)
        });
        match directive {
            Some(at) => {
                if is_comment {
                    self.add(start..start + at.start, Token::Comment, 0);
                }
                self.add(start + at.start..start + at.end, Token::Directive, 0);
                if is_comment {
                    self.add(start + at.end..start + text.len(), Token::Comment, 0);
                }
            }
            None if is_comment => self.add(start..start + text.len(), Token::Comment, 0),
            None => {}
        }
    }
}

fn is_block(word: &str) -> bool {
    word.strip_prefix("block").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
}

fn is_type(word: &str) -> bool {
    let simple = ["int", "float", "bool", "str", "complex"];
    simple.contains(&word)
        || word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(char::is_alphanumeric)
}

/// How far letters, digits and some marks go.
fn run(text: &str, also: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || also(c))).unwrap_or(text.len())
}

/// The length of a text in quotes; to the end of the line where it is not closed.
fn string_length(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return at + 1,
            '\\' => drop(letters.next()),
            _ => {}
        }
    }
    text.len()
}
