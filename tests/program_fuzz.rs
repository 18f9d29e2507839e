//! New TorchScript programs, chosen by a seed: each must give, print and raise the same by every engine (`fuzz/engines.rs`).
//! By hand, many more:
//!
//!     FLAMBEAU_FUZZ_PROGRAMS=5000 FLAMBEAU_FUZZ_SEED=7 cargo test --test root program_fuzz

use super::fuzz_corpus::targets::{engines, programs};
use engines::Tally;
use flambeau::diag::{Diagnostic, panics};
use libtest_mimic::{Failed, Trial};

/// Trials, so that two cores have work.
const PARTS: u64 = 2;
/// Programs of a trial, where the environment does not say.
const PROGRAMS: u64 = 60;
/// Bytes that choose a program.
const BYTES: u64 = 260;
/// Faults that are shown.
const SHOWN: usize = 3;

pub fn trials() -> Vec<Trial> {
    let trial = |part| Trial::test(format!("program_fuzz::part_{part}"), move || part_of(part));
    (0..PARTS).map(trial).collect()
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The bytes of a program, by splitmix64.
fn bytes(seed: u64, n: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let count = 20 + next() % BYTES;
    let mut bytes: Vec<u8> = (0..count).map(|_| next() as u8).collect();
    // One in four has what the corpora have.
    if !n.is_multiple_of(4) {
        bytes[0] = programs::RICH;
    }
    bytes
}

fn part_of(part: u64) -> Result<(), Failed> {
    let (count, seed) = (number("FLAMBEAU_FUZZ_PROGRAMS", PROGRAMS), number("FLAMBEAU_FUZZ_SEED", 1));
    let first = number("FLAMBEAU_FUZZ_FROM", 0);
    let (mut tally, mut faults) = (Tally::default(), Vec::new());
    for n in (first..first + count).map(|n| n * PARTS + part) {
        let text = programs::write(&bytes(seed, n));
        let compared = panics::catch("the program", || engines::compare(&text).map_err(Diagnostic::internal));
        match compared.and_then(|result| result) {
            Ok(one) => tally.add(one),
            Err(fault) => faults.push(format!("program {n}: {}\n{text}", fault.message())),
        }
    }
    if !faults.is_empty() {
        let shown = faults[..faults.len().min(SHOWN)].join("\n");
        return Err(format!("{} of {count} programs differ:\n{shown}", faults.len()).into());
    }
    let Tally { compiled, answered, raised, fused, loops } = tally;
    let summary = format!(
        "{count}: {compiled} compiled, {answered} answered, {raised} raised, {fused} fused, {loops} loops"
    );
    if std::env::var_os("FLAMBEAU_FUZZ_PROGRAMS").is_some() {
        eprintln!("{summary}");
    }
    // A generator that makes nothing of use would find nothing either.
    let kernels = !cfg!(feature = "llvm") || (fused * 8 > count && loops * 20 > count);
    if compiled * 10 < count * 9 || answered * 4 < count || raised * 100 < count || !kernels {
        return Err(format!("too little is compared of {summary}").into());
    }
    Ok(())
}
