//! The names in graph text: where values and functions are given and used.
//!
//! Reads words, not grammar, so that it finds its way in text that is being written. Scopes follow the lines that
//! open and close blocks; a name that is given twice means the later value from there on.

use hashbrown::HashMap;
use std::ops::Range;

/// A value where it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// With the percent sign.
    pub(super) place: Range<usize>,
    /// The type as written, if it is.
    pub(super) ty: Option<Range<usize>>,
    /// The op that gives it; none for an input of a graph or block.
    pub(super) op: Option<usize>,
    /// Its uses.
    pub(super) uses: Vec<Range<usize>>,
}

/// An op where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Op {
    /// Its kind, as `aten::add`.
    pub(super) kind: Range<usize>,
    /// What stands between its square brackets.
    pub(super) attributes: Option<Range<usize>>,
    /// All of it, without its blocks.
    pub(super) whole: Range<usize>,
    /// Values that it gives.
    pub(super) results: Range<usize>,
    /// The function it stands in.
    pub(super) function: usize,
}

/// A graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// Its name, or the word `graph` if it has none.
    pub(super) name: Range<usize>,
    /// From its first word to its last line.
    pub(super) whole: Range<usize>,
}

/// A line that opens or closes something, or an op: for indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// `graph(...):`
    Graph,
    /// An op.
    Op,
    /// `block0():`
    Block,
    /// `-> (...)`
    End,
    /// `return (...)`
    Return,
    /// A declaration, or what we do not know.
    Other,
}

/// All names of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    pub(super) values: Vec<Value>,
    pub(super) ops: Vec<Op>,
    pub(super) functions: Vec<Function>,
    /// Uses of names that nothing gives.
    pub(super) unknown: Vec<Range<usize>>,
    /// Start of each logical line, what it is, and how many blocks it stands in.
    pub(super) lines: Vec<(usize, Line, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Value,
    Name,
    Text,
    Arrow,
    Mark(u8),
}

type Word = (Token, Range<usize>);

impl Index {
    pub(super) fn new(text: &str) -> Index {
        let mut reader = Reader { text, index: Index::default(), scopes: Scopes::default() };
        for line in lines(text) {
            reader.line(&line);
        }
        reader.index
    }

    /// The value that is named at an offset, given or used there.
    pub(super) fn value_at(&self, offset: usize) -> Option<&Value> {
        let holds = |range: &Range<usize>| range.start <= offset && offset <= range.end;
        self.values.iter().find(|v| holds(&v.place) || v.uses.iter().any(holds))
    }

    /// The op whose kind stands at an offset.
    pub(super) fn kind_at(&self, offset: usize) -> Option<&Op> {
        self.ops.iter().find(|op| op.kind.start <= offset && offset <= op.kind.end)
    }

    /// The op around an offset.
    pub(super) fn op_around(&self, offset: usize) -> Option<&Op> {
        self.ops.iter().find(|op| op.whole.start <= offset && offset <= op.whole.end)
    }
}

