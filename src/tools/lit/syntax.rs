//! Command lines: words, quotes, pipes, redirections.
//!
//! The part of the shell that tests need; what is left out (variables, subshells, background jobs) is refused by
//! name and never taken for a word.

/// A word with its quotes taken away.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Word {
    /// The text.
    pub(super) text: String,
    /// Whether a `*` or `?` stands outside quotes.
    pub(super) glob: bool,
}

/// Where an output or the input goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// `< file`
    Read(Word),
    /// `> file` or `2>> file`: which output, and whether to append.
    Write {
        /// 1 or 2.
        output: u8,
        /// Whether the file is kept and added to.
        append: bool,
        /// The file.
        file: Word,
    },
    /// `2>&1`: the first goes where the second goes now.
    Join(u8, u8),
}

/// One command with its redirections.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Command {
    /// Name and arguments.
    pub(super) words: Vec<Word>,
    /// In the order they are written.
    pub(super) redirects: Vec<Redirect>,
    /// Whether the next command reads the errors too (`|&`).
    pub(super) pipe_errors: bool,
}

/// When a pipeline runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// In any case.
    Always,
    /// If the one before succeeded.
    AfterSuccess,
    /// If the one before failed.
    AfterFailure,
}

/// Commands joined by `|`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    /// When it runs.
    pub(super) when: When,
    /// Whether its outcome is turned round (`!`).
    pub(super) negated: bool,
    /// The commands.
    pub(super) commands: Vec<Command>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    /// `|`, `|&`, `&&`, `||`, `;`
    Operator(&'static str),
    /// Output number (0 for the input) and operator.
    Redirect(Option<u8>, &'static str),
}

/// Parses a command line.
pub(super) fn parse(text: &str) -> Result<Vec<Pipeline>, String> {
    let mut pipelines = Vec::new();
    let mut when = When::Always;
    let mut negated = false;
    let mut commands = Vec::new();
    let mut command = Command::default();
    let mut tokens = tokens(text)?.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => {
                if command.words.is_empty() && commands.is_empty() && word.text == "!" && !word.glob {
                    negated = !negated;
                } else {
                    command.words.push(word);
                }
            }
            Token::Redirect(output, operator) => {
                let Some(Token::Word(file)) = tokens.next() else {
                    return Err(format!("no file behind '{operator}'"));
                };
                redirect(&mut command, output, operator, file)?;
            }
            Token::Operator(operator) => {
                if command.words.is_empty() {
                    return Err(format!("no command before '{operator}'"));
                }
                command.pipe_errors = operator == "|&";
                commands.push(std::mem::take(&mut command));
                when = match operator {
                    "|" | "|&" => continue,
                    other => {
                        let commands = std::mem::take(&mut commands);
                        pipelines.push(Pipeline { when, negated, commands });
                        negated = false;
                        match other {
                            "&&" => When::AfterSuccess,
                            "||" => When::AfterFailure,
                            _ => When::Always,
                        }
                    }
                };
            }
        }
    }
    if !command.words.is_empty() {
        commands.push(command);
        pipelines.push(Pipeline { when, negated, commands });
    } else if when != When::Always
        || !commands.is_empty()
        || !command.redirects.is_empty()
        || pipelines.is_empty()
    {
        return Err("a command is missing at the end".into());
    }
    Ok(pipelines)
}

fn redirect(command: &mut Command, output: Option<u8>, operator: &str, file: Word) -> Result<(), String> {
    let number = output.unwrap_or(1);
    if number > 2 || (number == 0 && operator != "<") {
        return Err(format!("output {number} cannot be redirected"));
    }
    match operator {
        "<" => command.redirects.push(Redirect::Read(file)),
        ">&" => match file.text.as_str() {
            "1" => command.redirects.push(Redirect::Join(number, 1)),
            "2" => command.redirects.push(Redirect::Join(number, 2)),
            _ if output.is_none() => write_both(command, file, false),
            other => return Err(format!("'{operator}{other}' is not supported")),
        },
        "&>" => write_both(command, file, false),
        "&>>" => write_both(command, file, true),
        _ => {
            let append = operator == ">>";
            command.redirects.push(Redirect::Write { output: number, append, file });
        }
    }
    Ok(())
}

fn write_both(command: &mut Command, file: Word, append: bool) {
    command.redirects.push(Redirect::Write { output: 1, append, file });
    command.redirects.push(Redirect::Join(2, 1));
}

