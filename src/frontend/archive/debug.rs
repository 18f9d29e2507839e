//! Debug source ranges: from a place in the archive's own code back to the Python line that it came from,
//! so that an error at run time shows what the author wrote. It knows the pickled table and nothing of
//! zip files.

use std::sync::Arc;

use hashbrown::HashMap;
use indexmap::IndexMap;

use super::limits::Limits;
use super::pickle::{Node, NodeId, Pickle};
use crate::diag::{Diagnostic, Result, Source, Span};

/// The table of one code file (`*.py.debug_pkl`).
#[derive(Clone, Debug, Default)]
pub struct DebugRanges {
    /// Where in the code file a range begins, in bytes, ascending; and the original place, where known.
    entries: Vec<(u64, Option<Span>)>,
}

impl DebugRanges {
    /// The original place of a byte offset of the code file.
    pub fn lookup(&self, offset: usize) -> Option<&Span> {
        let after = self.entries.partition_point(|(start, _)| *start <= offset as u64);
        self.entries.get(after.checked_sub(1)?)?.1.as_ref()
    }

    /// Where the code at a byte offset came from, for tracebacks: an empty place if the table says that it came from
    /// nowhere; None if the table says nothing.
    pub fn origin(&self, offset: usize) -> Option<Span> {
        let after = self.entries.partition_point(|(start, _)| *start <= offset as u64);
        let (_, place) = self.entries.get(after.checked_sub(1)?)?;
        Some(place.clone().unwrap_or_else(|| Span::new(&Source::new("", ""), 0, 0)))
    }

    /// All ranges: the first byte in the code file, and the original place where known.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, Option<&Span>)> {
        self.entries.iter().map(|(start, span)| (*start, span.as_ref()))
    }

    /// Reads an encoded table with the default limits.
    pub fn from_bytes(bytes: &[u8]) -> Result<DebugRanges> {
        let limits = Limits::default();
        Self::decode(&super::pickle::parse(bytes, &limits)?, &limits)
    }

    /// Reads the table, in the form of PyTorch 1.10 and later, whose texts stand in a table of strings,
    /// or in the older one, which repeats them.
    pub fn decode(pickle: &Pickle, limits: &Limits) -> Result<DebugRanges> {
        let items = pickle.items(pickle.root()).ok_or_else(|| malformed("the table is not a tuple"))?;
        let (strings, rows) = match *items {
            [marker, strings, rows] if pickle.str(marker) == Some(STRING_TABLE) => {
                let strings =
                    pickle.items(strings).ok_or_else(|| malformed("the strings are not a tuple"))?;
                let rows = pickle.items(rows).ok_or_else(|| malformed("the rows are not a tuple"))?;
                (Some(strings), rows)
            }
            _ => (None, items),
        };
        let mut decoder = Decoder {
            pickle,
            strings,
            sources: HashMap::new(),
            files: HashMap::new(),
            bytes_left: limits.debug_text_bytes,
        };
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            entries.push(decoder.row(*row)?);
        }
        // PyTorch writes them in order; a table in disorder would only give wrong lines.
        entries.sort_by_key(|(start, _)| *start);
        Ok(DebugRanges { entries })
    }
}

/// The encoded table of a code file: from which byte on, and the original place where it is known.
pub(super) fn encode(tags: &[(usize, Option<Span>)]) -> Result<Vec<u8>> {
    let mut encoder = Encoder::default();
    encoder.text("");
    let mut rows = Vec::with_capacity(tags.len());
    for (offset, place) in tags {
        let (start, end) = place.as_ref().map_or((0, 0), |p| (p.start(), p.end()));
        let source = encoder.source(place.as_ref().map(Span::source));
        let [start, end, tag, offset] = [start, end, 0, *offset].map(|n| encoder.add(Node::Int(n as i64)));
        let range = encoder.add(Node::Tuple(Box::new([source, start, end])));
        rows.push(encoder.add(Node::Tuple(Box::new([offset, range, tag]))));
    }
    let strings: Vec<String> = std::mem::take(&mut encoder.strings).into_keys().collect();
    let strings = strings.into_iter().map(|text| encoder.add(Node::Str(text.into()))).collect();
    let strings = encoder.add(Node::Tuple(strings));
    let marker = encoder.add(Node::Str(STRING_TABLE.into()));
    let rows = encoder.add(Node::Tuple(rows.into()));
    let root = encoder.add(Node::Tuple(Box::new([marker, strings, rows])));
    Ok(super::pickle::write(&Pickle::from_nodes(encoder.nodes, root, &Limits::default())?))
}

#[derive(Default)]
struct Encoder {
    nodes: Vec<Node>,
    /// Lines and names, each once.
    strings: IndexMap<String, ()>,
    /// Sources by address; spans keep them alive.
    sources: HashMap<usize, NodeId>,
}

impl Encoder {
    fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn text(&mut self, text: &str) -> i64 {
        let next = self.strings.len();
        match self.strings.get_index_of(text) {
            Some(known) => known as i64,
            None => {
                self.strings.insert(text.to_string(), ());
                next as i64
            }
        }
    }

