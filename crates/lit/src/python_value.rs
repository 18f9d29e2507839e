//! Values and expressions of configurations in Python, as far as suites need them: texts, numbers, lists, comparisons,
//! and a handful of functions that ask for paths and parameters. Nothing else of Python is known here.

use super::args::absolute;
use super::config::Config;
use std::collections::BTreeMap;
use std::path::Path;

/// Deepest nesting of an expression.
const MAX_DEPTH: usize = 64;
/// Largest value that an expression may make, in bytes of its texts and items; a short file could double one line by line.
const MAX_WEIGHT: usize = 1 << 20;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// `True` or `False`.
    Truth(bool),
    /// `None`
    Nothing,
    /// A list, tuple or set.
    List(Vec<Value>),
    /// A format for tests that are shell scripts.
    Format {
        /// The system's shell runs them.
        external: bool,
        /// What runs first.
        preamble: Vec<String>,
    },
}

impl Value {
    /// Whether a condition takes it for true.
    pub(super) fn holds(&self) -> bool {
        match self {
            Value::Text(text) => !text.is_empty(),
            Value::Number(number) => *number != 0,
            Value::Truth(truth) => *truth,
            Value::Nothing => false,
            Value::List(list) => !list.is_empty(),
            Value::Format { .. } => true,
        }
    }

    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The texts of a list of texts.
    pub(super) fn texts(&self) -> Option<Vec<String>> {
        let Value::List(list) = self else { return None };
        list.iter().map(|value| value.text().map(String::from)).collect()
    }

    /// Bytes of its texts and items, about.
    pub(super) fn weight(&self) -> usize {
        let texts = match self {
            Value::Text(text) => text.len(),
            Value::List(list) => list.iter().map(Value::weight).sum(),
            Value::Format { preamble, .. } => preamble.iter().map(String::len).sum(),
            Value::Number(_) | Value::Truth(_) | Value::Nothing => 0,
        };
        texts + 16
    }

    fn shown(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Truth(true) => "True".into(),
            Value::Truth(false) => "False".into(),
            Value::Nothing => "None".into(),
            Value::List(_) | Value::Format { .. } => String::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Text(String),
    /// `f"..."`
    Format(String),
    Number(i64),
    /// A name with its dots.
    Name(String),
    Sign(&'static str),
}

/// What an expression may ask for.
pub(super) struct Scope<'c> {
    /// The configuration so far.
    pub(super) config: &'c Config,
    /// The variables of the file, and attributes of `config` that mean nothing to us.
    pub(super) variables: &'c BTreeMap<String, Value>,
    /// The file.
    pub(super) file: &'c Path,
}

/// The value of an expression; none if it is not understood.
pub(super) fn value(text: &str, scope: &Scope<'_>) -> Option<Value> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, scope, depth: 0, room: MAX_WEIGHT };
    let value = parser.choice()?;
    (parser.at == parser.tokens.len()).then_some(value)
}

const SIGNS: &[&str] =
    &["==", "!=", "(", ")", "[", "]", "{", "}", ",", "+", "%", "=", ":", ".", "<", ">", "-"];

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let letters = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let behind = rest.get(letters..)?;
        let prefix = rest.get(..letters)?.to_ascii_lowercase();
        if behind.starts_with(['"', '\''])
            && matches!(prefix.as_str(), "" | "r" | "f" | "b" | "u" | "rf" | "fr")
        {
            let (text, length) = quoted(behind, prefix.contains('r'))?;
            out.push(if prefix.contains('f') { Token::Format(text) } else { Token::Text(text) });
            rest = behind.get(length..)?;
        } else if first.is_ascii_digit() {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            out.push(Token::Number(rest.get(..end)?.parse().ok()?));
            rest = rest.get(end..)?;
        } else if first.is_ascii_alphabetic() || first == '_' {
            let part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
            let end = rest.find(|letter| !part(letter)).unwrap_or(rest.len());
            out.push(Token::Name(rest.get(..end)?.to_string()));
            rest = rest.get(end..)?;
        } else {
            let sign = SIGNS.iter().copied().find(|sign| rest.starts_with(sign))?;
            out.push(Token::Sign(sign));
            rest = rest.get(sign.len()..)?;
        }
        rest = rest.trim_start();
    }
    Some(out)
}

/// The text in quotes at the front, and how long it is with them.
fn quoted(text: &str, raw: bool) -> Option<(String, usize)> {
    let mark = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|mark| text.starts_with(mark))?;
    let mut out = String::new();
    let mut at = mark.len();
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with(mark) {
            return Some((out, at + mark.len()));
        }
        let letter = rest.chars().next()?;
        at += letter.len_utf8();
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        let next = text.get(at..)?.chars().next()?;
        at += next.len_utf8();
        match next {
            _ if raw => out.extend(['\\', next]),
            'n' => out.push('\n'),
            't' => out.push('\t'),
            '\n' => {}
            '\\' | '"' | '\'' => out.push(next),
            _ => out.extend(['\\', next]),
        }
    }
}

