//! Values of `--input`, parsed before anything is read or drawn. `docs/first-hour.md` shows the language.

use crate::diag::{Diagnostic, Result, nearest};
use crate::tensor::DType;
use std::fmt;

/// Values nested deeper than this are refused.
const MAX_DEPTH: usize = 50;
/// PyTorch's own limit of dimensions.
const MAX_DIMS: usize = 64;

/// The specification of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Spec {
    /// A tensor of random numbers.
    Random {
        /// Its dtype.
        dtype: DType,
        /// Its sizes.
        sizes: Vec<i64>,
        /// From the first to below the second; the usual numbers of the dtype by default.
        range: Option<(f64, f64)>,
    },
    /// What a file holds.
    File(String),
    /// A number without a point.
    Int(i64),
    /// A number with a point, or nan or inf.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Str(String),
    /// None.
    None,
    /// Items in square brackets.
    List(Vec<Spec>),
    /// Items in round brackets.
    Tuple(Vec<Spec>),
    /// Pairs in braces.
    Dict(Vec<(Spec, Spec)>),
}

/// A value with the name of the argument that it is for, if one is said.
pub(super) type NamedSpec = (Option<String>, Spec);

/// Reads one `--input`: a value, or several with blanks or commas between them.
pub(super) fn parse(text: &str) -> Result<Vec<NamedSpec>> {
    parse_for("--input", text)
}

/// The same for the value of another option, which errors name.
pub(super) fn parse_for(flag: &str, text: &str) -> Result<Vec<NamedSpec>> {
    let mut reader = Reader { flag, text, rest: text };
    let mut specs = Vec::new();
    reader.blanks();
    while !reader.rest.is_empty() {
        let name = reader.name();
        specs.push((name, reader.value(0, true)?));
        reader.blanks();
        if reader.take(',') {
            reader.blanks();
        }
    }
    if specs.is_empty() {
        return Err(reader.wrong("there is nothing in it"));
    }
    Ok(specs)
}

