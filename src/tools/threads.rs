//! `--threads N`, the same for every command that computes, with one default.

use crate::resources::pool;
use clap::Args;

/// How many threads a command may use.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ThreadOptions {
    /// Threads that compute side by side [default: FLAMBEAU_NUM_THREADS, else all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub threads: usize,
}

impl ThreadOptions {
    /// Lets the loops of this process run on so many threads.
    pub fn set(self) {
        pool::set_threads(self.threads);
    }

    /// How many threads there are.
    pub fn count(self) -> usize {
        match self.threads {
            0 => pool::threads(),
            threads => threads,
        }
    }
}
