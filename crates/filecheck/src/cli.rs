//! The command line, parsed as LLVM's tools parse theirs.
//!
//! An option has one dash or two, its value follows `=` or is the next argument, `--` ends the options.

use super::run::{FAILED, GOOD, Run, UNUSABLE};
use super::search::distance;
use super::source::{Console, Sources};
use super::{DumpFilter, DumpInput, Options, help};
use flambeau_files as files;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Nothing at all.
    Nothing,
    /// Nothing, or a truth value after `=`.
    Truth,
    /// A value.
    Value,
    /// A value directly after the name.
    Joined,
}

/// All options. The first of several that are equally close to an unknown option is suggested.
const OPTIONS: &[(&str, Takes)] = &[
    ("h", Takes::Nothing),
    ("help", Takes::Nothing),
    ("help-hidden", Takes::Nothing),
    ("help-list", Takes::Nothing),
    ("help-list-hidden", Takes::Nothing),
    ("version", Takes::Nothing),
    ("D", Takes::Joined),
    ("v", Takes::Truth),
    ("vv", Takes::Truth),
    ("color", Takes::Truth),
    ("allow-deprecated-dag-overlap", Takes::Truth),
    ("allow-empty", Takes::Truth),
    ("allow-unused-prefixes", Takes::Truth),
    ("check-prefix", Takes::Value),
    ("check-prefixes", Takes::Value),
    ("comment-prefixes", Takes::Value),
    ("dump-input", Takes::Value),
    ("dump-input-context", Takes::Value),
    ("dump-input-filter", Takes::Value),
    ("enable-var-scope", Takes::Truth),
    ("filter-label", Takes::Value),
    ("ignore-case", Takes::Truth),
    ("implicit-check-not", Takes::Value),
    ("input-file", Takes::Value),
    ("match-full-lines", Takes::Truth),
    ("strict-whitespace", Takes::Truth),
];

/// Longest response file, and how many are read: files may name each other.
const MAX_RESPONSE: u64 = 1 << 20;
const MAX_RESPONSES: usize = 64;

/// The command. `args[0]` is the name it was called by; `env_opts` is the value of `FILECHECK_OPTS`, whose options
/// come before the others. Colours are written only with `--color`. Gives the exit status: 0 if all checks
/// hold, 1 if one fails, 2 if there is nothing to check with (1 for invalid options).
pub fn main(
    args: &[OsString],
    env_opts: Option<&str>,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> i32 {
    main_in(Path::new(""), args, env_opts, stdin, out, err)
}

/// As [`main`], with relative paths starting from `directory`.
pub fn main_in(
    directory: &Path,
    args: &[OsString],
    env_opts: Option<&str>,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> i32 {
    let args: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let (name, rest) =
        args.split_first().map_or(("FileCheck", &[][..]), |(name, rest)| (name.as_str(), rest));
    let mut console = Console { out: Vec::new(), color: false };
    let mut line = CommandLine::new(name, &mut console);
    let mut words = split_words(env_opts.unwrap_or_default());
    words.extend(rest.iter().cloned());
    let result = line.parse(respond(directory, words).into_iter());
    let CommandLine { options, check_file, input_file, .. } = line;
    let status = match result {
        Err(Ending::Failed) => FAILED,
        // A reader that went away is not a failure of ours; the same holds below.
        Err(Ending::Text(text)) => {
            let _ = out.write_all(text.as_bytes());
            GOOD
        }
        Ok(()) if options.dump_input() == DumpInput::Help => {
            let _ = out.write_all(help::DUMP.as_bytes());
            GOOD
        }
        Ok(()) => {
            console.color = options.color;
            let mut files = Files { directory, stdin };
            start(&options, check_file, &input_file, &args.join(" "), &mut console, &mut files)
        }
    };
    let _ = err.write_all(&console.out);
    status
}

/// Runs with valid options.
fn start(
    options: &Options,
    check_file: Option<String>,
    input_file: &str,
    command: &str,
    console: &mut Console,
    files: &mut Files<'_>,
) -> i32 {
    let Some(check_file) = check_file else {
        console.text("<check-file> not specified\n");
        return UNUSABLE;
    };
    let mut errors = bad_defines(&options.defines);
    if errors.is_empty() {
        errors.extend(bad_prefix(options));
    }
    for error in &errors {
        console.text(format!("{error}\n"));
    }
    if !errors.is_empty() {
        return UNUSABLE;
    }
    let (check_name, check_text) = match files.read(&check_file, "check", console) {
        Ok(file) => file,
        Err(status) => return status,
    };
    let mut run = Run { options, console, sources: Sources::default(), command };
    run.run((&check_name, check_text), |console| files.read(input_file, "input", console))
}

/// Replaces `@FILE` by the arguments in a file, recursively. One that cannot be read stays unchanged.
fn respond(directory: &Path, words: Vec<String>) -> Vec<String> {
    let mut left: Vec<String> = words.into_iter().rev().collect();
    let (mut out, mut files) = (Vec::new(), 0);
    while let Some(word) = left.pop() {
        let path = word.strip_prefix('@').filter(|_| files < MAX_RESPONSES);
        match path.and_then(|path| files::read(&directory.join(path), MAX_RESPONSE).ok()) {
            Some(text) => {
                files += 1;
                left.extend(split_words(&String::from_utf8_lossy(&text)).into_iter().rev());
            }
            None => out.push(word),
        }
    }
    out
}

/// Where files come from.
struct Files<'a> {
    directory: &'a Path,
    stdin: &'a mut dyn Read,
}

impl Files<'_> {
    /// Reads a file, or the standard input for `-`; gives its name too.
    fn read(&mut self, path: &str, role: &str, console: &mut Console) -> Result<(String, Vec<u8>), i32> {
        let (name, result) = if path == "-" {
            ("<stdin>", files::read_stream(self.stdin, files::TEXT_BYTES))
        } else {
            (path, files::read(&self.directory.join(path), files::TEXT_BYTES))
        };
        result.map(|text| (name.to_string(), text)).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.split(" (os error").next().unwrap_or_default();
            console.text(format!("Could not open {role} file '{path}': {reason}\n"));
            UNUSABLE
        })
    }
}

