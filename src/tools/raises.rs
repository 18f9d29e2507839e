//! Whether an exception is the recorded one: class, first paragraph of the message, and the places it marks.

use super::case::Raises;

/// Prefixes of what the interpreter raises.
const INTERPRETER: &str = "The following operation failed in the TorchScript interpreter.";

/// What of a message is compared.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    /// The message proper.
    paragraph: String,
    /// Line number and underlined text of each place, in order.
    places: Vec<(usize, String)>,
}

/// Says how an exception differs from the recorded one. `lines_only`: the texts of places are not at hand (graph
/// text has line numbers alone), so only the innermost line is compared.
pub fn compare(expected: &Raises, actual: &Raises, lines_only: bool) -> Result<(), String> {
    let last = |class: &str| class.rsplit('.').next().unwrap_or(class).to_string();
    if last(&expected.class) != last(&actual.class) {
        return Err(format!(
            "expected {} to be raised, got {}: {}",
            expected.class, actual.class, actual.message
        ));
    }
    let (wanted, got) = (parts(&expected.message), parts(&actual.message));
    if wanted.paragraph != got.paragraph {
        return Err(format!("expected the message {:?}, got {:?}", wanted.paragraph, got.paragraph));
    }
    let (wanted, got) = if expected.message.starts_with(INTERPRETER) {
        (wanted.places.last(), got.places.last())
    } else {
        (wanted.places.first(), got.places.first())
    };
    match (wanted, got) {
        (None, _) => Ok(()),
        (Some(wanted), Some(got)) if wanted == got || (lines_only && wanted.0 == got.0) => Ok(()),
        (Some(wanted), got) => Err(format!("expected the place {wanted:?}, got {got:?}")),
    }
}

fn parts(message: &str) -> Parts {
    let lines: Vec<&str> = message.lines().collect();
    let mut parts = Parts { paragraph: paragraph(message), places: Vec::new() };
    for (n, line) in lines.iter().enumerate() {
        if let Some(number) = place_line(line) {
            parts.places.push((number, String::new()));
        } else if let (Some(marks), Some(place)) = (marked(line), parts.places.last_mut()) {
            let above = n.checked_sub(1).and_then(|n| lines.get(n)).copied().unwrap_or("");
            let text: String = above.chars().skip(marks.0).take(marks.1).collect();
            place.1.push_str(&text);
            place.1.push('\n');
        }
    }
    parts
}

/// The number in `  File "name", line 3, in f`.
fn place_line(line: &str) -> Option<usize> {
    let rest = line.trim_start().strip_prefix("File \"")?;
    let (_, rest) = rest.rsplit_once("\", line ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Column and number of the tildes of a line of marks.
fn marked(line: &str) -> Option<(usize, usize)> {
    let marks = line.strip_suffix(" <--- HERE").unwrap_or(line);
    let blanks = marks.len() - marks.trim_start_matches(' ').len();
    let tildes = marks.trim_start_matches(' ');
    (!tildes.is_empty() && tildes.chars().all(|c| c == '~')).then_some((blanks, tildes.len()))
}

/// The message proper: of the interpreter's, what follows the last frame; of others, what stands before the
/// first place; in either case up to the first blank
/// line. Suggestions are left out.
fn paragraph(message: &str) -> String {
    let text = match message.strip_prefix(INTERPRETER) {
        Some(rest) => after_frames(rest),
        None => message,
    };
    let lines = text.trim_start_matches('\n').lines();
    let ends = |line: &str| {
        line.trim().is_empty()
            || line.starts_with("  File \"")
            || line.starts_with("Here are some suggestions")
    };
    let lines: Vec<&str> = lines.take_while(|line| !ends(line)).collect();
    lines.join("\n").trim_end().to_string()
}

/// From the line `Class: message` on. Lines of source that stand before it are indented or hold more than a name
/// before their colon.
fn after_frames(text: &str) -> &str {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let is_class = line.split_once(": ").is_some_and(|(head, _)| {
            head.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
                && head.starts_with(|c: char| c.is_alphabetic() || c == '_')
        });
        if is_class {
            return text.get(offset..).unwrap_or("");
        }
        offset += line.len();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most \
        recent call last):\n  File \"<string>\", line 9, in f\ndef f(n: int):\n    return g(n)\n           ~ <--- HERE\n  \
        File \"<string>\", line 3, in g\ndef g(n: int):\n    assert n > 3, \"no\"\n    ~~~~~~~~~~~~~~~~~~ <--- HERE\n    \
        return n\nRuntimeError: AssertionError: no\n";

    #[test]
    fn parts_of_an_interpreters_message() {
        let parts = parts(RECORDED);
        assert_eq!(parts.paragraph, "RuntimeError: AssertionError: no");
        assert_eq!(parts.places.last(), Some(&(3, "assert n > 3, \"no\"\n".to_string())));
    }

    #[test]
    fn messages_are_compared_by_class_paragraph_and_place() {
        let raises = |class: &str, message: &str| Raises {
            when: "run".to_string(),
            class: class.to_string(),
            message: message.to_string(),
        };
        let recorded = raises("torch.jit.Error", RECORDED);
        assert_eq!(compare(&recorded, &raises("Error", RECORDED), false), Ok(()));
        assert!(compare(&recorded, &raises("RuntimeError", RECORDED), false).is_err());
        let elsewhere = RECORDED.replace("line 3", "line 4");
        assert!(compare(&recorded, &raises("Error", &elsewhere), false).is_err());
        let other = RECORDED.replace("AssertionError: no", "AssertionError: yes");
        assert!(compare(&recorded, &raises("Error", &other), false).is_err());
    }
}
