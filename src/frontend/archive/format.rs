//! Which formats of files are read: the versions of the format, and which entries an archive of each kind has. It knows
//! tables of contents, and nothing of what the entries hold.

use super::{recognize, zip};
use crate::diag::{Diagnostic, Result};

/// The oldest and the newest file format that can be read.
pub const VERSIONS: std::ops::RangeInclusive<u64> = 1..=10;

/// Refuses file formats that are older or newer than those that are known.
pub(super) fn check_version(version: u64) -> Result<u64> {
    if VERSIONS.contains(&version) {
        return Ok(version);
    }
    Err(Diagnostic::unsupported(format!(
        "the archive has file format {version}; formats {} to {} can be read",
        VERSIONS.start(),
        VERSIONS.end()
    ))
    .hint("save the model again with PyTorch 1.4 or later"))
}

/// Refuses the archives of other formats by name.
pub(super) fn check_format(directory: &zip::Directory) -> Result<()> {
    let has = |name: &str| directory.entries.contains_key(name);
    if has("model.json") || directory.entries.keys().any(|name| model_name(name).is_some()) {
        return Ok(());
    }
    let again =
        "load it with the PyTorch that wrote it and save it with torch.jit.save of PyTorch 1.4 or later";
    if has("tensors.pkl") || has("attributes.pkl") {
        let message = "the archive is in a format from between PyTorch 1.3 and 1.4, which no release wrote";
        return Err(Diagnostic::unsupported(message).hint(again));
    }
    if let Some(kind) = recognize::recognize_zip(directory.entries.keys().map(|name| &**name)) {
        let is = if kind.what.starts_with("written") { "the archive was" } else { "this is" };
        return Err(Diagnostic::input(format!("{is} {}", kind.what)).hint(kind.hint));
    }
    // A mobile model has its constants in its bytecode.
    if has("bytecode.pkl") && has("data.pkl") {
        return Ok(());
    }
    for name in ["data.pkl", "constants.pkl"] {
        if !has(name) {
            return Err(Diagnostic::input(format!(
                "this zip file is not a TorchScript model: it has no `{name}`"
            ))
            .hint("torch.jit.save writes the archives that can be read here"));
        }
    }
    Ok(())
}

/// The name of the exported program that an entry is.
pub(super) fn model_name(entry: &str) -> Option<&str> {
    entry.strip_prefix("models/")?.strip_suffix(".json")
}