struct Reader<'a> {
    flag: &'a str,
    text: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn wrong(&self, what: &str) -> Diagnostic {
        let error = Diagnostic::usage(format!("{} '{}': {what}", self.flag, self.text));
        if self.flag != "--input" {
            return error;
        }
        error.hint("inputs are 'x=float32[1,3,224,224]', 'ids=int64[2,16]{0..30000}', 'n=5', 'mask=@mask.npy' or JSON")
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, letter: char) -> bool {
        match self.rest.strip_prefix(letter) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, letter: char) -> Result<()> {
        self.blanks();
        if self.take(letter) {
            return Ok(());
        }
        let found = self.rest.chars().next().map_or("the end".to_string(), |c| format!("'{c}'"));
        Err(self.wrong(&format!("expected '{letter}', found {found}")))
    }

    /// Letters, digits and underscores.
    fn word(&mut self) -> &'a str {
        let end =
            self.rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// `NAME=`, if that is what comes.
    fn name(&mut self) -> Option<String> {
        let before = self.rest;
        let word = self.word();
        let starts = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if starts && self.take('=') {
            return Some(word.to_string());
        }
        self.rest = before;
        None
    }

    fn value(&mut self, depth: usize, outermost: bool) -> Result<Spec> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(&format!("values nest at most {MAX_DEPTH} deep")));
        }
        self.blanks();
        match self.rest.chars().next() {
            None => Err(self.wrong("a value is missing")),
            Some('@') => Ok(self.file(outermost)),
            Some('[') => Ok(Spec::List(self.items('[', ']', depth)?)),
            Some('(') => Ok(Spec::Tuple(self.items('(', ')', depth)?)),
            Some('{') => self.dict(depth),
            Some('"') => self.quoted(),
            Some('\'') => self.single_quoted(),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            Some(_) => self.named(),
        }
    }

    /// `@FILE`; within brackets it ends at a comma or a bracket.
    fn file(&mut self, outermost: bool) -> Spec {
        let rest = self.rest.trim_start_matches('@');
        let end = match outermost {
            true => rest.len(),
            false => rest.find([',', ']', ')', '}']).unwrap_or(rest.len()),
        };
        let (name, rest) = rest.split_at(end);
        self.rest = rest;
        Spec::File(name.trim().to_string())
    }

    fn items(&mut self, open: char, close: char, depth: usize) -> Result<Vec<Spec>> {
        self.expect(open)?;
        let mut items = Vec::new();
        loop {
            self.blanks();
            if self.take(close) {
                return Ok(items);
            }
            items.push(self.value(depth + 1, false)?);
            self.blanks();
            if !self.take(',') {
                self.expect(close)?;
                return Ok(items);
            }
        }
    }

    fn dict(&mut self, depth: usize) -> Result<Spec> {
        self.expect('{')?;
        let mut pairs = Vec::new();
        loop {
            self.blanks();
            if self.take('}') {
                return Ok(Spec::Dict(pairs));
            }
            let key = self.value(depth + 1, false)?;
            self.expect(':')?;
            pairs.push((key, self.value(depth + 1, false)?));
            self.blanks();
            if !self.take(',') {
                self.expect('}')?;
                return Ok(Spec::Dict(pairs));
            }
        }
    }

    /// Text as JSON has it.
    fn quoted(&mut self) -> Result<Spec> {
        let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        let text = match stream.next() {
            Some(Ok(text)) => text,
            _ => return Err(self.wrong("a text does not end, or has an unknown escape")),
        };
        self.rest = self.rest.get(stream.byte_offset()..).unwrap_or_default();
        Ok(Spec::Str(text))
    }

    fn single_quoted(&mut self) -> Result<Spec> {
        let body = self.rest.get(1..).and_then(|rest| rest.split_once('\''));
        let (text, rest) = body.ok_or_else(|| self.wrong("a text does not end"))?;
        self.rest = rest;
        Ok(Spec::Str(text.to_string()))
    }

    fn number(&mut self) -> Result<Spec> {
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let end = self.rest.find(|c: char| !letter(c)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        let value = match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(n), _) => Spec::Int(n),
            (_, Ok(x)) => Spec::Float(x),
            _ => return Err(self.wrong(&format!("'{text}' is not a number"))),
        };
        self.rest = rest;
        Ok(value)
    }

    /// A constant, or a dtype with sizes.
    fn named(&mut self) -> Result<Spec> {
        let word = self.word();
        match word {
            "true" | "True" => return Ok(Spec::Bool(true)),
            "false" | "False" => return Ok(Spec::Bool(false)),
            "null" | "None" => return Ok(Spec::None),
            "nan" | "NaN" => return Ok(Spec::Float(f64::NAN)),
            "inf" | "Infinity" => return Ok(Spec::Float(f64::INFINITY)),
            _ => {}
        }
        let plain = word.strip_prefix("torch.").unwrap_or(word);
        let Some(dtype) = dtype(plain) else {
            let error = self.wrong(&format!("there is no dtype '{word}'"));
            let known = (0..64).filter_map(DType::from_code).filter(|dtype| dtype.is_computable());
            return Err(match nearest(plain, known.map(DType::name)) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error.hint("text needs quotes: 'name=\"text\"'"),
            });
        };
        self.expect('[')?;
        let mut sizes = Vec::new();
        loop {
            self.blanks();
            if self.take(']') {
                break;
            }
            match self.number()? {
                Spec::Int(n) if n >= 0 && sizes.len() < MAX_DIMS => sizes.push(n),
                Spec::Int(n) if n >= 0 => {
                    return Err(self.wrong(&format!("a tensor has at most {MAX_DIMS} dimensions")));
                }
                _ => return Err(self.wrong("sizes are whole numbers from 0")),
            }
            self.blanks();
            if !self.take(',') {
                self.expect(']')?;
                break;
            }
        }
        let range = if self.rest.starts_with('{') { Some(self.range()?) } else { None };
        Ok(Spec::Random { dtype, sizes, range })
    }

    /// `{0..10}`
    fn range(&mut self) -> Result<(f64, f64)> {
        let body = self.rest.get(1..).and_then(|rest| rest.split_once('}'));
        let (range, rest) = body.ok_or_else(|| self.wrong("a range ends with '}'"))?;
        let bounds = range.split_once("..").and_then(|(low, high)| {
            Some((low.trim().parse::<f64>().ok()?, high.trim().parse::<f64>().ok()?))
        });
        let (low, high) = bounds.ok_or_else(|| self.wrong("a range is written as {0..10}"))?;
        if !(low < high && low.is_finite() && high.is_finite()) {
            return Err(
                self.wrong(&format!("{{{range}}} is not a range: the first number must be below the second"))
            );
        }
        self.rest = rest;
        Ok((low, high))
    }
}

