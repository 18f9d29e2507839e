//! Holds the documented grammar (`grammar.pest`) against the parsers that are used. Compiled for tests only.

use crate::diag::{ErrorKind, Source};
use crate::ir::{ParseOptions, parse_module};
use pest::Parser;
use pest_derive::Parser;

#[derive(Parser)]
#[grammar = "../../src/ir/text/grammar.pest"]
struct Grammar;

/// What the hand-written parser says of a text.
#[derive(PartialEq, Debug)]
enum Verdict {
    Accepted,
    /// Well formed, but a name does not exist or a number does not fit.
    Meaningless,
    Refused,
}

fn by_hand(text: &str) -> Verdict {
    match parse_module(&Source::new("t", text), &ParseOptions::default()) {
        Ok(_) => Verdict::Accepted,
        Err(errors) if errors.iter().any(|e| e.kind() == ErrorKind::Compile) => Verdict::Meaningless,
        Err(_) => Verdict::Refused,
    }
}

fn by_grammar(text: &str) -> Result<(), String> {
    Grammar::parse(Rule::file, text).map(|_| ()).map_err(|e| e.to_string())
}

/// Both must agree, except on texts that only mean nothing.
fn check(text: &str) {
    match (by_hand(text), by_grammar(text)) {
        (Verdict::Meaningless, _) | (Verdict::Accepted, Ok(())) | (Verdict::Refused, Err(_)) => {}
        (Verdict::Accepted, Err(e)) => panic!("only the parser accepts this:\n{text}\n{e}"),
        (_, Ok(())) => {
            let e = parse_module(&Source::new("t", text), &ParseOptions::default()).err();
            panic!("only the grammar accepts this:\n{text}\n{e:?}")
        }
    }
}

/// Texts with every form of the grammar.
const CORPUS: &[&str] = &[
    "graph(%x.1 : Tensor,\n      %y : Float(2, *, SS(-1), strides=[3, 1], requires_grad=0, device=cpu)?):\n  %z : int[], %w : Dict(str, (int, Tensor)) = a::b[i=1, f=-2.5e-7, s=\"a\\\"b\", l=[1, 2], t=int[], v={0.5}](%x.1, %y), scope: m.n # f.py:1:2\n   = c::d()\n  return (%z, %w)\n",
    "graph(%c : bool):\n  %r : int = prim::If(%c) # a comment\n    block0():\n      %i : int = prim::Constant[value=3]()\n      -> (%i)\n    block1(%k : int, %l):\n      -> (%k)\n  return (%r)\n",
    "# RUN: x\n// y\ngraph @f.<g>(%x):\n  %2 = prim::G_0[value= 1  2 [ CPULongType{2} ]](%x)\n  %3 = ^Fn[inplace=0](1, \"a)\")(%2)\n  return (%3) # end\nwith prim::G_0 = graph(%x):\n  return (%x)\n",
    "graph(%onnx::Conv_1, %/fc/Gemm_output_0 : int):\n  %/a.b::c : int = onnx::Neg(%onnx::Conv_1) # n.py:1:2\n  return (%/a.b::c)\n",
    "graph(%a : Float (2, SS (-2), strides= [3, 1], requires_grad= 0, device= cuda:1), %b : int [ ] ?, %c : Union(, str, Scalar), %d : Union(TensorScalar)[], %e : Tensor(*), %f : number[]):\n  %r : str = prim::If(%c)\n    block0 ():\n      %i : str = prim::Constant[value=\"\\0)+\\/.)\"]()\n      -> (%i)\n  return (%r)\n",
    "class __torch__.M(Module):\n  parameter w : Tensor\n  constant k : int[] = [1, 2]\n  method forward = __torch__.M.forward\n  property p = a, b\n  # comment\n\n  forward_hook h\n\nenum __torch__.C : int:\n  RED = 1\n\nnamed_tuple __torch__.P:\n  a : int\n  b : NamedTuple(x : int = 3)[] = None\n\ninterface __torch__.I:\n  method f(__torch__.I self, Tensor(a!)[] x, int[2] y=1, *, str s=\"q\") -> (Tensor(a!), int n)\nschema g(int x=-3, float y=1.5) -> int\ngraph @g(%x : int, %y : float):\n  return (%x)\nresource %x value = tensor(Float(2), \"AACAPwAAAEA=\")\n",
];

#[test]
fn grammar_and_parser_agree_on_the_corpus() {
    CORPUS.iter().for_each(|text| check(text));
}

/// Each text is changed in many small ways: a byte left out, doubled, replaced, two texts glued together.
#[test]
fn grammar_and_parser_agree_on_changed_texts() {
    let pieces = [
        "(", ")", "[", "]", "%", ":", ",", "=", " ", "\n", "x", "1", "->", "\"", "#", ".", "?", "{", "}", "<",
    ];
    let mut state = 99u64;
    let mut next = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit.max(1)
    };
    for text in CORPUS {
        for _ in 0..1500 {
            let mut changed = text.to_string();
            for _ in 0..=next(2) {
                let at = next(changed.len());
                match next(3) {
                    0 => drop(changed.remove(at)),
                    1 => changed.insert_str(at, pieces[next(pieces.len())]),
                    _ => changed.replace_range(at..=at, pieces[next(pieces.len())]),
                }
            }
            check(&changed);
        }
    }
}

