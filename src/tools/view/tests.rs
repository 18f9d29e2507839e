//! Layout laws, and that a module survives the way into tables.

use super::build::model;
use super::layers::{Item, layers};
use super::model::{Model, Part};
use super::place::place;
use crate::diag::Source;
use crate::dialects::Registry;
use crate::ir::{ParseOptions, parse_module};

fn of(text: &str) -> Model {
    let parsed = parse_module(&Source::new("test", text), &ParseOptions::default()).unwrap();
    model(&parsed.module, &Registry::builtin())
}

const BRANCH: &str = "\
graph(%x : Tensor, %flag : bool):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = prim::If(%flag)
    block0():
      %a : Tensor = aten::add(%x, %x, %1)
      -> (%a)
    block1():
      -> (%x)
  %g : Tensor = prim::FusionGroup_0(%y)
  %z : Tensor = aten::mul(%g, %x)
  return (%z)
with prim::FusionGroup_0 = graph(%p : Tensor):
  %q : Tensor = aten::relu(%p)
  return (%q)
";

#[test]
fn tables_hold_the_whole_module() {
    let model = of(BRANCH);
    let kinds: Vec<&str> = model.ops.iter().map(|op| op.kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["prim::Constant", "prim::If", "prim::FusionGroup", "aten::mul", "aten::add", "aten::relu"]
    );
    assert_eq!(model.ops[0].constant.as_deref(), Some("1"));
    assert_eq!(model.ops[1].blocks.len(), 2);
    assert_eq!(model.ops[2].blocks.len(), 1);
    assert!(model.docs["aten::relu"][0].starts_with("aten::relu(Tensor self)"));
    for (index, op) in model.ops.iter().enumerate() {
        assert!(model.blocks[op.block].ops.contains(&index));
        assert!(op.results.iter().all(|v| model.values[*v].op == Some(index)));
        assert!(op.blocks.iter().all(|b| model.blocks[*b].owner == Some(index)));
    }
}

#[test]
fn uses_inside_of_blocks_lead_to_the_op_that_holds_them() {
    let model = of(BRANCH);
    let layers = layers(&model);
    let root = &layers[0];
    let op = |kind: &str| {
        root.items.iter().position(|i| matches!(i, Item::Op(op) if model.ops[*op].kind == kind)).unwrap()
    };
    let edges: Vec<(usize, usize)> = root.edges.iter().map(|e| (e.from, e.to)).collect();
    // %x goes into the branch though only its blocks name it; the constant is written where it is used.
    assert!(edges.contains(&(0, op("prim::If"))), "{edges:?}");
    assert!(edges.contains(&(op("prim::If"), op("prim::FusionGroup"))));
    assert!(!root.items.iter().any(|i| matches!(i, Item::Op(0))));
}

/// A graph of `n` ops that takes operands from here and there.
fn large(n: usize) -> String {
    let mut text = String::from("graph(%v0 : Tensor):\n");
    for i in 1..=n {
        let (a, b) = (i * 7919 % i, i - 1 - (i * 31) % i.min(5));
        text.push_str(&format!("  %v{i} : Tensor = aten::mul(%v{a}, %v{b})\n"));
    }
    text.push_str(&format!("  return (%v{n})\n"));
    text
}

#[test]
fn edges_point_down_and_nothing_overlaps() {
    for text in [BRANCH.to_string(), large(300)] {
        let model = of(&text);
        let layers = layers(&model);
        for (layers, placed) in layers.iter().zip(place(&model, &layers)) {
            for edge in &layers.edges {
                let mut from = edge.from;
                for to in edge.via.iter().copied().chain([edge.to]) {
                    assert!(placed.items[from].y + placed.items[from].height < placed.items[to].y);
                    from = to;
                }
            }
            let mut seen: Vec<usize> = layers.rows.iter().flatten().copied().collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..layers.items.len()), "each item stands in one row");
            for row in &layers.rows {
                for pair in row.windows(2) {
                    let (a, b) = (placed.items[pair[0]], placed.items[pair[1]]);
                    assert!(a.x + a.width < b.x, "{a:?} {b:?}");
                }
            }
            for item in &placed.items {
                assert!(item.x >= 0.0 && item.x + item.width <= placed.width);
                assert!(item.y >= 0.0 && item.y + item.height <= placed.height);
            }
        }
    }
}

