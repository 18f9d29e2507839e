//! Parsing graphs from PyTorch's graph text.
//!
//! The parser reads bytes straight into the graph's arenas, one op after the other, without a syntax tree and
//! without recursion over blocks. It knows no op: whether an op exists and what it takes is asked by verifiers
//! later. The grammar stands in `docs/ir.md`; files with several graphs and declarations are read by
//! `module_parse.rs`.
//!
//! # Semantics
//! * An op's result without a type is a `Tensor`, unless [`ParseOptions::result_types`] knows better.
//! * A name that is given twice means the later value from there on; the later value prints under another name.
//! * Locations (`# file.py:3:4`) and scopes are kept; other comments are not.

mod tokens;

use super::attr::read_attrs;
use super::lexer::{Cursor, MAX_DEPTH, MAX_TEXT, Parsed, TextError, is_name_byte, is_name_start, too_large};
use super::names::Names;
use super::number::plain_number;
use super::options::{Naming, ParseOptions};
use super::type_parse::read_type;
use crate::diag::{Diagnostic, Result, Source, nearest};
use crate::ir::{Attr, BlockId, Graph, LocationId, OpId, Symbol, Type, ValueId};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of errors, after which the rest of the text is not read.
const MAX_ERRORS: usize = 20;

/// Blocks that may nest. The text of early returns nests one for each; walks of blocks grow their stack.
const MAX_BLOCKS: usize = 10_000;

/// Reads one graph, `graph(...)` with its `with` tails; its name, if it has one, is dropped.
pub fn parse_graph(text: &str) -> Result<Graph> {
    let source = Source::new("<string>", text);
    parse_graph_source(&source, &ParseOptions::default()).map_err(|mut errors| {
        if errors.is_empty() { Diagnostic::internal("no error") } else { errors.remove(0) }
    })
}

impl Graph {
    /// The graph that the text of an attribute is, `graph("...")`; None where it is of none.
    pub(super) fn of_exact_text(text: &str) -> Option<Graph> {
        parse_graph(text).ok()
    }
}

/// Reads one graph of a source. The errors come in the order of their places.
pub fn parse_graph_source(
    source: &Arc<Source>,
    options: &ParseOptions,
) -> std::result::Result<Graph, Vec<Diagnostic>> {
    check_size(source)?;
    let graph = parse_graph_once(source, options)?;
    if options.naming == Naming::Auto && !keeps_names(source.text(), &graph) {
        return parse_graph_once(source, &as_torch(options, source.text()));
    }
    Ok(graph)
}

/// Refuses a text whose places do not fit into 32 bits.
pub(in crate::ir) fn check_size(source: &Source) -> std::result::Result<(), Vec<Diagnostic>> {
    crate::resources::names::check().map_err(|error| vec![error])?;
    let bytes = source.text().len();
    if bytes <= MAX_TEXT {
        return Ok(());
    }
    Err(vec![Diagnostic::unsupported(format!("{}: {}", source.name(), too_large(bytes as u64)))])
}

/// As PyTorch's parser reads: results are numbered, comments after ops are only comments.
pub(super) fn as_torch<'o>(options: &ParseOptions<'o>, text: &str) -> ParseOptions<'o> {
    let show_symbols = options.show_symbols || text.contains("RUN:");
    ParseOptions { naming: Naming::Torch, drop_locations: true, show_symbols, ..*options }
}

/// Whether a text keeps its names: the dump of a program, which says where its ops come from or has groups with their
/// subgraphs, or a FileCheck test; both written as their graph prints.
pub(super) fn keeps_names(text: &str, graph: &Graph) -> bool {
    const LARGE: usize = 256 << 10;
    let has_tails = || graph.attrs.iter().flatten().any(|(_, attr)| attr.as_graph().is_some());
    let may_keep = || !graph.locations.is_empty() || has_tails() || text.contains("RUN:");
    text.len() > LARGE || (may_keep() && is_printed_form(text, graph))
}

