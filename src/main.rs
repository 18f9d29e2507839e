//! The `flambeau` command: the built-in toolkit.

use flambeau::resources::pages;
use flambeau::toolkit::Toolkit;
use flambeau::tools::cli;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Before anything is built: what lies in large pages stays there.
    if !std::env::args_os().nth(1).is_some_and(|command| cli::calls_programs(&command)) {
        pages::refuse_large();
    }
    Toolkit::new("flambeau").main()
}
