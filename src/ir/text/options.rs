//! How graph text is read and printed. Neither reading nor printing is known here.

use crate::ir::{Graph, OpId, Type};

/// Infers the type of a result that the text omits, from the op's kind and operands.
pub type ResultTypes<'a> = &'a dyn Fn(&Graph, OpId, usize) -> Option<Type>;

/// Which names values get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// All names of the text stay, so that printing gives the text again.
    #[default]
    Keep,
    /// As PyTorch's parser does: inputs and block parameters keep names that are not numbers, everything else is
    /// numbered in order of definition.
    Torch,
    /// `Keep` for text in printed form that is the dump of a program, which has locations, scopes or subgraphs, or a
    /// FileCheck test (with a `RUN:` line), for several graphs in one file and for texts above 256 KB. Any other graph is read as
    /// PyTorch's parser reads it: `Torch`, and comments after ops are only comments.
    Auto,
}

/// How text is read.
#[derive(Clone, Copy, Default)]
pub struct ParseOptions<'a> {
    /// Types of results that the text leaves out; without it they are tensors.
    pub result_types: Option<ResultTypes<'a>>,
    /// Which names values get.
    pub naming: Naming,
    /// Leave out locations and scopes.
    pub drop_locations: bool,
    /// Symbolic sizes print as `SS(-1)` also where PyTorch's parser is followed, which prints them as `*`. For
    /// `Naming::Auto` a FileCheck test sets it.
    pub show_symbols: bool,
    /// Note where each op stands in the text, for errors about it.
    pub record_places: bool,
}

/// What is printed of a graph.
#[derive(Clone, Copy, Debug)]
pub struct PrintOptions {
    /// Places in the source: ` # file.py:3:4`.
    pub locations: bool,
    /// Scopes of traced ops: `, scope: __module.linear`.
    pub scopes: bool,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions { locations: true, scopes: true }
    }
}

impl PrintOptions {
    /// Neither places nor scopes.
    pub fn bare() -> PrintOptions {
        PrintOptions { locations: false, scopes: false }
    }
}