#[test]
fn forms_are_the_same_each_time_and_escape_what_they_show() {
    let text = "graph():\n  %0 : str = prim::Constant[value=\"</script><b>&\"]()\n  return (%0)\n";
    let model = of(text);
    let page = super::html(&model, "a <b>");
    assert_eq!(page, super::html(&of(text), "a <b>"));
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains("<title>a &lt;b&gt;</title>"));
    // Nothing is fetched: no address stands in the page but the name space of SVG.
    let addresses: Vec<&str> = page.split("http").skip(1).filter(|rest| rest.starts_with("://")).collect();
    assert!(addresses.iter().all(|rest| rest.starts_with("://www.w3.org/2000/svg")), "{addresses:?}");
    let picture = super::svg(&of(BRANCH));
    assert!(picture.contains(">%g : Tensor</text>") && picture.contains(">aten::relu</text>"));
    assert_eq!(picture.matches("<g ").count(), picture.matches("</g>").count());
    assert!(super::svg(&model).contains("&lt;/script&gt;"));
}

#[test]
fn json_is_read_back() {
    let text = super::json(&of(BRANCH));
    let data: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(data["version"], 1);
    assert_eq!(data["ops"][3]["kind"], "aten::mul");
    assert_eq!(data["values"][0]["type"], "Tensor");
    assert_eq!(data["functions"][0]["block"], 0);
}

#[test]
fn deep_nesting_and_large_graphs_end_soon() {
    let mut text = String::from("graph(%c : bool):\n");
    let depth = 190;
    for level in 0..depth {
        let pad = "  ".repeat(2 * level + 1);
        text.push_str(&format!("{pad} = prim::If(%c)\n{pad}  block0():\n"));
    }
    for level in (0..depth).rev() {
        let pad = "  ".repeat(2 * level + 1);
        text.push_str(&format!("{pad}    -> ()\n{pad}  block1():\n{pad}    -> ()\n"));
    }
    text.push_str("  return ()\n");
    let model = of(&text);
    assert_eq!(model.ops.len(), depth);
    assert!(super::svg(&model).ends_with("</svg>\n"));
    let start = std::time::Instant::now();
    let page = super::html(&of(&large(10_000)), "large");
    assert!(page.len() > 1_000_000);
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}

const SCOPES: &str = "\
graph(%x : Tensor, %flag : bool):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x), scope: __module.layer1/__module.layer1.0
  %b : Tensor = aten::add(%a, %x, %1), scope: __module.layer1/__module.layer1.1
  %c : Tensor = prim::If(%flag), scope: __module.layer2
    block0():
      %d : Tensor = aten::mul(%b, %a), scope: __module.layer2
      -> (%d)
    block1():
      -> (%b)
  %e : Tensor = aten::tanh(%c)
  return (%e, %a)
";

#[test]
fn scopes_are_frames() {
    let model = of(SCOPES);
    let frames: Vec<(&str, usize)> = (model.ops.iter())
        .filter(|op| op.part == Part::Scope)
        .map(|op| (model.blocks[op.blocks[0]].name.as_str(), model.blocks[op.blocks[0]].ops.len()))
        .collect();
    assert_eq!(frames, [("layer1", 2), ("layer1.0", 1), ("layer1.1", 1), ("layer2", 1)]);
    // The ops of a block whose own op has a scope need no second frame of it.
    let root = &model.blocks[0];
    assert_eq!(root.ops.len(), 4, "the constant, two modules, and what has no scope");
    for (index, op) in model.ops.iter().enumerate() {
        assert!(model.blocks[op.block].ops.contains(&index));
        assert!(op.results.iter().all(|v| model.values[*v].op == Some(index)));
        assert!(op.results.iter().all(|v| model.values[*v].block == op.block));
    }
    // What leaves a module leaves it as its result: %a both frames, and %b the outer one.
    let layer1 =
        model.ops.iter().find(|op| op.blocks.first().is_some_and(|b| model.blocks[*b].name == "layer1"));
    let names: Vec<&str> = layer1.unwrap().results.iter().map(|v| model.values[*v].name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    let layers = layers(&model);
    assert!(layers.iter().zip(&model.blocks).all(|(layers, block)| {
        block.outputs.is_empty() || !layers.edges.is_empty() || block.ops.is_empty()
    }));
    // Every block has a place, those in frames too.
    assert!(place(&model, &layers).iter().all(|placed| placed.width > 0.0));
}
