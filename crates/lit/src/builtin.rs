//! Commands that need no program: `echo`, `cat`, `diff`, `count`, `split-file` and their like.

use super::args::{absolute, options, python_error};
use super::config::Call;
use super::difference;
use flambeau_files as files;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Deepest nesting of folders that `diff -r` compares.
const MAX_DEPTH: usize = 64;
/// Empty lines that `split-file` puts before all parts together: many short parts far down a file would take much memory.
const MAX_BLANK: usize = 1 << 28;

/// The builtin with this name.
pub(super) fn find(name: &str) -> Option<fn(Call<'_>) -> i32> {
    Some(match name {
        "echo" => |call| run(call, echo),
        "cat" => |call| run(call, cat),
        "true" => |_| 0,
        "false" => |_| 1,
        "diff" => |call| run(call, diff),
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
        // A closed error stream leaves no way to report this.
        let _ = writeln!(call.err, "{name}: {error}");
        2
    })
}

fn message(path: &str, error: &io::Error) -> String {
    let reason = error.to_string();
    format!("{path}: {}", reason.split(" (os error").next().unwrap_or_default())
}

fn refuse(option: &str) -> String {
    format!("unsupported option '{option}'")
}

fn read(call: &mut Call<'_>, path: &str) -> Result<Vec<u8>, String> {
    read_raw(call, path).map_err(|error| message(path, &error))
}

fn read_raw(call: &mut Call<'_>, path: &str) -> io::Result<Vec<u8>> {
    if path == "-" {
        return files::read_stream(call.stdin, files::TEXT_BYTES);
    }
    files::read(&call.directory.join(path), files::TEXT_BYTES)
}

/// Writes an error as it is, and gives the status of a failure.
fn said(call: &mut Call<'_>, text: &str) -> Result<i32, String> {
    // A closed error stream leaves no way to report this.
    let _ = call.err.write_all(text.as_bytes());
    Ok(1)
}

fn echo(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    call.out.write_all(&echoed(&args)).map_err(|error| message("write error", &error))?;
    Ok(0)
}

