//! What caches keep, and what that is called in files, folders and texts. Knows no content.

/// What a cache keeps. Files of one kind are never read as those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Machine code of kernels.
    Kernels,
    /// Graphs of plans.
    Plans,
    /// What the code of archives was compiled to, and what passes made of that.
    Modules,
}

impl Kind {
    /// Each.
    pub const ALL: [Kind; 3] = [Kind::Kernels, Kind::Plans, Kind::Modules];

    pub(super) fn magic(self) -> &'static [u8; 8] {
        match self {
            Kind::Kernels => b"flmbkrnl",
            Kind::Plans => b"flmbplan",
            Kind::Modules => b"flmbmodl",
        }
    }

    /// The end of a file's name, and what one is called.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Kernels => "kernel",
            Kind::Plans => "plan",
            Kind::Modules => "module",
        }
    }

    /// The name of its folder in that of all caches.
    pub fn folder(self) -> &'static str {
        match self {
            Kind::Kernels => "kernels",
            Kind::Plans => "plans",
            Kind::Modules => "modules",
        }
    }
}