/// Whether a text is what its graph prints, comment lines and blank lines aside.
fn is_printed_form(text: &str, graph: &Graph) -> bool {
    let is_content = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#') && !line.starts_with("//")
    };
    let printed = graph.to_string();
    text.lines().filter(is_content).eq(printed.lines())
}

fn parse_graph_once(
    source: &Arc<Source>,
    options: &ParseOptions,
) -> std::result::Result<Graph, Vec<Diagnostic>> {
    let mut parser = GraphParser::new(source.text(), *options);
    parser.skip_trivia();
    let graph = parser.named_graph().map(|(_, graph)| graph);
    parser.skip_trivia();
    if graph.is_ok() && parser.errors.is_empty() && !parser.cursor.at_end() {
        let error = parser.cursor.expected("the end of the text");
        parser.errors.push(error);
    }
    parser.finish(graph).map_err(|errors| errors.into_iter().map(|e| e.into_diagnostic(source)).collect())
}

impl std::str::FromStr for Graph {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Graph> {
        parse_graph(text)
    }
}

/// Ops that may stand for a subgraph that follows, with their kinds.
type Groups<'a> = VecDeque<(OpId, &'a str)>;

/// What is known of a result before its op is made.
struct Outcome<'a> {
    start: usize,
    name: &'a str,
    /// Index into the graph's types, `u32::MAX` where the text gives none.
    ty: u32,
}

/// Recently interned symbols of the text.
struct SymbolCache<'a> {
    slots: Vec<(&'a str, Symbol)>,
}

impl<'a> SymbolCache<'a> {
    const SLOTS: usize = 64;

    #[inline]
    fn symbol(&mut self, word: &'a str) -> Symbol {
        let bytes = word.as_bytes();
        let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
        let middle = bytes.get(bytes.len() / 2).copied().unwrap_or(0);
        let hash = bytes.len() + usize::from(first) * 7 + usize::from(last) * 31 + usize::from(middle) * 13;
        let slot = &mut self.slots[hash % Self::SLOTS];
        if slot.0 != word || word.is_empty() {
            *slot = (word, Symbol::new(word));
        }
        slot.1
    }
}

