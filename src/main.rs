//! The `flambeau` command.

fn main() {
    std::process::exit(flambeau::tools::cli::main(std::env::args_os()));
}
