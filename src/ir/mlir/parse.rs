//! Reading MLIR's generic form into a tree of ops, whatever they are called. What the tree means is `build.rs`.
//!
//! The tree lives as long as the reading: its lists stand in one arena, which is given back at once.

use super::super::Type;
use super::attributes::{Dictionary, read_dictionary, skip};
use super::strings::read_string;
use super::types::{read_type, word};
use crate::ir::text::lexer::{Cursor, Parsed, TextError};
use bumpalo::Bump;
use bumpalo::collections::Vec;
use hashbrown::HashMap;

/// An op with its regions.
pub(super) struct Op<'a, 'b> {
    /// Where it starts.
    pub(super) start: usize,
    /// Names of results, each with how many of them it names.
    pub(super) results: Vec<'b, (&'a str, usize)>,
    pub(super) name: String,
    /// Names of operands, each with which of several.
    pub(super) operands: Vec<'b, Use<'a>>,
    pub(super) regions: Vec<'b, Region<'a, 'b>>,
    pub(super) attributes: Dictionary<'a>,
    pub(super) operand_types: Vec<'b, Type>,
    pub(super) result_types: Vec<'b, Type>,
    pub(super) location: Place<'a>,
}

/// A use of a value.
pub(super) struct Use<'a> {
    pub(super) start: usize,
    pub(super) name: &'a str,
    pub(super) index: usize,
}

/// A region of one block.
pub(super) struct Region<'a, 'b> {
    pub(super) start: usize,
    pub(super) params: Vec<'b, (&'a str, Type)>,
    pub(super) ops: Vec<'b, Op<'a, 'b>>,
}

