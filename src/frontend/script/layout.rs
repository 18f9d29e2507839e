//! The layout pass: from source text to marked text, which a context-free grammar can read.
//!
//! Marked text holds one word per token, each followed by one blank. Keywords and signs stand for
//! themselves (`is not` as `is_not`), every name is `$`, every number is `0` and every string `"`; ends
//! of lines and changes of indentation are the characters of [`mark`]. Comments, blank lines, joined
//! lines are gone. For each word the pass keeps the bytes of the source that it stands for, so that a
//! place in marked text always leads back. The pass knows no grammar beyond brackets.
//!
//! Where the text cannot be read on, the last word is [`mark::BAD`]: the grammar stops there at the
//! latest, and the reason kept here is reported only if it gets that far.

use super::token::{Kind, is_type_comment, mark, scan};
use crate::diag::{Diagnostic, ErrorKind, Result, Source, Span};
use std::sync::Arc;

/// Open brackets, pending conditional expressions and comprehensions inside each other.
pub(super) const MAX_NESTING: usize = 500;

/// Levels of indentation inside each other.
pub(super) const MAX_INDENTS: usize = 100;

/// The name that a code file of an archive begins with.
const VERSION: &str = "op_version_set";

/// One token: what it is, and the bytes of the source it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Who wrote the text, which says what may stand on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One statement a line, blocks on lines of their own.
    TorchScript,
    /// As Python has it besides: statements after a `;`, and after the `:` that opens a block. They are marked as if each
    /// stood on a line of its own.
    Python,
}

/// Marked text and the way back to the source.
#[derive(Debug)]
pub(super) struct Layout {
    source: Arc<Source>,
    form: Form,
    text: String,
    tokens: Vec<Token>,
    /// Offset in `text` at which the word of each token starts.
    words: Vec<u32>,
    /// Why the text ends in [`mark::BAD`].
    failure: Option<Diagnostic>,
}

impl Layout {
    /// Lays out a whole source. Fails only on one that is too large; see [`Layout::failure`].
    pub(super) fn new(source: &Arc<Source>, form: Form) -> Result<Layout> {
        const LIMIT: usize = 1 << 30;
        if source.text().len() > LIMIT {
            return Err(Diagnostic::input(format!("source text of more than {LIMIT} bytes")));
        }
        let mut pass = Pass::new(source, form);
        if let Err(failure) = pass.run() {
            pass.push(Kind::Bad, pass.at, pass.at);
            pass.out.failure = Some(failure);
        }
        Ok(pass.out)
    }

    /// The marked text up to the last line end before a token, with the blocks open there closed.
    pub(super) fn before_last_line_of(&self, index: usize) -> String {
        let before = self.tokens.get(..index).unwrap_or(&[]);
        let end = before.iter().rposition(|t| t.kind == Kind::Newline).map_or(0, |i| i + 1);
        let count = |kind| before.iter().take(end).filter(|t| t.kind == kind).count();
        let open = count(Kind::Indent).saturating_sub(count(Kind::Dedent));
        let length = self.words.get(end).map_or(0, |word| *word as usize);
        let mut text = self.text.get(..length).unwrap_or("").to_string();
        for _ in 0..open {
            text.push_str(mark::DEDENT);
            text.push(' ');
        }
        text
    }

    /// Who wrote the text.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// The source laid out.
    pub(super) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The marked text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// All tokens in order; the last is `Eof` or `Bad`.
    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Why the marked text ends in [`mark::BAD`].
    pub(super) fn failure(&self) -> Option<&Diagnostic> {
        self.failure.as_ref()
    }

    /// Index of the first token whose word starts at or after an offset in marked text.
    pub(super) fn index_at(&self, offset: usize) -> usize {
        self.words.partition_point(|word| (*word as usize) < offset)
    }

    /// A token by index; past the end the last one.
    pub(super) fn token(&self, index: usize) -> Token {
        let nothing = Token { kind: Kind::Eof, start: 0, end: 0 };
        self.tokens.get(index).or(self.tokens.last()).copied().unwrap_or(nothing)
    }

    /// The place of a token.
    pub(super) fn span(&self, token: Token) -> Span {
        Span::new(&self.source, token.start as usize, token.end as usize)
    }

    /// The source text of a token.
    pub(super) fn text_of(&self, token: Token) -> &str {
        self.source.text().get(token.start as usize..token.end as usize).unwrap_or("")
    }
}

