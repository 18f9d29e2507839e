//! Operators called by name. Each kind of call is compiled once, as the TorchScript function of one line that a script would
//! have for it: overloads, defaults and conversions are the frontend's.

use crate::runs;
use engine::diag::{Diagnostic, Result};
use engine::runtime::Program;
use engine::value::Value;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Programs kept; when there are more, all are made anew.
const MAX: usize = 4096;

static KNOWN: RwLock<BTreeMap<String, Program>> = RwLock::new(BTreeMap::new());

/// Calls `aten::softmax`, or any operator of that form of name.
pub(crate) fn call(name: &str, arguments: Vec<Value>) -> Result<Value> {
    let (text, arguments) = source(name, arguments)?;
    let known = KNOWN.read().get(&text).cloned();
    let program = match known {
        Some(program) => program,
        None => {
            let program = runs::toolkit()?.load_source(name, &text)?;
            let mut table = KNOWN.write();
            if table.len() >= MAX {
                table.clear();
            }
            table.insert(text, program.clone());
            program
        }
    };
    runs::with_run(|run| program.run("call", arguments, run))
}

/// The function, and what it takes. What has no type by itself (None, an empty list) stands in the text.
fn source(name: &str, arguments: Vec<Value>) -> Result<(String, Vec<Value>)> {
    let (dialect, op, keywords) = parts(name)?;
    let Some(positional) = arguments.len().checked_sub(keywords.len()) else {
        let (given, named) = (arguments.len(), keywords.len());
        return Err(Diagnostic::input(format!("'{name}' names {named} arguments, and {given} are given")));
    };
    let (mut parameters, mut given, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (n, value) in arguments.into_iter().enumerate() {
        let text = match &value {
            Value::None => "None".to_string(),
            Value::List(list) if list.is_empty() => "[]".to_string(),
            _ => {
                let name = format!("a{}", kept.len());
                parameters.push(format!("{name}: {}", value.ty().annotation()));
                kept.push(value);
                name
            }
        };
        given.push(match n.checked_sub(positional) {
            Some(n) => format!("{}={text}", keywords[n]),
            None => text,
        });
    }
    let mut text = String::new();
    let _ = writeln!(text, "def call({}):", parameters.join(", "));
    let _ = writeln!(text, "    return torch.ops.{dialect}.{op}({})", given.join(", "));
    Ok((text, kept))
}

/// Dialect, op, and the keywords of the last arguments: of `aten::ones(dtype=)`.
fn parts(name: &str) -> Result<(&str, &str, Vec<&str>)> {
    let is_word = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let split = || {
        let (path, keywords) = match name.split_once('(') {
            Some((path, keywords)) => (path, keywords.strip_suffix(')')?),
            None => (name, ""),
        };
        let keywords = keywords.split(',').map(str::trim).filter(|k| !k.is_empty());
        let keywords = keywords.map(|k| k.strip_suffix('=')).collect::<Option<Vec<_>>>()?;
        let (dialect, op) = path.split_once("::")?;
        let all = [dialect, op].into_iter().chain(keywords.iter().copied());
        all.into_iter().all(is_word).then_some((dialect, op, keywords))
    };
    split().ok_or_else(|| {
        Diagnostic::input(format!("'{name}' is not the name of an operator")).hint(
            "names are like 'aten::softmax', or 'aten::ones(dtype=)' where the last arguments are given by keyword; \
             the overload is chosen by the arguments",
        )
    })
}
