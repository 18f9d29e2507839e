//! Which operators TorchScript's autocasting gives other inputs, by schema: recorded data. It decides what the pass
//! `autocast` casts and nothing else.

use super::Op;
use hashbrown::HashMap;
use std::sync::LazyLock;

/// What happens to an operator within `with torch.autocast(...)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutocastPolicy {
    /// Inputs in single precision are cast to the dtype of the context.
    Reduced,
    /// Inputs in half precision are cast to float32.
    Full,
    /// The same, unless the operator's dtype is given.
    FullUnlessDtype,
    /// The program is refused.
    Refused,
}

/// Recorded from PyTorch 2.15 by tests/golden/record_autocast.py.
static POLICIES: LazyLock<HashMap<&str, AutocastPolicy>> = LazyLock::new(|| {
    let lines = include_str!("aten/autocast.txt").lines();
    lines
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, text)| Some((name, policy(text)?)))
        .collect()
});

fn policy(text: &str) -> Option<AutocastPolicy> {
    match text {
        "reduced" => Some(AutocastPolicy::Reduced),
        "full" => Some(AutocastPolicy::Full),
        "full unless dtype" => Some(AutocastPolicy::FullUnlessDtype),
        "refused" => Some(AutocastPolicy::Refused),
        _ => None,
    }
}

/// What autocasting does to an operator; None where it leaves it alone.
pub fn autocast_policy(row: &Op) -> Option<AutocastPolicy> {
    let schema = row.schema_text();
    POLICIES.get(schema.split('(').next().unwrap_or(schema)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_record_is_read() {
        let lines = include_str!("aten/autocast.txt").lines().count();
        assert_eq!(POLICIES.len(), lines);
        assert_eq!(POLICIES.get("aten::mm"), Some(&AutocastPolicy::Reduced));
        assert_eq!(POLICIES.get("aten::add.Tensor"), Some(&AutocastPolicy::Full));
        assert_eq!(POLICIES.get("aten::sum"), Some(&AutocastPolicy::FullUnlessDtype));
        assert_eq!(POLICIES.get("aten::relu"), None);
    }
}