struct Parser<'s, 'c> {
    tokens: Vec<Token>,
    at: usize,
    scope: &'s Scope<'c>,
    depth: usize,
    /// Weight of values that may still be made.
    room: usize,
}

impl Parser<'_, '_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(here)) if *here == sign);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(here)) if here == word);
        self.at += usize::from(found);
        found
    }

    /// `a if b else c`
    fn choice(&mut self) -> Option<Value> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let value = self.either()?;
        let value = if self.word("if") {
            let holds = self.either()?.holds();
            let other = self.word("else").then(|| self.choice())??;
            if holds { value } else { other }
        } else {
            value
        };
        self.depth -= 1;
        Some(value)
    }

    fn either(&mut self) -> Option<Value> {
        let mut value = self.both()?;
        while self.word("or") {
            let other = self.both()?;
            value = if value.holds() { value } else { other };
        }
        Some(value)
    }

    fn both(&mut self) -> Option<Value> {
        let mut value = self.negation()?;
        while self.word("and") {
            let other = self.negation()?;
            value = if value.holds() { other } else { value };
        }
        Some(value)
    }

    fn negation(&mut self) -> Option<Value> {
        let mut turned = false;
        while self.word("not") {
            turned = !turned;
        }
        let value = self.comparison()?;
        Some(if turned { Value::Truth(!value.holds()) } else { value })
    }

    fn comparison(&mut self) -> Option<Value> {
        let value = self.sum()?;
        let (turned, same) = if self.sign("==") {
            (false, true)
        } else if self.sign("!=") {
            (true, true)
        } else if self.word("is") {
            (self.word("not"), true)
        } else if self.word("in") {
            (false, false)
        } else if matches!(self.tokens.get(self.at + 1), Some(Token::Name(word)) if word == "in")
            && self.word("not")
        {
            self.at += 1;
            (true, false)
        } else {
            return Some(value);
        };
        let other = self.sum()?;
        let holds = match (&other, same) {
            (_, true) => value == other,
            (Value::List(list), _) => list.contains(&value),
            (Value::Text(text), _) => text.contains(value.text()?),
            _ => return None,
        };
        Some(Value::Truth(holds != turned))
    }

    fn sum(&mut self) -> Option<Value> {
        let mut value = self.product()?;
        while self.sign("+") {
            value = match (value, self.product()?) {
                (Value::Text(a), Value::Text(b)) => Value::Text(a + &b),
                (Value::Number(a), Value::Number(b)) => Value::Number(a.checked_add(b)?),
                (Value::List(a), Value::List(b)) => Value::List([a, b].concat()),
                _ => return None,
            };
            value = self.charged(value)?;
        }
        Some(value)
    }

    /// A value that was just made, if there is room for it.
    fn charged(&mut self, value: Value) -> Option<Value> {
        self.room = self.room.checked_sub(value.weight())?;
        Some(value)
    }

    fn product(&mut self) -> Option<Value> {
        let mut value = self.postfix()?;
        while self.sign("%") {
            let arguments = match self.postfix()? {
                Value::List(list) => list,
                one => vec![one],
            };
            value = Value::Text(filled(value.text()?, &arguments)?);
        }
        Some(value)
    }

    /// A value with its calls of methods and its places.
    fn postfix(&mut self) -> Option<Value> {
        let value = self.atom()?;
        let mut value = self.charged(value)?;
        loop {
            if self.sign("[") {
                let key = self.choice()?;
                if !self.sign("]") {
                    return None;
                }
                value = match (value, key) {
                    (Value::List(list), Value::Number(number)) => {
                        list.get(usize::try_from(number).ok()?)?.clone()
                    }
                    _ => return None,
                };
            } else if self.sign(".") {
                let Some(Token::Name(method)) = self.peek().cloned() else { return None };
                self.at += 1;
                let arguments = self.call()?.0;
                value = self.charged(method_of(&value, &method, &arguments)?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn atom(&mut self) -> Option<Value> {
        let token = self.peek()?.clone();
        self.at += 1;
        match token {
            Token::Number(number) => Some(Value::Number(number)),
            Token::Text(_) | Token::Format(_) => {
                self.at -= 1;
                let mut out = String::new();
                while let Some(token @ (Token::Text(_) | Token::Format(_))) = self.peek().cloned() {
                    self.at += 1;
                    match token {
                        Token::Format(text) => out.push_str(&self.formatted(&text)?),
                        Token::Text(text) => out.push_str(&text),
                        _ => {}
                    }
                }
                Some(Value::Text(out))
            }
            Token::Sign("-") => match self.atom()? {
                Value::Number(number) => Some(Value::Number(-number)),
                _ => None,
            },
            Token::Sign("(") => self.list(")", true),
            Token::Sign("[") => self.list("]", false),
            Token::Sign("{") => self.list("}", false),
            Token::Name(name) => self.named(&name),
            Token::Sign(_) => None,
        }
    }

    /// Values up to a closing sign; one alone in parentheses is itself.
    fn list(&mut self, end: &str, alone: bool) -> Option<Value> {
        let mut list = Vec::new();
        let mut tuple = !alone;
        while !self.sign(end) {
            list.push(self.choice()?);
            if self.sign(",") {
                tuple = true;
            } else if self.sign(end) {
                break;
            } else {
                return None;
            }
        }
        if list.is_empty() || tuple { Some(Value::List(list)) } else { list.pop() }
    }

    /// The arguments of a call, those with a name apart.
    fn call(&mut self) -> Option<(Vec<Value>, BTreeMap<String, Value>)> {
        if !self.sign("(") {
            return None;
        }
        let (mut plain, mut by_name) = (Vec::new(), BTreeMap::new());
        while !self.sign(")") {
            match (self.peek().cloned(), self.tokens.get(self.at + 1)) {
                (Some(Token::Name(name)), Some(Token::Sign("="))) => {
                    self.at += 2;
                    by_name.insert(name, self.choice()?);
                }
                _ => plain.push(self.choice()?),
            }
            if !self.sign(",") && !matches!(self.peek(), Some(Token::Sign(")"))) {
                return None;
            }
        }
        Some((plain, by_name))
    }

    /// Texts with `{expression}` in them.
    fn formatted(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            out.push_str(before);
            if let Some(behind) = behind.strip_prefix('{') {
                out.push('{');
                rest = behind;
                continue;
            }
            let (inside, behind) = behind.split_once('}')?;
            out.push_str(&value(inside, self.scope)?.shown());
            if out.len() > MAX_WEIGHT {
                return None;
            }
            rest = behind;
        }
        Some(out + &rest.replace("}}", "}"))
    }

    fn named(&mut self, name: &str) -> Option<Value> {
        if matches!(self.peek(), Some(Token::Sign("("))) {
            let (arguments, by_name) = self.call()?;
            return self.function(name, &arguments, &by_name);
        }
        if name != "config.environment" {
            return self.scope.attribute(name);
        }
        // The variable that is asked for.
        let Some(Token::Sign("[")) = self.peek() else { return None };
        self.at += 1;
        let key = self.choice()?;
        let value = self.scope.config.environment.get(key.text()?).cloned();
        self.sign("]").then_some(Value::Text(value?))
    }

    fn function(&self, name: &str, arguments: &[Value], by_name: &BTreeMap<String, Value>) -> Option<Value> {
        let text = |index: usize| arguments.get(index).and_then(Value::text);
        let path = |index: usize| text(index).map(Path::new);
        let show = |path: &Path| Some(Value::Text(path.display().to_string()));
        let default = || arguments.get(1).cloned().unwrap_or(Value::Nothing);
        let config = self.scope.config;
        match name {
            "lit_config.params.get" => {
                Some(config.params.get(text(0)?).cloned().map_or_else(default, Value::Text))
            }
            "os.environ.get" => Some(std::env::var(text(0)?).ok().map_or_else(default, Value::Text)),
            "config.environment.get" => {
                Some(config.environment.get(text(0)?).cloned().map_or_else(default, Value::Text))
            }
            "getattr" => {
                let known = self.scope.variables.get(&format!("config.{}", text(1)?)).cloned();
                Some(known.unwrap_or_else(|| arguments.get(2).cloned().unwrap_or(Value::Nothing)))
            }
            "os.path.dirname" => show(path(0)?.parent().unwrap_or(Path::new(""))),
            "os.path.basename" => show(Path::new(path(0)?.file_name()?)),
            "os.path.abspath" | "os.path.normpath" | "lit.util.abs_path_preserve_drive" => {
                show(&absolute(&std::env::current_dir().ok()?, text(0)?))
            }
            "os.path.realpath" => {
                show(&path(0)?.canonicalize().unwrap_or_else(|_| path(0).unwrap_or(Path::new("")).into()))
            }
            "os.path.exists" => Some(Value::Truth(path(0)?.exists())),
            "os.path.join" => {
                let parts: Option<Vec<&str>> = arguments.iter().map(Value::text).collect();
                show(&parts?.iter().collect::<std::path::PathBuf>())
            }
            "platform.system" => {
                Some(Value::Text(if cfg!(target_os = "macos") { "Darwin" } else { "Linux" }.into()))
            }
            "platform.machine" => Some(Value::Text(std::env::consts::ARCH.into())),
            "sys.platform.startswith" => Some(Value::Truth(std::env::consts::OS.starts_with(text(0)?))),
            "set" | "frozenset" | "list" => {
                Some(arguments.first().cloned().unwrap_or(Value::List(Vec::new())))
            }
            "len" => match arguments.first()? {
                Value::List(list) => Some(Value::Number(i64::try_from(list.len()).ok()?)),
                other => Some(Value::Number(i64::try_from(other.text()?.chars().count()).ok()?)),
            },
            "str" => Some(Value::Text(arguments.first()?.shown())),
            "bool" => Some(Value::Truth(arguments.first()?.holds())),
            "int" => Some(Value::Number(arguments.first()?.shown().parse().ok()?)),
            "eval" if matches!(text(0)?, "True" | "False") => Some(Value::Truth(text(0)? == "True")),
            "lit.util.pythonize_bool" => match arguments.first()? {
                Value::Text(text) => {
                    let word = text.to_ascii_lowercase();
                    Some(Value::Truth(matches!(word.as_str(), "1" | "true" | "on" | "yes")))
                }
                other => Some(Value::Truth(other.holds())),
            },
            "lit.formats.ShTest" | "ShTest" => {
                let external = by_name.get("execute_external").or(arguments.first());
                let preamble = by_name.get("preamble_commands").and_then(Value::texts).unwrap_or_default();
                Some(Value::Format { external: external.is_some_and(Value::holds), preamble })
            }
            name => {
                let (subject, method) = name.rsplit_once('.')?;
                method_of(&self.scope.attribute(subject)?, method, arguments)
            }
        }
    }
}

impl Scope<'_> {
    /// What a name stands for, attributes of `config` too.
    fn attribute(&self, name: &str) -> Option<Value> {
        let list =
            |texts: &mut dyn Iterator<Item = &String>| Value::List(texts.cloned().map(Value::Text).collect());
        let config = self.config;
        let text = |text: &str| Some(Value::Text(text.into()));
        match name {
            "True" => Some(Value::Truth(true)),
            "False" => Some(Value::Truth(false)),
            "None" => Some(Value::Nothing),
            "__file__" => text(&self.file.display().to_string()),
            "sys.executable" => text("python3"),
            "sys.platform" => text(if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS }),
            "os.pathsep" | "os.path.pathsep" => text(":"),
            "os.name" => text(if cfg!(windows) { "nt" } else { "posix" }),
            "os.sep" | "os.path.sep" => text("/"),
            "config.name" => text(&config.name),
            "config.available_features" => Some(list(&mut config.features.iter())),
            "config.suffixes" => Some(list(&mut config.suffixes.iter())),
            "config.excludes" => Some(list(&mut config.excludes.iter())),
            "config.unsupported" => Some(Value::Truth(config.unsupported)),
            "config.test_source_root" => match &config.root {
                Some(root) => text(&root.display().to_string()),
                None => Some(Value::Nothing),
            },
            name => self.variables.get(name).cloned(),
        }
    }
}

