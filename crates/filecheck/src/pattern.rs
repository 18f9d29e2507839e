//! One pattern: what follows a directive's colon, and where it matches.

use super::directive::Kind;
use super::numeric::{BlockParser, Expr, NoValue, variable_name};
use super::regex::{self, Regex};
use super::slice::Slice;
use super::source::{Complaint, Span};
use super::variables::{Format, Variables};
use super::{Options, search};
use std::collections::BTreeMap;

/// Why reading a check file stops.
#[derive(Debug)]
pub enum Stop {
    /// A message of the reader itself: exit status 2.
    Plain(Complaint),
    /// Messages of a nested parser, which end with an empty line: exit status 2.
    Nested(Vec<Complaint>),
    /// A stray `]`: exit status 1.
    Bracket(Complaint),
}

/// A value that is put into the expression when the pattern is matched.
#[derive(Debug)]
struct Substitution {
    /// Its text in the check file.
    place: Span,
    text: String,
    /// Where in the expression it goes.
    index: usize,
    value: Value,
}

#[derive(Debug)]
enum Value {
    String,
    Number(Expr, Format),
}

/// A parsed pattern.
#[derive(Debug)]
pub struct Pattern {
    /// The directive it belongs to.
    pub kind: Kind,
    /// Where it stands.
    pub place: Span,
    /// How often it must match.
    pub count: usize,
    /// Whether its text is taken as it is.
    pub literal: bool,
    line: Option<usize>,
    ignore_case: bool,
    /// Literal text; if empty the pattern is an expression.
    fixed: Vec<u8>,
    expression: Vec<u8>,
    substitutions: Vec<Substitution>,
    /// String variables it defines, with their group.
    strings: BTreeMap<String, usize>,
    /// Numeric variables it defines, with their index and group.
    numbers: BTreeMap<String, (usize, usize)>,
    /// The compiled expression, where no value must be put in.
    compiled: Option<Regex>,
}

/// Where a pattern was found, in bytes of the text that was searched.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Start.
    pub at: usize,
    /// Length.
    pub len: usize,
}

/// Why a pattern was not found.
#[derive(Debug)]
pub enum Miss {
    /// It does not occur.
    NotFound,
    /// A value could not be put in.
    Invalid(Vec<Complaint>),
}

impl Pattern {
    fn empty(kind: Kind, place: Span, line: Option<usize>, ignore_case: bool) -> Self {
        Pattern {
            kind,
            place,
            count: 1,
            literal: false,
            line,
            ignore_case,
            fixed: Vec::new(),
            expression: Vec::new(),
            substitutions: Vec::new(),
            strings: BTreeMap::new(),
            numbers: BTreeMap::new(),
            compiled: None,
        }
    }

    /// The pattern that matches the end of the input.
    pub fn end_of_input(place: Span) -> Self {
        Pattern::empty(Kind::EndOfInput, place, None, false)
    }

    /// Whether it defines a variable or uses one.
    pub fn has_variable(&self) -> bool {
        !self.substitutions.is_empty() || !self.strings.is_empty() || !self.numbers.is_empty()
    }

    /// Whether a `LABEL` may not have it: it uses a variable, or defines one that holds text. Definitions of numeric
    /// variables are let through, as in LLVM.
    pub fn bars_label(&self) -> bool {
        !self.substitutions.is_empty() || !self.strings.is_empty()
    }

    /// The directive's name with this prefix.
    pub fn description(&self, prefix: &str) -> String {
        let suffix = match self.kind {
            Kind::EndOfInput => return "implicit EOF".into(),
            Kind::Plain if self.count > 1 => "-COUNT",
            kind => kind.suffix(),
        };
        let modifier = if self.literal { "{LITERAL}" } else { "" };
        format!("{prefix}{suffix}{modifier}")
    }

    /// What is compared with the input to find a near miss.
    pub fn example(&self) -> &[u8] {
        if self.fixed.is_empty() { &self.expression } else { &self.fixed }
    }

