//! Front ends: what turns files and texts from outside into IR. They know the dialects, and nothing of
//! passes, lowering or how a program is run.

pub mod script;