/// A method of a value.
fn method_of(value: &Value, method: &str, arguments: &[Value]) -> Option<Value> {
    let subject = value.text()?;
    let text = |index: usize| arguments.get(index).and_then(Value::text);
    Some(match method {
        "startswith" => Value::Truth(subject.starts_with(text(0)?)),
        "endswith" => Value::Truth(subject.ends_with(text(0)?)),
        "lower" => Value::Text(subject.to_lowercase()),
        "upper" => Value::Text(subject.to_uppercase()),
        "strip" => Value::Text(subject.trim().into()),
        "replace" => {
            let (from, to) = (text(0)?, text(1)?);
            let length = subject.matches(from).count().checked_mul(to.len())?;
            Value::Text((length <= MAX_WEIGHT).then(|| subject.replace(from, to))?)
        }
        "join" => {
            let parts = arguments.first()?.texts()?;
            let length = parts.len().checked_mul(subject.len())?;
            Value::Text((length <= MAX_WEIGHT).then(|| parts.join(subject))?)
        }
        "split" => match text(0) {
            Some(mark) => Value::List(subject.split(mark).map(|part| Value::Text(part.into())).collect()),
            None => Value::List(subject.split_whitespace().map(|part| Value::Text(part.into())).collect()),
        },
        _ => return None,
    })
}

/// A text with `%s` and `%d` filled in.
fn filled(text: &str, arguments: &[Value]) -> Option<String> {
    let mut out = String::new();
    let mut arguments = arguments.iter();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        match letters.next()? {
            's' | 'd' => out.push_str(&arguments.next()?.shown()),
            '%' => out.push('%'),
            _ => return None,
        }
    }
    arguments.next().is_none().then_some(out)
}