    /// Looks for the pattern in `text`, which stands at `place`, and sets the variables it defines.
    pub fn find(&self, text: &[u8], place: Span, variables: &mut Variables) -> Result<Found, Miss> {
        if self.kind == Kind::EndOfInput {
            return Ok(Found { at: text.len(), len: 0 });
        }
        if !self.fixed.is_empty() {
            let at = if self.ignore_case {
                search::find_ignoring_case(text, &self.fixed)
            } else {
                search::find(text, &self.fixed)
            };
            return at.map(|at| Found { at, len: self.fixed.len() }).ok_or(Miss::NotFound);
        }
        let filled;
        let regex = match &self.compiled {
            Some(regex) => regex,
            None => {
                let expression = self.fill_in(variables)?;
                filled = Regex::new(&expression, self.ignore_case, true).map_err(|_| Miss::NotFound)?;
                &filled
            }
        };
        let captures = !self.strings.is_empty() || !self.numbers.is_empty();
        let groups = regex.search(text, captures).ok_or(Miss::NotFound)?;
        let group = |number: &usize| groups.get(*number).copied().flatten();
        for (name, number) in &self.strings {
            let (start, end) = group(number).unwrap_or_default();
            let value = text.get(start..end).unwrap_or_default().to_vec();
            variables.strings.insert(name.clone(), (value, Some(place.part(start, end))));
        }
        for (index, number) in self.numbers.values() {
            let (start, end) = group(number).unwrap_or_default();
            let digits = text.get(start..end).unwrap_or_default();
            let format = variables.numerics.get(*index).map(|numeric| numeric.format);
            let value = format.and_then(|format| format.read(digits));
            variables.set_numeric(*index, value.map(|value| (value, Some(place.part(start, end)))));
        }
        let (start, end) = group(&0).unwrap_or_default();
        // The line feed in front of an empty line belongs to the expression, not to the match.
        let skip = usize::from(self.kind == Kind::Empty);
        Ok(Found { at: start + skip, len: (end - start).saturating_sub(skip) })
    }

    /// The expression with all values put in.
    fn fill_in(&self, variables: &mut Variables) -> Result<Vec<u8>, Miss> {
        if let (Some(line), Some(index)) = (self.line, variables.line) {
            variables.set_numeric(index, Some((line.into(), None)));
        }
        let mut out = Vec::new();
        let mut done = 0;
        let mut complaints = Vec::new();
        for substitution in &self.substitutions {
            out.extend_from_slice(self.expression.get(done..substitution.index).unwrap_or_default());
            done = substitution.index;
            match substitution.value(variables) {
                Ok(value) => regex::escape(&value, &mut out),
                Err(reasons) => complaints.extend(reasons.into_iter().map(|reason| match reason {
                    NoValue::Undefined(place, name) => {
                        Complaint::new(place, format!("undefined variable: {name}"))
                    }
                    NoValue::Overflow => Complaint::new(
                        substitution.place,
                        "unable to substitute variable or numeric expression: overflow error",
                    ),
                })),
            }
        }
        out.extend_from_slice(self.expression.get(done..).unwrap_or_default());
        if complaints.is_empty() { Ok(out) } else { Err(Miss::Invalid(complaints)) }
    }

    /// For each value put in: its text in the check file, and the value, both escaped.
    pub fn values(&self, variables: &Variables) -> Vec<String> {
        let known = self.substitutions.iter().filter_map(|s| Some((s, s.value(variables).ok()?)));
        known
            .map(|(substitution, value)| {
                let name = search::escaped(substitution.text.as_bytes());
                // A backslash alone is shown as it is.
                let odd = value.iter().any(|byte| *byte == b'"' || !(b' '..=b'~').contains(byte));
                let shown =
                    if odd { search::escaped(&value) } else { String::from_utf8_lossy(&value).into_owned() };
                let remark = if odd { " (escaped value)" } else { "" };
                format!("with \"{name}\" equal to \"{shown}\"{remark}")
            })
            .collect()
    }

    /// The variables it defined at its last match, with the input text of each, in order of that text.
    pub fn captures(&self, variables: &Variables) -> Vec<(String, Span)> {
        let strings =
            self.strings.keys().filter_map(|name| Some((name.clone(), variables.strings.get(name)?.1?)));
        let numbers = self.numbers.iter().filter_map(|(name, (index, _))| {
            Some((name.clone(), variables.numerics.get(*index)?.value.as_ref()?.1?))
        });
        let mut all: Vec<(String, Span)> = strings.chain(numbers).collect();
        all.sort_by_key(|(_, span)| span.start);
        all
    }
}

impl Substitution {
    fn value(&self, variables: &Variables) -> Result<Vec<u8>, Vec<NoValue>> {
        match &self.value {
            Value::String => match variables.strings.get(&self.text) {
                Some((value, _)) => Ok(value.clone()),
                None => Err(vec![NoValue::Undefined(self.place, self.text.clone())]),
            },
            Value::Number(expression, format) => {
                let number = expression.value(variables)?;
                format.write(&number).map(String::into_bytes).ok_or_else(|| vec![NoValue::Overflow])
            }
        }
    }
}