/// What `echo` writes; `-n` leaves the line open, `-e` reads escapes.
pub(super) fn echoed(mut args: &[&str]) -> Vec<u8> {
    let (mut newline, mut escapes) = (true, false);
    while let Some((first, rest)) = args.split_first() {
        match *first {
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
    text
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
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(b'v') => out.push(11),
            Some(mark @ (b'x' | b'u' | b'U')) => {
                let most = match mark {
                    b'x' => 2,
                    b'u' => 4,
                    _ => 8,
                };
                let digits: Vec<u8> = bytes.clone().take(most).take_while(u8::is_ascii_hexdigit).collect();
                let code = u32::from_str_radix(&String::from_utf8_lossy(&digits), 16).ok();
                match code.and_then(char::from_u32).filter(|_| digits.len() == most) {
                    Some(letter) => {
                        out.extend(letter.to_string().bytes());
                        bytes.by_ref().take(most).for_each(drop);
                    }
                    None => out.extend([b'\\', mark]),
                }
            }
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
    let (found, mut paths) = match options(args, "veAtETn", &["show-nonprinting"]) {
        Ok(words) => words,
        Err(error) => return said(call, &format!("Unsupported: 'cat':  {error}\n")),
    };
    let has = |flags: &str| found.iter().any(|(name, _)| flags.contains(name.trim_start_matches('-')));
    let codes = has("veAt") || found.iter().any(|(name, _)| name == "--show-nonprinting");
    let (ends, tabs) = (has("eAE"), has("tAT"));
    if paths.is_empty() {
        paths.push("-".to_string());
    }
    for path in &paths {
        let mut text = match read_raw(call, path) {
            Ok(text) => text,
            Err(error) => return said(call, &python_error(&error, path)),
        };
        if codes || ends || tabs {
            text = text.iter().flat_map(|byte| shown(*byte, (codes, ends, tabs))).collect();
        }
        call.out.write_all(&text).map_err(|error| message("write error", &error))?;
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
        128.. if (byte - 128) < 32 => vec![b'M', b'-', b'^', byte - 64],
        128.. => [b"M-".to_vec(), shown(byte - 128, (true, false, true))].concat(),
        127 => b"^?".to_vec(),
        0..32 => vec![b'^', byte + 64],
        _ => vec![byte],
    }
}

/// `reveal-ansi-escapes`: terminal colours as text, `<bold-red>`.
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
    call.out.write_all(&out).map_err(|error| message("write error", &error))?;
    Ok(0)
}

/// The names for the codes of a colour: `0;1;31` is bold-red.
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

/// `count N`: whether the input has N lines.
fn count(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    let [wanted] = args else { return Err("expected one number".into()) };
    let wanted: usize = wanted.parse().map_err(|_| format!("'{wanted}' is not a number"))?;
    let text = read(call, "-")?;
    let open = usize::from(text.last().is_some_and(|byte| *byte != b'\n'));
    let lines = text.iter().filter(|byte| **byte == b'\n').count() + open;
    if lines == wanted {
        return Ok(0);
    }
    said(call, &format!("Expected {wanted} lines, got {lines}.\n"))
}

/// What `diff` was asked for.
#[derive(Default)]
struct Diff {
    all_blanks: bool,
    blanks: bool,
    strip: bool,
    unified: bool,
    context: usize,
    folders: bool,
    /// Lines that do not count.
    ignored: Option<regex::Regex>,
}

fn diff(call: &mut Call<'_>, args: &[String]) -> Result<i32, String> {
    let (found, paths) = match options(args, "wbuI:U:rqc", &["strip-trailing-cr"]) {
        Ok(words) => words,
        Err(error) => return said(call, &format!("Unsupported: 'diff': {error}\n")),
    };
    let mut wanted = Diff { context: 3, ..Diff::default() };
    for (name, value) in found {
        match name.as_str() {
            "-w" => wanted.all_blanks = true,
            "-b" => wanted.blanks = true,
            "-u" => wanted.unified = true,
            "-r" => wanted.folders = true,
            "--strip-trailing-cr" => wanted.strip = true,
            "-U" => match value.parse() {
                Ok(context) => (wanted.unified, wanted.context) = (true, context),
                Err(_) => return said(call, &format!("Error: invalid '-U' argument: {value}\n")),
            },
            "-I" => match regex::Regex::new(&format!("^(?:{value})")) {
                Ok(regex) => wanted.ignored = Some(regex),
                Err(_) => return said(call, &format!("Error: invalid '-I' argument: {value}\n")),
            },
            _ => {}
        }
    }
    let [left, right] = paths.as_slice() else {
        return said(call, "Error: missing or extra operand\n");
    };
    let whole = |path: &String| match path.as_str() {
        "-" => "-".to_string(),
        path => absolute(call.directory, path).display().to_string(),
    };
    let sides = [whole(left), whole(right)];
    if wanted.folders && sides.iter().any(|side| side == "-") {
        return said(call, "Error: cannot recursively compare '-'\n");
    }
    let result = match wanted.folders {
        true => wanted.trees(call, sides.each_ref().map(String::as_str), 0),
        false => wanted.files(call, sides.each_ref().map(String::as_str)),
    };
    match result {
        Ok(differ) => Ok(i32::from(differ)),
        Err((path, error)) => {
            let error = python_error(&error, &path);
            said(call, &format!("Error: 'diff' command failed, {error}\n"))
        }
    }
}

impl Diff {
    /// Compares two files; whether they differ. The error names the file that cannot be read.
    fn files(&self, call: &mut Call<'_>, sides: [&str; 2]) -> Result<bool, (String, io::Error)> {
        let mut texts = Vec::new();
        for side in sides {
            let text = read_raw(call, side).map_err(|error| (side.to_string(), error))?;
            texts.push(text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>());
        }
        let (old, new) = (texts.first().cloned().unwrap_or_default(), texts.pop().unwrap_or_default());
        let readable = [&old, &new].iter().all(|lines| lines.iter().all(|line| str::from_utf8(line).is_ok()));
        let text = if readable {
            let (old, new) = (self.lines(old), self.lines(new));
            let show = if self.unified { difference::unified } else { difference::with_context };
            show(sides, &old, &new, self.context)
        } else {
            let text = difference::unified(sides, &old, &new, self.context);
            text.utf8_chunks().fold(Vec::new(), |mut out, chunk| {
                out.extend(chunk.valid().bytes());
                chunk.invalid().iter().for_each(|byte| out.extend(format!("\\x{byte:02x}").bytes()));
                out
            })
        };
        call.out.write_all(&text).map_err(|error| ("write error".into(), error))?;
        Ok(!text.is_empty())
    }

    /// The lines as they are compared and shown.
    fn lines(&self, lines: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let counts = |line: &Vec<u8>| {
            let text = String::from_utf8_lossy(line);
            !self.ignored.as_ref().is_some_and(|regex| regex.is_match(&text))
        };
        let shape = |mut line: Vec<u8>| {
            if self.strip && line.ends_with(b"\r\n") {
                line.truncate(line.len() - 2);
                line.push(b'\n');
            }
            if self.all_blanks || self.blanks {
                let text = String::from_utf8_lossy(&line).into_owned();
                let words: Vec<&str> = text.split_whitespace().collect();
                line = words.join(if self.all_blanks { "" } else { " " }).into_bytes();
                line.push(b'\n');
            }
            line
        };
        lines.into_iter().filter(counts).map(shape).collect()
    }

    /// Compares two folders with all in them, or two files.
    fn trees(
        &self,
        call: &mut Call<'_>,
        sides: [&str; 2],
        depth: usize,
    ) -> Result<bool, (String, io::Error)> {
        let is_folder = sides.map(|side| Path::new(side).is_dir());
        let kind = |side: &str| match std::fs::metadata(side).is_ok_and(|data| data.len() > 0) {
            true => "a regular file",
            false => "a regular empty file",
        };
        let [left, right] = sides;
        let text = match is_folder {
            [false, false] => return self.files(call, sides),
            [false, true] => format!("File {left} is {} while file {right} is a directory\n", kind(left)),
            [true, false] => format!("File {left} is a directory while file {right} is {}\n", kind(right)),
            [true, true] => String::new(),
        };
        let write = |call: &mut Call<'_>, text: &str| {
            call.out.write_all(text.as_bytes()).map_err(|error| ("write error".to_string(), error))
        };
        write(call, &text)?;
        if !text.is_empty() || depth > MAX_DEPTH {
            return Ok(true);
        }
        let mut names: BTreeMap<String, [bool; 2]> = BTreeMap::new();
        for (index, side) in sides.iter().enumerate() {
            let entries = std::fs::read_dir(side).map_err(|error| (side.to_string(), error))?;
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                names.entry(name).or_default()[index] = true;
            }
        }
        let mut differ = false;
        for (name, there) in names {
            differ |= match there {
                [true, true] => {
                    let inner = sides.map(|side| format!("{side}/{name}"));
                    self.trees(call, inner.each_ref().map(String::as_str), depth + 1)?
                }
                [first, _] => {
                    write(call, &format!("Only in {}: {name}\n", if first { left } else { right }))?;
                    true
                }
            };
        }
        Ok(differ)
    }
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
    let mut blank = 0;
    for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if let Some(name) = separator(line) {
            if name.is_empty() || parts.iter().any(|(known, _)| *known == name) {
                return Err(format!("{input}:{}: bad or repeated part name '{name}'", number + 1));
            }
            blank += if leading { number + 1 } else { 0 };
            if blank > MAX_BLANK {
                return Err(format!(
                    "{input}: the parts would begin with more than {MAX_BLANK} empty lines; use --no-leading-lines"
                ));
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
        std::fs::remove_dir_all(&directory).map_err(|error| message(output, &error))?;
    }
    for (name, part) in parts {
        let path = inside(&directory, &name).ok_or_else(|| format!("{input}: part '{name}' is outside"))?;
        let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        parent.and_then(|()| std::fs::write(&path, part)).map_err(|error| message(&name, &error))?;
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
