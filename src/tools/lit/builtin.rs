//! Commands that need no program: `echo`, `cat`, `diff`, `mkdir`, `rm`, `split-file` and their like.

use super::Call;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Largest number of lines that `diff` aligns; beyond it the files are shown as a whole.
const MAX_DIFF_CELLS: usize = 16_000_000;

/// The builtin with this name.
pub(super) fn find(name: &str) -> Option<fn(Call<'_>) -> i32> {
    Some(match name {
        "echo" => |call| run(call, echo),
        "cat" => |call| run(call, cat),
        "true" | ":" => |_| 0,
        "false" => |_| 1,
        "diff" => |call| run(call, diff),
        "mkdir" => |call| run(call, mkdir),
        "rm" => |call| run(call, rm),
        "touch" => |call| run(call, touch),
        "count" => |call| run(call, count),
        "split-file" => |call| run(call, split_file),
        "reveal-ansi-escapes" => |call| run(call, reveal),
        _ => return None,
    })
}

/// Runs a builtin; its error goes to the error stream with its name.
fn run(mut call: Call<'_>, body: fn(&mut Call<'_>, &[String]) -> Result<i32, String>) -> i32 {
    let args: Vec<String> = call.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let (name, rest) = args.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
    body(&mut call, rest).unwrap_or_else(|error| {
        // Where the error stream is gone there is nobody to tell.
        let _ = writeln!(call.err, "{name}: {error}");
        2
    })
}

fn told(path: &str, error: &io::Error) -> String {
    let reason = error.to_string();
    format!("{path}: {}", reason.split(" (os error").next().unwrap_or_default())
}

fn refuse(option: &str) -> String {
    format!("unsupported option '{option}'")
}

fn read(call: &mut Call<'_>, path: &str) -> Result<Vec<u8>, String> {
    if path == "-" {
        let mut text = Vec::new();
        call.stdin.read_to_end(&mut text).map_err(|error| told(path, &error))?;
        return Ok(text);
    }
    std::fs::read(call.directory.join(path)).map_err(|error| told(path, &error))
}

fn echo(call: &mut Call<'_>, mut args: &[String]) -> Result<i32, String> {
    let (mut newline, mut escapes) = (true, false);
    while let Some((first, rest)) = args.split_first() {
        match first.as_str() {
            "-n" => newline = false,
            "-e" => escapes = true,
            _ => break,
        }
        args = rest;
    }
    let mut text = args.join(" ").into_bytes();
    if escapes {
        text = unescape(&text);
    }
    if newline {
        text.push(b'\n');
    }
    call.out.write_all(&text).map_err(|error| told("write error", &error))?;
    Ok(0)
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(first @ b'0'..=b'7') => {
                // Up to three octal digits.
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let mut ahead = bytes.clone();
                    let Some(digit @ b'0'..=b'7') = ahead.next() else { break };
                    value = value * 8 + u32::from(digit - b'0');
                    bytes = ahead;
                }
                out.push(value as u8);
            }
            Some(b'\\') => out.push(b'\\'),
            Some(other) => out.extend([b'\\', other]),
            None => out.push(b'\\'),
        }
    }
    out
}

fn cat(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    let mut paths = Vec::new();
    let (mut codes, mut ends, mut tabs) = (false, false, false);
    for arg in args {
        match arg.strip_prefix('-').filter(|flags| !flags.is_empty()) {
            Some("-show-nonprinting") => codes = true,
            Some(flags) if flags.chars().all(|flag| "veAtET".contains(flag)) => {
                codes |= flags.contains(['v', 'e', 'A', 't']);
                ends |= flags.contains(['e', 'A', 'E']);
                tabs |= flags.contains(['t', 'A', 'T']);
            }
            Some(_) => return Err(refuse(arg)),
            None => paths.push(arg.clone()),
        }
    }
    if paths.is_empty() {
        paths.push("-".to_string());
    }
    for path in &paths {
        let mut text = read(call, path)?;
        if codes || ends || tabs {
            text = text.iter().flat_map(|byte| shown(*byte, (codes, ends, tabs))).collect();
        }
        call.out.write_all(&text).map_err(|error| told("write error", &error))?;
    }
    Ok(0)
}

/// A byte as `cat -v` (control codes and what is beyond ASCII), `-E` (ends of lines) and `-T` (tabs) show it.
fn shown(byte: u8, (codes, ends, tabs): (bool, bool, bool)) -> Vec<u8> {
    match byte {
        b'\n' if ends => b"$\n".to_vec(),
        b'\t' if tabs => b"^I".to_vec(),
        b'\n' | b'\t' => vec![byte],
        _ if !codes => vec![byte],
        128.. => [b"M-".to_vec(), shown(byte - 128, (true, false, true))].concat(),
        127 => b"^?".to_vec(),
        0..32 => vec![b'^', byte + 64],
        _ => vec![byte],
    }
}

