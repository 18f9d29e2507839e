//! The compiled functions of f32 keep the bounds that docs/math.md states. A prime step visits every exponent and many mantissas;
//! `cargo run --release --example ulp` visits all inputs.

#[path = "../examples/ulp/functions.rs"]
pub mod functions;

use libtest_mimic::{Failed, Trial};

/// One trial.
pub fn trials() -> Vec<Trial> {
    let trial =
        Trial::test("accuracy::compiled_functions_keep_their_bounds", compiled_functions_keep_their_bounds);
    vec![trial.with_ignored_flag(!flambeau::backends::compiles())]
}

fn compiled_functions_keep_their_bounds() -> Result<(), Failed> {
    let backend = flambeau::backends::by_name("llvm")?;
    for function in functions::FUNCTIONS {
        let worst = function.measure(&*backend, 10_009)?;
        if worst.ulps > function.bound {
            return Err(format!("{}: {worst:?}", function.name).into());
        }
    }
    Ok(())
}
