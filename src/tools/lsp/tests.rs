//! The parts of the server; whole sessions stand in tests/lsp.rs.

use super::index::{Index, Line};

fn names(text: &str, index: &Index) -> Vec<(String, usize)> {
    let of = |v: &super::index::Value| (text[v.place.clone()].to_string(), v.uses.len());
    index.values.iter().map(of).collect()
}

#[test]
fn scopes_follow_blocks() {
    let text = "\
graph(%x : Tensor, %c : bool):
  %x : Tensor = aten::relu(%x)
  %y : Tensor = prim::If(%c)
    block0():
      %z : Tensor = aten::relu(%x) # a %z in a comment
      -> (%z)
    block1():
      -> (%z)
  return (%y, %x)
with prim::FusionGroup_0 = graph(%x : Dict(str, Tensor),
      %w : Tensor):
  return (%w)
";
    let index = Index::new(text);
    let wanted = [("%x", 1), ("%c", 1), ("%x", 2), ("%y", 1), ("%z", 1), ("%x", 0), ("%w", 1)];
    assert_eq!(names(text, &index), wanted.map(|(name, uses)| (name.to_string(), uses)));
    // The second block does not see what the first gives.
    assert_eq!(index.unknown.len(), 1);
    let functions: Vec<&str> = index.functions.iter().map(|f| &text[f.name.clone()]).collect();
    assert_eq!(functions, ["graph", "prim::FusionGroup_0"]);
    let ty = index.values[5].ty.clone().map(|ty| &text[ty]);
    assert_eq!(ty, Some("Dict(str, Tensor)"));
    let depths: Vec<(Line, usize)> = index.lines.iter().map(|(_, line, depth)| (*line, *depth)).collect();
    assert_eq!(depths[3..6], [(Line::Block, 0), (Line::Op, 1), (Line::End, 1)]);
}

#[test]
fn open_brackets_do_not_swallow_what_follows() {
    let text = "graph(%x : Tensor):\n  %y = aten::add(%x, \n  %z : int[] = prim::Constant[value=[1, 2]]()\n  return (%z)\n";
    let index = Index::new(text);
    assert_eq!(index.ops.len(), 2);
    assert_eq!(names(text, &index)[2], ("%z".to_string(), 1));
    assert_eq!(index.ops[1].attributes.clone().map(|a| &text[a]), Some("value=[1, 2]"));
}

#[test]
fn any_text_is_read() {
    for text in [
        "",
        "%",
        "%%",
        "= ",
        "[",
        "\"",
        "block(",
        "-> ",
        "->(%x",
        "graph",
        "with x = graph(%x",
        "a\\",
        "\"\\",
        "é%é : é",
    ] {
        let index = Index::new(text);
        assert!(index.values.iter().all(|v| text.get(v.place.clone()).is_some()));
    }
    let deep = format!("graph(%x : {}", "Dict(".repeat(100_000));
    assert_eq!(Index::new(&deep).values.len(), 1);
}
