//! Round trips through MLIR's form, and texts that are refused.

use super::super::{Attr, Module, ParseOptions, PrintOptions, Type, parse_module};
use super::is_mlir;
use crate::diag::Source;
use proptest::prelude::*;
use std::sync::Arc;

fn read(text: &str) -> Result<Module, String> {
    let parsed = parse_module(&Source::new("test", text), &ParseOptions::default());
    parsed.map(|p| p.module).map_err(|errors| errors.iter().map(|e| format!("{e}\n")).collect())
}

fn mlir(module: &Module) -> String {
    let mut out = Vec::new();
    module.write_mlir(&mut out, &PrintOptions::default()).expect("it has a text");
    String::from_utf8(out).expect("UTF-8")
}

/// The text gives the same module back, which prints as the same text.
fn round_trip(text: &str) -> String {
    let module = read(text).expect("graph text");
    let form = mlir(&module);
    assert!(is_mlir(&form), "{form}");
    let again = read(&form).unwrap_or_else(|e| panic!("{e}\n{form}"));
    assert_eq!(again.to_text(&PrintOptions::default()), module.to_text(&PrintOptions::default()), "{form}");
    assert_eq!(mlir(&again), form);
    form
}

#[test]
fn blocks_groups_and_places_come_back() {
    let form = round_trip(
        r#"graph(%x.1 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
      %n : int,
      %c : bool):
  %3 : int = prim::Constant[value=1]() # a.py:3:4
  %4 : float = prim::Constant[value=1.0000000000000001e-05]()
  %s : str = prim::Constant[value="a\"b\\\n\303\251"](), scope: __module.linear # a.py:7:0
  %5 : Tensor, %6 : int = prim::If(%c)
    block0():
      %7 : Tensor = aten::add(%x.1, %x.1, %3)
      -> (%7, %n)
    block1():
      -> (%x.1, %3)
  %8 : Tensor = prim::FusionGroup_0[a=1, names=["x", "y"]](%5, %x.1)
  %9 : Tensor = prim::Loop(%n, %c, %8)
    block0(%i.1 : int, %y.3 : Tensor):
      -> (%c, %y.3)
  return (%9, %6)
with prim::FusionGroup_0 = graph(%0 : Tensor,
      %x.1 : Tensor):
  %2 : Tensor = aten::mul(%0, %x.1)
  return (%2)
"#,
    );
    for part in [
        "\"prim.If\"(%c) ({\n",
        "%$1.2 = \"aten.mul\"(%$1.0, %$1.x.1)",
        "torch.subgraphs = [\"Subgraph\"]",
        "loc(\"__module.linear\"(\"a.py\":7:0))",
        "\"a\\22b\\\\\\0A\\C3\\A9\"",
        "{value = 1.0e-5 : f64}",
    ] {
        assert!(form.contains(part), "{part}\n{form}");
    }
}

#[test]
fn types_and_attributes_of_every_kind_come_back() {
    round_trip(
        r#"graph(%0 : Float(2, *), %1 : Dict(str, Tensor[]), %2 : (int, str?)):
  %3 : Tensor = prim::Constant[value={1.5}]()
  %4 : NoneType = prim::Constant()
  %5 : int[] = prim::Constant[value=[1, 2]]()
  %6 : float[] = prim::Constant[value=[0.5, 1.]]()
  %7 : (int, str) = prim::Constant[value=(1, "a")]()
  %8 : Device = prim::Constant[value="cpu"]()
  %9 : bool = prim::Constant[value=0]()
  %10 : complex = prim::Constant[value=1+2j]()
  %11 : Dict(str, int) = prim::Constant[value={"a": 1}]()
  %12 : float = prim::Constant[value=inf]()
  %13 : Tensor = my::op[T=Float(3), of=[int, Tensor], what=<whatever>, "odd"=1](%0)
  return (%13)
"#
        .replace(", \"odd\"=1", "")
        .as_str(),
    );
}

