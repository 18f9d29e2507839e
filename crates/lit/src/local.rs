//! `lit.toml`: what a folder of tests says of itself.
//!
//! ```text
//! suffixes = [".ir", ".test"]        instead of those above
//! excludes = ["Inputs"]              also these
//! features = ["slow"]                also these
//! unsupported = true                 nothing here runs
//! timeout = 30.0                     seconds for one test
//! retries = 2                        for a test that fails
//! [environment]
//! NAME = "value"
//! [substitutions]
//! "%tool" = "flambeau opt"           and %{root}, the folder of the outermost file
//! ```
//!
//! A folder inherits from the one above it. Where there is no such file, those of LLVM's lit are looked for.

use super::config::Config;
use super::python;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The name of the file.
pub(super) const NAME: &str = "lit.toml";

/// How deep substitutions of such a file may stand in each other.
const ROUNDS: usize = 32;

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

/// The configuration of a folder: that of the folder above with what its own file says. A suite of LLVM's starts from
/// `base`, that of the command line. `notes` takes what a file in Python says that is not understood.
pub(super) fn of(
    folder: &Path,
    above: &Arc<Config>,
    base: &Arc<Config>,
    notes: &mut Vec<String>,
) -> Result<Arc<Config>, String> {
    let file = folder.join(NAME);
    let Ok(text) = flambeau_files::read_text(&file) else { return in_python(folder, above, base, notes) };
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
        let limit =
            limit.map_err(|_| format!("{}: timeout = {seconds} is not a duration", file.display()))?;
        // The command line may shorten the time, never the other way.
        config.time_limit = Some(config.time_limit.map_or(limit, |known| known.min(limit)));
    }
    config.environment.extend(local.environment);
    // Values may hold other substitutions, in any order; of two keys that begin alike the longer one is meant.
    config.rounds = config.rounds.or(Some(ROUNDS));
    for (key, value) in local.substitutions {
        if !key.starts_with('%') {
            return Err(format!("{}: the substitution '{key}' must begin with '%'", file.display()));
        }
        config.substitutions.retain(|(known, _)| *known != key);
        config.substitutions.push((key, value));
    }
    config.substitutions.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    Ok(Arc::new(config))
}

/// The same for a folder that has files of LLVM's lit: one for a suite, one for the folder alone, or both.
fn in_python(
    folder: &Path,
    above: &Arc<Config>,
    base: &Arc<Config>,
    notes: &mut Vec<String>,
) -> Result<Arc<Config>, String> {
    let mut config = Arc::clone(above);
    for (names, suite) in [(python::SUITES, true), (python::LOCALS, false)] {
        let names = names.iter().map(|name| name.replace("{}", &base.prefix));
        let found = names.map(|name| folder.join(name)).find(|file| file.is_file());
        let Some(file) = found else { continue };
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let mut own = Config::clone(if suite { base } else { &config });
        if suite {
            own.suffixes.clear();
            own.maybe.clear();
            own.excludes = vec!["Output".into()];
            own.root = Some(folder.clone());
        }
        let ignored = python::apply(&std::path::absolute(&file).unwrap_or_else(|_| file.clone()), &mut own)?;
        if !suite {
            // A folder is part of its suite, whatever it calls itself.
            (own.name, own.root) = (config.name.clone(), config.root.clone());
        }
        for (line, statement) in ignored {
            notes.push(format!("{}:{line}: unsupported, left out: {statement}", file.display()));
        }
        config = Arc::new(own);
    }
    Ok(config)
}

fn has_suite(folder: &Path, config: &Config) -> bool {
    python::SUITES.iter().any(|name| folder.join(name.replace("{}", &config.prefix)).is_file())
}

/// The configuration of what contains a path that the user names: from the folder of the nearest suite of LLVM's, or
/// else from the outermost of the folders above that have a file of ours in a row.
pub(super) fn above(
    path: &Path,
    config: &Arc<Config>,
    notes: &mut Vec<String>,
) -> Result<Arc<Config>, String> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if path.is_dir() && has_suite(&path, config) {
        return Ok(Arc::clone(config));
    }
    let folders: Vec<&Path> = path.ancestors().skip(1).collect();
    let suite = folders.iter().position(|folder| has_suite(folder, config));
    let ours = folders.iter().take_while(|folder| folder.join(NAME).is_file()).count();
    let count = if ours > 0 { ours } else { suite.map_or(0, |at| at + 1) };
    let folders = folders.into_iter().take(count).collect::<Vec<_>>().into_iter().rev();
    folders.into_iter().try_fold(Arc::clone(config), |own, folder| of(folder, &own, config, notes))
}
