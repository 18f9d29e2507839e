//! Forward hooks of modules: calls of a module within programs run them, `forward` by its name does not, and what PyTorch refuses is
//! refused with its messages.

use super::Program;
use crate::diag::{Result, Source, Span};
use crate::dialects::{Registry, Run};
use crate::frontend::script::{ClassText, Host, Meaning, Member, compile_hosted};
use crate::ir::{Module, Symbol};
use crate::value::{Object, Value};
use std::sync::Arc;

/// Answers nothing: classes are given as a whole.
struct Silent;

impl Host for Silent {
    fn knows(&self, _: &Arc<Source>) -> bool {
        false
    }

    fn same_names(&self, _: &Arc<Source>, _: &Arc<Source>) {}

    fn name(&self, _: &str, _: &Span) -> Result<Option<Meaning>> {
        Ok(None)
    }

    fn attribute(&self, _: u64, _: &str, _: &Span) -> Result<Option<Meaning>> {
        Ok(None)
    }

    fn numbered(&self, _: u64) -> Result<Meaning> {
        Err(crate::diag::Diagnostic::internal("nothing is numbered"))
    }

    fn member(&self, _: Symbol, _: &str, _: &Span) -> Result<Option<Member>> {
        Ok(None)
    }
}

fn class(name: &str, header: &str, methods: &[&str]) -> Meaning {
    let short = name.rsplit('.').next().unwrap_or(name);
    Meaning::Class(Box::new(ClassText {
        name: Symbol::new(name),
        header: Source::new("<class>", format!("class {short}(Module):\n{header}")),
        methods: methods.iter().map(|text| Source::new("m.py", *text)).collect(),
        properties: Vec::new(),
        has_init: false,
        items: None,
    }))
}

/// The program of one class with these attributes and methods.
pub(super) fn program_of(name: &str, header: &str, methods: &[&str]) -> Result<Module> {
    compile_hosted(&Registry::builtin(), Box::new(Silent), vec![class(name, header, methods)])
}

/// A module that adds `n`, with hooks, inside of one that calls it.
fn compiled(hooks: &str, texts: &[&str]) -> Result<Module> {
    let forward = "def forward(self, x: int, n: int) -> int:\n    return x + n\n";
    let methods: Vec<&str> = std::iter::once(forward).chain(texts.iter().copied()).collect();
    let inner = class("__torch__.Inner", hooks, &methods);
    let call = "def forward(self, x: int) -> int:\n    return self.inner(x, 1)\n";
    let outer = class("__torch__.Outer", "  inner : __torch__.Inner\n", &[call]);
    compile_hosted(&Registry::builtin(), Box::new(Silent), vec![inner, outer])
}

const BEFORE: &str = "  __forward_pre_hooks__ = [\"twice\", \"looks\"]\n";
const AFTER: &str = "  __forward_hooks__ = [\"hundred\"]\n";
const TWICE: &str =
    "def twice(self, input: Tuple[int, int]) -> Tuple[int, int]:\n    return input[0] * 2, input[1]\n";
const LOOKS: &str = "def looks(self, input: Tuple[int, int]) -> None:\n    pass\n";
const HUNDRED: &str =
    "def hundred(self, input: Tuple[int, int], output: int) -> int:\n    return output + 100 * input[0]\n";

#[test]
fn a_call_of_a_module_runs_its_hooks_and_forward_by_name_does_not() {
    let module = compiled(&format!("{BEFORE}{AFTER}"), &[TWICE, LOOKS, HUNDRED]).expect("compiles");
    let inner = Object::new(Symbol::new("__torch__.Inner"));
    let program = Program::with(module.clone(), Some(inner.clone()), Registry::builtin());
    let run = Run::silent();
    let arguments = vec![Value::Int(3), Value::Int(1)];
    let called = program.call_module(&inner, arguments.clone(), Vec::new(), &run).and_then(|v| v.to_int());
    assert_eq!(called.expect("runs"), 3 * 2 + 1 + 100 * 6);
    let forward = program.run("forward", arguments, &run).and_then(|v| v.to_int());
    assert_eq!(forward.expect("runs"), 4);
    let outer = Object::new(Symbol::new("__torch__.Outer"));
    outer.set(Symbol::new("inner"), Value::Object(inner));
    let program = Program::with(module, Some(outer), Registry::builtin());
    let within = program.run("forward", vec![Value::Int(3)], &run).and_then(|v| v.to_int());
    assert_eq!(within.expect("runs"), 607);
}

#[test]
fn hooks_that_do_not_fit_are_refused() {
    let refused = |hooks: &str, text: &str| compiled(hooks, &[text]).expect_err(text).to_string();
    for (header, text, words) in [
        (
            AFTER,
            "def hundred(self, input: Tuple[int, int]) -> int:\n    return 1\n",
            "only have exactly 3 inputs but it had 2",
        ),
        (
            AFTER,
            "def hundred(self, input: int, output: int) -> int:\n    return 1\n",
            "typed as a Tuple but found type: 'int'",
        ),
        (
            AFTER,
            "def hundred(self, input: Tuple[int], output: int) -> int:\n    return 1\n",
            "wrong number of contained types for the input argument's Tuple. Received type: 'Tuple[int]'",
        ),
        (
            AFTER,
            "def hundred(self, input: Tuple[int, str], output: int) -> int:\n    return 1\n",
            "wrong inner types for the input tuple argument. Received type: 'Tuple[int, str]'",
        ),
        (
            AFTER,
            "def hundred(self, input: Tuple[int, int], output: str) -> int:\n    return 1\n",
            "wrong type for the output argument. Received type: 'str'. Expected type: 'int'",
        ),
    ] {
        let error = refused(header, text);
        assert!(
            error.contains(words) && error.contains("signature: hundred(self, input: Tuple[int, int]"),
            "{error}"
        );
    }
    let before = "  __forward_pre_hooks__ = [\"twice\"]\n";
    for (result, words) in [
        ("", "missing a return annotation"),
        (" -> int", "returned the wrong type of: 'int'."),
        (" -> Tuple[int]", "The returned tuple contains the wrong number of contained types"),
        (" -> Tuple[int, str]", "The returned tuple contains the wrong inner types"),
    ] {
        let value = match result {
            " -> int" => "1",
            " -> Tuple[int]" => "(1,)",
            _ => "(1, 'a')",
        };
        let error = refused(
            before,
            &format!("def twice(self, input: Tuple[int, int]){result}:\n    return {value}\n"),
        );
        assert!(error.contains(words) && error.contains("either 'None' or 'Tuple[int, int]'"), "{error}");
    }
}