/// The tokens of each logical line: one that is not within brackets.
fn lines(text: &str) -> Vec<Vec<Word>> {
    let bytes = text.as_bytes();
    let (mut all, mut line, mut depth, mut at) = (Vec::new(), Vec::new(), 0usize, 0);
    let name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.') || b >= 0x80;
    while let Some(byte) = bytes.get(at).copied() {
        let start = at;
        let run = |from: usize| from + bytes.iter().skip(from).take_while(|b| name(**b)).count();
        match byte {
            b'\n' => {
                at += 1;
                // A bracket that was never closed shall not swallow the lines after it.
                if depth > 0 && begins(text.get(at..).unwrap_or_default()) {
                    depth = 0;
                }
                if depth == 0 && !line.is_empty() {
                    all.push(std::mem::take(&mut line));
                }
            }
            b'#' | b'/' if byte == b'#' || bytes.get(at + 1) == Some(&b'/') => {
                at += bytes.iter().skip(at).take_while(|b| **b != b'\n').count();
            }
            b'"' => {
                at += 1;
                while let Some(inside) = bytes.get(at).copied().filter(|b| *b != b'\n') {
                    at += if inside == b'\\' { 2 } else { 1 };
                    if inside == b'"' {
                        break;
                    }
                }
                at = at.min(bytes.len());
                line.push((Token::Text, start..at));
            }
            b'%' => {
                at = run(at + 1);
                line.push((Token::Value, start..at));
            }
            b'-' if bytes.get(at + 1) == Some(&b'>') => {
                at += 2;
                line.push((Token::Arrow, start..at));
            }
            _ if name(byte) || byte == b'@' || byte == b'^' => {
                at = run(at + 1);
                while bytes.get(at..at + 2) == Some(b"::") {
                    at = run(at + 2);
                }
                line.push((Token::Name, start..at));
            }
            _ => {
                at += 1;
                match byte {
                    b'(' | b'[' | b'{' => depth += 1,
                    b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if !byte.is_ascii_whitespace() {
                    line.push((Token::Mark(byte), start..at));
                }
            }
        }
    }
    if !line.is_empty() {
        all.push(line);
    }
    all
}

/// Whether a line looks like the beginning of something, and not like the rest of what stands before it.
fn begins(rest: &str) -> bool {
    let line = rest.split('\n').next().unwrap_or_default().trim_start();
    let word = line.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let number = word.strip_prefix("block").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let is_op = line.starts_with(['%', '=']) && line.contains("= ") && line.contains("::");
    matches!(word, "return" | "graph") || number || is_op || line.starts_with("->")
}

struct Reader<'t> {
    text: &'t str,
    index: Index,
    scopes: Scopes<'t>,
}

/// Names of open blocks, the graph's first. A name is found at once, however many blocks are open: text that is being written may
/// leave all of them so.
#[derive(Default)]
struct Scopes<'t> {
    /// What a name stands for: its value in each open block that gives it one, the innermost last.
    known: HashMap<&'t str, Vec<usize>>,
    /// The names that each block inside of the graph gives.
    blocks: Vec<Vec<&'t str>>,
}

impl<'t> Scopes<'t> {
    /// Blocks that are open inside of the graph.
    fn depth(&self) -> usize {
        self.blocks.len()
    }

    fn open(&mut self) {
        self.blocks.push(Vec::new());
    }

    /// Closes the innermost block; the graph stays open.
    fn close(&mut self) {
        for name in self.blocks.pop().unwrap_or_default() {
            if let Some(values) = self.known.get_mut(name) {
                values.pop();
            }
        }
    }

    fn give(&mut self, name: &'t str, value: usize) {
        self.known.entry(name).or_default().push(value);
        if let Some(block) = self.blocks.last_mut() {
            block.push(name);
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.known.get(name)?.last().copied()
    }
}

impl<'t> Reader<'t> {
    fn word(&self, range: &Range<usize>) -> &'t str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    fn line(&mut self, words: &[Word]) {
        let (Some((first, place)), Some((_, last))) = (words.first(), words.last()) else { return };
        let start = place.start;
        let depth = self.scopes.depth();
        let word = self.word(place);
        let is_header = words.iter().take(4).any(|(_, r)| self.word(r) == "graph");
        let kind = match first {
            Token::Name if word == "graph" || (word == "with" && is_header) => {
                self.header(words);
                (Line::Graph, 0)
            }
            Token::Name
                if word.starts_with("block") && matches!(words.get(1), Some((Token::Mark(b'('), _))) =>
            {
                self.scopes.open();
                self.give(words.get(1..).unwrap_or_default(), None);
                (Line::Block, depth)
            }
            Token::Arrow => {
                self.used(words);
                self.scopes.close();
                (Line::End, depth)
            }
            Token::Name if word == "return" => {
                self.used(words);
                while self.scopes.depth() > 0 {
                    self.scopes.close();
                }
                (Line::Return, 0)
            }
            Token::Value | Token::Mark(b'=') => {
                self.op(words);
                (Line::Op, depth)
            }
            _ => (Line::Other, 0),
        };
        self.index.lines.push((start, kind.0, kind.1));
        if let Some(function) = self.index.functions.last_mut()
            && kind.0 != Line::Other
        {
            function.whole.end = last.end;
        }
    }

