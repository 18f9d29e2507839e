//! The one integration test binary, so that LLVM is linked once. Each FileCheck file, recorded case file and
//! tidy rule is a named test.

mod accuracy;
mod alias_answers;
mod aliasing;
mod bytecode;
mod cache;
mod cases;
mod fail_guards;
mod filecheck_suite;
mod hostile;
mod hostile_archives;
mod hostile_texts;
mod device;
mod fusion;
mod fuzz_corpus;
mod identity;
mod identity_source;
mod in_place;
mod lsp;
mod model;
mod names;
mod op_fuzz;
mod pages;
mod profiling;
mod program_fuzz;
mod rules;
mod scalars;
mod scratch;
mod steps;
mod test_passes;
mod tidy;
mod training;
mod view;

use libtest_mimic::Arguments;

fn main() {
    if let Some(status) = hostile::as_child() {
        std::process::exit(status);
    }
    if let Some(status) = op_fuzz::as_child() {
        std::process::exit(status);
    }
    let arguments = Arguments::from_args();
    let mut trials = tidy::trials();
    trials.extend(filecheck_suite::trials());
    trials.extend(accuracy::trials());
    trials.extend(alias_answers::trials());
    trials.extend(aliasing::trials());
    trials.extend(identity::trials());
    trials.extend(identity_source::trials());
    trials.extend(bytecode::trials());
    trials.extend(cache::trials());
    trials.extend(cases::trials());
    trials.extend(fail_guards::trials());
    trials.extend(device::trials());
    trials.extend(fusion::trials());
    trials.extend(in_place::trials());
    trials.extend(hostile::trials());
    trials.extend(fuzz_corpus::trials());
    trials.extend(pages::trials());
    trials.extend(profiling::trials());
    trials.extend(program_fuzz::trials());
    trials.extend(view::trials());
    trials.extend(lsp::trials());
    trials.extend(model::trials());
    trials.extend(names::trials());
    trials.extend(op_fuzz::trials());
    trials.extend(rules::trials());
    trials.extend(scalars::trials());
    trials.extend(steps::trials());
    trials.extend(training::trials());
    let scratch = scratch::Guard;
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(scratch);
    conclusion.exit();
}
