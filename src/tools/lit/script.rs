//! What a test file says about itself: `RUN:`, `DEFINE:`, `REQUIRES:` and their like.

/// One command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunLine {
    /// The first line it stands on, from 1.
    pub(super) line: usize,
    /// The text behind the keyword, continued lines joined.
    pub(super) text: String,
    /// What it is.
    pub(super) kind: LineKind,
}

/// What a command line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// To be run.
    Run,
    /// `%{name} = value`, new.
    Define,
    /// `%{name} = value`, again.
    Redefine,
}

/// The contents of a test file.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Commands and definitions, in order.
    pub(super) lines: Vec<RunLine>,
    /// `REQUIRES:`, with line numbers.
    pub(super) requires: Vec<(usize, String)>,
    /// `UNSUPPORTED:`, with line numbers.
    pub(super) unsupported: Vec<(usize, String)>,
    /// `XFAIL:`, with line numbers.
    pub(super) xfail: Vec<(usize, String)>,
    /// `ALLOW_RETRIES:`
    pub(super) retries: Option<usize>,
}

const KEYWORDS: &[&str] =
    &["RUN:", "DEFINE:", "REDEFINE:", "REQUIRES:", "UNSUPPORTED:", "XFAIL:", "ALLOW_RETRIES:", "END."];

/// Reads a test file; the error says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Script, String> {
    let mut script = Script::default();
    let mut open: Option<RunLine> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let Some((keyword, value)) = keyword(line) else { continue };
        let value = value.trim();
        let kind = match keyword {
            "RUN:" => LineKind::Run,
            "DEFINE:" => LineKind::Define,
            "REDEFINE:" => LineKind::Redefine,
            "END." => break,
            "ALLOW_RETRIES:" => {
                if script.retries.is_some() {
                    return Err("more than one 'ALLOW_RETRIES:' directive".into());
                }
                let number = value.parse().map_err(|_| {
                    format!("'ALLOW_RETRIES:' on line {number} takes one number, not '{value}'")
                })?;
                script.retries = Some(number);
                continue;
            }
            _ => {
                let list = match keyword {
                    "REQUIRES:" => &mut script.requires,
                    "UNSUPPORTED:" => &mut script.unsupported,
                    _ => &mut script.xfail,
                };
                list.extend(value.split(',').map(|item| (number, item.trim().to_string())));
                continue;
            }
        };
        let value = expand_line(value, number)?;
        let (value, continued) = match value.strip_suffix('\\') {
            Some(value) => (value.to_string(), true),
            None => (value, false),
        };
        let line = match open.take() {
            Some(mut line) if line.kind == kind => {
                line.text.push_str(&value);
                line
            }
            Some(line) => {
                return Err(format!(
                    "unterminated '{}' directive (with '\\') on line {} before '{keyword}' on line {number}",
                    name(line.kind),
                    line.line
                ));
            }
            None => RunLine { line: number, text: value, kind },
        };
        match continued {
            true => open = Some(line),
            false => script.lines.push(line),
        }
    }
    match open {
        Some(line) => Err(format!("Test has unterminated '{}' lines (with '\\')", name(line.kind))),
        None => Ok(script),
    }
}

fn name(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Run => "RUN:",
        LineKind::Define => "DEFINE:",
        LineKind::Redefine => "REDEFINE:",
    }
}

/// The first keyword of a line and the text behind it.
fn keyword(line: &str) -> Option<(&'static str, &str)> {
    let found = KEYWORDS.iter().filter_map(|keyword| {
        let at = line.match_indices(keyword).map(|(at, _)| at).find(|at| {
            let before = line.get(..*at).and_then(|before| before.chars().last());
            !before.is_some_and(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
        })?;
        Some((at, *keyword))
    });
    let (at, keyword) = found.min()?;
    Some((keyword, line.get(at + keyword.len()..).unwrap_or_default()))
}

/// Puts line numbers in for `%(line)`, `%(line+3)` and `%(line-3)`.
fn expand_line(text: &str, number: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("%(line") {
        let Some((offset, behind)) = behind.split_once(')') else { break };
        let value = match offset.trim() {
            "" => Some(number),
            _ => {
                let (sign, digits) = offset.split_at(1);
                let digits = digits.trim().parse::<usize>().ok();
                match sign {
                    "+" => digits.and_then(|digits| number.checked_add(digits)),
                    "-" => digits.and_then(|digits| number.checked_sub(digits)),
                    _ => None,
                }
            }
        };
        let Some(value) = value else {
            return Err(format!("bad line number '%(line{offset})' on line {number}"));
        };
        out.push_str(before);
        out.push_str(&value.to_string());
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_numbered() {
        let text = "# RUN: a \\\n# RUN:   b %(line) %(line+2)\n\n// RUN: c %(line-1)\n// END.\nRUN: d\n";
        let script = parse(text).unwrap();
        let lines: Vec<_> = script.lines.iter().map(|line| (line.line, line.text.as_str())).collect();
        assert_eq!(lines, [(1, "a b 2 4"), (4, "c 3")]);
    }

    #[test]
    fn keywords_are_told_apart() {
        let text =
            "REQUIRES: a, b && c\nUNSUPPORTED: d\nXFAIL: *\nREDEFINE: %{x} = 1\nMY-RUN: no\nCHECKRUN: no\n";
        let script = parse(text).unwrap();
        assert_eq!(script.requires, [(1, "a".into()), (1, "b && c".into())]);
        assert_eq!(script.unsupported, [(2, "d".into())]);
        assert_eq!(script.xfail, [(3, "*".into())]);
        assert_eq!(script.lines.len(), 1);
        assert_eq!(script.lines[0].kind, LineKind::Redefine);
    }

    #[test]
    fn open_continuations_are_refused() {
        assert!(parse("RUN: a \\\n").is_err());
        assert!(parse("RUN: a \\\nDEFINE: %{a} = b\n").is_err());
        assert!(parse("RUN: %(line-9)\n").is_err());
        assert!(parse("ALLOW_RETRIES: x\n").is_err());
        assert!(parse("ALLOW_RETRIES: 1\nALLOW_RETRIES: 2\n").is_err());
    }
}