/// Reads the patterns of one run.
pub struct PatternParser<'a> {
    /// The options of the run.
    pub options: &'a Options,
    /// Where variables are defined.
    pub variables: &'a mut Variables,
}

impl PatternParser<'_> {
    /// Reads the text after a directive with this prefix; `line` is where it stands in the check file.
    pub fn parse(
        &mut self,
        kind: Kind,
        literal: bool,
        text: Slice<'_>,
        prefix: &str,
        line: Option<usize>,
    ) -> Result<Pattern, Stop> {
        let options = self.options;
        let mut pattern = Pattern::empty(kind, text.span(), line, options.ignore_case);
        pattern.literal = literal;
        let exact = options.strict_whitespace && options.match_full_lines;
        let text = if exact { text } else { text.trim_end() };
        if text.is_empty() && kind != Kind::Empty {
            let message = format!("found empty check string with prefix '{prefix}:'");
            return Err(Stop::Plain(Complaint::new(pattern.place, message)));
        }
        if !text.is_empty() && kind == Kind::Empty {
            let message = format!("found non-empty check string for empty check with prefix '{prefix}:'");
            return Err(Stop::Plain(Complaint::new(pattern.place, message)));
        }
        let whole_line = options.match_full_lines && kind != Kind::Not;
        if kind == Kind::Empty {
            pattern.expression = b"(\n$)".to_vec();
        } else if literal || (!whole_line && !has_blocks(text)) {
            pattern.fixed = text.bytes().to_vec();
            return Ok(pattern);
        } else {
            let blanks: &[u8] = if options.strict_whitespace { b"" } else { b" *" };
            if whole_line {
                pattern.expression.push(b'^');
                pattern.expression.extend_from_slice(blanks);
            }
            Body { parser: self, pattern: &mut pattern, next_group: 1 }.parse(text)?;
            if whole_line {
                pattern.expression.extend_from_slice(blanks);
                pattern.expression.push(b'$');
            }
        }
        if pattern.substitutions.is_empty() {
            pattern.compiled = Regex::new(&pattern.expression, pattern.ignore_case, true).ok();
        }
        Ok(pattern)
    }
}

fn has_blocks(text: Slice<'_>) -> bool {
    text.find_word("{{", 0).is_some() || text.find_word("[[", 0).is_some()
}

/// The reader of a pattern with blocks.
struct Body<'a, 'b> {
    parser: &'a mut PatternParser<'b>,
    pattern: &'a mut Pattern,
    next_group: usize,
}

impl Body<'_, '_> {
    fn parse(&mut self, mut text: Slice<'_>) -> Result<(), Stop> {
        while !text.is_empty() {
            text = if text.starts_with("{{") {
                self.expression(text)?
            } else if text.starts_with("[[") && !text.starts_with("[[[") {
                // Of a longer run of brackets the last two open the block.
                self.variable(text)?
            } else {
                let ends = [text.find_word("{{", 1), text.find_word("[[", 1)];
                let end = ends.into_iter().flatten().min().unwrap_or(text.len());
                regex::escape(text.take(end).bytes(), &mut self.pattern.expression);
                text.skip(end)
            };
        }
        Ok(())
    }

