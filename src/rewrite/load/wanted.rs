//! Which rules of a table are wanted: the laws, or some groups.

use super::facts;

/// PyTorch's peephole optimizations.
pub(super) const PEEPHOLE: &str = "torchscript-peephole";
/// Those of them that trust what is not known.
pub(super) const TRUSTING: &str = "torchscript-peephole-trusting";

/// Rules of a table.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// Those that hold for every program.
    Laws,
    /// Those of some groups.
    Groups(&'a [&'a str]),
}

impl Wanted<'_> {
    /// Whether a rule of a group is one, by which a pass replaces (`directed`) or not.
    pub(super) fn has(self, group: Option<&str>, directed: bool) -> bool {
        match self {
            Wanted::Laws => !directed && group != Some(TRUSTING),
            Wanted::Groups(groups) => group.is_some_and(|group| groups.contains(&group)),
        }
    }

    pub(super) fn has_facts(self) -> bool {
        match self {
            Wanted::Laws => true,
            Wanted::Groups(groups) => groups.contains(&facts::GROUP),
        }
    }
}
