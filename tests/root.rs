//! The one integration test binary, so that LLVM is linked once. Each FileCheck file, recorded case file and
//! tidy rule is a named test.

mod cases;
mod filecheck_suite;
mod hostile;
mod lsp;
mod pages;
mod test_passes;
mod tidy;
mod view;

use libtest_mimic::Arguments;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = tidy::trials();
    trials.extend(filecheck_suite::trials());
    trials.extend(cases::trials());
    trials.extend(hostile::trials());
    trials.extend(pages::trials());
    trials.extend(view::trials());
    trials.extend(lsp::trials());
    libtest_mimic::run(&arguments, trials).exit();
}
