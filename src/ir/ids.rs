//! Typed 32-bit handles into a graph's arenas.

macro_rules! handle {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(super) u32);

        #[allow(dead_code, reason = "one macro makes all handles; not each needs all of it")]
        impl $name {
            /// The place of no object.
            pub(super) const NONE: $name = $name(u32::MAX);

            /// Whether it means no object.
            pub(super) fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            /// None for the place of no object.
            pub(super) fn some(self) -> Option<$name> {
                if self.is_none() { None } else { Some(self) }
            }

            /// A dense index, for side tables.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}{}", &stringify!($name)[..1], self.0)
            }
        }
    };
}

handle!(OpId, "An op of a graph.");
handle!(ValueId, "A value of a graph: an op's result or a block's parameter.");
handle!(BlockId, "A block of a graph.");