/// `reveal-ansi-escapes`: colours of terminals as words, `<bold-red>`.
fn reveal(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    if let Some(arg) = args.first() {
        return Err(refuse(arg));
    }
    let text = read(call, "-")?;
    let mut rest = text.as_slice();
    let mut out = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        let end = behind.iter().position(|byte| *byte == b'm');
        let codes = behind.strip_prefix(b"[").zip(end).and_then(|(codes, end)| codes.get(..end - 1));
        let words =
            codes.filter(|_| *first == 0x1b).and_then(|codes| colour(std::str::from_utf8(codes).ok()?));
        match (words, end) {
            (Some(words), Some(end)) => {
                out.extend_from_slice(format!("<{words}>").as_bytes());
                rest = behind.get(end + 1..).unwrap_or_default();
            }
            _ => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    call.out.write_all(&out).map_err(|error| told("write error", &error))?;
    Ok(0)
}

/// The words for the codes of a colour: `0;1;31` is bold-red.
fn colour(codes: &str) -> Option<String> {
    const COLOURS: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
    let codes: Vec<usize> = codes.split(';').map(|code| code.parse().ok()).collect::<Option<_>>()?;
    let (mut bold, mut ground, mut name) = ("", "", None);
    for code in &codes {
        let colour = |from: usize| COLOURS.get(code - from).map(ToString::to_string);
        match code {
            0 => {}
            1 => bold = "bold",
            30..=37 => name = colour(30),
            40..=47 => (ground, name) = ("bg", colour(40)),
            90..=97 => name = colour(90).map(|name| format!("bright-{name}")),
            100..=107 => (ground, name) = ("bg", colour(100).map(|name| format!("bright-{name}"))),
            _ => return None,
        }
    }
    let words: Vec<&str> =
        [ground, bold, name.as_deref().unwrap_or("")].into_iter().filter(|w| !w.is_empty()).collect();
    Some(if words.is_empty() { "reset".to_string() } else { words.join("-") })
}

fn mkdir(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    let mut parents = false;
    for arg in args {
        match arg.as_str() {
            "-p" => parents = true,
            option if option.starts_with('-') => return Err(refuse(option)),
            path => {
                let whole = call.directory.join(path);
                let result =
                    if parents { std::fs::create_dir_all(whole) } else { std::fs::create_dir(whole) };
                result.map_err(|error| told(path, &error))?;
            }
        }
    }
    Ok(0)
}

fn rm(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    let (mut force, mut recursive) = (false, false);
    for arg in args {
        match arg.strip_prefix('-') {
            Some(flags) if !flags.is_empty() => {
                for flag in flags.chars() {
                    match flag {
                        'f' => force = true,
                        'r' | 'R' => recursive = true,
                        _ => return Err(refuse(arg)),
                    }
                }
            }
            _ => {
                let path = call.directory.join(arg);
                let result = match std::fs::symlink_metadata(&path) {
                    Err(_) if force => continue,
                    Err(error) => Err(error),
                    Ok(data) if data.is_dir() && recursive => std::fs::remove_dir_all(&path),
                    Ok(_) => std::fs::remove_file(&path),
                };
                result.map_err(|error| told(arg, &error))?;
            }
        }
    }
    Ok(0)
}

fn touch(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    for arg in args {
        if arg.starts_with('-') {
            return Err(refuse(arg));
        }
        let path = call.directory.join(arg);
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|error| told(arg, &error))?;
    }
    Ok(0)
}

/// `count N`: whether the input has N lines.
fn count(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    let [wanted] = args else { return Err("expected one number".into()) };
    let wanted: usize = wanted.parse().map_err(|_| format!("'{wanted}' is no number"))?;
    let text = read(call, "-")?;
    let open = usize::from(text.last().is_some_and(|byte| *byte != b'\n'));
    let lines = text.iter().filter(|byte| **byte == b'\n').count() + open;
    if lines == wanted {
        return Ok(0);
    }
    Err(format!("expected {wanted} lines, got {lines}"))
}

