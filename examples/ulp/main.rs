//! Proves the error bounds of the compiled functions of f32 by running all 2^32 inputs.
//!
//! `cargo run --release --example ulp -- [STEP [NAME...]]`: every STEP-th input (default 1) of the named
//! functions (default all). Prints a table; exits with 1 if a bound does not hold.

mod functions;

use flambeau::backends::by_name;
use functions::FUNCTIONS;

fn main() {
    let mut args = std::env::args().skip(1);
    let step = args.next().and_then(|s| s.parse().ok()).unwrap_or(1);
    let names: Vec<String> = args.collect();
    let backend = match by_name("llvm") {
        Ok(backend) => backend,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    let mut held = true;
    println!("{:<10} {:>12} {:>10} {:>8}  worst input", "function", "inputs", "max ulp", "bound");
    for function in FUNCTIONS.iter().filter(|f| names.is_empty() || names.iter().any(|n| n == f.name)) {
        match function.measure(&*backend, step) {
            Ok(w) => {
                held &= w.ulps <= function.bound;
                let (name, bound) = (function.name, function.bound);
                println!(
                    "{name:<10} {:>12} {:>10.4} {bound:>8}  f({:e}) = {:e}",
                    w.tried, w.ulps, w.input, w.got
                );
            }
            Err(error) => {
                held = false;
                println!("{:<10} {error}", function.name);
            }
        }
    }
    std::process::exit(i32::from(!held));
}