/// How deep the text is inside brackets and the constructs that the grammar nests without brackets.
#[derive(Default)]
struct Nesting {
    /// For each open bracket, and for none, the `if` and `for` since the last comma.
    pending: Vec<usize>,
    total: usize,
    /// Brackets open by PyTorch's count, which unmatched closing ones lower below 0.
    balance: isize,
}

impl Nesting {
    fn count(&mut self, kind: Kind) {
        if self.pending.is_empty() {
            self.pending.push(0);
        }
        match kind {
            Kind::Fixed("(" | "[" | "{") => {
                self.balance += 1;
                self.total += 1;
                self.pending.push(0);
            }
            Kind::Fixed(")" | "]" | "}") => {
                self.balance -= 1;
                if self.pending.len() > 1 {
                    self.total -= 1 + self.pending.pop().unwrap_or(0);
                }
            }
            Kind::Fixed("if" | "for") => self.change(|pending| pending + 1),
            Kind::Fixed("else") => self.change(|pending| pending.saturating_sub(1)),
            Kind::Fixed(",") => self.change(|_| 0),
            Kind::Newline | Kind::Indent => self.change(|_| 0),
            _ => {}
        }
    }

    fn change(&mut self, change: impl Fn(usize) -> usize) {
        if let Some(pending) = self.pending.last_mut() {
            let next = change(*pending);
            self.total = self.total - *pending + next;
            *pending = next;
        }
    }
}

/// The pass while it runs.
struct Pass<'s> {
    bytes: &'s [u8],
    /// Offset after the last token read.
    at: usize,
    nesting: Nesting,
    /// Widths of the open blocks' indentation in bytes, outermost first; never empty.
    indents: Vec<usize>,
    line: Line,
    out: Layout,
}

/// What of the logical line that is being read matters for blocks on one line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// It has no token yet.
    Begins,
    /// It begins with a keyword whose `:` opens a block, and has not come to that.
    Heads,
    /// It holds a block after that `:`.
    HoldsBlock,
    /// It is any other line.
    Plain,
}

/// What lies before the next token.
struct Gap {
    /// Where the blanks of the last line begin.
    start: usize,
    /// Whether a logical line ended.
    ends_line: bool,
}

impl<'s> Pass<'s> {
    fn new(source: &'s Arc<Source>, form: Form) -> Self {
        let length = source.text().len();
        let out = Layout {
            source: Arc::clone(source),
            form,
            text: String::with_capacity(length),
            tokens: Vec::with_capacity(length / 4),
            words: Vec::with_capacity(length / 4),
            failure: None,
        };
        let (bytes, nesting) = (source.text().as_bytes(), Nesting::default());
        Pass { bytes, at: 0, nesting, indents: vec![0], line: Line::Begins, out }
    }

    fn run(&mut self) -> Result<()> {
        let first = self.skip(true);
        self.indents = vec![self.at - first.start];
        loop {
            let before = self.at;
            let gap = self.skip(false);
            if gap.ends_line {
                self.end_line(gap.start)?;
            } else if self.at >= self.bytes.len() {
                self.push(Kind::Eof, self.at, self.at);
                return Ok(());
            } else {
                self.token(before)?;
            }
        }
    }

    /// Moves over blanks, comments, joined lines and blank lines to the next token.
    fn skip(&mut self, line_begins: bool) -> Gap {
        let mut gap = Gap { start: self.at, ends_line: line_begins };
        loop {
            gap.start = self.at;
            self.at += self.rest().iter().take_while(|b| is_blank(b)).count();
            match self.rest() {
                [b'#', ..] if !is_type_comment(self.rest()) => {
                    self.at += self.rest().iter().take_while(|b| **b != b'\n').count();
                }
                [b'\\', b'\n', ..] if !gap.ends_line => self.at += 2,
                [b'\n', ..] => {
                    self.at += 1;
                    gap.ends_line = self.nesting.balance <= 0;
                }
                _ => return gap,
            }
        }
    }

    fn rest(&self) -> &'s [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    /// Turns the indentation `start..self.at` of a new line into marks.
    fn end_line(&mut self, start: usize) -> Result<()> {
        let at_end = self.at >= self.bytes.len();
        let outermost = self.indents.first().copied().unwrap_or(0);
        let current = self.indents.last().copied().unwrap_or(0);
        let width = if at_end { outermost } else { self.at - start };
        let closed = self.close_line(start);
        if width == current {
            if !closed {
                self.push(Kind::Newline, start, self.at);
            }
        } else if width > current {
            if self.indents.len() > MAX_INDENTS {
                return Err(self.too_deep("blocks", MAX_INDENTS));
            }
            self.indents.push(width);
            self.push(Kind::Indent, start, self.at);
        } else {
            let Some(level) = self.indents.iter().position(|indent| *indent == width) else {
                let span = Span::new(&self.out.source, start, self.at);
                return Err(Diagnostic::syntax(format!("invalid indent level {width}")).at(&span));
            };
            if !closed {
                self.push(Kind::Newline, start, self.at);
            }
            for _ in level + 1..self.indents.len() {
                self.push(Kind::Dedent, start, self.at);
            }
            self.indents.truncate(level + 1);
        }
        Ok(())
    }

