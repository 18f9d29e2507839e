//! The one integration test binary, so that LLVM is linked once. Each FileCheck file is a named test.

mod tidy;

use libtest_mimic::Arguments;

fn main() {
    let arguments = Arguments::from_args();
    let trials = tidy::trials();
    libtest_mimic::run(&arguments, trials).exit();
}