fn bad_defines(defines: &[String]) -> Vec<String> {
    let complaint = |define: &String| {
        let what = match define.find('=') {
            None => "Missing equal sign",
            Some(0) => "Missing variable name",
            Some(_) => return None,
        };
        Some(format!("{what} in command-line definition '-D{define}'"))
    };
    defines.iter().filter_map(complaint).collect()
}

/// The first prefix of the user's that cannot be one.
fn bad_prefix(options: &Options) -> Option<String> {
    let mut known: Vec<&str> = Vec::new();
    if options.check_prefixes.is_empty() {
        known.push("CHECK");
    }
    if options.comment_prefixes.is_empty() {
        known.extend(["COM", "RUN"]);
    }
    let checks = options.check_prefixes.iter().map(|prefix| ("check", prefix));
    let comments = options.comment_prefixes.iter().map(|prefix| ("comment", prefix));
    for (kind, prefix) in checks.chain(comments) {
        let rule = if prefix.is_empty() {
            "not be the empty string".to_string()
        } else if !prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
            format!(
                "start with a letter and contain only alphanumeric characters, hyphens, and underscores: '{prefix}'"
            )
        } else if known.contains(&prefix.as_str()) {
            format!("be unique among check and comment prefixes: '{prefix}'")
        } else {
            known.push(prefix);
            continue;
        };
        return Some(format!("error: supplied {kind} prefix must {rule}"));
    }
    None
}

/// Why parsing the options ends early.
enum Ending {
    /// Something is wrong; it was said.
    Failed,
    /// The user asked for this text.
    Text(String),
}

struct CommandLine<'a> {
    options: Options,
    check_file: Option<String>,
    input_file: String,
    /// The whole name of the command, and its last part.
    whole_name: &'a str,
    name: &'a str,
    console: &'a mut Console,
}

impl<'a> CommandLine<'a> {
    fn new(whole_name: &'a str, console: &'a mut Console) -> Self {
        let name = whole_name.rsplit('/').next().unwrap_or(whole_name);
        let (options, input_file) = (Options::default(), "-".to_string());
        CommandLine { options, check_file: None, input_file, whole_name, name, console }
    }

