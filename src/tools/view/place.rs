//! Coordinates: rows from top to bottom, items in a row as near to their neighbours as their width allows.
//!
//! `page.js` does the same for the browser; what is changed here is changed there.

use super::layers::{Item, Layers};
use super::model::{Model, Part};

/// Width of a letter of the fixed-width font.
pub(super) const LETTER: f64 = 7.25;
/// Height of a line of text.
pub(super) const LINE: f64 = 16.0;
/// Room around text.
pub(super) const PAD: f64 = 8.0;
const GAP: f64 = 22.0;
const ROW_GAP: f64 = 40.0;
/// Height of the bar above a block.
pub(super) const TITLE: f64 = 20.0;
/// Longest line in a node.
const MAX_LETTERS: usize = 44;
/// Times that items are moved to their neighbours.
const ROUNDS: usize = 8;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A block with its items placed, relative to its own corner.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// Each item's rectangle.
    pub(super) items: Vec<Rect>,
    /// The whole.
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The two lines in the box of an op.
pub(super) fn lines(model: &Model, op: usize) -> [String; 2] {
    let op = &model.ops[op];
    let mut words: Vec<String> = op.operands.iter().map(|v| operand(model, *v)).collect();
    words.extend(op.attributes.iter().map(|(name, text)| format!("{name}={text}")));
    // A module is known by its name.
    let kind = match (op.part, op.blocks.first()) {
        (Part::Scope, Some(block)) => &model.blocks[*block].name,
        _ => &op.kind,
    };
    [shortened(kind), shortened(&format!("({})", words.join(", ")))]
}

/// A value as an operand: its name, or what it is.
pub(super) fn operand(model: &Model, value: usize) -> String {
    let known = &model.values[value];
    let constant = known.op.and_then(|op| model.ops[op].constant.clone());
    constant.unwrap_or_else(|| format!("%{}", known.name))
}

/// The text of the end of a block.
pub(super) fn return_text(model: &Model, block: usize) -> String {
    let block = &model.blocks[block];
    let word = if block.owner.is_some() { "->" } else { "return" };
    let values: Vec<String> = block.outputs.iter().map(|v| operand(model, *v)).collect();
    shortened(&format!("{word} ({})", values.join(", ")))
}

/// The text of an input.
pub(super) fn input_text(model: &Model, value: usize) -> String {
    let value = &model.values[value];
    shortened(&format!("%{} : {}", value.name, value.seen.as_ref().unwrap_or(&value.ty)))
}

/// A line cut to what a node holds.
pub(super) fn shortened(text: &str) -> String {
    let text = text.replace(['\n', '\r', '\t'], " ");
    if text.chars().count() <= MAX_LETTERS {
        return text;
    }
    text.chars().take(MAX_LETTERS - 1).chain(['…']).collect()
}

fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER + 2.0 * PAD
}

/// Places all blocks; those inside of an op before the block that the op stands in.
pub(super) fn place(model: &Model, layers: &[Layers]) -> Vec<Placed> {
    let mut placed: Vec<Placed> = Vec::new();
    placed.resize_with(layers.len(), Placed::default);
    // Blocks from the outermost to the innermost, those of one op after the block that it stands in.
    let mut order: Vec<usize> = model.functions.iter().map(|function| function.block).collect();
    let mut at = 0;
    while let Some(block) = order.get(at).copied() {
        let ops = model.blocks[block].ops.iter();
        order.extend(ops.flat_map(|op| model.ops[*op].blocks.iter().copied()));
        at += 1;
    }
    for block in order.into_iter().rev() {
        let sizes = layers[block].items.iter().map(|item| size(model, &placed, block, *item)).collect();
        placed[block] = place_block(&layers[block], sizes);
    }
    placed
}

fn size(model: &Model, placed: &[Placed], block: usize, item: Item) -> Rect {
    let (width, height) = match item {
        Item::Way => (10.0, 0.0),
        Item::Return => (text_width(&return_text(model, block)), LINE + 2.0 * PAD),
        Item::Input(value) => (text_width(&input_text(model, value)), LINE + 2.0 * PAD),
        Item::Op(op) => {
            let [first, second] = lines(model, op);
            let own = text_width(&first).max(text_width(&second));
            let mut height = 2.0 * LINE + 2.0 * PAD;
            let mut width = own;
            let blocks = &model.ops[op].blocks;
            if !blocks.is_empty() {
                let inner: f64 = blocks.iter().map(|b| placed[*b].width + PAD).sum();
                width = width.max(inner + PAD);
                height += PAD + TITLE + blocks.iter().map(|b| placed[*b].height).fold(0.0, f64::max);
            }
            (width, height)
        }
    };
    Rect { x: 0.0, y: 0.0, width, height }
}

