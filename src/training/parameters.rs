//! Parameters and buffers of a program's instance by name, in the order of PyTorch's `named_parameters()`; patterns over names;
//! modes of modules.

use crate::diag::{Diagnostic, Result};
use crate::dialects::Run;
use crate::ir::{ClassKind, Symbol};
use crate::runtime::Program;
use crate::tensor::Tensor;
use crate::value::{Object, Value};
use hashbrown::HashSet;

/// A tensor with its path: `layer1.0.weight`.
pub type Named = (String, Tensor);

/// The parameters of a program's instance, each once, frozen ones with them.
pub fn parameters(program: &Program) -> Vec<Named> {
    attributes(program, &|attribute| attribute.is_parameter)
}

/// The buffers, such as running statistics.
pub fn buffers(program: &Program) -> Vec<Named> {
    attributes(program, &|attribute| attribute.is_buffer)
}

/// Most names of a state: a module that is reached by several paths has several.
const MAX_NAMES: usize = 1 << 20;

/// Parameters and buffers under all their names, as PyTorch's `state_dict()` has them. Fails for a module that contains itself
/// and for more than a million names.
pub fn state(program: &Program) -> Result<Vec<Named>> {
    let mut found: Vec<Named> = Vec::new();
    let mut work: Vec<(String, Object, Vec<usize>)> =
        program.instance().map(|object| (String::new(), object.clone(), Vec::new())).into_iter().collect();
    while let Some((path, object, mut outer)) = work.pop() {
        if outer.contains(&object.id()) || found.len() + work.len() > MAX_NAMES {
            return Err(Diagnostic::input(format!(
                "module '{path}' contains itself, or there are too many names"
            )));
        }
        outer.push(object.id());
        let class = program.module().class(object.class());
        let mut inner = Vec::new();
        for attribute in class.map(|class| class.attributes.as_slice()).unwrap_or_default() {
            match object.get(attribute.name) {
                Some(Value::Tensor(tensor)) if attribute.is_parameter || attribute.is_buffer => {
                    found.push((joined(&path, attribute.name), tensor));
                }
                Some(Value::Object(child))
                    if program.module().class(child.class()).is_some_and(|c| c.kind == ClassKind::Module) =>
                {
                    inner.push((joined(&path, attribute.name), child, outer.clone()));
                }
                _ => {}
            }
        }
        work.extend(inner.into_iter().rev());
    }
    Ok(found)
}

fn attributes(program: &Program, wanted: &dyn Fn(&crate::ir::ClassAttribute) -> bool) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    let mut known = HashSet::new();
    for (path, object) in modules(program) {
        let Some(class) = program.module().class(object.class()) else { continue };
        for attribute in class.attributes.iter().filter(|a| wanted(a)) {
            if let Some(Value::Tensor(tensor)) = object.get(attribute.name)
                && known.insert(tensor.id())
            {
                found.push((joined(&path, attribute.name), tensor));
            }
        }
    }
    found
}

fn joined(path: &str, name: Symbol) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}

/// The modules of a program, each once, an outer one before those within.
fn modules(program: &Program) -> Vec<(String, Object)> {
    let mut out = Vec::new();
    let mut seen = HashSet::new();
    let mut work: Vec<(String, Object)> =
        program.instance().map(|object| (String::new(), object.clone())).into_iter().collect();
    while let Some((path, object)) = work.pop() {
        if !seen.insert(object.id()) {
            continue;
        }
        let class = program.module().class(object.class());
        let mut inner = Vec::new();
        for attribute in class.map(|class| class.attributes.as_slice()).unwrap_or_default() {
            if let Some(Value::Object(child)) = object.get(attribute.name)
                && program.module().class(child.class()).is_some_and(|c| c.kind == ClassKind::Module)
            {
                inner.push((joined(&path, attribute.name), child));
            }
        }
        out.push((path, object));
        work.extend(inner.into_iter().rev());
    }
    out
}

/// Whether a name fits a pattern: `*` stands for any text, `?` for a letter.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star stands, and how much of the name it takes.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || Some(c) == name.get(n) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

/// Whether each module of a program trains (attribute `training`), to be put back.
pub struct Modes(Vec<(Object, Value)>);

impl Modes {
    /// Puts all modules into a mode, as `module.train(on)` does, and gives how they were.
    pub fn set(program: &Program, on: bool) -> Modes {
        let training = Symbol::new("training");
        let mut former = Vec::new();
        for (_, object) in modules(program) {
            if let Some(mode @ Value::Bool(_)) = object.get(training) {
                object.set(training, Value::Bool(on));
                former.push((object, mode));
            }
        }
        Modes(former)
    }

    /// Whether there is a module that has a mode.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Puts the modules into the modes that they had.
    pub fn restore(&self) {
        let training = Symbol::new("training");
        self.0.iter().for_each(|(object, mode)| object.set(training, mode.clone()));
    }
}

/// Runs work with gradients recorded or not, and puts the setting back.
pub(super) fn recording<T>(run: &Run, on: bool, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let former = run.set_grad_enabled(on);
    let done = work();
    run.set_grad_enabled(former);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, fits) in [
            ("*", "a.b", true),
            ("a.*", "a.b.c", true),
            ("a.*.weight", "a.0.weight", true),
            ("a.*.weight", "a.0.bias", false),
            ("*bias*", "x.bias", true),
            ("a?", "ab", true),
            ("a", "ab", false),
            ("", "", true),
            ("**c", "abc", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
