//! Graphs as bytes: every graph of the FileCheck tests that can be read is written and read again, and prints the same text.

use flambeau::diag::Source;
use flambeau::ir::bytecode::{Outside, read, write};
use flambeau::ir::{Graph, ParseOptions, parse_module};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::Path;

/// One trial.
pub fn trials() -> Vec<Trial> {
    vec![Trial::test("bytecode::graphs_of_filecheck_tests_come_back", all)]
}

/// As many graphs are read at least: the test is about something.
const GRAPHS: usize = 500;

fn all() -> Result<(), Failed> {
    let mut graphs = 0;
    for entry in walk(Path::new("tests/filecheck"))? {
        if entry.extension().is_none_or(|end| end != "ir" && end != "mlir") {
            continue;
        }
        let text = fs::read_to_string(&entry)?;
        let source = Source::new(entry.display().to_string(), text);
        // Some are not to be read.
        let Ok(parsed) = parse_module(&source, &ParseOptions::default()) else { continue };
        for function in parsed.module.functions.values() {
            graphs += 1;
            one(&function.graph).map_err(|why| format!("{}: {why}", entry.display()))?;
        }
    }
    if graphs < GRAPHS {
        return Err(format!("only {graphs} graphs were read").into());
    }
    Ok(())
}

fn one(graph: &Graph) -> Result<(), String> {
    let mut outside = Outside::default();
    let Some(bytes) = write(graph, &mut outside) else { return Ok(()) };
    let again = read(&bytes, &outside).ok_or("what was written is not read")?;
    let (text, before) = (again.to_string(), graph.to_string());
    if text != before {
        return Err(format!("{text}\nis not\n{before}"));
    }
    if write(&again, &mut outside) != Some(bytes) {
        return Err("it is not written alike".into());
    }
    Ok(())
}

fn walk(folder: &Path) -> Result<Vec<std::path::PathBuf>, Failed> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(walk(&path)?),
            false => files.push(path),
        }
    }
    files.sort();
    Ok(files)
}