/// Places the items of one block, whose sizes are known.
fn place_block(layers: &Layers, mut items: Vec<Rect>) -> Placed {
    let mut y = PAD;
    for row in &layers.rows {
        let height = row.iter().map(|item| items[*item].height).fold(0.0, f64::max);
        let mut x = 0.0;
        for item in row {
            if layers.items[*item] == Item::Way {
                // A long edge passes between the items of the row.
                items[*item].height = height;
            }
            items[*item].y = y;
            items[*item].x = x;
            x += items[*item].width + GAP;
        }
        // All rows begin with their middles one above the other.
        for item in row {
            items[*item].x -= (x - GAP) / 2.0;
        }
        y += height + ROW_GAP;
    }
    let mut near: [Vec<Vec<usize>>; 2] = [vec![Vec::new(); items.len()], vec![Vec::new(); items.len()]];
    for edge in &layers.edges {
        let mut from = edge.from;
        for to in edge.via.iter().copied().chain([edge.to]) {
            near[1][from].push(to);
            near[0][to].push(from);
            from = to;
        }
    }
    for round in 0..ROUNDS {
        let up = round % 2;
        let count = layers.rows.len();
        for step in 0..count {
            let row = &layers.rows[if up == 1 { count - 1 - step } else { step }];
            settle(row, &mut items, &near[up], layers);
        }
    }
    let left = items.iter().map(|r| r.x).fold(f64::INFINITY, f64::min);
    let right = items.iter().map(|r| r.x + r.width).fold(f64::NEG_INFINITY, f64::max);
    for item in &mut items {
        item.x += PAD - left;
    }
    let width = if items.is_empty() { 2.0 * PAD } else { right - left + 2.0 * PAD };
    Placed { items, width, height: (y - ROW_GAP + PAD).max(2.0 * PAD) }
}

/// Moves the items of a row to the middle of their neighbours, with the least sum of squared distances that keeps
/// their order and room (isotonic regression: neighbours that would overlap move as one).
fn settle(row: &[usize], items: &mut [Rect], near: &[Vec<usize>], layers: &Layers) {
    /// Items that move as one: sum of wishes and of weights, and how many.
    struct Pool {
        wish: f64,
        weight: f64,
        count: usize,
    }
    let middle = |r: &Rect| r.x + r.width / 2.0;
    let mut pools: Vec<Pool> = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    for item in row {
        let own = items[*item];
        let wish = match near[*item].as_slice() {
            [] => own.x,
            others => {
                let sum: f64 = others.iter().map(|other| middle(&items[*other])).sum();
                sum / others.len() as f64 - own.width / 2.0
            }
        };
        // Long edges shall be straight.
        let weight = match (layers.items[*item], near[*item].is_empty()) {
            (_, true) => 0.1,
            (Item::Way, _) => 4.0,
            _ => 1.0,
        };
        pools.push(Pool { wish: (wish - offset) * weight, weight, count: 1 });
        offset += own.width + GAP;
        while let [.., before, last] = pools.as_slice()
            && before.wish / before.weight > last.wish / last.weight
        {
            let Some(last) = pools.pop() else { break };
            if let Some(before) = pools.last_mut() {
                before.wish += last.wish;
                before.weight += last.weight;
                before.count += last.count;
            }
        }
    }
    let mut offset = 0.0;
    let places = pools.iter().flat_map(|pool| std::iter::repeat_n(pool.wish / pool.weight, pool.count));
    for (item, place) in row.iter().zip(places) {
        items[*item].x = place + offset;
        offset += items[*item].width + GAP;
    }
}

/// The class by which style sheets know a kind of work.
pub(super) fn class(part: Part) -> &'static str {
    match part {
        Part::Constant => "constant",
        Part::Control => "control",
        Part::Call => "call",
        Part::Scope => "scope",
        Part::Compute => "compute",
        Part::Data => "data",
        Part::Fused => "fused",
        Part::Foreign => "foreign",
    }
}
