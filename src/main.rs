//! The `flambeau` command: the built-in toolkit.

fn main() -> std::process::ExitCode {
    flambeau::toolkit::Toolkit::new("flambeau").main()
}
