//! Numeric blocks `[[#%fmt,NAME: == expr]]`: their grammar, and what an expression is worth.

use super::number::Number;
use super::slice::Slice;
use super::source::{Complaint, Span};
use super::variables::{Format, Radix, Variables};

/// Deepest nesting of parentheses and calls.
const MAX_DEPTH: usize = 200;
/// Most operators in one block; they nest to the left.
const MAX_OPERATORS: usize = 1000;

type Parsed<T> = Result<T, Complaint>;

/// What stands between `[[#` and `]]`.
#[derive(Debug)]
pub struct Block {
    /// The form of the number.
    pub format: Format,
    /// What it must be equal to, if anything.
    pub value: Option<Expr>,
    /// The variable it defines: name and index.
    pub defines: Option<(String, usize)>,
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// Its text.
    text: String,
    place: Span,
    kind: ExprKind,
}

#[derive(Debug)]
enum ExprKind {
    Literal(Option<Number>),
    Variable(usize),
    Binary(Operator, Box<Expr>, Box<Expr>),
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

/// Why an expression has no value.
#[derive(Clone, Debug)]
pub enum NoValue {
    /// This variable is not set.
    Undefined(Span, String),
    /// A result that cannot be written, or a division by zero.
    Overflow,
}

impl Expr {
    /// The value, or all reasons against it from left to right.
    pub fn value(&self, variables: &Variables) -> Result<Number, Vec<NoValue>> {
        match &self.kind {
            ExprKind::Literal(number) => number.clone().ok_or_else(|| vec![NoValue::Overflow]),
            ExprKind::Variable(index) => {
                match variables.numerics.get(*index).and_then(|n| n.value.as_ref()) {
                    Some((number, _)) => Ok(number.clone()),
                    None => Err(vec![NoValue::Undefined(self.place, self.text.clone())]),
                }
            }
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = match (left.value(variables), right.value(variables)) {
                    (Ok(left), Ok(right)) => (left, right),
                    (left, right) => {
                        return Err([left.err(), right.err()].into_iter().flatten().flatten().collect());
                    }
                };
                let result = match operator {
                    Operator::Add => left.add(&right),
                    Operator::Sub => left.sub(&right),
                    Operator::Mul => left.mul(&right),
                    Operator::Div => left.div(&right),
                    Operator::Min => Some(left.min(right)),
                    Operator::Max => Some(left.max(right)),
                };
                result.ok_or_else(|| vec![NoValue::Overflow])
            }
        }
    }

    /// The form that follows from the variables in it, if they agree.
    fn format(&self, variables: &Variables) -> Result<Option<Format>, Vec<Complaint>> {
        match &self.kind {
            ExprKind::Literal(_) => Ok(None),
            ExprKind::Variable(index) => Ok(variables.numerics.get(*index).map(|numeric| numeric.format)),
            ExprKind::Binary(_, left, right) => {
                let (left_format, right_format) = match (left.format(variables), right.format(variables)) {
                    (Ok(left), Ok(right)) => (left, right),
                    (left, right) => {
                        return Err([left.err(), right.err()].into_iter().flatten().flatten().collect());
                    }
                };
                match (left_format, right_format) {
                    (Some(a), Some(b)) if a != b => Err(vec![Complaint::new(
                        self.place,
                        format!(
                            "implicit format conflict between '{}' ({}) and '{}' ({}), need an explicit format specifier",
                            left.text,
                            a.name(),
                            right.text,
                            b.name()
                        ),
                    )]),
                    (a, b) => Ok(a.or(b)),
                }
            }
        }
    }
}

/// A name, and whether it is a pseudo variable (`@LINE`). Takes it off the front.
pub fn variable_name<'s>(text: &mut Slice<'s>) -> Parsed<(Slice<'s>, bool)> {
    let pseudo = text.first() == Some(b'@');
    let mark = usize::from(pseudo || text.first() == Some(b'$'));
    let Some(start) = text.skip(mark).first() else {
        let kind = match text.first() {
            None => "",
            Some(b'@') => "pseudo ",
            Some(_) => "global ",
        };
        return Err(Complaint::new(text.skip(mark).span(), format!("empty {kind}variable name")));
    };
    if !start.is_ascii_alphabetic() && start != b'_' {
        return Err(Complaint::new(text.span(), "invalid variable name"));
    }
    let letters =
        text.skip(mark).bytes().iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let name = text.take(mark + letters);
    *text = text.skip(mark + letters);
    Ok((name, pseudo))
}

