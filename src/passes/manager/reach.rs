//! Which functions of a module a call of some of them can come to. What it misses stays in the module unchanged: whatever
//! calls it another way finds it.

use crate::ir::{Attr, Graph, Module, OpId, Symbol, TypeKind};
use hashbrown::HashSet;
use std::sync::Arc;

/// The roots and all functions that they call, directly or by others.
pub(super) fn reachable(module: &Module, roots: &[Symbol]) -> HashSet<Symbol> {
    let mut found: HashSet<Symbol> = HashSet::new();
    let mut work = roots.to_vec();
    while let Some(name) = work.pop() {
        let Some(function) = module.functions.get(&name) else { continue };
        if found.insert(name) {
            called(module, &function.graph, &mut work);
        }
    }
    found
}

/// What a graph names, with the graphs inside of its ops.
fn called(module: &Module, graph: &Graph, out: &mut Vec<Symbol>) {
    let mut inner: Vec<Arc<Graph>> = Vec::new();
    let mut next: Option<Arc<Graph>> = None;
    loop {
        let graph = next.as_deref().unwrap_or(graph);
        for op in graph.all_ops() {
            match graph.kind(op).as_str() {
                "prim::Constant" => out.extend(function_of(graph, op)),
                "prim::CallMethod" => methods_of(module, graph, op, out),
                _ => {}
            }
            inner.extend(graph.attrs(op).iter().filter_map(|(_, attr)| attr.as_graph().cloned()));
        }
        next = inner.pop();
        if next.is_none() {
            return;
        }
    }
}

/// The function that a constant is, where something uses it: inlining leaves constants that nothing calls.
fn function_of(graph: &Graph, op: OpId) -> Option<Symbol> {
    let value = graph.results(op).first().copied().filter(|value| graph.has_uses(*value))?;
    let TypeKind::Function(name) = graph.ty(value).kind() else { return None };
    let named = || Symbol::existing(graph.attr(op, "name")?.as_str()?);
    Some(named().unwrap_or(*name))
}

/// The method of a known class, else those of all classes that have one of the name.
fn methods_of(module: &Module, graph: &Graph, op: OpId, out: &mut Vec<Symbol>) {
    let class = graph.operands(op).first().and_then(|object| graph.ty(*object).class_name());
    let method = graph.attr(op, "name").and_then(Attr::as_str).and_then(Symbol::existing);
    let Some(method) = method else { return };
    match class.and_then(|class| module.class(class)) {
        Some(class) => out.extend(class.methods.get(&method)),
        None => out.extend(module.classes.values().filter_map(|class| class.methods.get(&method))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
    use crate::dialects::Registry;
    use crate::ir::{ParseOptions, parse_module};
    use crate::passes::manager::{Runner, Settings};
    use crate::passes::parse;

    const CALLS: &str = r#"class __torch__.Left:
  method get = __torch__.Left.get

class __torch__.Right:
  method get = __torch__.Right.get

interface __torch__.Got:
  method get(InterfaceType<Got> self, int x) -> int

graph @__torch__.Left.get(%self : __torch__.Left, %x : int):
  %f : Function = prim::Constant[name="__torch__.used"]()
  %y : int = prim::CallFunction(%f, %x)
  return (%y)

graph @__torch__.Right.get(%self : __torch__.Right, %x : int):
  %one : int = prim::Constant[value=1]()
  %y : int = aten::mul(%x, %one)
  return (%y)

graph @__torch__.used(%x : int):
  %one : int = prim::Constant[value=1]()
  %y : int = aten::mul(%x, %one)
  return (%y)

graph @__torch__.entry(%left : __torch__.Left, %x : int):
  %y : int = prim::CallMethod[name="get"](%left, %x)
  return (%y)

graph @__torch__.open(%any : InterfaceType<Got>, %x : int):
  %y : int = prim::CallMethod[name="get"](%any, %x)
  return (%y)
"#;

    fn module() -> Module {
        parse_module(&Source::new("calls.ir", CALLS), &ParseOptions::default())
            .expect("it is well formed")
            .module
    }

    fn reached(root: &str) -> Vec<String> {
        let module = module();
        let found = reachable(&module, &[Symbol::new(root)]);
        let names = module.functions.keys().filter(|name| found.contains(*name));
        names.map(|name| name.as_str().replace("__torch__.", "")).collect()
    }

    #[test]
    fn calls_reach_functions_and_methods_of_a_known_class_or_of_any() {
        assert_eq!(reached("__torch__.entry"), ["Left.get", "used", "entry"]);
        assert_eq!(reached("__torch__.open"), ["Left.get", "Right.get", "used", "open"]);
        assert!(reached("nothing").is_empty());
    }

    fn changed_from(roots: &[&str]) -> Vec<String> {
        let (registry, mut module, before) = (Registry::builtin(), module(), module());
        let settings =
            Settings { roots: roots.iter().map(|root| Symbol::new(root)).collect(), ..Settings::default() };
        let pipeline = parse("inline,simplify").expect("both are passes");
        Runner::new(&registry, settings, &mut Vec::new()).run(&pipeline, &mut module).expect("passes run");
        let text = |module: &Module, name: &Symbol| module.functions.get(name).map(|f| f.graph.to_string());
        let changed = before.functions.keys().filter(|name| text(&module, name) != text(&before, name));
        changed.map(|name| name.as_str().replace("__torch__.", "")).collect()
    }

    #[test]
    fn passes_skip_functions_without_callers_after_inlining() {
        assert_eq!(changed_from(&["__torch__.entry"]), ["entry"]);
        assert_eq!(changed_from(&[]), ["Left.get", "Right.get", "used", "entry"]);
        // What stays called is passed over.
        assert_eq!(changed_from(&["__torch__.open"]), ["Left.get", "Right.get"]);
    }
}
