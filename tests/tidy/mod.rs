//! Rules about the source itself: layers, module headers, file lengths, language, paths that the documents name.

mod allocations;
mod circles;
mod dependencies;
mod docs;
mod environment;
mod files;
mod generated;
mod language;
mod language_page;
mod layers;
mod pages_of_files;
mod passes;
mod reference;
mod rooms;
mod sources;
mod threads;
mod toolkit;

use libtest_mimic::{Failed, Trial};

/// All tidy tests.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("tidy::layers_point_left", layers::layers_point_left),
        Trial::test("tidy::folders_use_each_other_one_way", rooms::folders_use_each_other_one_way),
        Trial::test("tidy::files_use_each_other_one_way", circles::files_use_each_other_one_way),
        Trial::test("tidy::circles_are_found", circles::circles_are_found),
        Trial::test(
            "tidy::only_the_toolkit_names_what_is_built_in",
            toolkit::only_the_toolkit_names_what_is_built_in,
        ),
        Trial::test("tidy::the_reference_uses_no_kernels", reference::the_reference_uses_no_kernels),
        Trial::test("tidy::loops_run_in_the_one_pool", threads::loops_run_in_the_one_pool),
        Trial::test("tidy::named_files_are_looked_at_first", files::named_files_are_looked_at_first),
        Trial::test("tidy::sizes_from_outside_can_fail", allocations::sizes_from_outside_can_fail),
        Trial::test("tidy::kernels_are_charged", allocations::kernels_are_charged),
        Trial::test("tidy::modules_open_with_a_header", sources::modules_open_with_a_header),
        Trial::test("tidy::files_are_short", sources::files_are_short),
        Trial::test("tidy::text_is_in_standard_english", language::text_is_in_standard_english),
        Trial::test("tidy::architecture_names_existing_paths", sources::architecture_names_existing_paths),
        Trial::test("tidy::docs_are_fresh", docs::docs_are_fresh),
        Trial::test(
            "tidy::blocks_are_the_files_that_they_name",
            pages_of_files::blocks_are_the_files_that_they_name,
        ),
        Trial::test("tidy::the_public_surface_is_listed", pages_of_files::the_public_surface_is_listed),
        Trial::test("tidy::environment_variables_are_documented", environment::variables_are_documented),
        Trial::test("tidy::each_pass_has_tests_of_its_own", passes::each_pass_has_tests_of_its_own),
        Trial::test("tidy::rows_of_rules_are_rules", docs::rows_of_rules_are_rules),
        Trial::test(
            "tidy::crates_come_from_the_registry_under_known_licences",
            dependencies::crates_come_from_the_registry_under_known_licences,
        ),
        Trial::test("tidy::crates_are_built_in_one_version", dependencies::crates_are_built_in_one_version),
        Trial::test("tidy::banned_crates_are_not_built", dependencies::banned_crates_are_not_built),
        Trial::test("tidy::all_manifests_are_looked_at", dependencies::all_manifests_are_looked_at),
        Trial::test("tidy::dependencies_are_used", dependencies::dependencies_are_used),
        Trial::test("tidy::an_op_stands_in_one_file", sources::an_op_stands_in_one_file),
    ]
}

/// A failure that lists its findings.
fn verdict(what: &str, findings: Vec<String>) -> Result<(), Failed> {
    if findings.is_empty() { Ok(()) } else { Err(format!("{what}:\n  {}", findings.join("\n  ")).into()) }
}
