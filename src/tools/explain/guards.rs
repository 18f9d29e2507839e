//! Guards of plans: what each asks and expects, the line of source that it stems from, how often it held and missed, and what it found
//! when it missed.

use super::super::table::Table;
use crate::runtime::GuardState;
use serde_json::{Value as Json, json};

/// The longest text of a cell.
const MAX_TEXT: usize = 72;

/// A table for people under a title, and a line for each guard that missed by itself; empty where there are none.
pub(super) fn to_text<'a>(title: &str, guards: impl Iterator<Item = &'a GuardState>) -> String {
    let mut table = Table::new([">guard", "asks", "of", "expects", "from", ">held", ">missed"]);
    let (mut any, mut misses) = (false, String::new());
    for guard in guards {
        any = true;
        let forced = if guard.forced { " (made to miss)" } else { "" };
        let (held, missed) = (guard.held.to_string(), format!("{}{forced}", guard.missed));
        let source = guard.source.as_deref().map(without_folders).unwrap_or_default();
        table.row([
            guard.number.to_string(),
            guard.kind.name().to_string(),
            cut(&guard.of),
            cut(&guard.expects),
            cut(&source),
            held,
            missed,
        ]);
        if let Some(miss) = &guard.miss {
            let (number, expected, seen) = (guard.number, &miss.expected, &miss.seen);
            misses.push_str(&format!("  guard {number} missed: expected {expected}; saw {seen}\n"));
        }
    }
    if any { format!("{title}\n{table}{misses}") } else { String::new() }
}

/// `f.py:1: def f(x):` of `folder/f.py:1: def f(x):`; `--json` has all of it.
fn without_folders(source: &str) -> String {
    let (place, line) = source.split_once(": ").unwrap_or((source, ""));
    let place = place.rsplit('/').next().unwrap_or(place);
    if line.is_empty() { place.to_string() } else { format!("{place}: {line}") }
}

/// The start of a long text; `--json` has all of it.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// A guard for programs.
pub fn to_json(guard: &GuardState) -> Json {
    let miss = guard.miss.as_ref().map(|miss| json!({"expected": miss.expected, "seen": miss.seen}));
    json!({"function": guard.function.as_str(), "number": guard.number, "asks": guard.kind.name(),
        "of": guard.of, "expects": guard.expects, "source": guard.source, "held": guard.held,
        "missed": guard.missed, "miss": miss, "forced": guard.forced})
}