    /// Parses all arguments; every bad one is reported before it fails.
    fn parse(&mut self, words: impl Iterator<Item = String>) -> Result<(), Ending> {
        let mut words = words.peekable();
        let mut positional = Vec::new();
        let mut only_positional = false;
        let mut failed = false;
        while let Some(word) = words.next() {
            if only_positional || word == "-" || !word.starts_with('-') {
                positional.push(word);
                continue;
            }
            if word == "--" {
                only_positional = true;
                continue;
            }
            let argument = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).unwrap_or(&word);
            let Some(found) = lookup(argument).map(|one| vec![one]).or_else(|| grouped(argument)) else {
                self.unknown(&word, argument);
                failed = true;
                continue;
            };
            for (name, takes, value) in found {
                let value = match (takes, value) {
                    (Takes::Value, None) => words.next(),
                    (_, value) => value.map(String::from),
                };
                if let Err(message) = self.set(name, takes, value)? {
                    let dashes = if name.len() == 1 { "-" } else { "--" };
                    self.console.text(format!("{}: for the {dashes}{name} option: {message}\n", self.name));
                    failed = true;
                }
            }
        }
        if positional.len() > 1 {
            self.console.text(format!(
                "{}: Too many positional arguments specified!\n\
                 Can specify at most 1 positional arguments: See: {} --help\n",
                self.name, self.whole_name
            ));
            failed = true;
        }
        self.check_file = positional.pop().filter(|file| !file.is_empty());
        if failed { Err(Ending::Failed) } else { Ok(()) }
    }

    fn unknown(&mut self, word: &str, argument: &str) {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        };
        let mut row = Vec::new();
        let mut far = |known: &str| distance(known.as_bytes(), name.as_bytes(), &mut row);
        let nearest =
            OPTIONS.iter().map(|(known, takes)| (far(known), known, takes)).min_by_key(|(far, ..)| *far);
        self.console.text(format!(
            "{}: Unknown command line argument '{word}'.  Try: '{} --help'\n",
            self.name, self.whole_name
        ));
        if let Some((_, nearest, takes)) = nearest {
            let dashes = if nearest.len() == 1 { "-" } else { "--" };
            let value = value.filter(|_| *takes != Takes::Nothing).map(|value| format!("={value}"));
            let value = value.unwrap_or_default();
            self.console.text(format!("{}: Did you mean '{dashes}{nearest}{value}'?\n", self.name));
        }
    }

    /// Sets an option; the inner error is what is wrong with the value.
    fn set(&mut self, name: &str, takes: Takes, value: Option<String>) -> Result<Result<(), String>, Ending> {
        let value = match (takes, value) {
            (Takes::Nothing, Some(value)) => {
                return Ok(Err(format!("does not allow a value! '{value}' specified.")));
            }
            (Takes::Value | Takes::Joined, None) => return Ok(Err("requires a value!".into())),
            (Takes::Nothing, None) => {
                return Err(Ending::Text(match name {
                    "version" => help::version(),
                    "help-list" | "help-list-hidden" => help::list(self.name),
                    _ => help::usage(self.name),
                }));
            }
            (Takes::Truth, value) => return Ok(self.set_truth(name, value.as_deref().unwrap_or("true"))),
            (_, Some(value)) => value,
        };
        Ok(self.set_value(name, value))
    }

    fn set_truth(&mut self, name: &str, value: &str) -> Result<(), String> {
        let on = match value {
            "" | "true" | "TRUE" | "True" | "1" => true,
            "false" | "FALSE" | "False" | "0" => false,
            _ => return Err(format!("'{value}' is invalid value for boolean argument! Try 0 or 1")),
        };
        let options = &mut self.options;
        let level = options.verbosity;
        match name {
            "v" => options.verbosity = if on { level | 1 } else { level & !1 },
            "vv" => options.verbosity = if on { level | 2 } else { level & !2 },
            "color" => options.color = on,
            "allow-deprecated-dag-overlap" => options.allow_deprecated_dag_overlap = on,
            "allow-empty" => options.allow_empty = on,
            "allow-unused-prefixes" => options.allow_unused_prefixes = on,
            "enable-var-scope" => options.enable_var_scope = on,
            "ignore-case" => options.ignore_case = on,
            "match-full-lines" => options.match_full_lines = on,
            _ => options.strict_whitespace = on,
        }
        Ok(())
    }

    fn set_value(&mut self, name: &str, value: String) -> Result<(), String> {
        let options = &mut self.options;
        let unknown = |value: &str| Err(format!("Cannot find option named '{value}'!"));
        match name {
            "D" => options.defines.push(value),
            "check-prefix" => options.check_prefixes.push(value),
            "check-prefixes" => options.check_prefixes.extend(value.split(',').map(String::from)),
            "comment-prefixes" => options.comment_prefixes.extend(value.split(',').map(String::from)),
            "filter-label" => options.filter_label.extend(value.split(',').map(String::from)),
            "implicit-check-not" => options.implicit_check_not.push(value),
            "input-file" => self.input_file = value,
            "dump-input" => match value.as_str() {
                "help" => options.dump_input.push(DumpInput::Help),
                "always" => options.dump_input.push(DumpInput::Always),
                "fail" => options.dump_input.push(DumpInput::Fail),
                "never" => options.dump_input.push(DumpInput::Never),
                _ => return unknown(&value),
            },
            "dump-input-filter" => match value.as_str() {
                "all" => options.dump_input_filter.push(DumpFilter::All),
                "annotation-full" => options.dump_input_filter.push(DumpFilter::AnnotationFull),
                "annotation" => options.dump_input_filter.push(DumpFilter::Annotation),
                "error" => options.dump_input_filter.push(DumpFilter::Error),
                _ => return unknown(&value),
            },
            _ => match number(&value) {
                Some(number) => options.dump_input_context.push(number),
                None => return Err(format!("'{value}' value invalid for uint argument!")),
            },
        }
        Ok(())
    }
}

