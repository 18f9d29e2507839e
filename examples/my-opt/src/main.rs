//! The `my-opt` command: every command of Flambeau, over the toolkit of this crate.

fn main() -> std::process::ExitCode {
    my_opt::toolkit().main()
}