/// A dtype by PyTorch's name, or in short as NumPy and Rust have it.
fn dtype(name: &str) -> Option<DType> {
    let long = match name {
        "f16" => "float16",
        "bf16" => "bfloat16",
        "f32" => "float32",
        "f64" => "float64",
        "i8" => "int8",
        "i16" => "int16",
        "i32" => "int32",
        "i64" => "int64",
        "u8" | "byte" => "uint8",
        other => other,
    };
    DType::from_name(long).filter(|dtype| dtype.is_computable())
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = |f: &mut fmt::Formatter<'_>, items: &[Spec]| {
            for (n, item) in items.iter().enumerate() {
                write!(f, "{}{item}", if n > 0 { "," } else { "" })?;
            }
            Ok(())
        };
        match self {
            Spec::Random { dtype, sizes, range } => {
                let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
                write!(f, "{}[{}]", dtype.name(), sizes.join(","))?;
                range.map_or(Ok(()), |(low, high)| write!(f, "{{{low}..{high}}}"))
            }
            Spec::File(name) => write!(f, "@{name}"),
            Spec::Int(n) => write!(f, "{n}"),
            Spec::Float(x) => write!(f, "{x:?}"),
            Spec::Bool(b) => write!(f, "{b}"),
            Spec::Str(text) => write!(f, "{text:?}"),
            Spec::None => f.write_str("None"),
            Spec::List(list) => {
                f.write_str("[")?;
                items(f, list)?;
                f.write_str("]")
            }
            Spec::Tuple(tuple) => {
                f.write_str("(")?;
                items(f, tuple)?;
                f.write_str(")")
            }
            Spec::Dict(pairs) => {
                f.write_str("{")?;
                for (n, (key, value)) in pairs.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if n > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// JSON as specs, for files that hold plain values.
pub(super) fn of_json(json: &serde_json::Value) -> Spec {
    match json {
        serde_json::Value::Null => Spec::None,
        serde_json::Value::Bool(b) => Spec::Bool(*b),
        serde_json::Value::Number(n) => {
            n.as_i64().map_or_else(|| Spec::Float(n.as_f64().unwrap_or(f64::NAN)), Spec::Int)
        }
        serde_json::Value::String(text) => Spec::Str(text.clone()),
        serde_json::Value::Array(items) => Spec::List(items.iter().map(of_json).collect()),
        serde_json::Value::Object(pairs) => {
            Spec::Dict(pairs.iter().map(|(key, value)| (Spec::Str(key.clone()), of_json(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> NamedSpec {
        parse(text).expect("a spec").remove(0)
    }

    #[test]
    fn specs_are_parsed() {
        let image = Spec::Random { dtype: DType::F32, sizes: vec![1, 3], range: None };
        assert_eq!(one("x=float32[1,3]"), (Some("x".into()), image.clone()));
        assert_eq!(one("f32[1, 3]"), (None, image.clone()));
        let ids = Spec::Random { dtype: DType::I64, sizes: vec![2], range: Some((0.0, 9.0)) };
        assert_eq!(one("ids=int64[2]{0..9}").1, ids);
        assert_eq!(one("n=5").1, Spec::Int(5));
        assert_eq!(one("-2.5").1, Spec::Float(-2.5));
        assert_eq!(one("mask=@a file.npy").1, Spec::File("a file.npy".into()));
        assert_eq!(one("[float32[1,3]]").1, Spec::List(vec![image.clone()]));
        let pair = vec![(Spec::Str("a".into()), Spec::List(vec![Spec::Int(1), Spec::None]))];
        assert_eq!(one("{\"a\": [1, null]}").1, Spec::Dict(pair));
        assert_eq!(parse("x=float32[1,3] n=5, true").expect("three").len(), 3);
        assert_eq!(one("x=float32[1,3]").1.to_string(), "float32[1,3]");
    }

    #[test]
    fn typos_are_errors() {
        for bad in
            ["", "x=", "floot32[1]", "float32[", "float32[-1]", "[1", "{1}", "int64[2]{3..3}", "'a", "\"a"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse(&"[".repeat(1000)).is_err());
    }
}