/// An option within an argument: its name, what it takes, and the value after the name.
type Found<'w> = (&'static str, Takes, Option<&'w str>);

/// One-letter options that share an argument: `-vvv`, `-vDX=1`. The last one may have a value.
fn grouped(argument: &str) -> Option<Vec<Found<'_>>> {
    let mut found = Vec::new();
    let mut rest = argument;
    while let Some(letter) = rest.get(..1) {
        let (name, takes) = OPTIONS.iter().find(|(known, _)| *known == letter)?;
        let behind = rest.get(1..)?;
        if *takes == Takes::Joined || behind.starts_with('=') {
            let value = if *takes == Takes::Joined { behind } else { behind.get(1..)? };
            found.push((*name, *takes, Some(value)));
            return Some(found);
        }
        found.push((*name, *takes, None));
        rest = behind;
    }
    (found.len() > 1).then_some(found)
}

/// The option that an argument without its dashes names, and the value after the name.
fn lookup(argument: &str) -> Option<Found<'_>> {
    let (name, value) = match argument.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (argument, None),
    };
    if let Some((name, takes)) =
        OPTIONS.iter().find(|(known, takes)| *known == name && *takes != Takes::Joined)
    {
        return Some((name, *takes, value));
    }
    let joined = OPTIONS.iter().filter(|(_, takes)| *takes == Takes::Joined);
    joined
        .filter_map(|(name, takes)| Some((*name, *takes, argument.strip_prefix(name)?)))
        .map(|(name, takes, value)| (name, takes, Some(value).filter(|value| !value.is_empty())))
        .next()
}

/// A number in decimal, or with `0x`, `0b`, `0o` or `0` in front.
fn number(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (lower.get(2..)?, 16),
        [b'0', b'b', ..] => (lower.get(2..)?, 2),
        [b'0', b'o', ..] => (lower.get(2..)?, 8),
        [b'0', b'0'..=b'9', ..] => (lower.get(1..)?, 8),
        _ => (lower.as_str(), 10),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u32::from_str_radix(digits, radix).ok().filter(|_| plain).map(|number| number as usize)
}

/// The options of `FILECHECK_OPTS`, separated by blanks, with quotes and backslash escapes.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', _) => word.get_or_insert_default().extend(letters.next()),
            (letter, Some(mark)) if letter == mark => quote = None,
            (letter, Some(_)) => word.get_or_insert_default().push(letter),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, None) if letter.is_ascii_whitespace() => words.extend(word.take()),
            (letter, None) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
