//! What is known of small graphs.

use super::{AliasDb, Side};
use crate::dialects::{Registry, resolve};
use crate::ir::{Graph, Naming, OpId, ParseOptions, Type, ValueId, parse_graph_source};

struct Known {
    graph: Graph,
    db: AliasDb,
}

/// A graph whose values keep their names.
fn known(text: &str) -> Known {
    let registry = Registry::builtin();
    let result_type = |graph: &Graph, op: OpId, n: usize| -> Option<Type> {
        resolve(&registry, graph, op).ok()?.schema().ok()?.returns.get(n).map(|r| r.ty.clone())
    };
    let options =
        ParseOptions { result_types: Some(&result_type), naming: Naming::Keep, ..ParseOptions::default() };
    let source = crate::diag::Source::new("test", text.to_string());
    let graph = parse_graph_source(&source, &options).expect("the text is right");
    let db = AliasDb::new(&registry, None, &graph);
    Known { graph, db }
}

impl Known {
    fn value(&mut self, name: &str) -> ValueId {
        self.graph.value_named(name).unwrap_or_else(|| panic!("no %{name}"))
    }

    fn alias(&mut self, a: &str, b: &str) -> bool {
        let (a, b) = (self.value(a), self.value(b));
        self.db.may_alias(a, b)
    }

    fn written(&mut self, a: &str) -> bool {
        let a = self.value(a);
        self.db.has_writers(a)
    }
}

#[test]
fn views_alias_and_fresh_results_do_not() {
    let mut k = known(
        "graph(%x : Tensor, %y : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %v : Tensor = aten::t(%x)
  %f : Tensor = aten::add(%x, %y, %one)
  %w : Tensor = aten::t(%f)
  %m : Tensor = aten::add_(%f, %y, %one)
  return (%v, %w)",
    );
    assert!(k.alias("x", "y") && k.alias("v", "y") && k.alias("w", "f") && k.alias("m", "w"));
    assert!(!k.alias("f", "x") && !k.alias("n", "n"));
    assert!(k.written("w") && k.written("f") && !k.written("v"));
}

#[test]
fn containers_make_wildcards_unless_they_are_only_looked_at() {
    let mut k = known(
        "graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::neg(%x)
  %looked : Tensor[] = prim::ListConstruct(%a)
  %cat : Tensor = aten::cat(%looked, %zero)
  %kept : Tensor[] = prim::ListConstruct(%b)
  %taken : Tensor = aten::__getitem__(%kept, %zero)
  %d : Tensor = aten::relu_(%taken)
  return (%cat)",
    );
    assert!(k.alias("b", "taken") && k.alias("x", "taken"));
    assert!(!k.alias("a", "taken") && !k.alias("c", "taken") && !k.alias("cat", "a"));
    assert!(k.written("x") && k.written("b") && !k.written("a"));
    let (looked, a, c) = (k.value("looked"), k.value("a"), k.value("c"));
    assert!(k.db.may_contain_alias(looked, a) && !k.db.may_contain_alias(looked, c));
}

#[test]
fn parts_that_are_unpacked_are_the_whole_and_nothing_else() {
    let mut k = known(
        "graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %apart : Tensor[] = aten::unsafe_chunk(%a, %two, %zero)
  %l : Tensor, %r : Tensor = prim::ListUnpack(%apart)
  %d : Tensor = aten::relu_(%l)
  %kept : Tensor[] = aten::unsafe_chunk(%b, %two, %zero)
  %taken : Tensor = aten::__getitem__(%kept, %zero)
  return (%d)",
    );
    assert!(k.alias("l", "a") && k.alias("r", "l") && k.alias("d", "a") && k.written("a"));
    assert!(!k.alias("l", "x") && !k.alias("a", "taken") && !k.alias("a", "b"));
    assert!(k.alias("b", "taken") && k.alias("x", "taken"));
    let (apart, a, b) = (k.value("apart"), k.value("a"), k.value("b"));
    assert!(k.db.may_contain_alias(apart, a) && !k.db.may_contain_alias(apart, b));
}

