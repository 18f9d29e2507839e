//! Options of the command line from environment variables, as for LLVM's lit.

use super::args::split;
use std::ffi::OsString;

/// Each variable that holds a default of an option.
const DEFAULTS: &[(&str, &str)] = &[
    ("LIT_FILTER", "--filter"),
    ("LIT_FILTER_OUT", "--filter-out"),
    ("LIT_NUM_SHARDS", "--num-shards"),
    ("LIT_RUN_SHARD", "--run-shard"),
    ("LIT_XFAIL", "--xfail"),
    ("LIT_XFAIL_NOT", "--xfail-not"),
    ("LIT_UNSUPPORTED", "--unsupported"),
    ("LIT_MAX_WORKERS", "--workers"),
];

/// A command line, the program's name first, with what the process's environment adds to it. The options of `LIT_OPTS` come
/// last: unusually they are stronger than those of the command line, as in LLVM's lit.
pub fn with_variables(args: &[OsString]) -> Vec<OsString> {
    let (name, words) = args.split_at(args.len().min(1));
    let mut all = name.to_vec();
    for (variable, option) in DEFAULTS {
        let value = std::env::var_os(variable);
        all.extend(value.into_iter().flat_map(|value| [OsString::from(option), value]));
    }
    all.extend(words.iter().cloned());
    let more = std::env::var("LIT_OPTS").unwrap_or_default();
    all.extend(split(&more).into_iter().map(OsString::from));
    all
}