/// Which operands may stand at a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Any,
    /// The `@LINE` of the old `[[@LINE+1]]`.
    LineVariable,
    /// The decimal number of the old form.
    Decimal,
}

/// Reads numeric blocks.
pub struct BlockParser<'a> {
    /// Where variables are looked up and defined.
    pub variables: &'a mut Variables,
    /// The line of the directive, none on the command line.
    pub line: Option<usize>,
    depth: usize,
    operators: usize,
}

impl<'a> BlockParser<'a> {
    /// A parser for blocks in one directive.
    pub fn new(variables: &'a mut Variables, line: Option<usize>) -> Self {
        BlockParser { variables, line, depth: 0, operators: 0 }
    }

    /// Reads a block; `legacy` for `[[@LINE+1]]`.
    pub fn block(&mut self, mut text: Slice<'_>, legacy: bool) -> Result<Block, Vec<Complaint>> {
        let (explicit, precision) = conversion(&mut text).map_err(|complaint| vec![complaint])?;
        let definition = text.find(b':').map(|colon| {
            let definition = text.take(colon);
            text = text.skip(colon + 1);
            definition
        });
        text = text.trim_start();
        let constrained = text.eat("==");
        text = text.trim_start();
        let value = if !text.is_empty() {
            Some(self.expression(text.trim_end(), legacy, constrained).map_err(|complaint| vec![complaint])?)
        } else if constrained {
            let message = "empty numeric expression should not have a constraint";
            return Err(vec![Complaint::new(text.span(), message)]);
        } else {
            None
        };
        let implicit = match &value {
            Some(value) if explicit.is_none() => value.format(self.variables)?,
            _ => None,
        };
        let format = explicit.or(implicit).unwrap_or(Format { precision, ..Format::UNSIGNED });
        let defines = match definition {
            Some(definition) => {
                Some(self.definition(definition.trim_start(), format).map_err(|complaint| vec![complaint])?)
            }
            None => None,
        };
        Ok(Block { format, value, defines })
    }

    fn definition(&mut self, mut text: Slice<'_>, format: Format) -> Parsed<(String, usize)> {
        let (name, pseudo) = variable_name(&mut text)?;
        if pseudo {
            return Err(Complaint::new(name.span(), "definition of pseudo numeric variable unsupported"));
        }
        let key = name.text();
        if self.variables.string_names.contains(&key) {
            let message = format!("string variable with name '{key}' already exists");
            return Err(Complaint::new(name.span(), message));
        }
        text = text.trim_start();
        if !text.is_empty() {
            return Err(Complaint::new(text.span(), "unexpected characters after numeric variable name"));
        }
        match self.variables.numeric_names.get(&key) {
            Some(index) => {
                if self.variables.numerics.get(*index).is_some_and(|known| known.format != format) {
                    let message = "format different from previous variable definition";
                    return Err(Complaint::new(text.span(), message));
                }
                Ok((key, *index))
            }
            None => {
                let index = self.variables.add_numeric(format, self.line);
                Ok((key, index))
            }
        }
    }

    fn expression(&mut self, whole: Slice<'_>, legacy: bool, constrained: bool) -> Parsed<Expr> {
        let mut rest = whole;
        let first = if legacy { Allowed::LineVariable } else { Allowed::Any };
        let mut value = self.operand(&mut rest, first, !constrained)?;
        while !rest.is_empty() {
            value = self.binary(whole, &mut rest, value, legacy)?;
            if legacy && !rest.is_empty() {
                let message = format!("unexpected characters at end of expression '{}'", rest.text());
                return Err(Complaint::new(rest.span(), message));
            }
        }
        Ok(value)
    }

