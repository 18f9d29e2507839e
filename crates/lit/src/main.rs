//! The command `lit`: test files run by the system's programs, and by FileCheck in the same process.

use flambeau_lit::{Config, main as lit, records_folder, with_variables};
use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let config = Config { records: records_folder(), progress: stdout().is_terminal(), ..Config::default() };
    let status = lit(&with_variables(&args), config, &mut stdout(), &mut stderr());
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}