    /// `{{...}}`; gives what follows it.
    fn expression<'s>(&mut self, text: Slice<'s>) -> Result<Slice<'s>, Stop> {
        let Some(end) = text.find_word("}}", 0) else {
            let message = "found start of regex string with no end '}}'";
            return Err(Stop::Plain(Complaint::new(text.span(), message)));
        };
        let grouped = text.find(b'|').is_some();
        if grouped {
            self.pattern.expression.push(b'(');
            self.next_group += 1;
        }
        self.embed(text.take(end).skip(2))?;
        if grouped {
            self.pattern.expression.push(b')');
        }
        Ok(text.skip(end + 2))
    }

    /// Adds a user's expression as it is.
    fn embed(&mut self, text: Slice<'_>) -> Result<(), Stop> {
        match Regex::new(text.bytes(), false, false) {
            Ok(regex) => self.next_group += regex.groups(),
            Err(error) => {
                let message = format!("invalid regex: {}", error.0);
                return Err(Stop::Plain(Complaint::new(text.span(), message)));
            }
        }
        self.pattern.expression.extend_from_slice(text.bytes());
        Ok(())
    }

    /// `[[...]]`; gives what follows it.
    fn variable<'s>(&mut self, text: Slice<'s>) -> Result<Slice<'s>, Stop> {
        let inside = text.skip(2);
        let Some(end) = block_end(inside)? else {
            let message = "Invalid substitution block, no ]] found";
            return Err(Stop::Plain(Complaint::new(text.span(), message)));
        };
        let mut block = inside.take(end);
        if block.eat("#") {
            self.numeric(block, false)?;
        } else {
            self.string(block)?;
        }
        Ok(inside.skip(end + 2))
    }

    fn string(&mut self, block: Slice<'_>) -> Result<(), Stop> {
        let colon = block.find(b':');
        let head = block.take(colon.unwrap_or(block.len()));
        if let Some(blank) = head.bytes().iter().position(|b| matches!(b, b' ' | b'\t')) {
            return Err(Stop::Plain(Complaint::new(head.skip(blank).span(), "unexpected whitespace")));
        }
        let mut rest = block;
        let (name, pseudo) = variable_name(&mut rest).map_err(|complaint| Stop::Nested(vec![complaint]))?;
        let key = name.text();
        if colon.is_some() {
            if pseudo || !rest.eat(":") {
                let message = "invalid name in string variable definition";
                return Err(Stop::Plain(Complaint::new(name.span(), message)));
            }
            if self.parser.variables.numeric_names.contains_key(&key) {
                let message = format!("numeric variable with name '{key}' already exists");
                return Err(Stop::Plain(Complaint::new(name.span(), message)));
            }
            return self.define_string(key, rest);
        }
        if pseudo {
            return self.numeric(block, true);
        }
        if !rest.is_empty() {
            let message = "invalid name in string variable use";
            return Err(Stop::Plain(Complaint::new(name.span(), message)));
        }
        match self.pattern.strings.get(&key) {
            Some(group @ 1..=9) => {
                self.pattern.expression.extend_from_slice(format!("\\{group}").as_bytes());
            }
            Some(_) => {
                let message = "Can't back-reference more than 9 variables";
                return Err(Stop::Plain(Complaint::new(name.span(), message)));
            }
            None => {
                let index = self.pattern.expression.len();
                let place = name.span();
                self.substitute(Substitution { place, text: key, index, value: Value::String });
            }
        }
        Ok(())
    }

    fn define_string(&mut self, name: String, expression: Slice<'_>) -> Result<(), Stop> {
        self.pattern.expression.push(b'(');
        self.pattern.strings.insert(name.clone(), self.next_group);
        self.parser.variables.string_names.insert(name);
        self.next_group += 1;
        if !expression.is_empty() {
            self.embed(expression)?;
        }
        self.pattern.expression.push(b')');
        Ok(())
    }

    fn numeric(&mut self, text: Slice<'_>, legacy: bool) -> Result<(), Stop> {
        let line = self.pattern.line;
        let block =
            BlockParser::new(self.parser.variables, line).block(text, legacy).map_err(Stop::Nested)?;
        let mut index = self.pattern.expression.len();
        let defines = block.defines.is_some();
        if let Some((name, variable)) = block.defines {
            self.pattern.expression.push(b'(');
            index += 1;
            self.parser.variables.numeric_names.insert(name.clone(), variable);
            self.pattern.numbers.insert(name, (variable, self.next_group));
            self.next_group += 1;
        }
        match block.value {
            Some(expression) => {
                let value = Value::Number(expression, block.format);
                self.substitute(Substitution { place: text.span(), text: text.text(), index, value });
            }
            None => {
                let wildcard = block.format.wildcard();
                match Regex::new(wildcard.as_bytes(), false, false) {
                    Ok(regex) => self.next_group += regex.groups(),
                    Err(error) => {
                        let message = format!("invalid regex: {}", error.0);
                        return Err(Stop::Plain(Complaint::new(text.span(), message)));
                    }
                }
                self.pattern.expression.extend_from_slice(wildcard.as_bytes());
            }
        }
        if defines {
            self.pattern.expression.push(b')');
        }
        Ok(())
    }

    fn substitute(&mut self, substitution: Substitution) {
        self.pattern.substitutions.push(substitution);
    }
}

/// The offset of the `]]` that ends a block.
fn block_end(text: Slice<'_>) -> Result<Option<usize>, Stop> {
    let bytes = text.bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b']' if depth == 0 && bytes.get(at + 1) == Some(&b']') => return Ok(Some(at)),
            b'\\' => at += 1,
            b'[' => depth += 1,
            b']' if depth == 0 => {
                let message = "missing closing \"]\" for regex variable";
                return Err(Stop::Bracket(Complaint::new(text.skip(at).span(), message)));
            }
            b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    Ok(None)
}
