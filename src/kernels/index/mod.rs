//! Elements chosen by their places: gathered, scattered, joined, selected by rank.

pub mod indexing;
pub mod place;
pub mod select;