/// Reads graphs out of one text.
pub(super) struct GraphParser<'a, 'o> {
    pub(in crate::ir) cursor: Cursor<'a>,
    pub(in crate::ir) errors: Vec<TextError>,
    options: ParseOptions<'o>,
    graph: Graph,
    names: Names<'a>,
    symbols: SymbolCache<'a>,
    /// Simple types of the text by name, with their index in the graph.
    types: Vec<(&'a str, u32)>,
    last_file: (&'a str, Symbol),
    last_location: (&'a str, LocationId),
    /// Names that lines with errors would have defined.
    lost: Vec<&'a str>,
    /// Blocks that are open, the innermost last.
    blocks: Vec<BlockId>,
    /// Ops that may stand for a subgraph that follows (`prim::FusionGroup_0`).
    groups: Groups<'a>,
    operands: SmallVec<[ValueId; 8]>,
    outcomes: SmallVec<[Outcome<'a>; 4]>,
    /// Start of each op's line by op index, where that is asked for.
    places: Vec<u32>,
    /// Values whose name another value has or that cannot have theirs; named when the graph is complete.
    renames: Vec<(ValueId, &'a str)>,
}

impl<'a, 'o> GraphParser<'a, 'o> {
    pub(in crate::ir) fn new(text: &'a str, options: ParseOptions<'o>) -> Self {
        GraphParser {
            cursor: Cursor::new(text),
            errors: Vec::new(),
            options,
            graph: Graph::new(),
            names: Names::new(text),
            symbols: SymbolCache { slots: vec![("", Symbol::new("")); SymbolCache::SLOTS] },
            types: Vec::new(),
            last_file: ("", Symbol::new("")),
            last_location: ("", LocationId::UNKNOWN),
            lost: Vec::new(),
            blocks: Vec::new(),
            groups: Groups::new(),
            operands: SmallVec::new(),
            outcomes: SmallVec::new(),
            places: Vec::new(),
            renames: Vec::new(),
        }
    }

    /// The result, unless there were errors.
    pub(in crate::ir) fn finish<T>(mut self, result: Parsed<T>) -> std::result::Result<T, Vec<TextError>> {
        match result {
            Ok(value) if self.errors.is_empty() => Ok(value),
            Ok(_) => Err(self.errors),
            Err(error) => {
                self.errors.push(error);
                Err(self.errors)
            }
        }
    }

    /// Steps over space, line ends and comments (`#` and `//` to the end of the line).
    pub(super) fn skip_trivia(&mut self) {
        loop {
            self.cursor.skip_space();
            match self.cursor.peek() {
                b'#' => self.cursor.skip_line(),
                b'/' if self.cursor.peek_at(1) == b'/' => self.cursor.skip_line(),
                _ => return,
            }
        }
    }

    // --- graphs ---

    /// Where the ops of the graph that was read last stand.
    pub(super) fn take_places(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.places)
    }

    /// `graph(...)` or `graph @name(...)` with its body and `with` tails.
    pub(super) fn named_graph(&mut self) -> Parsed<(&'a str, Graph)> {
        self.places.clear();
        let (name, mut graph, mut groups) = self.one_graph()?;
        let places = std::mem::take(&mut self.places);
        let record = std::mem::replace(&mut self.options.record_places, false);
        let tails = self.tails(&mut graph, &mut groups);
        (self.places, self.options.record_places) = (places, record);
        tails.map(|()| (name, graph))
    }

    /// The `with` tails of a graph that may have such ops.
    fn tails(&mut self, graph: &mut Graph, groups: &mut Groups<'a>) -> Parsed<()> {
        // Tails belong to the innermost graph that has such an op, in the order of printing.
        let mut outer: Vec<(Graph, Groups<'a>, OpId)> = Vec::new();
        loop {
            self.skip_trivia();
            let start = self.cursor.pos();
            if self.cursor.name() != "with" {
                self.cursor.set_pos(start);
                break;
            }
            let kind = self.tail_header()?;
            while !groups.iter().any(|(_, k)| *k == kind) {
                let Some((above, above_groups, op)) = outer.pop() else {
                    return Err(TextError::meaning(
                        start,
                        self.cursor.pos(),
                        format!("there is no op `{kind}` above"),
                    )
                    .hint("`with NAME = graph(...)` gives the subgraph of the op NAME before it"));
                };
                let inner = std::mem::replace(graph, above);
                *groups = above_groups;
                attach_subgraph(graph, op, inner);
            }
            if outer.len() >= MAX_DEPTH as usize {
                return Err(TextError::meaning(start, self.cursor.pos(), "subgraphs nest too deep"));
            }
            let Some(at) = groups.iter().position(|(_, k)| *k == kind) else { continue };
            let Some((op, _)) = groups.remove(at) else { continue };
            let (_, inner, inner_groups) = self.one_graph()?;
            let above = std::mem::replace(graph, inner);
            outer.push((above, std::mem::replace(groups, inner_groups), op));
        }
        while let Some((above, _, op)) = outer.pop() {
            let inner = std::mem::replace(graph, above);
            attach_subgraph(graph, op, inner);
        }
        Ok(())
    }

    /// `with prim::FusionGroup_0 =`, the word `with` read already.
    fn tail_header(&mut self) -> Parsed<&'a str> {
        self.cursor.skip_blanks();
        let kind = self.kind_text()?;
        self.cursor.expect(b'=')?;
        self.skip_trivia();
        Ok(kind)
    }

    fn one_graph(&mut self) -> Parsed<(&'a str, Graph, Groups<'a>)> {
        self.names.clear();
        self.types.clear();
        self.lost.clear();
        self.groups.clear();
        self.last_location = ("", LocationId::UNKNOWN);
        let start = self.cursor.pos();
        if self.cursor.name() != "graph" {
            self.cursor.set_pos(start);
            return Err(self.cursor.expected("`graph(`"));
        }
        self.cursor.skip_blanks();
        let name = if self.cursor.eat(b'@') { self.function_name()? } else { "" };
        let root = self.graph.root();
        self.params(root)?;
        self.cursor.expect(b':')?;
        self.blocks.clear();
        self.blocks.push(root);
        self.graph.expect_ops(self.cursor.lines_of_graph());
        self.body()?;
        self.rename();
        let mut graph = std::mem::take(&mut self.graph);
        graph.hides_symbols = self.options.naming == Naming::Torch && !self.options.show_symbols;
        Ok((name, graph, std::mem::take(&mut self.groups)))
    }

    fn function_name(&mut self) -> Parsed<&'a str> {
        let name = self.cursor.dotted_name();
        if name.is_empty() { Err(self.cursor.expected("the name of a function")) } else { Ok(name) }
    }

    /// `(%x : int, %y)`: parameters of the graph or of a block.
    fn params(&mut self, block: BlockId) -> Parsed<()> {
        self.cursor.expect(b'(')?;
        self.skip_trivia();
        if self.cursor.eat(b')') {
            return Ok(());
        }
        loop {
            self.skip_trivia();
            let outcome = self.outcome()?;
            let ty = if outcome.ty == u32::MAX { self.graph.intern_type(Type::tensor()) } else { outcome.ty };
            let value = self.graph.add_param_of(block, ty);
            let named = self.options.naming == Naming::Torch && !is_torch_name(outcome.name);
            self.define(&outcome, value, !named);
            self.skip_trivia();
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b')');
            }
        }
    }

    /// Ops up to the `return` of the graph.
    fn body(&mut self) -> Parsed<()> {
        loop {
            self.skip_trivia();
            let start = self.cursor.pos();
            match self.line() {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    self.report(error);
                    if self.errors.len() >= MAX_ERRORS || self.cursor.at_end() {
                        return Ok(());
                    }
                    self.lose_names(start);
                }
            }
        }
    }

