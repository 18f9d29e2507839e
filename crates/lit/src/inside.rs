//! What changes the shell itself: `cd`, `export` and their like; and `mkdir` and `rm`, which need no streams.

use super::args::{absolute, options, python_error, repr};
use super::process::Ran;
use super::shell::{Broken, Shell};
use super::syntax::Word;
use super::wildcards::expand;
use std::path::Path;

/// Whether a name is one of these. They cannot be part of a pipe, but `echo` can.
pub(super) fn is_known(name: &str) -> bool {
    let known = ["cd", "export", "echo", "@echo", "mkdir", "popd", "pushd", "rm", "ulimit", "umask", ":"];
    known.contains(&name)
}

/// Runs one; `echo` is elsewhere.
pub(super) fn run(name: &str, words: &[Word], shell: &mut Shell<'_>) -> Result<Ran, Broken> {
    let args: Vec<&str> = words.iter().skip(1).map(|word| word.text.as_str()).collect();
    let refused = |text: String| Err(Broken::Refused(text));
    match (name, args.as_slice()) {
        (":", _) => {}
        ("cd" | "pushd", [path]) => {
            let next = absolute(&shell.environment.directory, path);
            let before = std::mem::replace(&mut shell.environment.directory, next);
            if name == "pushd" {
                shell.left.push(before);
            }
        }
        ("export", [word]) => {
            if let Some((name, value)) = word.split_once('=') {
                shell.environment.variables.insert(name.into(), value.into());
            }
        }
        ("cd" | "pushd" | "export", _) => return refused(format!("'{name}' supports only one argument")),
        ("popd", []) => match shell.left.pop() {
            Some(before) => shell.environment.directory = before,
            None => return refused("popd: directory stack empty".into()),
        },
        ("popd", _) => return refused("'popd' does not support arguments".into()),
        ("umask", [mask]) => match u32::from_str_radix(mask, 8) {
            Ok(mask) => shell.environment.umask = Some(mask),
            Err(_) => {
                let mask = repr(mask);
                return refused(format!("Error: 'umask': invalid literal for int() with base 8: {mask}"));
            }
        },
        ("umask", _) => return refused("'umask' supports only one argument".into()),
        ("ulimit", [option, value]) => limit(shell, option, value)?,
        ("ulimit", _) => return refused("'ulimit' requires two arguments".into()),
        ("mkdir", _) => return mkdir(words, &shell.environment.directory),
        _ => return rm(words, &shell.environment.directory),
    }
    Ok(Ran::default())
}

fn limit(shell: &mut Shell<'_>, option: &str, value: &str) -> Result<(), Broken> {
    let number: Option<u64> = match value {
        "unlimited" | "-1" => None,
        value => Some(value.parse().map_err(|_| {
            let value = repr(value);
            Broken::Refused(format!("Error: 'ulimit': invalid literal for int() with base 10: {value}"))
        })?),
    };
    let known = ["-v", "-n", "-s", "-f"].into_iter().find(|known| *known == option);
    let Some(known) = known else {
        return Err(Broken::Refused(format!("'ulimit' does not support option: {option}")));
    };
    let value = match number {
        None => "unlimited".to_string(),
        // The shell counts files in blocks, lit in bytes.
        Some(number) if known == "-f" => number.div_ceil(512).to_string(),
        Some(number) => number.to_string(),
    };
    shell.environment.ulimit.insert(known, value);
    Ok(())
}

/// Arguments with wildcards resolved.
fn arguments(words: &[Word], directory: &Path) -> Vec<String> {
    words.iter().skip(1).flat_map(|word| expand(word, directory)).collect()
}

fn mkdir(words: &[Word], directory: &Path) -> Result<Ran, Broken> {
    let args = arguments(words, directory);
    let (found, paths) = options(&args, "p", &[])
        .map_err(|error| Broken::Refused(format!("Unsupported: 'mkdir':  {error}")))?;
    if paths.is_empty() {
        return Err(Broken::Refused("Error: 'mkdir' is missing an operand".into()));
    }
    let mut ran = Ran::default();
    for path in paths {
        let path = absolute(directory, &path);
        let message = |error: &std::io::Error| python_error(error, &path.display().to_string());
        if !found.is_empty() {
            std::fs::create_dir_all(&path).map_err(|error| Broken::Bad(message(&error)))?;
        } else if let Err(error) = std::fs::create_dir(&path)
            && !path.is_dir()
        {
            ran.err.extend(format!("Error: 'mkdir' command failed, {}\n", message(&error)).bytes());
            ran.status = 1;
        }
    }
    Ok(ran)
}

fn rm(words: &[Word], directory: &Path) -> Result<Ran, Broken> {
    let args = arguments(words, directory);
    let (found, paths) = options(&args, "frR", &["recursive"])
        .map_err(|error| Broken::Refused(format!("Unsupported: 'rm':  {error}")))?;
    if paths.is_empty() {
        return Err(Broken::Refused("Error: 'rm' is missing an operand".into()));
    }
    let force = found.iter().any(|(name, _)| name == "-f");
    let recursive = found.iter().any(|(name, _)| name != "-f");
    let mut ran = Ran::default();
    for path in paths {
        let path = absolute(directory, &path);
        if force && !path.exists() {
            continue;
        }
        let result = match std::fs::symlink_metadata(&path) {
            Ok(data) if data.is_dir() => {
                if !recursive {
                    ran.err.extend(format!("Error: {} is a directory\n", path.display()).bytes());
                    ran.status = 1;
                    continue;
                }
                std::fs::remove_dir_all(&path)
            }
            Ok(_) => std::fs::remove_file(&path),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            let message = python_error(&error, &path.display().to_string());
            ran.err.extend(format!("Error: 'rm' command failed, {message}").bytes());
            ran.status = 1;
        }
    }
    Ok(ran)
}
