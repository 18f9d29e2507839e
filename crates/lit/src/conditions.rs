//! What test files ask for: whether one runs with a configuration, and whether it says that it fails. It runs nothing.

use super::config::Config;
use super::feature;
use super::script::{self, LineKind, MAX_TEST, Script};
use flambeau_files as files;
use std::collections::BTreeSet;
use std::path::Path;

/// Whether a file has a `RUN:` line.
pub(super) fn has_run_lines(path: &Path) -> bool {
    let text = files::read(path, MAX_TEST).unwrap_or_default();
    let script = script::parse_any(&String::from_utf8_lossy(&text)).unwrap_or_default();
    script.lines.iter().any(|line| line.kind == LineKind::Run)
}

/// The names of features in `REQUIRES:`, `UNSUPPORTED:` and `XFAIL:` lines of a file.
pub(super) fn used_features(path: &Path) -> BTreeSet<String> {
    let text = files::read(path, MAX_TEST)
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .unwrap_or_default();
    let script = script::parse_any(&text).unwrap_or_default();
    let items = script.requires.iter().chain(&script.unsupported).chain(&script.xfail);
    items.flat_map(|text| feature::names(text)).collect()
}

/// Whether a test says that it fails here.
pub(super) fn says_it_fails(path: &Path, config: &Config) -> bool {
    let text = files::read(path, MAX_TEST).unwrap_or_default();
    let script = script::parse(&String::from_utf8_lossy(&text)).unwrap_or_default();
    fails(&script, config).unwrap_or(false)
}

/// Whether a test expects to fail.
pub(super) fn fails(script: &Script, config: &Config) -> Result<bool, String> {
    for item in &script.xfail {
        let message = |error| format!("Error in XFAIL list:\n{error}");
        if item == "*" || feature::holds(item, &config.features).map_err(message)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Why a test file does not run with a configuration, if it does not.
pub fn skip_reason(path: &Path, config: &Config) -> Option<String> {
    let text = files::read(path, MAX_TEST).ok()?;
    let script = script::parse(&String::from_utf8_lossy(&text)).ok()?;
    closed(&script, config).ok()?
}

/// Why a test does not run here, if it does not.
pub(super) fn closed(script: &Script, config: &Config) -> Result<Option<String>, String> {
    let chosen = |list: &[String], keyword: &str, wanted: bool| {
        let mut found = Vec::new();
        for item in list {
            let message = |error| format!("Error in {keyword} list:\n{error}");
            if feature::holds(item, &config.features).map_err(message)? == wanted {
                found.push(item.clone());
            }
        }
        Ok::<_, String>(found.join(", "))
    };
    let missing = chosen(&script.requires, "REQUIRES", false)?;
    if !missing.is_empty() {
        return Ok(Some(format!("Test requires the following unavailable features: {missing}")));
    }
    let present = chosen(&script.unsupported, "UNSUPPORTED", true)?;
    if !present.is_empty() {
        return Ok(Some(format!("Test does not support the following features and/or targets: {present}")));
    }
    let limits = &config.limit_to_features;
    let left: BTreeSet<String> = config.features.iter().filter(|f| !limits.contains(f)).cloned().collect();
    let is_needed = |item: &String| feature::holds(item, &left).map(|holds| !holds);
    if limits.is_empty() || script.requires.iter().map(is_needed).any(|needed| needed == Ok(true)) {
        return Ok(None);
    }
    let limits = limits.join(", ");
    Ok(Some(format!("Test does not require any of the features specified in limit_to_features: {limits}")))
}
