//! Texts beside what PyTorch prints after reading them with its own parser. Compiled for tests only.

use crate::diag::Source;
use crate::ir::{Naming, ParseOptions, parse_module};

/// What a text prints as when it is read as `flambeau opt` reads it.
fn printed(text: &str) -> String {
    let options = ParseOptions { naming: Naming::Auto, ..ParseOptions::default() };
    let parsed = parse_module(&Source::new("t", text), &options);
    parsed.unwrap_or_else(|e| panic!("{text}{e:?}")).module.to_string()
}

/// Each row was printed by PyTorch.
const ROWS: &[(&str, &str, &str)] = &[
    (
        "symbolic sizes are read and not shown",
        "graph(%rows : Float(SS(-2), 4), %n : int):\n  %out : Float(SS(-2), SS(-7), strides=[4, 1]) = aten::tanh(%rows)\n  return (%out)\n",
        "graph(%rows : Float(*, 4),\n      %n : int):\n  %2 : Float(*, *, strides=[4, 1]) = aten::tanh(%rows)\n  return (%2)\n",
    ),
    (
        "blanks inside types and lists",
        "graph(%xs : Tensor [ ], %f : Float (2, 3 , strides=[3,1 ],requires_grad= 0), %d: Dict (str,int) ?):\n  %s : int [] = prim::Constant[ value = [ 4,\t5 ,  6 ] ]()\n  %first : Tensor = foo::head [n=1]  (%xs)\n  return(%first,%s)\n",
        "graph(%xs : Tensor[],\n      %f : Float(2, 3, strides=[3, 1], requires_grad=0),\n      %d : Dict(str, int)?):\n  %3 : int[] = prim::Constant[value=[4, 5, 6]]()\n  %4 : Tensor = foo::head[n=1](%xs)\n  return (%4, %3)\n",
    ),
    (
        "a type after a list of it",
        "graph(%xs : Tensor []):\n  %a : Tensor, %b : Tensor = prim::ListUnpack(%xs)\n  return (%a)\n",
        "graph(%xs : Tensor[]):\n  %1 : Tensor, %2 : Tensor = prim::ListUnpack(%xs)\n  return (%1)\n",
    ),
    (
        "names that are not types",
        "graph(%k : number, %q : Quantizer, %t : t[]):\n  %r = foo::pick(%k, %q)\n  return (%r)\n",
        "graph(%k : number,\n      %q : Quantizer,\n      %t : t[]):\n  %3 : Tensor = foo::pick(%k, %q)\n  return (%3)\n",
    ),
    (
        "unions with all numbers",
        "graph(%a : Union(int, float, complex, str), %b : Union(Tensor, Scalar), %c : Union(Scalar, NoneType)):\n  return (%a)\n",
        "graph(%a : Union(, str, Scalar),\n      %b : Union(TensorScalar),\n      %c : Scalar?):\n  return (%a)\n",
    ),
    (
        "the types of a program where a schema's stand",
        "graph(%a : Await(Layout), %b : Union(ScalarType, str), %c : RRef(MemoryFormat)):\n  return (%a)\n",
        "graph(%a : Await(int),\n      %b : Union(int, str),\n      %c : RRef[int]):\n  return (%a)\n",
    ),
    (
        "text beyond ASCII",
        "graph():\n  %s : str = prim::Constant[value=\"naïve ✓\"]()\n  return (%s)\n",
        "graph():\n  %0 : str = prim::Constant[value=\"na\\0)+\\/./ve \\0-*\\/,,\\/++\"]()\n  return (%0)\n",
    ),
    (
        "comments, blanks before brackets, a number given twice",
        "graph(%c : bool, %x : int):\n  # a comment\n  %5 : int = prim::If(%c)\n    block0 ():\n      %5 : int = aten::neg(%x) # why\n      -> (%5)\n    block1 ():\n      -> (%x)\n\n  return (%5)\n",
        "graph(%c : bool,\n      %x : int):\n  %2 : int = prim::If(%c)\n    block0():\n      %3 : int = aten::neg(%x)\n      -> (%3)\n    block1():\n      -> (%x)\n  return (%3)\n",
    ),
];

#[test]
fn texts_print_as_pytorch_prints_them() {
    for (what, text, shown) in ROWS {
        assert_eq!(printed(text), *shown, "{what}");
        assert_eq!(printed(shown), *shown, "{what}, read again");
    }
}

/// A dump may have places only in the subgraphs of its groups.
#[test]
fn dumps_with_subgraphs_keep_their_names() {
    let text = "graph(%x.1 : Tensor):\n  %out.7 : Tensor = prim::DifferentiableGraph_0(%x.1)\n  return (%out.7)\nwith prim::DifferentiableGraph_0 = graph(%x.1 : Tensor):\n  %y : Tensor = aten::relu(%x.1) # net.py:3:4\n  return (%y)\n";
    assert_eq!(printed(text), text);
}

/// Graphs of ONNX name values by the op that uses them or the module that they come from.
#[test]
fn names_of_onnx_are_kept() {
    let text = "graph(%onnx::Conv_33 : Float(4, 3)):\n  %/fc/Gemm_output_0 : Float(4, 3) = onnx::Gemm[transB=1](%onnx::Conv_33), scope: Net::/Linear::fc # net.py:3:4\n  return (%/fc/Gemm_output_0)\n";
    assert_eq!(printed(text), text);
}

/// FileCheck tests, or callers on request, see symbolic sizes.
#[test]
fn symbols_are_shown_on_request() {
    let text = "graph(%x : Float(SS(-2))):\n  return (%x)\n";
    let options = ParseOptions { naming: Naming::Auto, show_symbols: true, ..ParseOptions::default() };
    let parsed = parse_module(&Source::new("t", text), &options).expect("a graph");
    assert_eq!(parsed.module.to_string(), text);
    assert!(printed(&format!("# RUN: x\n{text}")).contains("SS(-2)"));
}

/// The escapes of PyTorch's printer mean the bytes that they were made of.
#[test]
fn printed_strings_mean_what_they_were() {
    let text = "graph():\n  %0 : str = prim::Constant[value=\"\\0)+\\/.)\"]()\n  return (%0)\n";
    let graph = crate::ir::parse_graph(text).expect("a graph");
    let op = graph.first_op(graph.root()).expect("an op");
    assert_eq!(graph.attr(op, "value").and_then(crate::ir::Attr::as_str), Some("é"));
}