#[test]
fn places_to_take_from_stay_apart_though_they_may_be_none() {
    let mut k = known(
        "graph(%x : Tensor, %n : NoneType):
  %i : Tensor = aten::neg(%x)
  %j : Tensor = aten::neg(%x)
  %looked : Tensor?[] = prim::ListConstruct(%n, %i)
  %r : Tensor = aten::index(%x, %looked)
  %kept : Tensor?[] = prim::ListConstruct(%j)
  return (%r, %kept, %kept)",
    );
    assert!(!k.alias("i", "x") && !k.alias("i", "j") && !k.alias("r", "i"));
    let (kept, i, j) = (k.value("kept"), k.value("i"), k.value("j"));
    assert!(k.db.may_contain_alias(kept, j) && !k.db.may_contain_alias(kept, i));
}

#[test]
fn what_a_view_in_a_container_looks_at_is_shared() {
    let mut k = known(
        "graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %v : Tensor = aten::t(%a)
  %kept : Tensor[] = prim::ListConstruct(%v)
  %taken : Tensor = aten::__getitem__(%kept, %zero)
  %w : Tensor = aten::relu_(%taken)
  return (%kept, %b)",
    );
    assert!(k.alias("a", "taken") && k.written("a") && !k.written("b"));
}

#[test]
fn loops_and_branches_join() {
    let mut k = known(
        "graph(%x : Tensor, %n : int, %p : bool):
  %true : bool = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %other : Tensor = aten::neg(%x)
  %out : Tensor = prim::Loop(%n, %true, %a)
    block0(%i : int, %t : Tensor):
      %u : Tensor = aten::relu_(%t)
      %fresh : Tensor = aten::neg(%u)
      -> (%true, %fresh)
  %j : Tensor = prim::If(%p)
    block0():
      -> (%out)
    block1():
      -> (%other)
  return (%j)",
    );
    assert!(k.alias("t", "a") && k.alias("t", "fresh") && k.alias("out", "a") && k.alias("j", "fresh"));
    assert!(k.alias("j", "other") && !k.alias("out", "other") && !k.alias("out", "x"));
    assert!(k.written("a") && k.written("fresh") && !k.written("x") && !k.written("other"));
}

#[test]
fn unknown_ops_may_do_everything() {
    let mut k = known(
        "graph(%x : Tensor, %l : Tensor[]):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %r : Tensor = test::unknown(%a)
  return (%r)",
    );
    assert!(k.alias("r", "a") && k.alias("r", "x") && !k.alias("r", "b"));
    assert!(k.written("a") && k.written("x") && k.written("l") && !k.written("b"));
}

#[test]
fn ops_move_only_where_it_is_unobservable() {
    let registry = Registry::builtin();
    let mut k = known(
        "graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::abs(%a)
  %w : Tensor = aten::add_(%a, %one, %one)
  %c : Tensor = aten::neg(%x)
  return (%b, %w, %c)",
    );
    let op = |k: &mut Known, name: &str| {
        let value = k.value(name);
        k.graph.def_op(value).expect("an op")
    };
    let (a, b, w, c) = (op(&mut k, "a"), op(&mut k, "b"), op(&mut k, "w"), op(&mut k, "c"));
    assert!(!k.db.can_move(&k.graph, &registry, b, Side::After, w));
    assert!(k.db.can_move(&k.graph, &registry, c, Side::Before, a));
    assert!(!k.db.can_move(&k.graph, &registry, a, Side::After, b));
    // After c, a takes b and w along.
    assert!(k.db.move_if_valid(&mut k.graph, &registry, a, Side::After, c));
    let order: Vec<OpId> = k.graph.block_ops(k.graph.root()).skip(1).collect();
    assert_eq!(order, [c, a, b, w]);
}

#[test]
fn sets_stay_small_where_branches_pile_up() {
    let chain = |n: usize| {
        let mut text = String::from("graph(%x : Tensor, %p : bool):\n  %v0 : Tensor = aten::neg(%x)\n");
        for i in 1..n {
            text.push_str(&format!(
                "  %f{i} : Tensor = aten::neg(%x)\n  %v{i} : Tensor = prim::If(%p)\n    block0():\n      -> (%f{i})\n    block1():\n      -> (%v{})\n",
                i - 1
            ));
        }
        text + &format!("  return (%v{})", n - 1)
    };
    let members = |n: usize| {
        let mut k = known(&chain(n));
        assert!(k.alias(&format!("v{}", n - 1), "f1") && !k.alias("x", "v1"));
        k.db.solution.get().solved.member_count()
    };
    // Each set has few members at most, so that all of them together grow with the graph.
    let (small, large) = (members(2_000), members(8_000));
    assert!(large < 5 * small, "{small} members for 2,000 branches, {large} for 8,000");
}
