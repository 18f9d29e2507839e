//! Graphs that come back from their bytes as they were, and bytes that are of no graph.

use super::*;
use crate::diag::{Source, Span};
use crate::ir::{
    AliasInfo, Attr, Function, Graph, Location, Module, ParseOptions, Place, Symbol, Type, parse_graph,
    parse_module,
};
use crate::tensor::{DType, Tensor};
use proptest::prelude::*;

const LOOP: &str = "graph(%x.1 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), %n : int, %flag : bool?):
  %3 : int = prim::Constant[value=-1]() # model.py:3:4
  %t : bool = prim::Constant[value=1]()
  %5 : str = prim::Constant[value=\"a b\\n\"]()
  %y : Tensor, %k : int = prim::Loop(%n, %t, %x.1, %3), scope: __module.layer # model.py:4:4
    block0(%i : int, %a : Tensor, %b : int):
      %c : Tensor = aten::add(%a, %a, %b) # model.py:5:8
      %d : Tensor = prim::If(%t)
        block0():
          %e : Tensor = aten::relu(%c)
          -> (%e)
        block1():
          -> (%c)
      -> (%t, %d, %i)
  %z : (Tensor, int[], Dict(str, Tensor?)) = test::made[names=[\"p\", \"q\"], sizes=[1, -2], w=0.5](%y, %k, %flag)
  return (%z, %y)
";

const GROUP: &str = "graph(%0 : Half(*, s0, strides=[*, 1]), %1 : Future(__torch__.M)):
  %2 : Float(SS(-1), 4) = prim::FusionGroup_0[cost=1.5](%0)
  return (%2)
with prim::FusionGroup_0 = graph(%x : Tensor):
  %r : Tensor = aten::relu(%x)
  return (%r)
";

const MODULE: &str = "class __torch__.M(Module):
  parameter weight : Tensor
  buffer mean : Tensor
  attribute training : bool
  constant k : int[] = [1, 2]
  method forward = __torch__.M.forward
  static_method make = helper
  property p = get_p, set_p
  property q = get_q
  forward_pre_hook before
  forward_hook after

class __torch__.Pair:
  attribute a : int

interface __torch__.Shape(Module):
  method area(__torch__.Shape self, int n=1) -> Tensor

enum __torch__.Color : int:
  RED = 1
  GREEN = 2

named_tuple __torch__.Range:
  lo : Tensor
  hi : int = 3

schema __torch__.M.forward(__torch__.M self, Tensor(a!) x, *, int[2] k=1, bool flag=False) -> Tensor(a!)
graph @__torch__.M.forward(%self : __torch__.M,
      %x : Tensor,
      %k : int[],
      %flag : bool):
  %c : Enum<__torch__.Color> = prim::Constant[value=__torch__.Color.RED]()
  return (%x)

graph @helper(%x : Tensor):
  return (%x)
";

fn module(text: &str) -> Module {
    let source = Source::new("m.ir", text);
    parse_module(&source, &ParseOptions::default()).unwrap_or_else(|errors| panic!("{errors:?}")).module
}

#[test]
fn modules_come_back_whole() {
    let mut module = module(MODULE);
    let source = Source::new("m.py", "def forward");
    let function = module.functions.get_mut(&Symbol::new("__torch__.M.forward")).expect("it is there");
    function.span = Some(Span::new(&source, 4, 11));
    let x = &mut function.schema.arguments[1];
    (x.is_out, x.real_ty) = (true, Type::int());
    let contained = vec![None, Some(AliasInfo { wildcard_after: true, ..AliasInfo::default() })];
    let before = vec![Symbol::new("b")];
    x.alias =
        Some(AliasInfo { before, is_write: true, wildcard_before: true, contained, ..AliasInfo::default() });
    let mut outside = Outside::default();
    let bytes = write_module(&module, &mut outside).expect("no objects");
    let back = read_module(&bytes, &outside).expect("written");
    assert_eq!(back.to_string(), module.to_string());
    for (name, function) in &module.functions {
        assert_eq!(back.functions[name].schema, function.schema);
        assert_eq!(back.functions[name].span, function.span);
    }
    let class = |module: &Module| format!("{:?}", module.classes);
    assert_eq!(class(&back), class(&module));
    assert_eq!(write_module(&back, &mut outside), Some(bytes.clone()));
    assert!(read_module(&bytes[..bytes.len() - 1], &outside).is_none());
}

#[test]
fn a_list_is_one_object_wherever_it_stands() {
    let mut module = module(MODULE);
    let (shared, own) = (Attr::Ints([10].into()), Attr::Ints([10].into()));
    let helper = module.functions.get_mut(&Symbol::new("helper")).expect("it is there");
    let nested = Attr::List([shared.clone(), Attr::None].into());
    for (n, attr) in [&shared, &own, &nested, &shared].into_iter().enumerate() {
        let op = helper.graph.emit(helper.graph.root(), Symbol::new("prim::Constant"), &[], &[Type::int()]);
        helper.graph.set_attr(op, "value", attr.clone());
        assert_eq!(helper.graph.all_ops().len(), n + 1);
    }
    let argument = &mut module.functions[&Symbol::new("__torch__.M.forward")].schema.arguments[2];
    argument.default = Some(shared);
    let mut outside = Outside::default();
    let bytes = write_module(&module, &mut outside).expect("no objects");
    let back = read_module(&bytes, &outside).expect("written");
    let constants = |module: &Module| {
        let graph = &module.functions[&Symbol::new("helper")].graph;
        let values = graph.all_ops().into_iter().map(|op| graph.attrs(op)[0].1.clone());
        let default =
            module.functions[&Symbol::new("__torch__.M.forward")].schema.arguments[2].default.clone();
        values.chain(default).collect::<Vec<Attr>>()
    };
    let found = constants(&back);
    let Attr::List(inner) = &found[2] else { panic!("{:?}", found[2]) };
    assert!([&found[3], &found[4], &inner[0]].iter().all(|attr| attr.identity() == found[0].identity()));
    assert!(found[0].identity() != found[1].identity());
    // What is written later holds the objects of what was read before.
    outside.lists = lists_of(&back);
    let changed = Module { functions: back.functions.clone(), ..Module::default() };
    let bytes = write_module(&changed, &mut outside).expect("no objects");
    let again = read_module(&bytes, &outside).expect("written");
    let identities = |attrs: &[Attr]| attrs.iter().map(Attr::identity).collect::<Vec<_>>();
    assert_eq!(identities(&constants(&again)), identities(&found));
    assert!(read_module(&bytes, &Outside { lists: Vec::new(), ..outside }).is_none());
}

/// A list in a list in a list, each of them by the number of the one before.
#[test]
fn lists_of_lists_by_number_are_bounded() {
    let nested = |times: usize, levels: usize| {
        let mut graph = Graph::new();
        let root = graph.root();
        let mut list = Attr::List([Attr::None].into());
        for _ in 0..levels {
            let op = graph.emit(root, Symbol::new("prim::Constant"), &[], &[]);
            graph.set_attr(op, "value", list.clone());
            list = Attr::List(vec![list; times].into());
        }
        let mut outside = Outside::default();
        write(&graph, &mut outside).and_then(|bytes| read(&bytes, &outside))
    };
    assert!(nested(1, 90).is_some() && nested(1, 200).is_none(), "deep");
    assert!(nested(2, 16).is_some() && nested(2, 60).is_none(), "wide");
}

#[test]
fn differences_are_functions_or_more() {
    let before = module(MODULE);
    let helper = Symbol::new("helper");
    let found = |after: &Module| differences(&before, after, &mut Outside::default()).expect("no objects");
    assert_eq!(found(&before), Some(Vec::new()));
    let mut after = before.clone();
    let graph = &mut after.functions[&helper].graph;
    graph.emit(graph.root(), Symbol::new("test::op"), &[], &[]);
    assert_eq!(found(&after), Some(vec![helper]));
    let other = Function { name: Symbol::new("other"), ..after.functions[&helper].clone() };
    after.functions.insert(other.name, other);
    assert_eq!(found(&after), Some(vec![helper, Symbol::new("other")]));
    after.classes[0].forward_hooks.clear();
    assert_eq!(found(&after), None);
}

#[test]
fn constants_are_typed() {
    let write = |constants: &[(Type, Attr)]| write_constants(constants, &mut Outside::default());
    let none = write(&[(Type::optional(Type::int()), Attr::None)]);
    assert!(none.is_some() && none != write(&[(Type::optional(Type::str()), Attr::None)]));
}

fn graph(text: &str) -> Graph {
    parse_graph(text).expect("it is a graph")
}

fn again(graph: &Graph) -> Graph {
    let mut outside = Outside::default();
    let bytes = write(graph, &mut outside).expect("it has no objects");
    let read = read(&bytes, &outside).expect("it was written");
    assert_eq!(write(&read, &mut outside.clone()), Some(bytes), "what was read is written alike");
    read
}

#[test]
fn what_was_written_is_read() {
    for text in [LOOP, GROUP] {
        let graph = graph(text);
        assert_eq!(again(&graph).to_string(), graph.to_string());
    }
}

#[test]
fn all_attributes_come_back() {
    let mut graph = Graph::new();
    let op = graph.emit(graph.root(), Symbol::new("test::op"), &[], &[]);
    let device = || Attr::Device("cuda:1".parse().expect("a device"));
    let attrs = [
        Attr::Int(i64::MIN),
        Attr::Float(-0.0),
        Attr::Complex(num_complex::Complex64::new(f64::INFINITY, 1.0)),
        Attr::Ints([i64::MAX, 0, -1].into()),
        Attr::Floats([f64::MIN_POSITIVE].into()),
        Attr::Complexes([num_complex::Complex64::new(0.0, -1.0)].into()),
        Attr::Types([Type::int(), Type::list(Type::tensor())].into()),
        Attr::Graphs([std::sync::Arc::new(Graph::new())].into()),
        Attr::None,
        device(),
        Attr::List([Attr::Bool(true), Attr::None].into()),
        Attr::Tuple([device(), Attr::Str("x".into())].into()),
        Attr::Dict([(Attr::Int(1), Attr::Bool(false))].into()),
        Attr::Enum(std::sync::Arc::new(("C".into(), "RED".into(), Attr::Int(2)))),
        Attr::Raw("dense<[1]> : tensor".into()),
    ];
    for (n, attr) in attrs.into_iter().enumerate() {
        graph.set_attr(op, format!("a{n}").as_str(), attr);
    }
    assert_eq!(again(&graph).to_string(), graph.to_string());
}

#[test]
fn tensors_and_sources_are_outside() {
    let tensor = Tensor::zeros(DType::F32, &[2]).expect("small");
    let source = Source::new("model.py", "x = 1\ny = 2\n");
    let mut graph = Graph::new();
    for _ in 0..2 {
        let op = graph.emit(graph.root(), Symbol::new("prim::Constant"), &[], &[Type::tensor()]);
        graph.set_attr(op, "value", Attr::Tensor(tensor.clone()));
        let inner = graph.add_location(Location::from(Span::new(&source, 6, 11)));
        let place = Place::File { file: Symbol::new("m.py"), line: 1, column: 2 };
        let inlined_from = Some((Symbol::new("f"), inner));
        graph.set_location(op, Location { place, scope: Some(Symbol::new("s")), inlined_from });
    }
    let mut outside = Outside::default();
    let bytes = write(&graph, &mut outside).expect("no objects");
    assert_eq!((outside.tensors.len(), outside.sources.len()), (1, 1));
    let back = read(&bytes, &outside).expect("written");
    assert_eq!(back.to_string(), graph.to_string());
    let op = back.first_op(back.root()).expect("two");
    assert!(matches!(back.attr(op, "value"), Some(Attr::Tensor(found)) if found.same(&tensor)));
    let inner = back.location(op).and_then(|l| l.inlined_from).and_then(|(_, id)| back.location_of(id));
    assert_eq!(inner.and_then(Location::span).map(Span::text), Some("y = 2"));
    // Not without them.
    assert!(read(&bytes, &Outside::default()).is_none());
}

#[test]
fn what_is_too_deep_has_no_bytes() {
    let nested = (0..200).fold(Attr::None, |inner, _| Attr::List([inner].into()));
    let mut graph = Graph::new();
    let op = graph.emit(graph.root(), Symbol::new("test::op"), &[], &[]);
    graph.set_attr(op, "value", nested);
    assert_eq!(write(&graph, &mut Outside::default()), None);
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(at in 0usize..2000, byte: u8, cut in 0usize..2000) {
        let mut bytes = write(&graph(LOOP), &mut Outside::default()).expect("no objects");
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(bytes.len() - cut % bytes.len());
        if let Some(graph) = read(&bytes, &Outside::default()) {
            // It may print anything, and prints.
            prop_assert!(!graph.to_string().is_empty());
        }
    }

    #[test]
    fn no_bytes_are_too_strange_for_a_module(at in 0usize..2000, byte: u8) {
        let mut bytes = write_module(&module(MODULE), &mut Outside::default()).expect("no objects");
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Some(module) = read_module(&bytes, &Outside::default()) {
            let _ = module.to_string();
        }
    }

    #[test]
    fn no_bytes_at_all_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (read(&bytes, &Outside::default()), read_module(&bytes, &Outside::default()));
    }
}

/// The fuzzer begins with these graphs in the form that is written now; `BLESS=1` writes them anew.
#[test]
fn the_corpus_is_what_is_written() {
    let none = Outside::default;
    for (name, bytes) in [
        ("loop", write(&graph(LOOP), &mut none())),
        ("group", write(&graph(GROUP), &mut none())),
        ("module", write_module(&module(MODULE), &mut none())),
    ] {
        let bytes = bytes.expect("no objects");
        let file = format!("{}/../../fuzz/corpus/bytecode/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&file, &bytes).expect("writable");
        }
        assert!(std::fs::read(&file).expect("a file of the corpus") == bytes, "{file} has another form");
    }
}
