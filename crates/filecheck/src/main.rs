//! The command `FileCheck`.

use std::ffi::OsString;
use std::io::{stderr, stdin, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let options = std::env::var("FILECHECK_OPTS").ok();
    let status =
        flambeau_filecheck::main(&args, options.as_deref(), &mut stdin(), &mut stdout(), &mut stderr());
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}