    /// Goes on after a line with an error and notes the names it would have defined.
    fn lose_names(&mut self, start: usize) {
        self.cursor.set_pos(start.max(self.cursor.pos().saturating_sub(1)));
        self.cursor.skip_line();
        let line = self.cursor.slice(start, self.cursor.pos());
        let defined = line.split(" = ").next().unwrap_or("");
        let names = defined
            .split('%')
            .skip(1)
            .map(|part| part.trim_end().split([' ', ',', ':']).next().unwrap_or(""));
        self.lost.extend(names);
    }

    /// One op, the head of a block, or the results of the innermost block. True after `return`.
    fn line(&mut self) -> Parsed<bool> {
        match self.cursor.peek() {
            b'%' | b'=' | b'^' => self.op().map(|()| false),
            b'-' if self.cursor.peek_at(1) == b'>' => {
                self.block_end()?;
                Ok(false)
            }
            b if is_name_start(b) => self.line_of_word(),
            _ => Err(self.cursor.expected("an op, a block, `->` or `return`")),
        }
    }

    fn line_of_word(&mut self) -> Parsed<bool> {
        let start = self.cursor.pos();
        let word = self.cursor.name();
        match (word, self.cursor.peek()) {
            ("return", b) if !is_name_byte(b) && b != b':' => self.graph_end(start).map(|()| true),
            (_, b'(') => self.block_start(start).map(|()| false),
            (_, b' ' | b'\t' | b'\r') if self.opens_block() => self.block_start(start).map(|()| false),
            _ => {
                self.cursor.set_pos(start);
                self.op().map(|()| false)
            }
        }
    }

    /// Whether the bracket of a block's parameters follows blanks; steps to it.
    fn opens_block(&mut self) -> bool {
        self.cursor.skip_blanks();
        self.cursor.peek() == b'('
    }

    /// `block0(%i : int):` after its op.
    fn block_start(&mut self, start: usize) -> Parsed<()> {
        let parent = self.innermost();
        let Some(op) = self.graph.last_op(parent) else {
            return Err(TextError::new(start, self.cursor.pos(), "a block without an op before it"));
        };
        if self.blocks.len() >= MAX_BLOCKS {
            let what = format!("blocks nest deeper than {MAX_BLOCKS} levels");
            return Err(TextError::meaning(start, self.cursor.pos(), what));
        }
        let block = self.graph.add_block(op);
        self.blocks.push(block);
        self.params(block)?;
        self.cursor.expect(b':')
    }

