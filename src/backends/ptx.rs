//! Where PTX comes from: the LLVM backend, or a folder of recorded texts.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Kernel;
use std::path::PathBuf;

/// The name of the function in every PTX text.
pub const ENTRY: &str = "flambeau_kernel";
/// The folder of recorded texts.
const FOLDER: &str = "FLAMBEAU_PTX_DIR";

/// The PTX of a kernel for an architecture such as `sm_90`.
pub fn for_kernel(kernel: &Kernel, arch: &str) -> Result<String> {
    let recorded = std::env::var_os(FOLDER).map(|folder| PathBuf::from(folder).join(file_name(kernel, arch)));
    if let Some(path) = &recorded
        && let Ok(text) = std::fs::read_to_string(path)
    {
        return Ok(text);
    }
    let text = generate(kernel, arch)?;
    if let Some(path) = recorded {
        let failed = |e| Diagnostic::input(format!("cannot write {}: {e}", path.display()));
        std::fs::write(&path, &text).map_err(failed)?;
    }
    Ok(text)
}

#[cfg(feature = "llvm")]
fn generate(kernel: &Kernel, arch: &str) -> Result<String> {
    super::llvm::ptx(kernel, ENTRY, arch)
}

#[cfg(not(feature = "llvm"))]
fn generate(kernel: &Kernel, arch: &str) -> Result<String> {
    Err(Diagnostic::unsupported(format!(
        "this build has no LLVM to make PTX with, and there is no recorded {}",
        file_name(kernel, arch)
    ))
    .hint(format!("build with the feature llvm, or record PTX with such a build and set {FOLDER}")))
}

/// Named by the kernel's structure; equal on every machine.
fn file_name(kernel: &Kernel, arch: &str) -> String {
    let text = format!("{kernel:?}");
    let hash = |basis: u128| {
        // FNV-1a, 128 bits: recorded files must not be mistaken for each other.
        text.bytes()
            .fold(basis, |h, b| (h ^ u128::from(b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b))
    };
    format!("{:032x}.{arch}.ptx", hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d))
}
