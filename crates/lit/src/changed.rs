//! Which lines of an output are a tool's work: those that it does not write if its work is left out.
//!
//! Values (`%` and a name) may have other names in both texts, for example when the removal of an op renumbers those after it. A line
//! counts as changed if its text differs, or if it has another value than before.

use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::BTreeMap;

/// For each line of `output` whether it gets a check: lines that `input` does not have, the two lines around removed ones, and the
/// first line of the function around them, so that checks cannot match elsewhere.
pub(super) fn lines_to_check(input: &str, output: &str) -> Vec<bool> {
    let (old, new): (Vec<&str>, Vec<&str>) = (input.lines().collect(), output.lines().collect());
    let masked = |lines: &[&str]| lines.iter().map(|line| without_names(line)).collect::<Vec<_>>();
    let mut keep = vec![false; new.len()];
    let (mut names, mut taken) = (BTreeMap::new(), BTreeMap::new());
    for part in capture_diff_slices(Algorithm::Myers, &masked(&old), &masked(&new)) {
        match part {
            DiffOp::Equal { old_index, new_index, len } => {
                for n in 0..len {
                    let pairs = values(old[old_index + n]).zip(values(new[new_index + n]));
                    // One name for each value, both ways.
                    let is_other = |(a, b): (_, _)| {
                        *names.entry(a).or_insert(b) != b || *taken.entry(b).or_insert(a) != a
                    };
                    keep[new_index + n] |= pairs.map(is_other).fold(false, |all, one| all | one);
                }
            }
            DiffOp::Delete { new_index, .. } => {
                let around = [new_index.checked_sub(1), Some(new_index)];
                around.into_iter().flatten().filter(|n| *n < new.len()).for_each(|n| keep[n] = true);
            }
            DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
                keep[new_index..new_index + new_len].fill(true);
            }
        }
    }
    let is_head = |line: &str| line.starts_with(|first: char| !first.is_whitespace() && first != '}');
    let mut head = None;
    for n in 0..new.len() {
        head = if is_head(new[n]) { Some(n) } else { head };
        if let Some(head) = head.filter(|_| keep[n]) {
            keep[head] = true;
        }
    }
    keep
}

/// The values of a text, in order: `%` and a name.
pub(super) fn values(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.match_indices('%').filter_map(move |(at, _)| {
        let length = text[at + 1..].find(|c| !is_name(c)).unwrap_or(text.len() - at - 1);
        (length > 0).then(|| &text[at..=at + length])
    })
}

/// A line with `%` for each value.
fn without_names(line: &str) -> String {
    let mut out = line.to_string();
    for value in values(line).collect::<Vec<_>>().into_iter().rev() {
        let at = value.as_ptr() as usize - line.as_ptr() as usize;
        out.replace_range(at + 1..at + value.len(), "");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept<'t>(input: &str, output: &'t str) -> Vec<&'t str> {
        let keep = lines_to_check(input, output);
        output.lines().zip(keep).filter(|(_, keep)| *keep).map(|(line, _)| line).collect()
    }

    #[test]
    fn unchanged_lines_are_left_out() {
        let input = "f(%x):\n  %1 = a(%x)\n  %2 = b(%1)\n  %3 = c(%2)\n  %4 = d(%3)\n  return %4\n";
        assert!(kept(input, input).is_empty());
        // An op is removed, the others are renumbered and have the same operands.
        let output = "f(%x):\n  %1 = a(%x)\n  %2 = c(%1)\n  %3 = d(%2)\n  return %3\n";
        assert_eq!(kept(input, output), ["f(%x):", "  %1 = a(%x)", "  %2 = c(%1)"]);
        let output = input.replace("c(%2)", "c(%1)");
        assert_eq!(kept(input, &output), ["f(%x):", "  %3 = c(%1)"]);
        let output = input.replace("d(", "e(");
        assert_eq!(kept(input, &output), ["f(%x):", "  %4 = e(%3)"]);
        // Of two functions, the one that changed.
        let two = format!("{input}g(%y):\n  return %y\n");
        let output = two.replace("return %y", "return %x");
        assert_eq!(kept(&two, &output), ["g(%y):", "  return %x"]);
    }
}