    fn block_end(&mut self) -> Parsed<()> {
        let start = self.cursor.pos();
        self.cursor.advance(2);
        self.cursor.skip_blanks();
        self.value_list()?;
        if self.blocks.len() < 2 {
            return Err(TextError::new(start, start + 2, "`->` without an open block")
                .hint("the results of the graph are written `return (...)`"));
        }
        let block = self.innermost();
        self.blocks.pop();
        self.graph.set_block_results(block, &self.operands);
        Ok(())
    }

    fn graph_end(&mut self, start: usize) -> Parsed<()> {
        self.cursor.skip_blanks();
        if let Err(error) = self.value_list() {
            self.report(error);
            self.cursor.skip_line();
            return Ok(());
        }
        if self.blocks.len() > 1 {
            let error = TextError::new(start, start + 6, "`return` inside a block");
            self.report(error.hint("the results of a block are written `-> (...)`"));
        }
        let root = self.graph.root();
        self.graph.set_block_results(root, &self.operands);
        self.cursor.skip_blanks();
        if self.cursor.peek() == b'#' {
            self.cursor.skip_line();
        }
        Ok(())
    }

    fn innermost(&self) -> BlockId {
        self.blocks.last().copied().unwrap_or(self.graph.root())
    }

    // --- ops ---

    /// `%a : int, %b : int = ns::op[attr=1](%x, %y), scope: s # file:1:2`
    fn op(&mut self) -> Parsed<()> {
        self.outcomes.clear();
        let line = self.cursor.pos();
        if self.cursor.peek() == b'%' {
            loop {
                let outcome = self.outcome()?;
                self.outcomes.push(outcome);
                self.cursor.skip_space();
                if !self.cursor.eat(b',') {
                    break;
                }
                self.skip_trivia();
            }
            self.cursor.expect(b'=')?;
        } else {
            self.cursor.eat(b'=');
        }
        self.cursor.skip_blanks();
        let kind_start = self.cursor.pos();
        let kind = if self.cursor.peek() == b'^' { self.python_kind()? } else { self.kind_text()? };
        if kind.is_empty() {
            self.cursor.set_pos(kind_start);
            return Err(self.cursor.expected("the kind of an op, `dialect::name`"));
        }
        let symbol = self.symbols.symbol(kind);
        let op = self.graph.new_op(symbol);
        if self.options.record_places {
            self.places.resize(self.places.len().max(op.index() + 1), u32::MAX);
            self.places[op.index()] = line as u32;
        }
        let rest = self.rest_of_op(op, kind, line);
        if rest.is_err() {
            // The op stays detached; its operands must not count as uses.
            self.graph.erase(op);
        }
        rest
    }

    fn rest_of_op(&mut self, op: OpId, kind: &'a str, line: usize) -> Parsed<()> {
        self.cursor.skip_blanks();
        if self.cursor.peek() == b'[' {
            self.attributes(op)?;
            self.cursor.skip_blanks();
        }
        if kind.starts_with('^') {
            self.python_scalars(op)?;
        }
        self.value_list()?;
        self.graph.set_operands(op, &self.operands);
        self.results(op);
        let block = self.innermost();
        self.graph.append(block, op);
        self.trailer(op)?;
        if is_group(kind) {
            self.groups.push_back((op, kind));
        }
        self.cursor.skip_blanks();
        if self.cursor.peek() != b'\n' && !self.cursor.at_end() {
            let error = self.cursor.expected("the end of the line");
            let shown = self.cursor.slice(line, self.cursor.pos());
            let brace = self.cursor.peek() == b';' || shown.is_empty();
            return Err(if brace { error.hint("ops end with the line, without `;`") } else { error });
        }
        Ok(())
    }

