//! See `targets.rs`.
#![no_main]

#[allow(dead_code, reason = "each binary uses one target")]
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::graph(data));
