//! Reads a check file, and the definitions of the command line, into the list of checks.

use super::Options;
use super::directive::{Kind, Scanner, Suffix};
use super::numeric::{BlockParser, NoValue, variable_name};
use super::pattern::{Pattern, PatternParser, Stop};
use super::slice::Slice;
use super::source::{Complaint, Sources, Span};
use super::variables::Variables;
use std::collections::BTreeSet;

/// A check that must match, with the `DAG` and `NOT` checks in front of it.
#[derive(Debug)]
pub struct Check {
    /// The pattern.
    pub pattern: Pattern,
    /// The prefix it was written with.
    pub prefix: String,
    /// Where its text starts in the check file.
    pub place: Span,
    /// The `DAG` and `NOT` patterns in front of it, with their prefixes.
    pub before: Vec<(Pattern, String)>,
}

/// Why a check file cannot be used.
pub enum Unusable {
    /// Something in it, or on the command line.
    Stop(Stop),
    /// No directive with these prefixes.
    NoChecks(Vec<String>),
}

impl From<Stop> for Unusable {
    fn from(stop: Stop) -> Self {
        Unusable::Stop(stop)
    }
}

impl From<Complaint> for Unusable {
    fn from(complaint: Complaint) -> Self {
        Unusable::Stop(Stop::Plain(complaint))
    }
}

/// Reads the checks of `file`; `implicit` are the patterns of `--implicit-check-not`, in place.
pub fn read(
    sources: &Sources,
    file: Span,
    implicit: &[Span],
    options: &Options,
    variables: &mut Variables,
) -> Result<Vec<Check>, Unusable> {
    let line_variable = variables.add_numeric(super::variables::Format::UNSIGNED, None);
    variables.numeric_names.insert("@LINE".into(), line_variable);
    variables.line = Some(line_variable);
    let mut reader = Reader { sources, implicit, options, variables, checks: Vec::new(), before: Vec::new() };
    reader.add_implicit()?;
    reader.read(file)?;
    let end = file.tail();
    let checks = reader.checks;
    match options.filter_label.is_empty() {
        true => Ok(checks),
        false => sections(checks, options, end),
    }
}

/// The checks in front of the first label, and those of sections whose label has one of the wanted words.
fn sections(checks: Vec<Check>, options: &Options, end: Span) -> Result<Vec<Check>, Unusable> {
    let mut kept = Vec::new();
    let mut wanted = true;
    // What stands in front of a label that goes belongs to the section before.
    let mut left = Vec::new();
    for mut check in checks {
        if check.pattern.kind == Kind::Label {
            let before = std::mem::take(&mut check.before);
            left.extend(before.into_iter().filter(|_| wanted));
            let text = String::from_utf8_lossy(check.pattern.example()).into_owned();
            wanted = options.filter_label.iter().any(|word| has_word(&text, word));
        }
        if wanted {
            check.before.splice(0..0, left.drain(..));
            kept.push(check);
        }
    }
    let prefix = options.check_prefixes().next().unwrap_or_default().to_string();
    if kept.is_empty() && left.is_empty() {
        return Err(Unusable::NoChecks(vec![prefix]));
    }
    if !left.is_empty() {
        kept.push(Check { pattern: Pattern::end_of_input(end), prefix, place: end, before: left });
    }
    Ok(kept)
}

/// Whether a word stands in a text, with no letter of a name beside it.
fn has_word(text: &str, word: &str) -> bool {
    let in_name = |letter: Option<char>| {
        letter.is_some_and(|l| l.is_ascii_alphanumeric() || matches!(l, '_' | '.' | '$'))
    };
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().last());
            let behind = text.get(at + word.len()..).and_then(|behind| behind.chars().next());
            !in_name(before) && !in_name(behind)
        })
}

struct Reader<'a> {
    sources: &'a Sources,
    implicit: &'a [Span],
    options: &'a Options,
    variables: &'a mut Variables,
    checks: Vec<Check>,
    before: Vec<(Pattern, String)>,
}

