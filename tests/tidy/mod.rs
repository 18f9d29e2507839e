//! Rules about the source itself: layers, module headers, file lengths, paths that the documents name.

mod docs;
mod layers;
mod sources;

use libtest_mimic::{Failed, Trial};

/// All tidy tests.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("tidy::layers_point_left", layers::layers_point_left),
        Trial::test("tidy::modules_open_with_a_header", sources::modules_open_with_a_header),
        Trial::test("tidy::files_are_short", sources::files_are_short),
        Trial::test("tidy::architecture_names_existing_paths", sources::architecture_names_existing_paths),
        Trial::test("tidy::docs_are_fresh", docs::docs_are_fresh),
        Trial::test("tidy::an_aten_op_stands_in_one_file", sources::an_aten_op_stands_in_one_file),
    ]
}

/// A failure that lists its findings.
fn verdict(what: &str, findings: Vec<String>) -> Result<(), Failed> {
    if findings.is_empty() { Ok(()) } else { Err(format!("{what}:\n  {}", findings.join("\n  ")).into()) }
}
