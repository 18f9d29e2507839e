//! How the program is linked: LLVM registers its options and targets in functions that run at start. Kept together, as their
//! sections are named, they touch half a megabyte of the program; spread over all of it they would bring 14 MB into memory.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_LLVM_STATIC").is_some() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,keep-text-section-prefix");
    }
}