const OPERATORS: &[&str] = &["||", "|&", "|", "&&", ";"];
const REDIRECTS: &[&str] = &["&>>", "&>", ">>", ">&", ">", "<"];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let starts = |list: &[&'static str]| list.iter().copied().find(|operator| rest.starts_with(operator));
        let digit = first.to_digit(10).and_then(|digit| u8::try_from(digit).ok());
        let behind_digit = rest.get(1..).unwrap_or_default();
        if let (Some(output), true) = (digit, behind_digit.starts_with(['<', '>'])) {
            let operator = REDIRECTS.iter().copied().find(|operator| behind_digit.starts_with(operator));
            let operator = operator.unwrap_or(">");
            tokens.push(Token::Redirect(Some(output), operator));
            rest = behind_digit.get(operator.len()..).unwrap_or_default();
        } else if let Some(operator) = starts(REDIRECTS) {
            tokens.push(Token::Redirect(None, operator));
            rest = rest.get(operator.len()..).unwrap_or_default();
        } else if let Some(operator) = starts(OPERATORS) {
            tokens.push(Token::Operator(operator));
            rest = rest.get(operator.len()..).unwrap_or_default();
        } else if matches!(first, '&' | '(' | ')' | '`') {
            return Err(format!("'{first}' is not supported outside quotes"));
        } else if first == '#' {
            return Ok(tokens);
        } else {
            let (word, length) = word(rest)?;
            tokens.push(Token::Word(word));
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

/// A word from the front, and its length.
fn word(text: &str) -> Result<(Word, usize), String> {
    let mut word = Word::default();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' => loop {
                match letters.next() {
                    Some((_, '\'')) => break,
                    Some((_, letter)) => word.text.push(letter),
                    None => return Err("a quote ' is not closed".into()),
                }
            },
            '"' => loop {
                match letters.next() {
                    Some((_, '"')) => break,
                    Some((_, '\\')) => match letters.next() {
                        Some((_, letter @ ('"' | '\\' | '$' | '`'))) => word.text.push(letter),
                        Some((_, letter)) => word.text.extend(['\\', letter]),
                        None => return Err("a quote \" is not closed".into()),
                    },
                    Some((_, letter)) => word.text.push(letter),
                    None => return Err("a quote \" is not closed".into()),
                }
            },
            '\\' => match letters.next() {
                Some((_, letter)) => word.text.push(letter),
                None => return Err("nothing behind the last backslash".into()),
            },
            ' ' | '\t' | '\n' | '\r' | '|' | ';' | '<' | '>' | '&' | '(' | ')' => return Ok((word, at)),
            '`' => return Err("'`' is not supported outside quotes".into()),
            '$' if letters.peek().is_some_and(|(_, next)| next.is_alphabetic() || "({_".contains(*next)) => {
                return Err("variables ('$') are not supported outside quotes".into());
            }
            '*' | '?' => {
                word.glob = true;
                word.text.push(letter);
            }
            _ => word.text.push(letter),
        }
    }
    Ok((word, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> String {
        let pipelines = match parse(text) {
            Ok(pipelines) => pipelines,
            Err(error) => return format!("error: {error}"),
        };
        let words = |command: &Command| {
            let words: Vec<_> = command.words.iter().map(|word| word.text.as_str()).collect();
            format!("{words:?}+{}", command.redirects.len())
        };
        let pipeline = |p: &Pipeline| {
            let commands: Vec<_> = p.commands.iter().map(words).collect();
            format!("{:?}{}:{}", p.when, if p.negated { "!" } else { "" }, commands.join("|"))
        };
        pipelines.iter().map(pipeline).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn quotes_follow_the_shell() {
        assert_eq!(
            shape(r#"a 'b "c' "d 'e" f\ g "h\"i\n" ''"#),
            r#"Always:["a", "b \"c", "d 'e", "f g", "h\"i\\n", ""]+0"#
        );
        assert_eq!(shape("a'b'\"c\"d # e"), r#"Always:["abcd"]+0"#);
    }

    #[test]
    fn operators_join_commands() {
        assert_eq!(
            shape("a|b && c || ! d; e 2>&1 >f <g"),
            r#"Always:["a"]+0|["b"]+0 AfterSuccess:["c"]+0 AfterFailure!:["d"]+0 Always:["e"]+3"#
        );
        assert_eq!(shape("a &> b ; "), r#"Always:["a"]+2"#);
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        for text in [
            "", "a |", "| a", "a && ", "a > ", "(a)", "a &", "a `b`", "a $b", "a 'b", "a \"b", "a \\",
            "a 3>b",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