    /// Ends the line that was read; says whether that ended a block that it holds.
    fn close_line(&mut self, start: usize) -> bool {
        let holds_block = self.line == Line::HoldsBlock;
        self.line = Line::Begins;
        if holds_block {
            self.push(Kind::Newline, start, self.at);
            self.push(Kind::Dedent, start, self.at);
        }
        holds_block
    }

    /// Whether a token, blanks aside, follows on the line.
    fn goes_on(&self) -> bool {
        let rest = self.rest();
        let blanks = rest.iter().take_while(|b| is_blank(b)).count();
        !matches!(rest.get(blanks..), None | Some([] | [b'\n' | b'#' | b'\\', ..]))
    }

    /// Sees to what Python allows on one line: after a token was read, whether it opens a block there.
    fn note(&mut self, kind: Kind) {
        self.line = match (self.line, kind) {
            (
                Line::Begins,
                Kind::Fixed("if" | "elif" | "else" | "for" | "while" | "with" | "def" | "class"),
            ) => Line::Heads,
            (Line::Begins, _) => Line::Plain,
            (Line::Heads, Kind::Fixed(":")) if self.nesting.balance <= 0 => {
                if self.goes_on() {
                    self.push(Kind::Indent, self.at, self.at);
                    Line::HoldsBlock
                } else {
                    Line::Plain
                }
            }
            (line, _) => line,
        };
    }

    /// Reads the `;` between two statements.
    fn separator(&mut self) -> bool {
        if self.out.form != Form::Python || !self.rest().starts_with(b";") || self.nesting.balance > 0 {
            return false;
        }
        self.at += 1;
        if self.goes_on() {
            self.push(Kind::Newline, self.at - 1, self.at);
        }
        true
    }

    /// Reads one token; `before` is where the one before it ended.
    fn token(&mut self, before: usize) -> Result<()> {
        if self.separator() {
            return Ok(());
        }
        let Some((kind, end)) = scan(self.bytes, self.at) else {
            let found = self.out.source.text().get(before..).and_then(|rest| rest.chars().next());
            let message = format!("expected a valid token but found '{}' here", found.unwrap_or(' '));
            let span = Span::new(&self.out.source, self.at, self.at + 1);
            return Err(Diagnostic::syntax(message).at(&span));
        };
        self.push(kind, self.at, end);
        self.at = end;
        if self.out.form == Form::Python {
            self.note(kind);
        }
        if self.nesting.total > MAX_NESTING {
            return Err(self.too_deep("expressions", MAX_NESTING));
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        self.nesting.count(kind);
        self.out.tokens.push(Token { kind, start: start as u32, end: end as u32 });
        self.out.words.push(self.out.text.len() as u32);
        let text = &mut self.out.text;
        match kind {
            Kind::Ident => {
                text.push_str(mark::IDENT);
                // It stands at the beginning of a file.
                let is_version =
                    self.out.tokens.len() == 1 && self.out.source.text().get(start..end) == Some(VERSION);
                text.push_str(if is_version { VERSION } else { "" });
            }
            Kind::Number => text.push_str(mark::NUMBER),
            Kind::Str => text.push_str(mark::STR),
            Kind::Newline => text.push_str(mark::NEWLINE),
            Kind::Indent => text.push_str(mark::INDENT),
            Kind::Dedent => text.push_str(mark::DEDENT),
            Kind::Eof => return,
            Kind::Bad => text.push_str(mark::BAD),
            Kind::Fixed(word) => text.push_str(word),
        }
        text.push(' ');
    }

    fn too_deep(&self, what: &str, limit: usize) -> Diagnostic {
        let span = Span::new(&self.out.source, self.at, self.at + 1);
        too_deep(what, limit).at(&span)
    }
}

/// The error for a program nested deeper than a limit.
pub(super) fn too_deep(what: &str, limit: usize) -> Diagnostic {
    Diagnostic::new(ErrorKind::Unsupported, format!("{what} nested more than {limit} levels deep"))
        .hint("give a name to an inner part and use the name")
}

/// What C's `isblank` and `isspace` take together, except the line break.
fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked_as(form: Form, text: &str) -> String {
        let layout = Layout::new(&Source::new("<string>", text), form).unwrap();
        layout.text().trim_end().to_string()
    }

