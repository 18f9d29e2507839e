//! Searching for plain text, distance between texts, and text in quotes.

/// Where `needle` first occurs.
pub fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    let (first, rest) = needle.split_first()?;
    let mut at = 0;
    loop {
        at += text.get(at..)?.iter().position(|byte| byte == first)?;
        if text.get(at + 1..)?.starts_with(rest) {
            return Some(at);
        }
        at += 1;
    }
}

/// As [`find`], with ASCII letters in either case.
pub fn find_ignoring_case(text: &[u8], needle: &[u8]) -> Option<usize> {
    let last = text.len().checked_sub(needle.len())?;
    (0..=last)
        .find(|at| text.get(*at..at + needle.len()).is_some_and(|part| part.eq_ignore_ascii_case(needle)))
}

/// Levenshtein distance in bytes. `row` is scratch memory.
pub fn distance(a: &[u8], b: &[u8], row: &mut Vec<usize>) -> usize {
    row.clear();
    row.extend(0..=b.len());
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (slot, y) in row.iter_mut().skip(1).zip(b) {
            let substitute = diagonal + usize::from(x != y);
            diagonal = *slot;
            left = substitute.min(diagonal + 1).min(left + 1);
            *slot = left;
        }
        if let Some(slot) = row.first_mut() {
            *slot = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Text as it stands in quotes: backslash, quote, tab and line feed by letter, other odd bytes in octal.
pub fn escaped(text: &[u8]) -> String {
    let mut out = String::new();
    for byte in text {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'"' => out.push_str("\\\""),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out
}
