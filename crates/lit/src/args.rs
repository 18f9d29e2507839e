//! Quoting and splitting of command lines, options, and system errors, in Python's format, which lit's users know.

use std::path::Path;

/// An argument, quoted for a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\"'\"'")),
    }
}

/// A text in quotes, odd letters escaped.
pub(super) fn repr(text: &str) -> String {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(mark);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter == mark => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push(mark);
    out
}

/// What the system says, without the number that Rust adds.
pub(super) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

/// Splits a text into arguments at blanks, with quotes and backslash escapes.
pub fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(letters.next()),
            (letter, Some(mark)) if letter == mark => quote = None,
            (letter, Some(_)) => word.get_or_insert_default().push(letter),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, None) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// An error with the file it is about: `[Errno 2] No such file or directory: 'f'`.
pub(super) fn python_error(error: &std::io::Error, path: &str) -> String {
    match error.raw_os_error() {
        Some(number) => format!("[Errno {number}] {}: {}", reason(error), repr(path)),
        None => format!("{}: {}", reason(error), repr(path)),
    }
}

/// The path in a folder, without `.` and `..`.
pub(super) fn absolute(folder: &Path, path: &str) -> std::path::PathBuf {
    let mut out = std::path::PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// Splits arguments into options and the rest, as Python's `gnu_getopt`: short ones may be joined, one with `:` after
/// it takes a value. The error is what is wrong.
pub(super) fn options(
    args: &[String],
    short: &str,
    long: &[&str],
) -> Result<(Vec<(String, String)>, Vec<String>), String> {
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            rest.extend(args.by_ref().cloned());
        } else if let Some(name) = arg.strip_prefix("--") {
            let (name, value) =
                name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            let fits: Vec<&&str> = long.iter().filter(|known| known.starts_with(name)).collect();
            match fits.as_slice() {
                _ if fits.iter().any(|known| **known == name) => {
                    found.push((format!("--{name}"), String::new()))
                }
                [one] => found.push((format!("--{one}"), String::new())),
                [] => return Err(format!("option --{name} not recognized")),
                _ => return Err(format!("option --{name} not a unique prefix")),
            }
            if value.is_some() {
                return Err(format!("option --{name} must not have an argument"));
            }
        } else if let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let mut left = letters.chars();
            while let Some(letter) = left.next() {
                let at = short.find(letter).filter(|_| letter != ':');
                let Some(at) = at else { return Err(format!("option -{letter} not recognized")) };
                let mut value = String::new();
                if short.get(at + 1..).is_some_and(|behind| behind.starts_with(':')) {
                    value = left.as_str().to_string();
                    if value.is_empty() {
                        let missing = || format!("option -{letter} requires argument");
                        value = args.next().ok_or_else(missing)?.clone();
                    }
                    left = "".chars();
                }
                found.push((format!("-{letter}"), value));
            }
        } else {
            rest.push(arg.clone());
        }
    }
    Ok((found, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_as_python_shows_them() {
        assert_eq!(quoted("a-b=c"), "a-b=c");
        assert_eq!(quoted("it's"), "'it'\"'\"'s'");
        assert_eq!((quoted(""), quoted("a b")), ("''".into(), "'a b'".into()));
        assert_eq!(split("-v   -Da=\"b c\"\\ d 'e\\'"), ["-v", "-Da=b c d", "e\\"]);
        assert_eq!(repr("a\\b\n"), "'a\\\\b\\n'");
        assert_eq!((repr("it's"), repr("'\"")), ("\"it's\"".into(), "'\\'\"'".into()));
        assert_eq!(absolute(Path::new("/a/b"), "../c/./d"), Path::new("/a/c/d"));
    }

    #[test]
    fn options_are_taken_from_any_place() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let (found, rest) = options(&words("a -uU3 b -I x --strip -- -w"), "wuU:I:", &["strip-cr"]).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| format!("{name}{value}")).collect();
        assert_eq!(found.join(" "), "-u -U3 -Ix --strip-cr");
        assert_eq!(rest, ["a", "b", "-w"]);
        assert_eq!(options(&words("-x"), "w", &[]).unwrap_err(), "option -x not recognized");
        assert_eq!(options(&words("-U"), "U:", &[]).unwrap_err(), "option -U requires argument");
    }
}