    /// `prim::If`: names with any number of `::`.
    fn kind_text(&mut self) -> Parsed<&'a str> {
        let start = self.cursor.pos();
        loop {
            let part = self.cursor.dotted_name();
            if part.is_empty() {
                self.cursor.set_pos(start);
                return Err(self.cursor.expected("the kind of an op, `dialect::name`"));
            }
            if !self.cursor.eat_str("::") {
                break;
            }
        }
        let kind = self.cursor.slice(start, self.cursor.pos());
        if kind.contains("::") {
            return Ok(kind);
        }
        Err(TextError::new(start, self.cursor.pos(), format!("`{kind}` has no dialect"))
            .hint("kinds of ops are written `dialect::name`"))
    }

    /// `^Function`: an autograd function of Python in a trace.
    fn python_kind(&mut self) -> Parsed<&'a str> {
        let start = self.cursor.pos();
        self.cursor.advance(1);
        if self.cursor.dotted_name().is_empty() {
            return Err(self.cursor.expected("the name of a Python function"));
        }
        Ok(self.cursor.slice(start, self.cursor.pos()))
    }

    /// The Python arguments `(1, "a")` of `^Function`, kept to the letter under the attribute name `^`.
    fn python_scalars(&mut self, op: OpId) -> Parsed<()> {
        let start = self.cursor.pos();
        let mut depth = 0u32;
        if self.cursor.peek() != b'(' {
            return Err(self.cursor.expected("`(` and the arguments of a Python function"));
        }
        loop {
            match self.cursor.peek() {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                b'"' | b'\'' => {
                    self.cursor.string()?;
                    continue;
                }
                b'\n' | 0 => {
                    return Err(self.cursor.expected("`)` after the arguments of a Python function"));
                }
                _ => {}
            }
            self.cursor.advance(1);
            if depth == 0 {
                break;
            }
        }
        let text = self.cursor.slice(start, self.cursor.pos());
        self.graph.set_attr(op, "^", Attr::Raw(text.into()));
        Ok(())
    }

    fn attributes(&mut self, op: OpId) -> Parsed<()> {
        let expected = match &self.outcomes[..] {
            [only] if only.ty != u32::MAX => self.graph.types.get_index(only.ty as usize).cloned(),
            _ => None,
        };
        self.cursor.advance(1);
        let (graph, words) = (&mut self.graph, &mut self.symbols);
        read_attrs(&mut self.cursor, expected.as_ref(), |name, attr| {
            graph.push_attr(op, words.symbol(name), attr);
        })
    }

    /// `(%x, %y)` into `self.operands`.
    fn value_list(&mut self) -> Parsed<()> {
        self.operands.clear();
        self.cursor.expect(b'(')?;
        self.skip_trivia();
        if self.cursor.eat(b')') {
            return Ok(());
        }
        loop {
            if let Some(value) = self.operand()? {
                self.operands.push(value);
            }
            if self.cursor.eat(b',') {
                if self.cursor.eat(b' ') && self.cursor.peek() == b'%' {
                    continue;
                }
                self.skip_trivia();
                continue;
            }
            self.skip_trivia();
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b')');
            }
            self.skip_trivia();
        }
    }

    /// The value of a name; None after an error about a name that means nothing, so that the line is read on.
    #[inline]
    fn operand(&mut self) -> Parsed<Option<ValueId>> {
        let start = self.cursor.pos();
        let name = self.value_name()?;
        let value = self.names.get(name);
        if value.is_none() {
            let error = self.unknown(start, name);
            self.report(error);
        }
        Ok(value)
    }

    /// Notes an error, unless it only follows from one that was noted before.
    fn report(&mut self, error: TextError) {
        let follows = error.is_secondary() && !self.errors.is_empty();
        if !follows && self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }

    fn unknown(&self, start: usize, name: &str) -> TextError {
        let error =
            TextError::meaning(start, self.cursor.pos(), format!("no value `%{name}` is defined before"));
        if self.lost.contains(&name) {
            return error.secondary();
        }
        let mut all: Vec<&str> = self.names.all().collect();
        all.sort_unstable();
        match nearest(name, all) {
            Some(near) => error.hint(format!("did you mean `%{near}`?")),
            None => error,
        }
    }

    /// `%x : int`
    #[inline]
    fn outcome(&mut self) -> Parsed<Outcome<'a>> {
        let start = self.cursor.pos() + 1;
        let name = self.value_name()?;
        let after = self.cursor.pos();
        self.cursor.skip_blanks();
        let ty = if self.cursor.eat(b':') {
            self.cursor.skip_blanks();
            self.type_index()?
        } else {
            self.cursor.set_pos(after);
            u32::MAX
        };
        Ok(Outcome { start, name, ty })
    }

    /// Reads a type and interns it. Types that are one word are looked up by their text.
    #[inline]
    fn type_index(&mut self) -> Parsed<u32> {
        let start = self.cursor.pos();
        let word = self.cursor.dotted_name();
        let is_whole = match self.cursor.peek() {
            b',' | b')' => !word.is_empty(),
            // A suffix may follow the blank.
            b' ' => self.cursor.peek_at(1) == b'=' && !word.is_empty(),
            _ => false,
        };
        if is_whole && let Some((_, ty)) = self.types.iter().find(|(w, _)| *w == word) {
            return Ok(*ty);
        }
        self.cursor.set_pos(start);
        let ty = read_type(&mut self.cursor)?;
        let index = self.graph.intern_type(super::type_parse::program_type(&ty));
        if is_whole && self.types.len() < 32 {
            self.types.push((word, index));
        }
        Ok(index)
    }

    /// Makes the op's results and gives them their names.
    fn results(&mut self, op: OpId) {
        if self.outcomes.is_empty() {
            return;
        }
        let outcomes = std::mem::take(&mut self.outcomes);
        let types: SmallVec<[u32; 4]> = (outcomes.iter().enumerate())
            .map(|(n, outcome)| if outcome.ty == u32::MAX { self.omitted_type(op, n) } else { outcome.ty })
            .collect();
        let values = self.graph.set_new_results(op, &types);
        let keep = self.options.naming != Naming::Torch;
        for (outcome, value) in outcomes.iter().zip(values) {
            self.define(outcome, value, keep);
        }
        self.outcomes = outcomes;
    }

    fn omitted_type(&mut self, op: OpId, n: usize) -> u32 {
        let known = self.options.result_types.and_then(|types| types(&self.graph, op, n));
        self.graph.intern_type(known.unwrap_or_else(Type::tensor))
    }

    /// Lets a name of the text mean a value, and gives the value that name if it is to be kept.
    #[inline]
    fn define(&mut self, outcome: &Outcome<'a>, value: ValueId, keep: bool) {
        let taken = self.names.insert(outcome.start, outcome.name, value);
        if !keep {
            return;
        }
        match plain_number(outcome.name) {
            Some(number) if !taken && number < u32::MAX / 2 => self.graph.set_number(value, number),
            None if !taken && is_torch_name(outcome.name) => self.graph.set_name(value, outcome.name),
            _ => self.renames.push((value, outcome.name)),
        }
    }

    /// Names the values whose names were taken, so that no two values have one name.
    fn rename(&mut self) {
        for (value, name) in std::mem::take(&mut self.renames) {
            if is_torch_name(name) {
                self.graph.set_unique_name(value, name);
            } else {
                self.graph.clear_name(value);
            }
        }
    }
}

/// Whether PyTorch's parser keeps a name: it would not be taken for a number.
fn is_torch_name(name: &str) -> bool {
    !name.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a kind may stand for a subgraph that follows: `prim::FusionGroup_0`.
fn is_group(kind: &str) -> bool {
    let digits = kind.bytes().rev().take_while(u8::is_ascii_digit).count();
    digits > 0 && kind[..kind.len() - digits].ends_with('_')
}

/// Gives an op its subgraph and takes the number off its kind.
fn attach_subgraph(graph: &mut Graph, op: OpId, subgraph: Graph) {
    let kind = graph.kind(op).as_str();
    if let Some((base, _)) = kind.rsplit_once('_') {
        graph.set_kind(op, Symbol::new(base));
    }
    graph.set_attr(op, "Subgraph", Attr::Graph(Arc::new(subgraph)));
}