    /// An operator and its right operand after `left`; `whole` starts where the result's text starts.
    fn binary(&mut self, whole: Slice<'_>, rest: &mut Slice<'_>, left: Expr, legacy: bool) -> Parsed<Expr> {
        *rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(left);
        }
        let place = rest.span();
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(Complaint::new(place, "expression has too many operators"));
        }
        let operator = match rest.pop() {
            Some(b'+') => Operator::Add,
            Some(b'-') => Operator::Sub,
            other => {
                let sign = other.map(char::from).unwrap_or_default();
                return Err(Complaint::new(place, format!("unsupported operation '{sign}'")));
            }
        };
        *rest = rest.trim_start();
        if rest.is_empty() {
            return Err(Complaint::new(rest.span(), "missing operand in expression"));
        }
        let allowed = if legacy { Allowed::Decimal } else { Allowed::Any };
        let right = self.operand(rest, allowed, false)?;
        let text = whole.take(whole.len().saturating_sub(rest.len()));
        Ok(Expr {
            text: text.text(),
            place: text.span(),
            kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)),
        })
    }

    fn operand(&mut self, rest: &mut Slice<'_>, allowed: Allowed, maybe_constraint: bool) -> Parsed<Expr> {
        if rest.starts_with("(") {
            if allowed != Allowed::Any {
                return Err(Complaint::new(rest.span(), "parenthesized expression not permitted here"));
            }
            return self.nested(rest, Self::parenthesis);
        }
        if allowed != Allowed::Decimal {
            let mut ahead = *rest;
            match variable_name(&mut ahead) {
                Ok((name, pseudo)) => {
                    *rest = ahead;
                    if !rest.trim_start().starts_with("(") {
                        return self.variable(name, pseudo);
                    }
                    if allowed != Allowed::Any {
                        return Err(Complaint::new(name.span(), "unexpected function call"));
                    }
                    return self.nested(rest, |parser, rest| parser.call(rest, name));
                }
                Err(complaint) if allowed == Allowed::LineVariable => return Err(complaint),
                Err(_) => {}
            }
        }
        let whole = *rest;
        let negative = rest.eat("-");
        let Some(number) = literal(rest, allowed == Allowed::Decimal) else {
            let also = if maybe_constraint { "matching constraint or " } else { "" };
            return Err(Complaint::new(whole.span(), format!("invalid {also}operand format")));
        };
        let text = whole.take(whole.len() - rest.len());
        let number = if negative { number.map(Number::negated) } else { number };
        Ok(Expr { text: text.text(), place: text.span(), kind: ExprKind::Literal(number) })
    }

    fn nested<'s>(
        &mut self,
        rest: &mut Slice<'s>,
        parse: impl FnOnce(&mut Self, &mut Slice<'s>) -> Parsed<Expr>,
    ) -> Parsed<Expr> {
        if self.depth >= MAX_DEPTH {
            return Err(Complaint::new(rest.span(), "expression nested too deeply"));
        }
        self.depth += 1;
        let result = parse(self, rest);
        self.depth -= 1;
        result
    }

    fn parenthesis(&mut self, rest: &mut Slice<'_>) -> Parsed<Expr> {
        rest.eat("(");
        *rest = rest.trim_start();
        if rest.is_empty() {
            return Err(Complaint::new(rest.span(), "missing operand in expression"));
        }
        let mut value = self.operand(rest, Allowed::Any, false)?;
        *rest = rest.trim_start();
        while !rest.is_empty() && !rest.starts_with(")") {
            let whole = *rest;
            value = self.binary(whole, rest, value, false)?;
            *rest = rest.trim_start();
        }
        if !rest.eat(")") {
            return Err(Complaint::new(rest.span(), "missing ')' at end of nested expression"));
        }
        Ok(value)
    }

    fn variable(&mut self, name: Slice<'_>, pseudo: bool) -> Parsed<Expr> {
        let key = name.text();
        if pseudo && key != "@LINE" {
            return Err(Complaint::new(name.span(), format!("invalid pseudo numeric variable '{key}'")));
        }
        // An unknown name gets an empty variable; its use is reported when the pattern is matched.
        let index = match self.variables.numeric_names.get(&key) {
            Some(index) => *index,
            None => {
                let index = self.variables.add_numeric(Format::UNSIGNED, None);
                self.variables.numeric_names.insert(key.clone(), index);
                index
            }
        };
        let defined = self.variables.numerics.get(index).and_then(|numeric| numeric.line);
        if defined.is_some() && defined == self.line {
            let message = format!("numeric variable '{key}' defined earlier in the same CHECK directive");
            return Err(Complaint::new(name.span(), message));
        }
        Ok(Expr { text: key, place: name.span(), kind: ExprKind::Variable(index) })
    }

    fn call(&mut self, rest: &mut Slice<'_>, name: Slice<'_>) -> Parsed<Expr> {
        *rest = rest.trim_start();
        let operator = match name.bytes() {
            b"add" => Operator::Add,
            b"div" => Operator::Div,
            b"max" => Operator::Max,
            b"min" => Operator::Min,
            b"mul" => Operator::Mul,
            b"sub" => Operator::Sub,
            _ => {
                let message = format!("call to undefined function '{}'", name.text());
                return Err(Complaint::new(name.span(), message));
            }
        };
        rest.eat("(");
        *rest = rest.trim_start();
        let mut arguments = Vec::new();
        while !rest.is_empty() && !rest.starts_with(")") {
            if rest.starts_with(",") {
                return Err(Complaint::new(rest.span(), "missing argument"));
            }
            arguments.push(self.argument(rest)?);
            *rest = rest.trim_start();
            if !rest.eat(",") {
                break;
            }
            *rest = rest.trim_start();
            if rest.starts_with(")") {
                return Err(Complaint::new(rest.span(), "missing argument"));
            }
        }
        if !rest.eat(")") {
            return Err(Complaint::new(rest.span(), "missing ')' at end of call expression"));
        }
        let given = arguments.len();
        let [left, right] = <[Expr; 2]>::try_from(arguments).map_err(|_| {
            let message = format!("function '{}' takes 2 arguments but {given} given", name.text());
            Complaint::new(name.span(), message)
        })?;
        Ok(Expr {
            text: rest.text(),
            place: rest.span(),
            kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)),
        })
    }

    fn argument(&mut self, rest: &mut Slice<'_>) -> Parsed<Expr> {
        let whole = *rest;
        let mut value = self.operand(rest, Allowed::Any, false)?;
        while !rest.is_empty() {
            *rest = rest.trim_start();
            if rest.starts_with(",") || rest.starts_with(")") {
                break;
            }
            value = self.binary(whole, rest, value, false)?;
        }
        Ok(value)
    }
}

