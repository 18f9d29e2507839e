//! Pieces of a line: names of values, numbers, and what follows an op: its scope and the place of its source.

use super::GraphParser;
use crate::ir::text::lexer::{Parsed, is_name_byte};
use crate::ir::text::number::plain_number;
use crate::ir::{Location, OpId, Place, Symbol};

impl<'a> GraphParser<'a, '_> {
    /// Bytes of what comes next of a value's name: a letter or digit, or what joins parts of a name. ONNX graphs have names
    /// like `%onnx::Conv_12` and `%/fc/Gemm_output_0`.
    #[inline]
    fn name_part(&self) -> usize {
        let next = |n: usize| self.cursor.peek_at(n);
        match self.cursor.peek() {
            b if is_name_byte(b) => 1,
            b'.' | b'/' if is_name_byte(next(1)) => 1,
            b':' if next(1) == b':' && is_name_byte(next(2)) => 2,
            _ => 0,
        }
    }

    /// `%x.1`; gives the name without `%`.
    #[inline]
    pub(super) fn value_name(&mut self) -> Parsed<&'a str> {
        if !self.cursor.eat(b'%') {
            return Err(self.cursor.expected("a value (`%name`)"));
        }
        let start = self.cursor.pos();
        while let length @ 1.. = self.name_part() {
            self.cursor.advance(length);
        }
        let name = self.cursor.slice(start, self.cursor.pos());
        if name.is_empty() { Err(self.cursor.expected("the value's name after `%`")) } else { Ok(name) }
    }

    /// `, scope: a.b # file.py:1:2`
    pub(super) fn trailer(&mut self, op: OpId) -> Parsed<()> {
        self.cursor.skip_blanks();
        let mut scope = None;
        if self.cursor.peek() == b',' {
            self.cursor.advance(1);
            self.cursor.skip_blanks();
            if !self.cursor.eat_str("scope:") {
                return Err(self.cursor.expected("`scope:`"));
            }
            self.cursor.skip_blanks();
            let start = self.cursor.pos();
            self.cursor.skip_line();
            let line = self.cursor.slice(start, self.cursor.pos());
            let end = line.find(" # ").unwrap_or(line.len());
            self.cursor.set_pos(start + end);
            scope = Some(line[..end].trim_end());
            self.cursor.skip_blanks();
        }
        let mut place = "";
        if self.cursor.peek() == b'#' {
            let start = self.cursor.pos() + 1;
            self.cursor.skip_line();
            place = self.cursor.slice(start, self.cursor.pos()).trim();
        }
        if (scope.is_some() || !place.is_empty()) && !self.options.drop_locations {
            self.locate(op, scope, place);
        }
        Ok(())
    }

    fn locate(&mut self, op: OpId, scope: Option<&'a str>, place: &'a str) {
        if scope.is_none() && place == self.last_location.0 {
            self.graph.set_location_id(op, self.last_location.1);
            return;
        }
        let place_at = self.place(place);
        if scope.is_none() && place_at == Place::Unknown {
            return;
        }
        let location = Location { place: place_at, scope: scope.map(Symbol::new), inlined_from: None };
        let id = self.graph.add_location(location);
        self.graph.set_location_id(op, id);
        if scope.is_none() {
            self.last_location = (place, id);
        }
    }

    /// `file.py:1:2`; anything else is a comment.
    fn place(&mut self, text: &'a str) -> Place {
        let parts = text.rsplit_once(':').and_then(|(rest, column)| {
            let (file, line) = rest.rsplit_once(':')?;
            Some((file, plain_number(line)?, plain_number(column)?))
        });
        let Some((file, line, column)) = parts else { return Place::Unknown };
        if self.last_file.0 != file {
            self.last_file = (file, Symbol::new(file));
        }
        Place::File { file: self.last_file.1, line, column }
    }
}
