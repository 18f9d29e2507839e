//! How the program is linked: LLVM registers its options and targets in functions that run when a program starts, before `main`, and
//! bring 20 MB of the program into memory. Where LLVM is part of the program, these functions are put by themselves between two marks,
//! and `src/main.rs` has them run when something is compiled for the first time. Their code is kept together, as its sections are named.
//!
//! And which sources it is made of: a number over all of them, by which plans on disk are known to be of this build
//! (`src/backends/cache/build.rs`).

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The versions of what it is built with; a package that others build upon has none.
    if Path::new("Cargo.lock").exists() {
        println!("cargo::rerun-if-changed=Cargo.lock");
    }
    println!("cargo::rerun-if-changed=src");
    if std::env::var_os("CARGO_FEATURE_LLVM_STATIC").is_some() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,keep-text-section-prefix");
        defer_llvm();
    }
    println!("cargo::rustc-check-cfg=cfg(defers_llvm)");
    let mut files = vec![PathBuf::from("Cargo.lock")];
    collect(Path::new("src"), &mut files);
    files.sort();
    let hash = files.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, fingerprint);
    println!("cargo::rustc-env=FINGERPRINT_OF_SOURCES={hash:032x}");
}

/// What the linkers of Linux are told: LLVM's objects are those that a C++ compiler wrote, and are named so.
const SCRIPT: &str = "SECTIONS {
  .llvm_init_array : {
    __flambeau_llvm_begin = .;
    KEEP(*.cpp.o(SORT_BY_INIT_PRIORITY(.init_array.*)))
    KEEP(*.cpp.o(.init_array))
    __flambeau_llvm_end = .;
  }
} INSERT BEFORE .init_array;
";

/// Puts LLVM's functions of that kind where the program finds them; other systems run them at start.
fn defer_llvm() {
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let Some(folder) = std::env::var_os("OUT_DIR").filter(|_| linux) else { return };
    let script = PathBuf::from(folder).join("llvm.ld");
    if let Err(error) = std::fs::write(&script, SCRIPT) {
        println!("cargo::warning={}: {error}: LLVM will be registered at start", script.display());
        return;
    }
    println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    println!("cargo::rustc-cfg=defers_llvm");
}

/// The files of a folder and of those below it. What cannot be read is not built either.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// FNV-1a over the name of a file and its content, each ended by a byte that no text has.
fn fingerprint(hash: u128, path: &PathBuf) -> u128 {
    let content = std::fs::read(path).unwrap_or_default();
    let name = path.to_string_lossy();
    let ended = [name.as_bytes(), &content].into_iter().flat_map(|bytes| bytes.iter().chain(&[0xff]));
    ended.fold(hash, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b))
}