/// `%#.Nx,` in front of a block: the form if a conversion is named, and the precision.
fn conversion(text: &mut Slice<'_>) -> Parsed<(Option<Format>, usize)> {
    let Some(comma) = text.find(b',').filter(|comma| text.find(b'(').is_none_or(|call| *comma < call)) else {
        return Ok((None, 0));
    };
    let mut spec = text.take(comma).trim_start().trim_end();
    *text = text.skip(comma + 1);
    if !spec.eat("%") {
        return Err(Complaint::new(spec.span(), "invalid matching format specification in expression"));
    }
    let flag = spec.span();
    let prefixed = spec.eat("#");
    let mut precision = 0;
    if spec.eat(".") {
        let digits = spec.bytes().iter().take_while(|b| b.is_ascii_digit()).count();
        let value = spec.take(digits).text().parse::<u64>();
        // A number that is merely too large is passed over before it is refused.
        spec = spec.skip(if value.is_ok() { digits } else { 0 });
        let Some(value) = value.ok().and_then(|value| u32::try_from(value).ok()) else {
            return Err(Complaint::new(spec.span(), "invalid precision in format specifier"));
        };
        precision = value as usize;
    }
    let place = spec.span();
    let radix = match spec.pop() {
        None => None,
        Some(b'u') => Some(Radix::Unsigned),
        Some(b'd') => Some(Radix::Signed),
        Some(b'x') => Some(Radix::LowerHex),
        Some(b'X') => Some(Radix::UpperHex),
        Some(_) => return Err(Complaint::new(place, "invalid format specifier in expression")),
    };
    if prefixed && !matches!(radix, Some(Radix::LowerHex | Radix::UpperHex)) {
        return Err(Complaint::new(flag, "alternate form only supported for hex values"));
    }
    spec = spec.trim_start();
    if !spec.is_empty() {
        return Err(Complaint::new(spec.span(), "invalid matching format specification in expression"));
    }
    Ok((radix.map(|radix| Format { radix, precision, prefixed }), precision))
}

/// Takes a literal off the front. Outer `None`: there is none; inner `None`: it is overlong.
fn literal(rest: &mut Slice<'_>, decimal: bool) -> Option<Option<Number>> {
    let whole = *rest;
    let lower: Vec<u8> = whole.take(2).bytes().to_ascii_lowercase();
    let radix = match lower.as_slice() {
        _ if decimal => 10,
        b"0x" => 16,
        b"0b" => 2,
        b"0o" => 8,
        [b'0', digit] if digit.is_ascii_digit() => 8,
        _ => 10,
    };
    let mark = match (radix, lower.get(1)) {
        (_, Some(b'x' | b'b' | b'o')) if radix != 10 => 2,
        (8, _) => 1,
        _ => 0,
    };
    let digits = whole.skip(mark);
    let count = digits.bytes().iter().take_while(|b| char::from(**b).is_digit(radix)).count();
    // A mark without digits, as the `0x` of `0x+1` or the first of `08`, is zero unless it ends the text.
    if count == 0 && (mark == 0 || digits.is_empty()) {
        return None;
    }
    *rest = digits.skip(count);
    Some(Number::from_digits(digits.take(count).bytes(), radix))
}
