//! What an equation of a rule or a fact promises about the values of its sides. It is declared beside rows, as facts of rows have one.

/// What a rule promises about the values of both sides, the strongest promise first. A driver that works under a
/// contract takes the rules that promise at least as much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// Same type, sizes and bits; any NaN equals any NaN.
    #[default]
    Exact,
    /// As exact where the left side meets no NaN and no infinity; -0 equals 0.
    NanRelaxed,
    /// Within the dtype's tolerance on finite inputs of moderate size.
    FastMath,
    /// PyTorch does it and no law says that it may: nothing is checked, and only the pass of the rule's own group applies it.
    Trusted,
}

impl Contract {
    /// As rules write it.
    pub fn name(self) -> &'static str {
        match self {
            Contract::Exact => "exact",
            Contract::NanRelaxed => "nan-relaxed",
            Contract::FastMath => "fast-math",
            Contract::Trusted => "trusted",
        }
    }

    /// Names of the contracts that may be in force, the strongest first.
    pub const NAMES: &[&str] = &["exact", "nan-relaxed", "fast-math"];

    /// The contract of a name.
    pub fn named(name: &str) -> Option<Contract> {
        [Contract::Exact, Contract::NanRelaxed, Contract::FastMath, Contract::Trusted]
            .into_iter()
            .find(|c| c.name() == name)
    }

    /// Whether a rule that promises `rule` may be applied where this contract is in force.
    pub fn admits(self, rule: Contract) -> bool {
        rule <= self
    }
}