#[test]
fn declarations_schemas_and_contents_of_tensors_come_back() {
    let form = round_trip(
        r#"class __torch__.M(Module):
  parameter w : Tensor
  method forward = __torch__.M.forward

schema __torch__.M.forward(__torch__.M self, Tensor x, int n=3) -> Tensor
graph @__torch__.M.forward(%self : __torch__.M,
      %x.1 : Tensor,
      %n : int):
  %w : Tensor = prim::GetAttr[name="w"](%self)
  %c : Float(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  return (%w)
resource %c value = tensor(Float(2, strides=[1], requires_grad=0, device=cpu), "AACAPwAAAEA=")
"#,
    );
    assert!(form.contains("#torch.attr<\"tensor(Float(2"), "{form}");
    let again = read(&form).expect("its own form");
    let function = again.functions.values().next().expect("one");
    let constant = function.graph.all_ops()[1];
    assert!(matches!(function.graph.attr(constant, "value"), Some(Attr::Tensor(_))), "{form}");
}

/// What `mlir-opt-22 --allow-unregistered-dialect --mlir-print-debuginfo` and `xdsl-opt` make of a graph: other names, several
/// results under one, sorted attributes, a module around it, names of locations after it.
#[test]
fn what_other_tools_print_is_read() {
    let text = r#"#loc1 = loc("b.py":1:1)
module {
  "torch.graph"() ({
  ^bb0(%arg0: !torch.type<"Tensor"> loc("a.mlir":2:6), %arg1: i1 loc("a.mlir":2:7)):
    %0 = "prim.Constant"() <{value = 1 : i64}> : () -> i64 loc(#loc4)
    %1:2 = "prim.If"(%arg1) ({
      "torch.yield"(%0, %0) : (i64, i64) -> () loc(#loc)
    }, {
      "torch.yield"(%0, %0) : (i64, i64) -> () loc(unknown)
    }) : (i1) -> (i64, i64) loc(#loc13)
    "torch.return"(%1#1, %arg0) : (i64, !torch.type<"Tensor">) -> () loc(#loc)
  }) {arg_names = ["x.1", "c"], sym_name = ""} : () -> () loc(#loc1)
} loc(#loc)
#loc = loc("a.mlir":0:0)
#loc4 = loc("a.py":3:4)
#loc13 = loc("scope"(#loc4))
"#;
    let expected = "graph(%x.1 : Tensor,
      %c : bool):
  %0 : int = prim::Constant[value=1]() # a.py:3:4
  %1 : int, %2 : int = prim::If(%c), scope: scope # a.py:3:4
    block0():
      -> (%0, %0)
    block1():
      -> (%0, %0)
  return (%2, %x.1)
";
    assert_eq!(read(text).expect("MLIR").to_text(&PrintOptions::default()), expected);
}

#[test]
fn faults_are_reported_with_their_place() {
    let graph = |body: &str| {
        format!("\"torch.graph\"() ({{\n^bb0(%x: i64):\n{body}}}) {{sym_name = \"\"}} : () -> ()\n")
    };
    let end = "\"torch.return\"(%x) : (i64) -> ()\n";
    for (text, message) in [
        (graph(""), "the region has no end"),
        (graph(&format!("%a = \"t.op\"() : () -> ()\n{end}")), "1 results are named, and there are 0 types"),
        (graph(&format!("\"t.op\"(%y) : (i64) -> ()\n{end}")), "no value %y is visible here"),
        (
            graph(&format!("\"t.op\"(%x) : (f64) -> ()\n{end}")),
            "%x has the type int, and is used here as float",
        ),
        (graph(&format!("\"t.op\"(%x) : () -> ()\n{end}")), "1 operands have 0 types"),
        (graph(&format!("\"t.br\"(%x)[^bb1] : (i64) -> ()\n{end}")), "successors are not supported"),
        (graph(&format!("\"t.op\"() ({{\n^a:\n^b:\n}}) : () -> ()\n{end}")), "a second one begins here"),
        (
            graph(&format!("%a = \"t.op\"() : () -> memref<4xf32>\n{end}")),
            "no value here has the type `memref`",
        ),
        ("module {\n  func.func @f() {\n  }\n}\n".to_string(), "an op in quotes"),
        ("module {\n\"t.op\"() : () -> ()\n}\n".to_string(), "is outside of a graph"),
        ("\"torch.graph\"() ({".repeat(500), "nests deeper than"),
        ("\"torch.graph\"() ({}) {a = [".to_string() + &"[".repeat(500), "nests deeper than"),
    ] {
        let error = read(&text).expect_err("it is refused");
        assert!(error.contains(message), "{message}\n{error}\n{text}");
    }
}

proptest! {
    #[test]
    fn floats_and_texts_keep_their_bits(bits: u64, text in any::<String>(), key in "k[a-z^ .é]{1,6}") {
        let mut module = read("graph(%0 : int):\n  %1 : float = t::op(%0)\n  return (%1)\n").expect("a graph");
        let x = f64::from_bits(bits);
        for function in module.functions.values_mut() {
            let op = function.graph.all_ops()[0];
            function.graph.set_attr(op, "x", Attr::Float(x));
            function.graph.set_attr(op, "xs", Attr::Floats(Arc::from([x, -x])));
            function.graph.set_attr(op, key.as_str(), Attr::Strs(Arc::from([Arc::from(text.as_str())])));
            function.graph.set_attr(op, "T", Attr::Type(Type::int()));
        }
        let again = read(&mlir(&module)).expect("its own form");
        let function = again.functions.values().next().expect("one");
        let op = function.graph.all_ops()[0];
        let Some(Attr::Float(y)) = function.graph.attr(op, "x") else { panic!("no number") };
        prop_assert_eq!(y.to_bits(), bits);
        let Some(Attr::Floats(ys)) = function.graph.attr(op, "xs") else { panic!("no numbers") };
        prop_assert_eq!(ys[1].to_bits(), (-x).to_bits());
        let Some(Attr::Strs(texts)) = function.graph.attr(op, &key) else { panic!("no text") };
        prop_assert_eq!(&*texts[0], text.as_str());
    }

    #[test]
    fn no_text_panics(text in "(module \\{|\"torch.graph\"\\(\\) \\(\\{|\\}\\)|[%a0 #:(){}\\[\\]<>=,\"\\\\]|i64|->|loc\\(| : \\(\\) -> \\(\\)){0,40}") {
        let _ = super::parse_mlir(&Source::new("t", text.as_str()), &ParseOptions::default());
    }
}
