//! Runs the files below `tests/suite` by their RUN lines, in this process: `my-opt`, `FileCheck` and `not` are at hand there.

use flambeau::tools::{cli, lit};
use std::path::Path;

fn main() {
    let config = cli::lit_config("my-opt", my_opt::toolkit());
    let words = ["lit", "-v", "tests/suite"].map(Into::into);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    if std::env::set_current_dir(folder).is_err() {
        std::process::exit(2);
    }
    std::process::exit(lit::main(&words, config, &mut std::io::stdout(), &mut std::io::stderr()));
}
