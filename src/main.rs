//! The `flambeau` command: the built-in toolkit.

use flambeau::resources::pages;
use flambeau::toolkit::Toolkit;
use flambeau::tools::cli;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// LLVM's functions that register its options and targets; `build.rs` has the linker put them between two marks instead of running them
/// at start. No safe code can name what a linker script defines, so that this module alone of the program declares it and reads it once.
#[cfg(defers_llvm)]
#[allow(
    unsafe_code,
    reason = "the linker script of build.rs defines the marks, which only an extern block can name"
)]
mod llvm {
    use std::slice;

    type Register = Option<extern "C" fn()>;

    unsafe extern "C" {
        static __flambeau_llvm_begin: [Register; 0];
        static __flambeau_llvm_end: [Register; 0];
    }

    /// Runs them all, in their order.
    pub fn register() {
        let (begin, end) = (&raw const __flambeau_llvm_begin, &raw const __flambeau_llvm_end);
        let count = (end as usize - begin as usize) / size_of::<Register>();
        // SAFETY: between the two marks the linker put addresses of functions that take nothing, and nothing else (`build.rs`); they are
        // never written, and null is none.
        let all = unsafe { slice::from_raw_parts(begin.cast::<Register>(), count) };
        all.iter().flatten().for_each(|register| register());
    }
}

fn main() -> std::process::ExitCode {
    #[cfg(defers_llvm)]
    flambeau::backends::llvm::register_by(llvm::register);
    // Before anything is built: what lies in large pages stays there.
    if !std::env::args_os().nth(1).is_some_and(|command| cli::calls_programs(&command)) {
        pages::refuse_large();
    }
    Toolkit::new("flambeau").main()
}
