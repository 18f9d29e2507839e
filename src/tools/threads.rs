//! `--threads N`, the same for every command that computes, with one default.

use crate::diag::{Diagnostic, Result};
use crate::resources::pool;
use clap::Args;

/// How many threads a command may use.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ThreadOptions {
    /// Number of compute threads [default: FLAMBEAU_NUM_THREADS, else all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub threads: usize,
}

/// That `FLAMBEAU_NUM_THREADS`, where it is set, is a number of threads.
pub fn check_environment() -> Result<()> {
    std::env::var(NUM_THREADS).map_or(Ok(()), |text| check(&text))
}

fn check(text: &str) -> Result<()> {
    match text.trim().parse::<usize>() {
        Ok(1..) => Ok(()),
        _ => {
            let message = format!("{NUM_THREADS} is '{text}', not a number of threads");
            Err(Diagnostic::usage(message).hint("unset it, and all cores work"))
        }
    }
}

const NUM_THREADS: &str = "FLAMBEAU_NUM_THREADS";

impl ThreadOptions {
    /// Sets the number of threads for the loops of this process.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_number_of_threads() {
        assert!([" 2", "64"].iter().all(|text| check(text).is_ok()));
        assert!(["", "0", "-1", "all", "1.5"].iter().all(|text| check(text).is_err()));
    }
}