/// The examples of docs/ir.md: blocks marked `ir` print back exactly, blocks marked `ir-read` are read and are sound.
#[test]
fn examples_of_the_documentation_hold() {
    let doc = include_str!("../../../docs/ir.md");
    let mut count = 0;
    for part in doc.split("```ir").skip(1) {
        let (mark, text) = part.split_once('\n').expect("a block has lines");
        let (text, _) = text.split_once("```").expect("a block ends");
        check(text);
        let parsed = parse_module(&Source::new("docs/ir.md", text), &ParseOptions::default());
        let module = parsed.unwrap_or_else(|e| panic!("{text}{e:?}")).module;
        assert!(crate::ir::verify_module(&module, &crate::ir::NoLaws, &|_| None).is_empty(), "{text}");
        match mark {
            "" => assert_eq!(module.to_string(), text),
            "-read" => {}
            other => panic!("unknown mark {other}"),
        }
        count += 1;
    }
    assert!(count >= 6, "{count} examples");
}

/// Every graph in a file of cases prints back byte for byte, and is sound. Says how many there were.
fn print_back(path: &std::path::Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut count = 0;
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).expect("a case is JSON");
        let after = case["after"].as_object().into_iter().flatten().map(|(_, text)| text);
        let graphs = [&case["graph"], &case["before"]].into_iter().chain(after);
        for text in graphs.filter_map(serde_json::Value::as_str) {
            let parsed = parse_module(&Source::new("t", text), &ParseOptions::default());
            let module = parsed.unwrap_or_else(|e| panic!("{}: {e:?}", case["name"])).module;
            assert_eq!(module.to_string(), text, "{}", case["name"]);
            let violations = crate::ir::verify_module(&module, &crate::ir::NoLaws, &|_| None);
            assert!(violations.is_empty(), "{}: {violations:?}", case["name"]);
            count += 1;
        }
    }
    count
}

#[test]
fn recorded_graphs_print_back() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    for file in ["ops", "passes", "typed", "strides", "profiling_passes"] {
        assert!(print_back(&folder.join(file).with_extension("jsonl")) > 50, "{file}");
    }
}

#[test]
#[ignore = "reads the shared recorded cases; scripts/conformance.sh runs it"]
fn shared_graphs_print_back() {
    let folder = std::env::var_os("FLAMBEAU_CONFORMANCE").expect("FLAMBEAU_CONFORMANCE names a folder");
    for file in ["seeds", "models", "lang", "errors", "ops", "passes"] {
        print_back(&std::path::Path::new(&folder).join(file).with_extension("jsonl"));
    }
}

mod properties {
    use super::*;
    use crate::ir::{Naming, NoLaws, parse_graph, parse_schema, parse_type, verify_module};
    use proptest::prelude::*;

    /// Reads a text as everything that can be read; where it is a module, printing it is a fixpoint.
    fn read_all(text: &str) {
        let _ = parse_type(text);
        let _ = parse_schema(text);
        let _ = parse_graph(text);
        for naming in [Naming::Keep, Naming::Auto] {
            let options = ParseOptions { naming, record_places: true, ..Default::default() };
            let Ok(parsed) = parse_module(&Source::new("t", text), &options) else { continue };
            let violations =
                verify_module(&parsed.module, &NoLaws, &|name| parsed.places.get(&name).cloned());
            let printed = parsed.module.to_string();
            let again = parse_module(&Source::new("t", printed.as_str()), &ParseOptions::default())
                .unwrap_or_else(|e| panic!("printed text is refused:\n{text}\n{printed}\n{e:?}"));
            assert_eq!(again.module.to_string(), printed, "from\n{text}");
            assert_eq!(verify_module(&again.module, &NoLaws, &|_| None).len(), violations.len());
        }
    }

    fn changed_text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "<",
            ">",
            "%",
            "%x",
            "%2",
            ":",
            "::",
            ",",
            "=",
            " ",
            "\n",
            "-> ",
            "return (",
            "\"",
            "\\",
            "#",
            "1",
            "-",
            "1.5",
            "inf",
            "int",
            "Tensor",
            "Float(2, *)",
            "annotate(List[int], [])",
            "block0():\n",
            "value=",
            "é",
            "\0",
        ]);
        let edit = (any::<prop::sample::Index>(), 0..3usize, piece);
        (prop::sample::select(CORPUS.to_vec()), prop::collection::vec(edit, 0..6)).prop_map(
            |(text, edits)| {
                let mut text = text.to_string();
                for (at, kind, piece) in edits {
                    let places: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
                    if places.is_empty() {
                        break;
                    }
                    let at = places[at.index(places.len())];
                    match kind {
                        0 => drop(text.remove(at)),
                        1 => text.insert_str(at, piece),
                        _ => {
                            text.remove(at);
                            text.insert_str(at, piece);
                        }
                    }
                }
                text
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn changed_texts_never_panic_and_print_to_a_fixpoint(text in changed_text()) {
            read_all(&text);
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read_all(&String::from_utf8_lossy(&bytes));
        }
    }
}