    fn marked(text: &str) -> String {
        marked_as(Form::TorchScript, text)
    }

    #[test]
    fn statements_of_python_share_lines() {
        for (on_one_line, on_their_own) in [
            ("def f(x):\n  if x: return 1\n  return 2\n", "def f(x):\n  if x:\n    return 1\n  return 2\n"),
            ("if a: b\nelif c: d; e\nelse: f;\n", "if a:\n  b\nelif c:\n  d\n  e\nelse:\n  f\n"),
            ("a; b[0:1] = {c: d}; e ; # f\ng\n", "a\nb[0:1] = {c: d}\ne\ng\n"),
            ("def f(x: int) -> int: return x\n", "def f(x: int) -> int:\n  return x\n"),
            ("while a:\n  for b in c: d; e\nf\n", "while a:\n  for b in c:\n    d\n    e\nf\n"),
            ("if a[b:\n  c]: d\n", "if a[b:c]:\n  d\n"),
            ("x: int = 1; y: int = 2\n", "x: int = 1\ny: int = 2\n"),
        ] {
            assert_eq!(marked_as(Form::Python, on_one_line), marked(on_their_own), "{on_one_line}");
            assert_eq!(marked_as(Form::Python, on_their_own), marked(on_their_own), "{on_their_own}");
        }
    }

    #[test]
    fn marks_lines_and_blocks() {
        assert_eq!(marked("def f(x):\n  return x\n"), "def $ ( $ ) : → return $ ↵ ←");
        assert_eq!(
            marked("if a:\n    if b:\n      pass\nelse:\n  pass\n"),
            "if $ : → if $ : → pass ↵ ← ← else : → pass ↵ ←"
        );
        assert_eq!(marked("  a\n  b\n"), "$ ↵ $ ↵");
    }

    #[test]
    fn comments_and_joined_lines_leave_no_trace() {
        assert_eq!(marked("a # b\n\n  # c\nd"), "$ ↵ $");
        assert_eq!(marked("f(1, # one\n\n  2)\n"), "$ ( 0 , 0 ) ↵");
        assert_eq!(marked("a + \\\n    b\n"), "$ + $ ↵");
        assert_eq!(marked("a # type: (int) -> int"), "$ #type: ( $ ) -> $");
    }

    #[test]
    fn a_final_line_break_is_not_made_up() {
        assert_eq!(marked("a:\n  b"), "$ : → $");
        assert_eq!(marked("a:\n  b\n   "), "$ : → $ ↵ ←");
    }

    #[test]
    fn stops_at_what_it_cannot_read() {
        for (text, expected, message) in [
            ("a $ b", "$ `", "expected a valid token but found ' ' here"),
            ("a;b", "$ `", "expected a valid token but found ';' here"),
            ("a:\n    b\n  c\n", "$ : → $ `", "invalid indent level 2"),
        ] {
            let layout = Layout::new(&Source::new("<string>", text), Form::TorchScript).unwrap();
            assert_eq!(layout.text().trim_end(), expected);
            assert_eq!(layout.failure().map(Diagnostic::message), Some(message));
        }
    }

    #[test]
    fn depth_is_bounded() {
        for text in ["(".repeat(5000), "a if ".repeat(5000), "[a for ".repeat(5000)] {
            let layout = Layout::new(&Source::new("<string>", text), Form::TorchScript).unwrap();
            assert!(layout.failure().is_some_and(|f| f.message().contains("nested")));
        }
        let flat = "x if y else ".repeat(5000);
        assert!(Layout::new(&Source::new("<string>", flat), Form::TorchScript).unwrap().failure().is_none());
        let list = format!("[{}]", "x for x in y, ".repeat(5000));
        assert!(Layout::new(&Source::new("<string>", list), Form::TorchScript).unwrap().failure().is_none());
    }

    #[test]
    fn leads_back_to_the_source() {
        let layout = Layout::new(&Source::new("<string>", "a  +\tbc"), Form::TorchScript).unwrap();
        let index = layout.index_at(4);
        assert_eq!(layout.text_of(layout.token(index)), "bc");
        assert_eq!(layout.token(99).kind, Kind::Eof);
    }
}
