//! Graphs for the eye: a picture (`svg`), a page for the browser (`html`), data for other programs (`json`).
//!
//! [`model`] flattens a module into tables, `layers` puts the nodes of each block into rows, `place` gives them
//! coordinates. The page holds the same rows and places them itself, since blocks open and close there. Must not
//! know how graphs are run or changed.

mod build;
mod html;
mod labels;
mod layers;
mod model;
mod place;
mod scopes;
mod seen;
mod svg;

pub use build::{Looks, model, model_with};
pub use html::html;
pub use model::{Block, Function, Model, Op, Part, Value};
pub use seen::{Sizes, Times};
pub(super) use svg::escaped;
pub use svg::svg;

/// The module as JSON; the layout of the data is described in docs/view.md.
pub fn json(model: &Model) -> String {
    // Tables of numbers and text cannot fail to be written.
    let mut text = serde_json::to_string_pretty(model).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
