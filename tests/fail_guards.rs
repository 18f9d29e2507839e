//! Every guard of recorded programs is made to miss, one at a time (others by scripts/conformance.sh); the answers must stay
//! those of PyTorch.

use flambeau::toolkit::Toolkit;
use flambeau::tools::case::Case;
use flambeau::tools::check::{Configuration, Status, check_case_with};
use libtest_mimic::{Failed, Trial};
use std::path::Path;

/// Recorded programs below tests/golden, with the guards that they have together, at least: one for each form that has a plan, and
/// those of frozen attributes and constants.
const FILES: &[(&str, usize)] = &[("modules", 15), ("packages", 20), ("quantized", 12), ("vision", 30)];

/// One trial a case file.
pub fn trials() -> Vec<Trial> {
    FILES
        .iter()
        .map(|(file, least)| Trial::test(format!("fail_guards::{file}"), || check(file, *least)))
        .collect()
}

fn check(file: &str, least: usize) -> Result<(), Failed> {
    let toolkit = Toolkit::default();
    let cases =
        Case::read_all(Path::new(&format!("tests/golden/{file}.jsonl"))).map_err(|e| e.to_string())?;
    let mut guards = 0;
    for case in &cases {
        for number in 0.. {
            let configuration = Configuration::with_passes(&toolkit, "default").map_err(|e| e.to_string())?;
            let outcomes = check_case_with(case, None, &configuration.failing_guard(number));
            if let Some(bad) = outcomes.iter().find(|o| !matches!(o.status, Status::Passed | Status::Skipped))
            {
                let (name, form) = (&case.name, bad.form.name());
                return Err(format!("{name} ({form}) without guard {number}: {}", bad.message).into());
            }
            let missed = outcomes.iter().filter(|outcome| outcome.plans.forced_misses > 0).count();
            guards += missed;
            if missed == 0 {
                break;
            }
        }
    }
    if guards < least {
        return Err(format!("{guards} guards were made to miss, not {least}").into());
    }
    Ok(())
}