impl Reader<'_> {
    /// Starts the next group with the implicit checks.
    fn add_implicit(&mut self) -> Result<(), Stop> {
        for span in self.implicit {
            let text = Slice::new(self.sources, *span);
            let pattern = self.parser().parse(Kind::Not, false, text, "IMPLICIT-CHECK", None)?;
            self.before.push((pattern, "IMPLICIT-CHECK".into()));
        }
        Ok(())
    }

    fn parser(&mut self) -> PatternParser<'_> {
        PatternParser { options: self.options, variables: self.variables }
    }

    fn read(&mut self, file: Span) -> Result<(), Unusable> {
        let mut missing: BTreeSet<&str> = self.options.check_prefixes().collect();
        let all = missing.len();
        let options = self.options;
        let mut scanner = Scanner::new(Slice::new(self.sources, file), options);
        while let Some(directive) = scanner.next_directive() {
            let prefix = directive.prefix.text();
            if directive.suffix != Suffix::Comment {
                missing.remove(prefix.as_str());
            }
            let exact = options.strict_whitespace && options.match_full_lines;
            let text = if exact { directive.rest } else { directive.rest.trim_start() };
            let end = text.bytes().iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let end = end.unwrap_or(text.len());
            scanner.resume(text.skip(end));
            let head = directive.prefix;
            let error = |place: Slice<'_>, message: String| Complaint::new(place.span(), message);
            let (kind, count, literal) = match directive.suffix {
                Suffix::Comment => continue,
                Suffix::Misspelled => {
                    let length = directive.rest.span().start - head.span().start;
                    let word = Slice::new(self.sources, head.span().part(0, length));
                    return Err(error(head, format!("misspelled directive '{}'", word.text())).into());
                }
                Suffix::BadNot => {
                    let message = format!("unsupported -NOT combo on prefix '{prefix}'");
                    return Err(error(directive.rest, message).into());
                }
                Suffix::BadCount => {
                    let message = format!("invalid count in -COUNT specification on prefix '{prefix}'");
                    return Err(error(directive.rest, message).into());
                }
                Suffix::Check { kind, count, literal } => (kind, count, literal),
            };
            let line = Some(directive.line);
            let mut pattern = self.parser().parse(kind, literal, text.take(end), &prefix, line)?;
            pattern.count = count.unwrap_or(1);
            if kind == Kind::Label && pattern.bars_label() {
                return Err(
                    error(head, format!("found '{prefix}-LABEL:' with variable definition or use")).into()
                );
            }
            if matches!(kind, Kind::Next | Kind::Same | Kind::Empty) && self.checks.is_empty() {
                let suffix = kind.suffix();
                let message = format!("found '{prefix}{suffix}' without previous '{prefix}: line");
                return Err(error(head, message).into());
            }
            if matches!(kind, Kind::Dag | Kind::Not) {
                self.before.push((pattern, prefix));
                continue;
            }
            let place = text.span().head();
            let before = std::mem::take(&mut self.before);
            self.checks.push(Check { pattern, prefix, place, before });
            self.add_implicit()?;
        }
        self.finish(missing, all, scanner.rest().span())
    }

    fn finish(&mut self, missing: BTreeSet<&str>, all: usize, end: Span) -> Result<(), Unusable> {
        let options = self.options;
        let unused = missing.len() == all || (!options.allow_unused_prefixes && !missing.is_empty());
        if unused && (self.implicit.is_empty() || !options.check_prefixes.is_empty()) {
            return Err(Unusable::NoChecks(missing.into_iter().map(String::from).collect()));
        }
        if !self.before.is_empty() {
            let before = std::mem::take(&mut self.before);
            let prefix = options.check_prefixes().next().unwrap_or_default().to_string();
            let place = end.head();
            self.checks.push(Check { pattern: Pattern::end_of_input(place), prefix, place, before });
        }
        Ok(())
    }
}

/// The text that shows the definitions of the command line, one on a line, and where each stands in it.
pub fn definitions_text(defines: &[String]) -> (String, Vec<(usize, usize)>) {
    let mut text = String::new();
    let mut places = Vec::new();
    for (number, define) in (1..).zip(defines) {
        let Some(equals) = define.find('=') else {
            places.push((text.len(), text.len()));
            continue;
        };
        text.push_str(&format!("Global define #{number}: "));
        if define.starts_with('#') {
            text.push_str(&format!("{define} (parsed as: [["));
            let (name, value) = define.split_at(equals);
            let value = value.strip_prefix('=').unwrap_or(value);
            places.push((text.len(), text.len() + define.len()));
            text.push_str(&format!("{name}:{value}]])\n"));
        } else {
            places.push((text.len(), text.len() + define.len()));
            text.push_str(&format!("{define}\n"));
        }
    }
    (text, places)
}

/// Why a definition of the command line is refused.
pub enum BadDefine {
    /// A message with a place.
    Placed(Complaint),
    /// A message alone.
    Bare(String),
}

/// Defines the variables of the command line, which stand at these places.
pub fn define(sources: &Sources, places: &[Span], variables: &mut Variables) -> Result<(), Vec<BadDefine>> {
    let mut errors = Vec::new();
    for place in places {
        let mut text = Slice::new(sources, *place);
        let result = if text.is_empty() {
            Err(vec![BadDefine::Placed(Complaint::new(*place, "missing equal sign in global definition"))])
        } else if text.eat("#") {
            define_number(text, variables)
        } else {
            define_string(text, variables).map_err(|complaint| vec![BadDefine::Placed(complaint)])
        };
        errors.extend(result.err().into_iter().flatten());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn define_number(text: Slice<'_>, variables: &mut Variables) -> Result<(), Vec<BadDefine>> {
    let placed =
        |complaints: Vec<Complaint>| complaints.into_iter().map(BadDefine::Placed).collect::<Vec<_>>();
    let block = BlockParser::new(variables, None).block(text, false).map_err(placed)?;
    let Some((name, index)) = block.defines else { return Ok(()) };
    let Some(expression) = block.value else {
        return Err(placed(vec![Complaint::new(text.span(), "missing operand in expression")]));
    };
    let bare = |reason| match reason {
        NoValue::Undefined(_, name) => BadDefine::Bare(format!("undefined variable: {name}")),
        NoValue::Overflow => BadDefine::Bare("overflow error".into()),
    };
    let value =
        expression.value(variables).map_err(|reasons| reasons.into_iter().map(bare).collect::<Vec<_>>())?;
    variables.set_numeric(index, Some((value, None)));
    variables.numeric_names.insert(name, index);
    Ok(())
}

fn define_string(text: Slice<'_>, variables: &mut Variables) -> Result<(), Complaint> {
    let equals = text.find(b'=').unwrap_or(text.len());
    let whole = text.take(equals);
    let mut rest = whole;
    let (name, pseudo) = variable_name(&mut rest)?;
    if pseudo || !rest.is_empty() {
        let message = format!("invalid name in string variable definition '{}'", whole.text());
        return Err(Complaint::new(whole.span(), message));
    }
    let key = name.text();
    if variables.numeric_names.contains_key(&key) {
        let message = format!("numeric variable with name '{key}' already exists");
        return Err(Complaint::new(name.span(), message));
    }
    let value = text.skip(equals + 1).bytes().to_vec();
    // Of several definitions of one name the first counts.
    variables.strings.entry(key.clone()).or_insert((value, None));
    variables.string_names.insert(key);
    Ok(())
}