    fn header(&mut self, words: &[Word]) {
        self.scopes = Scopes::default();
        let graph = words.iter().position(|(_, r)| self.word(r) == "graph").unwrap_or(0);
        let named = words.get(graph + 1).filter(|(_, r)| self.word(r).starts_with('@'));
        let tail = (graph > 0).then(|| words.get(1)).flatten();
        let Some((_, name)) = named.or(tail).or(words.get(graph)) else { return };
        let start = words.first().map_or(name.start, |(_, r)| r.start);
        self.index.functions.push(Function { name: name.clone(), whole: start..name.end });
        self.give(words.get(graph + 1..).unwrap_or_default(), None);
    }

    /// Values with types, up to the end of the bracket or the equal sign.
    fn give(&mut self, words: &[Word], op: Option<usize>) {
        let mut at = 0;
        while let Some((token, place)) = words.get(at) {
            at += 1;
            if *token != Token::Value {
                continue;
            }
            let mut ty: Option<Range<usize>> = None;
            if let Some((Token::Mark(b':'), _)) = words.get(at) {
                at += 1;
                let mut depth = 0;
                while let Some((token, r)) = words.get(at) {
                    match token {
                        Token::Mark(b'(' | b'[' | b'{') => depth += 1,
                        Token::Mark(b',') if depth == 0 => break,
                        Token::Mark(b')' | b']' | b'}') if depth == 0 => break,
                        Token::Mark(b')' | b']' | b'}') => depth -= 1,
                        _ => {}
                    }
                    ty = Some(ty.map_or(r.start, |t| t.start)..r.end);
                    at += 1;
                }
            }
            let number = self.index.values.len();
            self.index.values.push(Value { place: place.clone(), ty, op, uses: Vec::new() });
            let name = self.word(place);
            self.scopes.give(name, number);
        }
    }

    fn used(&mut self, words: &[Word]) {
        for (_, place) in words.iter().filter(|(token, _)| *token == Token::Value) {
            let name = self.word(place);
            match self.scopes.find(name) {
                Some(value) => {
                    if let Some(value) = self.index.values.get_mut(value) {
                        value.uses.push(place.clone());
                    }
                }
                None => self.index.unknown.push(place.clone()),
            }
        }
    }

    fn op(&mut self, words: &[Word]) {
        let mut depth = 0i32;
        let equal = words.iter().position(|(token, _)| {
            match token {
                Token::Mark(b'(' | b'[' | b'{') => depth += 1,
                Token::Mark(b')' | b']' | b'}') => depth -= 1,
                Token::Mark(b'=') => return depth == 0,
                _ => {}
            }
            false
        });
        let (before, behind) = words.split_at(equal.unwrap_or(words.len()));
        let behind = behind.get(1..).unwrap_or_default();
        let number = self.index.ops.len();
        let first = self.index.values.len();
        let Some((Token::Name, kind)) = behind.first() else {
            self.give(before, None);
            return;
        };
        let (attributes, operands) = match behind.get(1) {
            Some((Token::Mark(b'['), open)) => {
                let mut depth = 0i32;
                let close = behind.iter().position(|(token, _)| {
                    match token {
                        Token::Mark(b'(' | b'[' | b'{') => depth += 1,
                        Token::Mark(b')' | b']' | b'}') => {
                            depth -= 1;
                            return depth == 0;
                        }
                        _ => {}
                    }
                    false
                });
                // One that was not closed ends with its line.
                let rest = self.text.get(open.end..).unwrap_or_default();
                let line_end = open.end + rest.find('\n').unwrap_or(rest.len());
                let end = close.and_then(|c| behind.get(c)).map_or(line_end, |(_, r)| r.start);
                (Some(open.end..end), behind.get(close.unwrap_or(behind.len())..).unwrap_or_default())
            }
            _ => (None, behind),
        };
        self.used(operands);
        self.give(before, Some(number));
        let start = words.first().map_or(kind.start, |(_, r)| r.start);
        let end = words.last().map_or(kind.end, |(_, r)| r.end);
        self.index.ops.push(Op {
            kind: kind.clone(),
            attributes,
            whole: start..end,
            results: first..self.index.values.len(),
            function: self.index.functions.len().saturating_sub(1),
        });
    }
}
