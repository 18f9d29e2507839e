//! Printed code against what it was compiled from: recorded archives give their own code back, and what is printed of
//! source compiles to the same graphs.

use super::{print, roots};
use crate::diag::{Result, Source};
use crate::dialects::Registry;
use crate::frontend::archive::{Archive, load};
use crate::frontend::script::compile_source;
use crate::ir::{Module, PrintOptions, Symbol};
use crate::value::Value;

/// The module of source, printed and compiled again.
fn round_trip(text: &str) -> String {
    let registry = Registry::builtin();
    let compile = |text: &str| -> Module {
        compile_source(&registry, &Source::new("<test>", text)).unwrap_or_else(|e| panic!("{e}\n{text}"))
    };
    let python = |module: &Module| -> String {
        let printed = print(&registry, module, &roots(module), &[], Vec::new(), &|_| None);
        let printed = printed.unwrap_or_else(|e| panic!("{e}"));
        printed.files.values().map(|text| text.as_str().to_string()).collect()
    };
    let once = python(&compile(text));
    let twice = python(&compile(&once));
    assert_eq!(once, twice, "printing is a fixed point");
    once
}

#[test]
fn expressions_nest_and_variables_stay() {
    let text = "def f(a, b: int):\n    c = a + b\n    d = c * c\n    return (d + torch.tanh(c)).relu()\n";
    let wanted = "def f(a: Tensor,\n    b: int) -> Tensor:\n  c = torch.add(a, b)\n  d = torch.mul(c, c)\n  \
                  _0 = torch.relu(torch.add(d, torch.tanh(c)))\n  return _0\n";
    assert_eq!(round_trip(text), wanted);
}

#[test]
fn loops_and_branches() {
    let text = "def f(n: int):\n    s = 0\n    for i in range(n):\n        if i > 2:\n            s += i\n    while s < 9:\n        s += 1\n    return s\n";
    let printed = round_trip(text);
    assert!(printed.contains("  for i in range(n):\n    if torch.gt(i, 2):\n"), "{printed}");
    assert!(printed.contains("  while _"), "{printed}");
}

#[test]
fn a_counted_loop_with_a_break_becomes_conditional() {
    let printed = round_trip(
        "def f(n: int):\n    s = 0\n    for i in range(n):\n        if i == 5:\n            break\n        s += i\n    return s\n",
    );
    assert!(printed.contains("while "), "{printed}");
}

#[test]
fn constants_of_all_kinds() {
    let printed = round_trip(
        "def f(x: Optional[int], s: str='a\"\\n', y: float=1e-5):\n    a: List[int] = []\n    b: List[Optional[int]] = [1, None]\n    c = {'k': 1.5}\n    return (a, b, c, -1, float('inf'), 'long text that goes to a line of its own', True, 2j)\n",
    );
    assert!(printed.contains("s: str=\"a\\\"\\n\""), "{printed}");
    assert!(printed.contains("annotate(List[Optional[int]], [1, None])"), "{printed}");
    assert!(printed.contains("= \"long text that goes to a line of its own\"\n"), "{printed}");
}

#[test]
fn closures_become_inner_functions() {
    let printed = round_trip(
        "def g(x, y):\n    return x + y\ndef f(x):\n    a = torch.jit.fork(g, x, x)\n    return torch.jit.wait(a)\n",
    );
    assert!(printed.contains("  def __forked_function():\n"), "{printed}");
    assert!(printed.contains("= fork(__forked_function)\n"), "{printed}");
}

/// How the code of an archive comes back: the number of files, of those that are equal, and the first difference.
#[derive(Default)]
struct Counts {
    archives: usize,
    files: usize,
    equal: usize,
    refused: usize,
}

fn compare(bytes: Vec<u8>, name: &str, counts: &mut Counts, show: bool) -> Result<()> {
    let registry = Registry::builtin();
    let original = Archive::from_bytes(bytes.clone())?;
    let model = load(&registry, Archive::from_bytes(bytes)?)?;
    let Value::Object(root) = &model.root else { return Ok(()) };
    counts.archives += 1;
    let printed =
        match print(&registry, &model.module, &[root.class()], &[], model.constants.clone(), &|_| None) {
            Ok(printed) => printed,
            Err(error) => {
                counts.refused += 1;
                if show {
                    eprintln!("{name}: {error}");
                }
                return Ok(());
            }
        };
    for (package, text) in &printed.files {
        let file = format!("code/{}.py", package.replace('.', "/"));
        counts.files += 1;
        let source = original.source(&file)?;
        if source.text() == text.as_str() {
            counts.equal += 1;
        } else if show {
            let pairs = source.text().lines().zip(text.as_str().lines());
            let first = pairs.enumerate().find(|(_, (a, b))| a != b);
            eprintln!("{name}: {file}: {first:?}");
        }
    }
    Ok(())
}

/// Code of archives that PyTorch wrote comes back byte for byte.
#[test]
fn archives_give_their_own_code_back() {
    let folder = std::env::var_os("FLAMBEAU_ARCHIVES").map(std::path::PathBuf::from);
    let is_given = folder.is_some();
    let recorded = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/archives");
    let folder = folder.unwrap_or(recorded);
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let mut counts = Counts::default();
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "pt")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let result = compare(std::fs::read(path).expect("a file"), &name, &mut counts, is_given);
        if let Err(error) = result {
            eprintln!("{name}: {error}");
        }
    }
    let Counts { archives, files, equal, refused } = counts;
    eprintln!("{archives} archives, {refused} refused, {files} files, {equal} equal");
    assert!(
        is_given || (equal == files && refused == 0 && archives >= 7),
        "{equal} of {files} files are equal"
    );
}

#[test]
fn unknown_names_and_internal_ops_are_refused() {
    let registry = Registry::builtin();
    let module = Module::default();
    let error = print(&registry, &module, &[Symbol::new("__torch__.Gone")], &[], Vec::new(), &|_| None);
    assert!(error.expect_err("refused").to_string().contains("__torch__.Gone"));
    let graph = crate::ir::parse_graph(
        "graph(%x : Tensor):\n  %1 : Tensor = prim::FusionGroup_0(%x)\n  return (%1)\nwith prim::FusionGroup_0 = graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%x)\n  return (%1)\n",
    );
    let graph = graph.expect("a graph");
    let text = graph.to_text(&PrintOptions::bare());
    let schema = crate::ir::derived_schema(Symbol::new("f"), &graph);
    let mut module = Module::default();
    let name = Symbol::new("f");
    module.functions.insert(name, crate::ir::Function { name, schema, graph, span: None });
    let error = print(&registry, &module, &[name], &[], Vec::new(), &|_| None).expect_err(&text);
    assert!(error.to_string().contains("prim::FusionGroup"), "{error}");
}