/// Where an op comes from.
pub(super) enum Place<'a> {
    Unknown,
    /// `loc(#loc3)`
    Alias(&'a str),
    /// `loc("file":1:2)`
    File(String, u32, u32),
    /// `loc("scope"(...))`
    Scope(String, Box<Place<'a>>),
}

/// A text read: its ops and the locations that have names.
pub(super) struct Text<'a, 'b> {
    pub(super) ops: Vec<'b, Op<'a, 'b>>,
    pub(super) locations: HashMap<&'a str, Place<'a>>,
}

/// Reads a whole text.
pub(super) fn read<'a, 'b>(text: &'a str, arena: &'b Bump) -> Parsed<Text<'a, 'b>> {
    let mut reader = Reader { cursor: Cursor::new(text), locations: HashMap::new(), arena };
    let ops = reader.ops(None)?;
    Ok(Text { ops, locations: reader.locations })
}

struct Reader<'a, 'b> {
    cursor: Cursor<'a>,
    locations: HashMap<&'a str, Place<'a>>,
    arena: &'b Bump,
}

impl<'a, 'b> Reader<'a, 'b> {
    /// Ops up to the end of the text or, inside of something, up to its bracket.
    fn ops(&mut self, end: Option<u8>) -> Parsed<Vec<'b, Op<'a, 'b>>> {
        let mut ops = Vec::new_in(self.arena);
        loop {
            skip(&mut self.cursor);
            match end {
                None if self.cursor.at_end() => return Ok(ops),
                Some(end) if self.cursor.eat(end) => return Ok(ops),
                _ => {}
            }
            match self.cursor.peek() {
                b'#' => self.alias()?,
                b'"' | b'%' => {
                    let op = self.op()?;
                    // A module only holds what it holds.
                    if op.name == "builtin.module" {
                        ops.extend(op.regions.into_iter().flat_map(|region| region.ops));
                    } else {
                        ops.push(op);
                    }
                }
                _ => ops.extend(self.module()?),
            }
        }
    }

    /// `module @name attributes {...} { ... }`, as MLIR and xDSL print it.
    fn module(&mut self) -> Parsed<Vec<'b, Op<'a, 'b>>> {
        if !self.cursor.eat_str("builtin.module") && !self.cursor.eat_str("module") {
            let hint = "ops are read in the generic form: print them with `mlir-opt --mlir-print-op-generic`";
            return Err(self.cursor.expected("an op in quotes, `%value =`, `module` or `#alias`").hint(hint));
        }
        skip(&mut self.cursor);
        if self.cursor.eat(b'@') {
            word(&mut self.cursor);
            skip(&mut self.cursor);
        }
        if self.cursor.eat_str("attributes") {
            skip(&mut self.cursor);
            read_dictionary(&mut self.cursor)?;
            skip(&mut self.cursor);
        }
        self.cursor.enter()?;
        self.cursor.expect(b'{')?;
        let ops = self.ops(Some(b'}'))?;
        self.cursor.leave();
        self.location()?;
        Ok(ops)
    }

    /// `#loc3 = loc(...)`
    fn alias(&mut self) -> Parsed<()> {
        let start = self.cursor.pos();
        self.cursor.advance(1);
        let name = word(&mut self.cursor);
        skip(&mut self.cursor);
        self.cursor.expect(b'=')?;
        skip(&mut self.cursor);
        if !self.cursor.looking_at("loc(") {
            let error = TextError::meaning(
                start,
                self.cursor.pos(),
                format!("`#{name}` is an attribute's other name"),
            );
            return Err(
                error.hint("other names are read for locations only: write the attribute where it is used")
            );
        }
        let place = self.location()?;
        self.locations.insert(name, place);
        Ok(())
    }

    fn op(&mut self) -> Parsed<Op<'a, 'b>> {
        let start = self.cursor.pos();
        let results = self.results()?;
        let name = read_string(&mut self.cursor)?;
        let operands = self.operands()?;
        skip(&mut self.cursor);
        if self.cursor.peek() == b'[' {
            return Err(TextError::meaning(
                self.cursor.pos(),
                self.cursor.pos() + 1,
                "successors are not supported",
            )
            .hint("graphs have nested blocks, no jumps between them"));
        }
        let mut attributes = std::vec::Vec::new();
        if self.cursor.eat(b'<') {
            attributes = read_dictionary(&mut self.cursor)?;
            self.cursor.expect(b'>')?;
            skip(&mut self.cursor);
        }
        let mut regions = Vec::new_in(self.arena);
        if self.cursor.eat(b'(') {
            loop {
                skip(&mut self.cursor);
                regions.push(self.region()?);
                skip(&mut self.cursor);
                if self.cursor.eat(b')') {
                    break;
                }
                self.cursor.expect(b',')?;
            }
            skip(&mut self.cursor);
        }
        if self.cursor.peek() == b'{' {
            attributes.extend(read_dictionary(&mut self.cursor)?);
            skip(&mut self.cursor);
        }
        self.cursor.expect(b':')?;
        skip(&mut self.cursor);
        let operand_types = self.types()?;
        skip(&mut self.cursor);
        if !self.cursor.eat_str("->") {
            return Err(self.cursor.expected("`->`"));
        }
        skip(&mut self.cursor);
        let result_types = match self.cursor.peek() {
            b'(' => self.types()?,
            _ => {
                let ty = read_type(&mut self.cursor)?;
                Vec::from_iter_in([ty], self.arena)
            }
        };
        let location = self.location()?;
        Ok(Op { start, results, name, operands, regions, attributes, operand_types, result_types, location })
    }

    /// `%a, %b:2 = `, or nothing.
    fn results(&mut self) -> Parsed<Vec<'b, (&'a str, usize)>> {
        let mut results = Vec::new_in(self.arena);
        while self.cursor.peek() == b'%' {
            let name = self.value_name()?;
            let start = self.cursor.pos();
            let count = match self.cursor.eat(b':') {
                false => 1,
                true => self
                    .cursor
                    .digits()
                    .parse()
                    .map_err(|_| TextError::new(start, start + 1, "a count is expected"))?,
            };
            results.push((name, count));
            skip(&mut self.cursor);
            if !self.cursor.eat(b',') {
                self.cursor.expect(b'=')?;
            }
            skip(&mut self.cursor);
        }
        Ok(results)
    }

    /// `(%a, %b#1)`
    fn operands(&mut self) -> Parsed<Vec<'b, Use<'a>>> {
        self.cursor.expect(b'(')?;
        let mut operands = Vec::new_in(self.arena);
        loop {
            skip(&mut self.cursor);
            if self.cursor.eat(b')') {
                return Ok(operands);
            }
            let start = self.cursor.pos();
            let name = self.value_name()?;
            let index = match self.cursor.eat(b'#') {
                true => self.cursor.digits().parse().unwrap_or(usize::MAX),
                false => 0,
            };
            operands.push(Use { start, name, index });
            skip(&mut self.cursor);
            if !self.cursor.eat(b',') && self.cursor.peek() != b')' {
                return Err(self.cursor.expected("`,` or `)`"));
            }
        }
    }

    fn value_name(&mut self) -> Parsed<&'a str> {
        self.cursor.expect(b'%')?;
        let start = self.cursor.pos();
        while self.cursor.peek().is_ascii_alphanumeric()
            || matches!(self.cursor.peek(), b'$' | b'.' | b'_' | b'-')
        {
            self.cursor.advance(1);
        }
        match self.cursor.slice(start, self.cursor.pos()) {
            "" => Err(self.cursor.expected("the name of a value")),
            name => Ok(name),
        }
    }

    fn types(&mut self) -> Parsed<Vec<'b, Type>> {
        self.cursor.expect(b'(')?;
        let mut types = Vec::new_in(self.arena);
        loop {
            skip(&mut self.cursor);
            if self.cursor.eat(b')') {
                return Ok(types);
            }
            types.push(read_type(&mut self.cursor)?);
            skip(&mut self.cursor);
            if !self.cursor.eat(b',') && self.cursor.peek() != b')' {
                return Err(self.cursor.expected("`,` or `)`"));
            }
        }
    }

    /// `{ ^bb0(%a: i64): ... }`
    fn region(&mut self) -> Parsed<Region<'a, 'b>> {
        let start = self.cursor.pos();
        self.cursor.enter()?;
        self.cursor.expect(b'{')?;
        skip(&mut self.cursor);
        let mut params = Vec::new_in(self.arena);
        if self.cursor.eat(b'^') {
            word(&mut self.cursor);
            skip(&mut self.cursor);
            if self.cursor.eat(b'(') {
                params = self.params()?;
                skip(&mut self.cursor);
            }
            self.cursor.expect(b':')?;
        }
        let ops = self.block()?;
        self.cursor.leave();
        Ok(Region { start, params, ops })
    }

    /// The ops of a region's only block, up to its bracket.
    fn block(&mut self) -> Parsed<Vec<'b, Op<'a, 'b>>> {
        let mut ops = Vec::new_in(self.arena);
        loop {
            skip(&mut self.cursor);
            if self.cursor.eat(b'}') {
                return Ok(ops);
            }
            match self.cursor.peek() {
                b'"' | b'%' => ops.push(self.op()?),
                b'^' => {
                    let at = self.cursor.pos();
                    let error = TextError::meaning(
                        at,
                        at + 1,
                        "a region has one block, and a second one begins here",
                    );
                    return Err(error.hint("graphs have nested blocks, no jumps between them"));
                }
                b'm' | b'b' => ops.extend(self.module()?),
                _ => return Err(self.cursor.expected("an op in quotes, `%value =` or `}`")),
            }
        }
    }

    /// `%a: i64, %b: f64)`
    fn params(&mut self) -> Parsed<Vec<'b, (&'a str, Type)>> {
        let mut params = Vec::new_in(self.arena);
        loop {
            skip(&mut self.cursor);
            if self.cursor.eat(b')') {
                return Ok(params);
            }
            let name = self.value_name()?;
            skip(&mut self.cursor);
            self.cursor.expect(b':')?;
            skip(&mut self.cursor);
            params.push((name, read_type(&mut self.cursor)?));
            self.location()?;
            skip(&mut self.cursor);
            if !self.cursor.eat(b',') && self.cursor.peek() != b')' {
                return Err(self.cursor.expected("`,` or `)`"));
            }
        }
    }

    /// ` loc(...)`, or nothing.
    fn location(&mut self) -> Parsed<Place<'a>> {
        skip(&mut self.cursor);
        if !self.cursor.eat_str("loc(") {
            return Ok(Place::Unknown);
        }
        let place = self.place()?;
        skip(&mut self.cursor);
        self.cursor.expect(b')')?;
        Ok(place)
    }

    fn place(&mut self) -> Parsed<Place<'a>> {
        self.cursor.enter()?;
        skip(&mut self.cursor);
        let place = match self.cursor.peek() {
            b'#' => {
                self.cursor.advance(1);
                Place::Alias(word(&mut self.cursor))
            }
            b'"' => {
                let text = read_string(&mut self.cursor)?;
                self.behind_name(text)?
            }
            _ if self.cursor.eat_str("unknown") => Place::Unknown,
            _ => {
                let hint = "fused locations and those of calls are not read: print without debug information";
                return Err(self
                    .cursor
                    .expected("a location: \"file\":1:2, \"name\"(...), #alias or unknown")
                    .hint(hint));
            }
        };
        self.cursor.leave();
        Ok(place)
    }

    /// What makes a place of a file or of a scope of a name.
    fn behind_name(&mut self, text: String) -> Parsed<Place<'a>> {
        skip(&mut self.cursor);
        if self.cursor.eat(b'(') {
            let inner = self.place()?;
            skip(&mut self.cursor);
            self.cursor.expect(b')')?;
            return Ok(Place::Scope(text, Box::new(inner)));
        }
        if !self.cursor.eat(b':') {
            return Ok(Place::Scope(text, Box::new(Place::Unknown)));
        }
        let start = self.cursor.pos();
        let number = |digits: &str| {
            digits.parse().map_err(|_| TextError::new(start, start + 1, "a line and a column are expected"))
        };
        let line = number(self.cursor.digits())?;
        self.cursor.expect(b':')?;
        let column = number(self.cursor.digits())?;
        Ok(Place::File(text, line, column))
    }
}
