//! Rows of a block: what stands above what, and in which order (Sugiyama's method).
//!
//! A node stands below all that it takes. Edges that cross rows get a waypoint in each, so that they run around
//! nodes; then rows are sorted by the mean place of their neighbours, up and down alternately. All of it is linear in
//! the edges, but for the sorting.

use super::model::Model;
use serde::Serialize;

/// What stands in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Item {
    /// An input of the block: the value.
    Input(usize),
    /// An op.
    Op(usize),
    /// The results of the block.
    Return,
    /// A point that a long edge runs through.
    Way,
}

/// A value on its way from one item to another.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Edge {
    /// Item that gives it.
    pub(super) from: usize,
    /// Item that takes it.
    pub(super) to: usize,
    /// The value.
    pub(super) value: usize,
    /// Waypoints, from top to bottom.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) via: Vec<usize>,
}

/// The rows of one block.
#[derive(Debug, Default, Serialize)]
pub(super) struct Layers {
    /// Items.
    pub(super) items: Vec<Item>,
    /// Indices of items, row by row.
    pub(super) rows: Vec<Vec<usize>>,
    /// Edges between items.
    pub(super) edges: Vec<Edge>,
}

/// Times that rows are sorted, down and up together.
const SWEEPS: usize = 6;

/// The rows of every block.
pub(super) fn layers(model: &Model) -> Vec<Layers> {
    let mut all: Vec<Layers> = model.blocks.iter().enumerate().map(|(b, _)| items(model, b)).collect();
    let mut item_of_op = vec![usize::MAX; model.ops.len()];
    let mut item_of_input = vec![usize::MAX; model.values.len()];
    for layers in &all {
        for (index, item) in layers.items.iter().enumerate() {
            match item {
                Item::Op(op) => item_of_op[*op] = index,
                Item::Input(value) => item_of_input[*value] = index,
                Item::Return | Item::Way => {}
            }
        }
    }
    connect(model, &mut all, &item_of_op, &item_of_input);
    for layers in &mut all {
        rank(layers);
        sort(layers);
    }
    all
}

/// Inputs, ops that are shown, the end.
fn items(model: &Model, block: usize) -> Layers {
    let block = &model.blocks[block];
    let inputs = block.inputs.iter().map(|v| Item::Input(*v));
    let ops = block.ops.iter().filter(|op| model.ops[**op].constant.is_none()).map(|op| Item::Op(*op));
    Layers { items: inputs.chain(ops).chain([Item::Return]).collect(), ..Layers::default() }
}

/// Edges: a use inside of a nested block is one of the op that holds the block.
fn connect(model: &Model, all: &mut [Layers], item_of_op: &[usize], item_of_input: &[usize]) {
    let mut edge = |value: usize, user: Option<usize>, block: usize| {
        let known = &model.values[value];
        let hidden = known.op.is_some_and(|op| model.ops[op].constant.is_some());
        let (mut user, mut at) = (user, block);
        while at != known.block {
            let Some(owner) = model.blocks[at].owner else { return };
            (user, at) = (Some(owner), model.ops[owner].block);
        }
        let Some(layers) = all.get_mut(at).filter(|_| !hidden) else { return };
        let from = known.op.map_or(item_of_input[value], |op| item_of_op[op]);
        let to = user.map_or(layers.items.len() - 1, |op| item_of_op[op]);
        if from < layers.items.len() && to < layers.items.len() && from != to {
            layers.edges.push(Edge { from, to, value, via: Vec::new() });
        }
    };
    for (index, op) in model.ops.iter().enumerate() {
        for value in &op.operands {
            edge(*value, Some(index), op.block);
        }
    }
    for (index, block) in model.blocks.iter().enumerate() {
        for value in &block.outputs {
            edge(*value, None, index);
        }
    }
    for layers in all {
        layers.edges.sort_by_key(|e| (e.from, e.to, e.value));
        layers.edges.dedup_by_key(|e| (e.from, e.to, e.value));
    }
}