fn diff(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    let mut files = Vec::new();
    let (mut ignore_blanks, mut brief, mut strip) = (false, false, false);
    for arg in args {
        match arg.as_str() {
            "-u" => {}
            "-w" | "-b" => ignore_blanks = true,
            "-q" => brief = true,
            "--strip-trailing-cr" => strip = true,
            option if option.starts_with('-') && option.len() > 1 => return Err(refuse(option)),
            file => files.push(file),
        }
    }
    let [left, right] = files.as_slice() else { return Err("expected two files".into()) };
    let texts = [read(call, left)?, read(call, right)?];
    let [old, new] = texts.each_ref().map(|text| {
        let lines = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec);
        lines
            .map(|mut line| {
                if strip && line.ends_with(b"\r\n") {
                    line.truncate(line.len() - 2);
                    line.push(b'\n');
                }
                line
            })
            .collect::<Vec<_>>()
    });
    let key = |line: &Vec<u8>| match ignore_blanks {
        true => line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect(),
        false => line.clone(),
    };
    let (old_keys, new_keys): (Vec<_>, Vec<_>) =
        (old.iter().map(key).collect(), new.iter().map(key).collect());
    if old_keys == new_keys {
        return Ok(0);
    }
    if brief {
        writeln!(call.out, "Files {left} and {right} differ").map_err(|error| error.to_string())?;
        return Ok(1);
    }
    let mut text = format!("--- {left}\n+++ {right}\n").into_bytes();
    for (mark, line) in script(&old_keys, &new_keys) {
        let line = if mark == b'+' { new.get(line) } else { old.get(line) };
        text.push(mark);
        text.extend_from_slice(line.map_or(&[][..], Vec::as_slice));
        if text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
    }
    call.out.write_all(&text).map_err(|error| error.to_string())?;
    Ok(1)
}

/// The lines of both files in order: mark (` `, `-` from the first, `+` from the second) and line number.
fn script(old: &[Vec<u8>], new: &[Vec<u8>]) -> Vec<(u8, usize)> {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (old.get(same..).unwrap_or_default(), new.get(same..).unwrap_or_default());
    let mut out: Vec<(u8, usize)> = (0..same).map(|line| (b' ', line)).collect();
    let width = new_rest.len() + 1;
    if old_rest.len().saturating_mul(width) > MAX_DIFF_CELLS {
        out.extend((same..old.len()).map(|line| (b'-', line)));
        out.extend((same..new.len()).map(|line| (b'+', line)));
        return out;
    }
    // Length of the longest common subsequence of what is behind each pair of lines.
    let mut common = vec![0u32; (old_rest.len() + 1) * width];
    for i in (0..old_rest.len()).rev() {
        for j in (0..new_rest.len()).rev() {
            common[i * width + j] = if old_rest[i] == new_rest[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old_rest.len() || j < new_rest.len() {
        if i < old_rest.len() && j < new_rest.len() && old_rest[i] == new_rest[j] {
            out.push((b' ', same + i));
            (i, j) = (i + 1, j + 1);
        } else if j >= new_rest.len()
            || (i < old_rest.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            out.push((b'-', same + i));
            i += 1;
        } else {
            out.push((b'+', same + j));
            j += 1;
        }
    }
    out
}

/// `split-file FILE DIR`: writes each part of a file that starts with a line like `//--- name` to DIR/name.
fn split_file(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    let mut leading = false;
    let mut paths = Vec::new();
    for arg in args {
        match arg.trim_start_matches('-') {
            "leading-lines" if arg.starts_with('-') => leading = true,
            "no-leading-lines" if arg.starts_with('-') => leading = false,
            _ if arg.starts_with('-') && arg.len() > 1 => return Err(refuse(arg)),
            _ => paths.push(arg),
        }
    }
    let [input, output] = paths.as_slice() else { return Err("expected a file and a directory".into()) };
    let text = read(call, input)?;
    let directory = call.directory.join(output.as_str());
    let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
    for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if let Some(name) = separator(line) {
            if name.is_empty() || parts.iter().any(|(known, _)| *known == name) {
                return Err(format!("{input}:{}: bad or repeated part name '{name}'", number + 1));
            }
            parts.push((name, if leading { vec![b'\n'; number + 1] } else { Vec::new() }));
        } else if let Some((_, part)) = parts.last_mut() {
            part.extend_from_slice(line);
        }
    }
    if parts.is_empty() {
        return Err(format!("{input}: no part separator was found"));
    }
    if directory.is_dir() {
        std::fs::remove_dir_all(&directory).map_err(|error| told(output, &error))?;
    }
    for (name, part) in parts {
        let path = inside(&directory, &name).ok_or_else(|| format!("{input}: part '{name}' lies outside"))?;
        let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        parent.and_then(|()| std::fs::write(&path, part)).map_err(|error| told(&name, &error))?;
    }
    Ok(0)
}

/// The path of a part, unless it leads out of the directory.
fn inside(directory: &Path, name: &str) -> Option<PathBuf> {
    let normal = |part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir);
    Path::new(name).components().all(normal).then(|| directory.join(name))
}

/// The name in a line like `//--- name` or `#--- name`.
fn separator(line: &[u8]) -> Option<String> {
    let rest = if line.starts_with(b"//") { line.get(2..) } else { line.get(1..) };
    let name = rest?.strip_prefix(b"--- ")?;
    Some(String::from_utf8_lossy(name).trim().to_string())
}

/// Arguments as strings of the system.
pub(super) fn os(words: &[String]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
