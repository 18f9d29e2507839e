//! Pages whose commands are run: what a page says that a command prints is what it prints.

use flambeau::diag::Source;
use flambeau::dialects::Registry;
use flambeau::frontend::dialect;
use flambeau::tools::cli;
use flambeau::tools::io::Io;
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};

/// One trial a page.
pub fn trials() -> Vec<Trial> {
    let pages = [
        "docs/add-a-dialect.md",
        "docs/add-a-rule.md",
        "docs/first-hour.md",
        "docs/loops.md",
        "docs/testing.md",
        "docs/tools.md",
    ];
    pages.into_iter().map(|page| Trial::test(format!("pages::{page}"), move || check(page))).collect()
}

fn check(page: &str) -> Result<(), Failed> {
    let text = fs::read_to_string(page)?;
    let folder = folder(page)?;
    let mut commands = 0;
    for (mark, block) in blocks(&text) {
        match mark {
            "dialect" => {
                dialect::load(&Registry::builtin(), &Source::new(page, block)).map_err(|e| e.to_string())?;
            }
            // A file that the commands below it name.
            name if [".ir", ".py", ".rules"].iter().any(|end| name.ends_with(end)) => {
                fs::write(folder.join(name), block)?
            }
            "console" | "console times" => {
                commands += 1;
                console(block, &folder, mark == "console times")?;
            }
            _ => {}
        }
    }
    if page.ends_with("add-a-dialect.md") {
        for (mark, file) in [("dialect", "examples/quant.dialect"), ("quant-ir", "examples/quant.ir")] {
            let shown = blocks(&text).into_iter().find(|(m, _)| *m == mark).map(|(_, block)| block);
            if shown != Some(fs::read_to_string(file)?.as_str()) {
                return Err(format!("{file} is not what {page} shows").into());
            }
        }
    }
    if commands == 0 {
        return Err("the page has no command".into());
    }
    Ok(())
}

/// A folder with the examples, in which the commands run.
fn folder(page: &str) -> Result<PathBuf, Failed> {
    let name = page.replace(['/', '.'], "-");
    let folder = crate::scratch::folder(&format!("pages-{name}"));
    fs::create_dir_all(folder.join("examples"))?;
    for place in ["examples", "examples/small_case"] {
        fs::create_dir_all(folder.join(place))?;
        for file in fs::read_dir(place)?.flatten().map(|entry| entry.path()).filter(|file| file.is_file()) {
            fs::copy(&file, folder.join(&file))?;
        }
    }
    let bad = "graph(%x : Tensor):\n  %1 : int = prim::Constant[value=2]()\n  %2 : Tensor = quant::snap(%x, %1)\n  return (%2)\n";
    fs::write(folder.join("bad.ir"), bad)?;
    let op = |name: &str, value: &str, grad: &str| {
        format!(
            "op slope::{name}(Tensor x) -> Tensor {{\n    meaning\n        def {name}(x: Tensor):\n            return {value}\n    grad x: {grad}\n}}\n\n"
        )
    };
    let slope = format!(
        "dialect slope\n\n{}{}",
        op("square", "x * x", "grad * 2 * x"),
        op("cube", "x * x * x", "grad * 2 * x * x")
    );
    fs::write(folder.join("slope.dialect"), slope)?;
    let sum = "graph(%x : int):\n  %2 : int = aten::add(%x, %x)\n  %3 : int = aten::add(%x, %x)\n  %4 : int = aten::neg(%x)\n  return (%2, %3)\n";
    fs::write(folder.join("sum.ir"), sum)?;
    Ok(folder)
}

fn blocks(text: &str) -> Vec<(&str, &str)> {
    let parts = text.split("```").skip(1).step_by(2);
    parts.filter_map(|part| part.split_once('\n')).collect()
}

/// A block of `$ command` lines, each with what it prints. A line `...` stands for any lines; with `times` numbers and
/// their units are not compared.
fn console(block: &str, folder: &Path, times: bool) -> Result<(), Failed> {
    for part in block.split("$ ").skip(1) {
        let (command, wanted) = part.split_once('\n').unwrap_or((part, ""));
        let mut words = words(command);
        let to = match words.iter().position(|word| word == ">") {
            Some(at) => words.drain(at..).nth(1),
            None => None,
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut stdin: &[u8] = b"";
        let toolkit = flambeau::toolkit::Toolkit::default();
        let mut io = Io::new(&toolkit, folder, &mut stdin, &mut out, &mut err);
        let status = cli::main_in(words.into_iter().map(Into::into), &mut io);
        if let Some(file) = to {
            fs::write(folder.join(file), &out)?;
            out.clear();
        }
        // Files are shown as the page names them.
        let here = format!("{}/", folder.display());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&here, "");
        let (got, other) = (text(&err) + &text(&out), text(&out) + &text(&err));
        let plain = |text: &str| if times { without_numbers(text) } else { text.to_string() };
        if !is_as_shown(&plain(wanted), &plain(&got)) && !is_as_shown(&plain(wanted), &plain(&other)) {
            return Err(format!("{command}\nprints (status {status})\n{got}\nnot\n{wanted}").into());
        }
        if status != 0 && !wanted.contains("error:") && !wanted.contains("REFUSED") {
            return Err(format!("{command}\nfails with status {status}\n{got}").into());
        }
    }
    Ok(())
}

fn is_as_shown(wanted: &str, got: &str) -> bool {
    let mut rest = got.trim_end();
    let parts: Vec<&str> = wanted.trim_end().split("...\n").flat_map(|part| part.split("\n...")).collect();
    if parts.len() == 1 && wanted.trim_end() != "..." {
        return wanted.trim_end() == rest;
    }
    for (n, part) in parts.iter().map(|part| part.trim_matches(['\n', '.'])).enumerate() {
        match rest.find(part) {
            Some(at) if at == 0 || n > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    true
}

/// A text with one mark for each number and its unit, and one blank for several.
fn without_numbers(text: &str) -> String {
    let is_number = |word: &str| word.trim_matches(['(', ')', 'x']).parse::<f64>().is_ok();
    let is_unit = |word: &str| matches!(word, "us" | "ms" | "s" | "kB" | "MB" | "GB");
    let line = |line: &str| {
        let words = line.split_whitespace().filter(|word| !is_unit(word));
        let words: Vec<&str> = words.map(|word| if is_number(word) { "#" } else { word }).collect();
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The words of a command; single quotes keep blanks.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (n, part) in command.split('\'').enumerate() {
        if n % 2 == 1 {
            words.push(part.to_string());
        } else {
            words.extend(part.split_whitespace().map(String::from));
        }
    }
    words
}
