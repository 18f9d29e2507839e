//! What an op does besides computing its results. Writes to tensors and containers are not here: they are
//! the alias marks of its schema.

use std::ops::BitOr;

/// A small set of effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects(u16);

impl Effects {
    /// Nothing but the results.
    pub const NONE: Effects = Effects(0);
    /// Depends on something outside of its operands (the grad mode, an attribute of an object).
    pub const READS_WORLD: Effects = Effects(1);
    /// Changes something outside of its operands (prints, sets an attribute).
    pub const WRITES_WORLD: Effects = Effects(2);
    /// Draws random numbers.
    pub const RANDOM: Effects = Effects(4);
    /// May raise. Dead code that may raise may go, as in PyTorch.
    pub const MAY_RAISE: Effects = Effects(8);
    /// Runs nested blocks or other functions, whose effects it has too.
    pub const CONTROL: Effects = Effects(16);
    /// Makes an object that can be told apart from an equal one.
    pub const IDENTITY: Effects = Effects(32);
    /// Raises always: what follows does not run.
    pub const NEVER_RETURNS: Effects = Effects(64);
    /// Everything: an unknown op.
    pub const ALL: Effects = Effects(63);

    /// The keywords of dialect files.
    pub const NAMED: [(&'static str, Effects); 8] = [
        ("none", Effects::NONE),
        ("reads_world", Effects::READS_WORLD),
        ("writes_world", Effects::WRITES_WORLD),
        ("random", Effects::RANDOM),
        ("may_raise", Effects::MAY_RAISE),
        ("identity", Effects::IDENTITY),
        ("never_returns", Effects::NEVER_RETURNS),
        ("all", Effects::ALL),
    ];

    /// The effects that a keyword of dialect files denotes.
    pub fn by_name(word: &str) -> Option<Effects> {
        Effects::NAMED.iter().find(|(name, _)| *name == word).map(|(_, effects)| *effects)
    }

    /// Whether all of `other` are among these.
    pub const fn contains(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is among these.
    pub const fn intersects(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets together.
    pub const fn union(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }
}

impl BitOr for Effects {
    type Output = Effects;
    fn bitor(self, other: Effects) -> Effects {
        self.union(other)
    }
}
