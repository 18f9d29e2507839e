//! `lit.toml`: what a folder of tests says of itself.
//!
//!     suffixes = [".ir", ".test"]        instead of those above
//!     excludes = ["Inputs"]              also these
//!     features = ["slow"]                also these
//!     unsupported = true                 nothing here runs
//!     timeout = 30.0                     seconds for one test
//!     retries = 2                        for a test that fails
//!     [environment]
//!     NAME = "value"
//!     [substitutions]
//!     "%tool" = "flambeau opt"           and %{root}, the folder of the outermost file
//!
//! A folder inherits from the one above it. Where there is no such file, those of LLVM's lit are looked for.

use super::{Config, python};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The name of the file.
pub(super) const NAME: &str = "lit.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Local {
    name: Option<String>,
    suffixes: Option<Vec<String>>,
    #[serde(default)]
    excludes: Vec<String>,
    #[serde(default)]
    features: Vec<String>,
    unsupported: Option<bool>,
    timeout: Option<f64>,
    retries: Option<usize>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    substitutions: BTreeMap<String, String>,
}

/// The configuration of a folder: that of the folder above with what its own file says. `notes` takes what a file in
/// Python says that is not understood.
pub(super) fn of(folder: &Path, above: &Arc<Config>, notes: &mut Vec<String>) -> Result<Arc<Config>, String> {
    let file = folder.join(NAME);
    let Ok(text) = std::fs::read_to_string(&file) else { return Ok(in_python(folder, above, notes)) };
    let local: Local = toml::from_str(&text).map_err(|error| {
        let line =
            error.span().map_or(1, |s| 1 + text.get(..s.start).unwrap_or_default().matches('\n').count());
        format!("{}:{line}: {}", file.display(), error.message().trim())
    })?;
    let mut config = Config::clone(above);
    let root = "%{root}";
    if !config.substitutions.iter().any(|(key, _)| key == root) {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        config.substitutions.push((root.into(), folder.display().to_string()));
    }
    config.name = local.name.unwrap_or(config.name);
    config.suffixes = local.suffixes.unwrap_or(config.suffixes);
    config.excludes.extend(local.excludes);
    config.features.extend(local.features);
    config.unsupported = local.unsupported.unwrap_or(config.unsupported);
    config.retries = local.retries.unwrap_or(config.retries);
    if let Some(seconds) = local.timeout {
        let limit = Duration::try_from_secs_f64(seconds);
        let limit = limit.map_err(|_| format!("{}: timeout = {seconds} is no time", file.display()))?;
        // The command line may shorten the time, never the other way.
        config.time_limit = Some(config.time_limit.map_or(limit, |known| known.min(limit)));
    }
    config.environment.extend(local.environment);
    for (key, value) in local.substitutions {
        if !key.starts_with('%') {
            return Err(format!("{}: the substitution '{key}' must begin with '%'", file.display()));
        }
        config.substitutions.retain(|(known, _)| *known != key);
        config.substitutions.push((key, value));
    }
    Ok(Arc::new(config))
}

/// The same for a folder that has a file of LLVM's lit.
fn in_python(folder: &Path, above: &Arc<Config>, notes: &mut Vec<String>) -> Arc<Config> {
    let names = python::NAMES.map(|name| name.replace("{}", &above.prefix));
    let found = names.iter().find_map(|name| {
        let file = folder.join(name);
        std::fs::read_to_string(&file).ok().map(|text| (file, text))
    });
    let Some((file, text)) = found else { return Arc::clone(above) };
    let mut config = Config::clone(above);
    for (line, statement) in python::apply(&text, &mut config) {
        notes.push(format!("{}:{line}: unsupported, left out: {statement}", file.display()));
    }
    Arc::new(config)
}

fn has_file(folder: &Path, config: &Config) -> bool {
    let names = python::NAMES.map(|name| name.replace("{}", &config.prefix));
    std::iter::once(NAME).chain(names.iter().map(String::as_str)).any(|name| folder.join(name).is_file())
}

/// The configuration of a path that the user names: folders above it count as long as each has a file.
pub(super) fn above(
    path: &Path,
    config: &Arc<Config>,
    notes: &mut Vec<String>,
) -> Result<Arc<Config>, String> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let folders = path.ancestors().skip(1).take_while(|folder| has_file(folder, config));
    let folders: Vec<&Path> = folders.collect();
    folders.into_iter().rev().try_fold(Arc::clone(config), |config, folder| of(folder, &config, notes))
}
