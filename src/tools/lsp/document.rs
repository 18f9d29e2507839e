//! An open file: its text, what kind of text it is, and the way between places as editors and as we count them.

use super::index::Index;
use crate::diag::Source;
use lsp_types as lsp;
use std::path::Path;
use std::sync::Arc;

/// In what units an editor counts columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of 16 bits; every client knows them.
    Utf16,
}

impl Encoding {
    /// Bytes where the client knows them.
    pub(super) fn agreed(params: &lsp::InitializeParams) -> Encoding {
        let general = params.capabilities.general.as_ref();
        let known = general.and_then(|g| g.position_encodings.as_ref());
        match known.is_some_and(|list| list.contains(&lsp::PositionEncodingKind::UTF8)) {
            true => Encoding::Utf8,
            false => Encoding::Utf16,
        }
    }

    pub(super) fn name(self) -> lsp::PositionEncodingKind {
        match self {
            Encoding::Utf8 => lsp::PositionEncodingKind::UTF8,
            Encoding::Utf16 => lsp::PositionEncodingKind::UTF16,
        }
    }
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Graph text.
    Graph,
    /// Rewrite rules.
    Rules,
    /// A dialect.
    Dialect,
    /// TorchScript source.
    Script,
    /// Something else that may have `RUN` and `CHECK` lines.
    Other,
}

/// Most bytes of a file that is examined; of a larger one the server says only that.
pub(super) const MOST_TEXT: usize = 16 << 20;

/// An open file.
#[derive(Clone)]
pub(super) struct Document {
    pub(super) uri: lsp::Uri,
    pub(super) kind: Kind,
    pub(super) version: i32,
    pub(super) source: Arc<Source>,
    /// The names in graph text.
    pub(super) index: Index,
    /// Changed since it was opened or saved.
    pub(super) changed: bool,
    encoding: Encoding,
}

impl Document {
    pub(super) fn new(
        uri: lsp::Uri,
        language: &str,
        text: String,
        version: i32,
        encoding: Encoding,
    ) -> Document {
        let kind = kind_of(uri.path().as_str(), language, &text);
        let mut document = Document {
            uri,
            kind,
            version,
            source: Source::new("", ""),
            index: Index::default(),
            changed: false,
            encoding,
        };
        document.set(text);
        document
    }

    fn set(&mut self, text: String) {
        let name = Path::new(self.uri.path().as_str()).file_name().unwrap_or_default();
        let indexed = self.kind == Kind::Graph && text.len() <= MOST_TEXT;
        self.index = if indexed { Index::new(&text) } else { Index::default() };
        self.source = Source::new(name.to_string_lossy(), text);
    }

    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(super) fn text(&self) -> &str {
        self.source.text()
    }

    /// The file after the client's changes, in their order.
    pub(super) fn changed_by(
        &self,
        changes: Vec<lsp::TextDocumentContentChangeEvent>,
        version: i32,
    ) -> Document {
        let mut document = self.clone();
        for change in changes {
            let text = match change.range {
                None => change.text,
                Some(range) => {
                    let start = document.offset(range.start);
                    let end = document.offset(range.end).max(start);
                    let mut text = document.text().to_string();
                    text.replace_range(start..end, &change.text);
                    text
                }
            };
            document.set(text);
        }
        Document { version, changed: true, ..document }
    }

    /// The same file, which now is on the disk as it is here.
    pub(super) fn as_saved(&self) -> Document {
        Document { changed: false, ..self.clone() }
    }

    /// The offset in bytes of a place; one after the end of its line is the end of the line.
    pub(super) fn offset(&self, at: lsp::Position) -> usize {
        let start = self.source.line_start(at.line as usize + 1);
        let rest = self.text().get(start..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        let wanted = at.character as usize;
        let mut units = 0;
        for (offset, letter) in line.char_indices() {
            if units >= wanted {
                return start + offset;
            }
            units += match self.encoding {
                Encoding::Utf8 => letter.len_utf8(),
                Encoding::Utf16 => letter.len_utf16(),
            };
        }
        start + line.len()
    }

    /// The place of an offset.
    pub(super) fn position(&self, offset: usize) -> lsp::Position {
        let (line, column) = self.source.line_column(self.source.clamp(offset));
        let start = self.source.line_start(line);
        let before = self.text().get(start..start + column).unwrap_or_default();
        let character = match self.encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.encode_utf16().count(),
        };
        lsp::Position::new(line.saturating_sub(1) as u32, character as u32)
    }

    pub(super) fn range(&self, start: usize, end: usize) -> lsp::Range {
        lsp::Range::new(self.position(start), self.position(end))
    }
}

fn kind_of(path: &str, language: &str, text: &str) -> Kind {
    let end = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or_default();
    match (end, language) {
        ("rules", _) | (_, "flambeau-rules") => Kind::Rules,
        ("dialect", _) | (_, "flambeau-dialect") => Kind::Dialect,
        ("py", _) | (_, "python") => Kind::Script,
        ("ir", _) | (_, "flambeau-ir") => Kind::Graph,
        _ if crate::tools::load::is_graph(text) => Kind::Graph,
        _ => Kind::Other,
    }
}