/// Puts items into rows, and waypoints into the rows between.
fn rank(layers: &mut Layers) {
    let count = layers.items.len();
    let mut rank = vec![0usize; count];
    let mut used_by: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut has_source = vec![false; count];
    for edge in &layers.edges {
        used_by[edge.from].push(edge.to);
        has_source[edge.to] = true;
    }
    let has_inputs = layers.items.iter().any(|item| matches!(item, Item::Input(_)));
    // Items are in program order, so each is final when it is reached.
    for item in 0..count {
        if let Item::Op(_) = layers.items[item] {
            rank[item] = rank[item].max(usize::from(has_inputs));
            // What neither takes nor gives anything shows its place in the program.
            if !has_source[item] && used_by[item].is_empty() && item > 0 {
                rank[item] = rank[item].max(rank[item - 1]);
            }
        }
        for user in &used_by[item] {
            rank[*user] = rank[*user].max(rank[item] + 1);
        }
    }
    // What takes nothing stands directly above its first user.
    for item in (0..count).rev() {
        if !has_source[item]
            && matches!(layers.items[item], Item::Op(_))
            && let Some(first) = used_by[item].iter().map(|user| rank[*user]).min()
        {
            rank[item] = rank[item].max(first.saturating_sub(1));
        }
    }
    let last = rank.iter().copied().max().unwrap_or(0);
    if let Some(end) = rank.last_mut() {
        *end = last.max(*end);
        if layers.items.len() > 1 && rank[..count - 1].contains(&last) {
            rank[count - 1] = last + 1;
        }
    }
    layers.rows = split(&mut rank);
    waypoints(layers, &mut rank);
}

/// Rows from ranks. A row that is too wide to be examined becomes several, which have no edges between them.
fn split(rank: &mut [usize]) -> Vec<Vec<usize>> {
    let widest = 12 + (rank.len() as f64).sqrt() as usize;
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); rank.iter().max().map_or(0, |r| r + 1)];
    for (item, at) in rank.iter().enumerate() {
        rows[*at].push(item);
    }
    let rows: Vec<Vec<usize>> = rows.iter().flat_map(|row| row.chunks(widest)).map(<[_]>::to_vec).collect();
    for (at, row) in rows.iter().enumerate() {
        for item in row {
            rank[*item] = at;
        }
    }
    rows
}

/// Gives edges a waypoint in each row between their ends, as far as that does not make the picture much larger.
fn waypoints(layers: &mut Layers, rank: &mut Vec<usize>) {
    let mut left = 400 + 3 * layers.items.len();
    for edge in &mut layers.edges {
        let (top, bottom) = (rank[edge.from] + 1, rank[edge.to]);
        if bottom.saturating_sub(top) > left {
            continue;
        }
        for row in top..bottom {
            edge.via.push(layers.items.len());
            layers.rows[row].push(layers.items.len());
            layers.items.push(Item::Way);
            rank.push(row);
            left -= 1;
        }
    }
}

/// Sorts each row by the mean place of what it is connected to in the row before, and after.
fn sort(layers: &mut Layers) {
    let count = layers.items.len();
    let (mut above, mut below): (Vec<Vec<usize>>, Vec<Vec<usize>>) =
        (vec![Vec::new(); count], vec![Vec::new(); count]);
    for edge in &layers.edges {
        let mut from = edge.from;
        for to in edge.via.iter().copied().chain([edge.to]) {
            below[from].push(to);
            above[to].push(from);
            from = to;
        }
    }
    let mut place = vec![0.0f64; count];
    let number = |row: &[usize], place: &mut [f64]| {
        for (at, item) in row.iter().enumerate() {
            place[*item] = (at as f64 + 0.5) / row.len() as f64;
        }
    };
    for row in &layers.rows {
        number(row, &mut place);
    }
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        let neighbours = if down { &above } else { &below };
        let count = layers.rows.len();
        for step in 0..count {
            let row = &mut layers.rows[if down { step } else { count - 1 - step }];
            let mean = |item: usize| match neighbours[item].as_slice() {
                [] => place[item],
                near => near.iter().map(|other| place[*other]).sum::<f64>() / near.len() as f64,
            };
            let mut keyed: Vec<(f64, usize)> = row.iter().map(|item| (mean(*item), *item)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keyed.into_iter().map(|(_, item)| item).collect();
            number(row, &mut place);
        }
    }
}