    /// `(lines, name, first line)`; without a source one empty line.
    fn source(&mut self, source: Option<&Arc<Source>>) -> NodeId {
        let key = source.map_or(0, |s| Arc::as_ptr(s) as usize);
        if let Some(known) = self.sources.get(&key) {
            return *known;
        }
        let (text, name, line) = source.map_or(("", "", 0), |s| (s.text(), s.name(), s.first_line()));
        let mut lines: Vec<i64> = text.split_inclusive('\n').map(|line| self.text(line)).collect();
        if lines.is_empty() {
            lines.push(0);
        }
        let items = lines.into_iter().map(|n| self.add(Node::Int(n))).collect();
        let list = super::pickle::List { items, type_text: Some("List[int]".into()) };
        let lines = self.add(Node::List(Box::new(list)));
        let name = self.text(name);
        let [name, line] = [name, line as i64].map(|n| self.add(Node::Int(n)));
        let id = self.add(Node::Tuple(Box::new([lines, name, line])));
        self.sources.insert(key, id);
        id
    }
}

/// The first item of a table with a table of strings.
const STRING_TABLE: &str = "FORMAT_WITH_STRING_TABLE";

struct Decoder<'a> {
    pickle: &'a Pickle,
    /// The table of strings; `None` in the older form.
    strings: Option<&'a [NodeId]>,
    /// Sources by the node that describes them, so that ranges in one function share it.
    sources: HashMap<NodeId, Option<Arc<Source>>>,
    /// And by their content, because a table without memo repeats the description.
    files: HashMap<(String, String, usize), Arc<Source>>,
    bytes_left: usize,
}

impl Decoder<'_> {
    /// `(offset, range, tag)`.
    fn row(&mut self, row: NodeId) -> Result<(u64, Option<Span>)> {
        let Some(&[offset, range, ..]) = self.pickle.items(row) else {
            return Err(malformed("a row is not a tuple of offset and range"));
        };
        let offset = self.pickle.int(offset).and_then(|offset| u64::try_from(offset).ok());
        let offset = offset.ok_or_else(|| malformed("an offset must be a non-negative int"))?;
        if let Node::None = self.pickle.node(range) {
            return Ok((offset, None));
        }
        let Some(&[source, start, end]) = self.pickle.items(range) else {
            return Err(malformed("a range is not a tuple of source, start and end"));
        };
        let place = |id| self.pickle.int(id).and_then(|value| usize::try_from(value).ok());
        let (Some(start), Some(end)) = (place(start), place(end)) else {
            return Err(malformed("the start and end of a range must be non-negative ints"));
        };
        let source = self.source(source)?;
        Ok((offset, source.map(|source| Span::new(&source, start, end))))
    }

    /// `(text, file name, first line)`, where text and name may be indices of the table of strings.
    fn source(&mut self, id: NodeId) -> Result<Option<Arc<Source>>> {
        if let Some(known) = self.sources.get(&id) {
            return Ok(known.clone());
        }
        let source = match *self.pickle.items(id).unwrap_or_default() {
            [text, name, line] => self.make_source(text, name, line)?,
            _ => return Err(malformed("a source is not a tuple of text, name and line")),
        };
        self.sources.insert(id, source.clone());
        Ok(source)
    }

    fn make_source(&mut self, text: NodeId, name: NodeId, line: NodeId) -> Result<Option<Arc<Source>>> {
        let text = self.text(text)?;
        let name = self.text(name)?;
        let line = match self.pickle.node(line) {
            Node::None => 0,
            node => match node {
                Node::Int(line) if (0..=i64::from(u32::MAX)).contains(line) => *line as usize,
                _ => return Err(malformed("the first line of a source must be a non-negative int")),
            },
        };
        if text.is_empty() {
            return Ok(None);
        }
        let key = (name, text, line);
        let known = self.files.get(&key).cloned();
        Ok(Some(known.unwrap_or_else(|| {
            let source = Source::starting_at(key.0.clone(), key.1.clone(), line);
            self.files.insert(key, Arc::clone(&source));
            source
        })))
    }

    /// A string, an index of the table of strings, or a list of such indices to be joined.
    fn text(&mut self, id: NodeId) -> Result<String> {
        let mut out = String::new();
        match self.pickle.node(id) {
            Node::None => {}
            Node::Int(_) | Node::Str(_) => self.piece(id, &mut out)?,
            _ => {
                let Some(items) = self.pickle.items(id) else {
                    return Err(malformed("a text is not a string"));
                };
                for item in items {
                    self.piece(*item, &mut out)?;
                }
            }
        }
        Ok(out)
    }

    fn piece(&mut self, id: NodeId, out: &mut String) -> Result<()> {
        let id = match (self.pickle.node(id), self.strings) {
            (Node::Int(index), Some(strings)) => {
                let entry = usize::try_from(*index).ok().and_then(|index| strings.get(index));
                *entry.ok_or_else(|| malformed("an index is outside the table of strings"))?
            }
            _ => id,
        };
        let piece = self.pickle.str(id).ok_or_else(|| malformed("a text is not a string"))?;
        // Some room for bookkeeping, so that a million empty pieces cost something too.
        self.bytes_left = self.bytes_left.checked_sub(piece.len() + 8).ok_or_else(|| {
            Diagnostic::input("the debug ranges rebuild more source text than the limit allows")
        })?;
        out.push_str(piece);
        Ok(())
    }
}

fn malformed(what: &str) -> Diagnostic {
    Diagnostic::input(format!("the debug ranges are malformed: {what}"))
        .hint("the model can be saved again with torch.jit.save")
}
