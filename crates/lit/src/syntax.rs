//! Command lines: words, quotes, pipes, redirections.
//!
//! The shell of LLVM's lit: no variables, no subshells, no background jobs; `$`, `(`, `#` and the like are letters.

/// A word with its quotes taken away.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Word {
    /// The text.
    pub(super) text: String,
    /// Whether a `*` or `?` stands outside quotes.
    pub(super) glob: bool,
}

/// A redirection: the number in front (`2>`), the operator and the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// The number, if one is written.
    pub(super) number: Option<u64>,
    /// `<`, `>`, `>>`, `>&`, `&>`, `<&`, `<<`
    pub(super) operator: &'static str,
    /// What follows.
    pub(super) file: Word,
}

/// One command with its redirections.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Command {
    /// Name and arguments.
    pub(super) words: Vec<Word>,
    /// In the order they are written.
    pub(super) redirects: Vec<Redirect>,
}

/// When a pipeline runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// In any case.
    Always,
    /// If what is before succeeded.
    AfterSuccess,
    /// If what is before failed.
    AfterFailure,
    /// Never: what stands in front should go on in the background, which is not supported.
    Beside,
}

/// Commands joined by `|`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    /// When it runs.
    pub(super) when: When,
    /// The commands.
    pub(super) commands: Vec<Command>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    /// An operator with the number in front of it.
    Operator(&'static str, Option<u64>),
}

/// Parses a command line.
pub(super) fn parse(text: &str) -> Result<Vec<Pipeline>, String> {
    let mut tokens = tokens(text)?.into_iter().peekable();
    let mut pipelines = Vec::new();
    let mut when = When::Always;
    loop {
        let mut commands = vec![command(&mut tokens)?];
        while tokens.next_if_eq(&Token::Operator("|", None)).is_some() {
            commands.push(command(&mut tokens)?);
        }
        pipelines.push(Pipeline { when, commands });
        when = match tokens.next() {
            None => return Ok(pipelines),
            Some(Token::Operator(operator, _)) => {
                if tokens.peek().is_none() {
                    return Err(format!("missing argument to operator '{operator}'"));
                }
                match operator {
                    "&&" => When::AfterSuccess,
                    "||" => When::AfterFailure,
                    "&" => When::Beside,
                    _ => When::Always,
                }
            }
            Some(Token::Word(word)) => return Err(format!("unexpected word '{}'", word.text)),
        };
    }
}

fn command(tokens: &mut std::iter::Peekable<impl Iterator<Item = Token>>) -> Result<Command, String> {
    let mut command = Command::default();
    match tokens.next() {
        None => return Err("empty command!".into()),
        Some(Token::Operator(operator, _)) => {
            return Err(format!("syntax error near unexpected token '{operator}'"));
        }
        Some(Token::Word(word)) if word.text.is_empty() => return Err("empty command!".into()),
        Some(Token::Word(word)) => command.words.push(word),
    }
    while let Some(token) =
        tokens.next_if(|token| !matches!(token, Token::Operator("|" | ";" | "&" | "||" | "&&", _)))
    {
        match token {
            Token::Word(word) => command.words.push(word),
            Token::Operator(operator, number) => match tokens.next() {
                Some(Token::Word(file)) => command.redirects.push(Redirect { number, operator, file }),
                _ => return Err(format!("syntax error near token '{operator}'")),
            },
        }
    }
    Ok(command)
}

/// Longer ones first.
const OPERATORS: &[&str] = &["||", "|", "&&", "&>", "&", ">&", ">>", ">", "<&", "<>", "<", ";"];

fn operator(text: &str) -> Option<(&'static str, usize)> {
    let found = OPERATORS.iter().copied().find(|operator| text.starts_with(operator))?;
    // This pair is read as the other.
    Some((if found == "<>" { "<<" } else { found }, found.len()))
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(tokens);
        }
        if let Some((operator, length)) = operator(rest) {
            tokens.push(Token::Operator(operator, None));
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        let (word, length) = word(rest)?;
        rest = rest.get(length..).unwrap_or_default();
        let number = word.text.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.text.parse().ok());
        match (number.flatten(), operator(rest)) {
            // `2>` is one token.
            (Some(number), Some((operator, length))) if rest.starts_with(['<', '>']) => {
                tokens.push(Token::Operator(operator, Some(number)));
                rest = rest.get(length..).unwrap_or_default();
            }
            _ => tokens.push(Token::Word(word)),
        }
    }
}

/// A word from the front, and its length.
fn word(text: &str) -> Result<(Word, usize), String> {
    let mut word = Word::default();
    let mut quoted_glob = false;
    let mut letters = text.char_indices().peekable();
    let mut end = text.len();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' | '"' => {
                let before = word.text.len();
                quoted(letter, &mut letters, &mut word.text)?;
                // What begins with a quote keeps no wildcard from it.
                quoted_glob |= at > 0 && word.text.get(before..).unwrap_or_default().contains(['*', '?']);
            }
            // Outside of quotes it hides whatever follows, but where a word begins: lit takes the first letter as it is.
            '\\' if at > 0 => word.text.extend(letters.next().map(|(_, letter)| letter)),
            letter if letter.is_whitespace() || "|&;<>".contains(letter) => {
                end = at;
                break;
            }
            letter => {
                word.glob |= matches!(letter, '*' | '?');
                word.text.push(letter);
            }
        }
    }
    if word.glob && quoted_glob {
        return Err("wildcards occur both inside and outside of quotes".into());
    }
    Ok((word, end))
}

/// The rest of a quoted text.
fn quoted(
    mark: char,
    letters: &mut impl Iterator<Item = (usize, char)>,
    out: &mut String,
) -> Result<(), String> {
    while let Some((_, letter)) = letters.next() {
        match letter {
            letter if letter == mark => return Ok(()),
            '\\' if mark == '"' => match letters.next() {
                Some((_, letter @ ('"' | '\\' | '$'))) => out.push(letter),
                Some((_, letter)) => out.extend(['\\', letter]),
                None => return Err("nothing after the last backslash".into()),
            },
            letter => out.push(letter),
        }
    }
    Err(format!("missing quote character {mark}"))
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
            format!("{:?}:{}", p.when, commands.join("|"))
        };
        pipelines.iter().map(pipeline).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn quotes_follow_the_shell() {
        assert_eq!(
            shape(r#"a 'b "c' "d 'e" f\ g "h\"i\n\$" '' \n"#),
            r#"Always:["a", "b \"c", "d 'e", "f g", "h\"i\\n$", "", "\\n"]+0"#
        );
        assert_eq!(shape("a'b'\"c\"d # $e (f) `g`"), r##"Always:["abcd", "#", "$e", "(f)", "`g`"]+0"##);
    }

    #[test]
    fn operators_join_commands() {
        assert_eq!(
            shape("a|b && c || ! d; e 2>&1 >f <g & h"),
            r#"Always:["a"]+0|["b"]+0 AfterSuccess:["c"]+0 AfterFailure:["!", "d"]+0 Always:["e"]+3 Beside:["h"]+0"#
        );
        assert_eq!(shape("a 2 >b c2>d '3'>e"), r#"Always:["a", "2", "c2"]+3"#);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in
            ["", "a |", "| a", "a && ", "a > ", "a ;", "a > | b", "a \"b\\", "a'*'b*", "a 'open", "\"\" x"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
