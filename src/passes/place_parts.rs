//! Lets images that are joined along their channels be made where they are joined: there is one room for all of them, layers
//! write to their part of it, what else is joined is copied to it, and the joined images are a view of it. Joins that begin
//! or go on with the same images share a room, as in blocks where each layer reads all before it.
//!
//! Only images whose strides the program cannot see (`assign-layouts` has forgotten them) are treated so, and only where a
//! layer makes some of them. What may be joined is said by rows ([`LayerPart::Join`]).

use super::assign_layouts::free_values;
use super::layer_parts::{Call, Maker, float_sizes};
use super::{Context, constants};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::dialects::LayerPart;
use crate::dialects::fusion::layer;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, ValueId};
use hashbrown::HashMap;

/// Images of a join; one of more is left alone.
const MAX_PARTS: usize = 4096;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = context.analysis::<AliasDb>(graph);
    let rooms = rooms(joins(graph, context, &db));
    let mut now: HashMap<ValueId, ValueId> = HashMap::new();
    let mut changed = false;
    for mut room in rooms {
        for part in &mut room.parts {
            part.value = now.get(&part.value).copied().unwrap_or(part.value);
        }
        if !room.parts.iter().any(|part| is_layer(graph, part.value)) {
            continue;
        }
        if !context.step(|| format!("makes room for {} images", room.parts.len())) {
            break;
        }
        room.build(graph, &mut now);
        changed = true;
    }
    Ok(changed)
}

/// Images that are joined, and the op that does it.
struct Join {
    op: OpId,
    block: BlockId,
    parts: Vec<Part>,
}

/// One of joined images, with as many channels.
#[derive(Clone, Copy, PartialEq)]
struct Part {
    value: ValueId,
    channels: i64,
}

/// All joins of images, what was joined before taken apart. In the order of the graph.
fn joins(graph: &Graph, context: &Context<'_>, db: &AliasDb) -> Vec<Join> {
    let mut joins: Vec<Join> = Vec::new();
    let mut known: HashMap<ValueId, usize> = HashMap::new();
    let free = free_values(graph, context);
    for op in graph.all_ops() {
        let is_free = graph.result(op, 0).is_some_and(|result| free.contains(&result));
        let images = if is_free { joined(graph, context, db, op) } else { None };
        let (Some(images), Some(block)) = (images, graph.parent(op)) else {
            continue;
        };
        let mut parts: Vec<Part> = Vec::new();
        for value in images {
            match known.get(&value).map(|n| &joins[*n]).filter(|join| join.block == block) {
                Some(join) => parts.extend_from_slice(&join.parts),
                None => {
                    let channels = float_sizes(graph, value).and_then(|sizes| sizes.get(1).copied());
                    parts.push(Part { value, channels: channels.unwrap_or(0) });
                }
            }
        }
        if parts.len() <= MAX_PARTS {
            known.extend(graph.result(op, 0).map(|result| (result, joins.len())));
            joins.push(Join { op, block, parts });
        }
    }
    joins
}

/// The images that an op joins along their channels, if nothing writes to them.
fn joined(graph: &Graph, context: &Context<'_>, db: &AliasDb, op: OpId) -> Option<Vec<ValueId>> {
    let call = Call::of(graph, context, op).filter(|call| matches!(call.part, LayerPart::Join))?;
    let dim = constants::int_of(graph, call.get("dim")?)?;
    let list = graph.def_op(call.get("tensors")?).filter(|op| graph.kind(*op) == "prim::ListConstruct")?;
    let result = graph.result(op, 0)?;
    let calm = !db.op_has_writers(graph, op) && !db.op_has_writers(graph, list);
    let is_image = |value: &ValueId| float_sizes(graph, *value).is_some_and(|sizes| sizes.len() == 4);
    let images = graph.operands(list);
    let fits = calm && matches!(dim, 1 | -3) && is_image(&result) && images.iter().all(is_image);
    fits.then(|| images.to_vec())
}

/// Whether a value is the result of a layer that can write to a part of a room.
fn is_layer(graph: &Graph, value: ValueId) -> bool {
    let made = graph.def_op(value).filter(|op| graph.kind(*op) == layer::CONV);
    let format = made.and_then(|op| graph.operand(op, layer::CONV_FORMAT));
    format.and_then(|v| constants::int_of(graph, v)) == Some(layer::CHANNELS_LAST)
}

/// Images that are made in one place, and views of them.
struct Room {
    block: BlockId,
    parts: Vec<Part>,
    looks: Vec<Look>,
}

/// A join that is a view of some of a room's parts.
struct Look {
    op: OpId,
    first: usize,
    count: usize,
}

/// Rooms for all joins: the longest first, so that those with fewer parts find theirs in it.
fn rooms(joins: Vec<Join>) -> Vec<Room> {
    let mut joins: Vec<(usize, Join)> = joins.into_iter().enumerate().collect();
    joins.sort_by_key(|(n, join)| (std::cmp::Reverse(join.parts.len()), *n));
    let mut rooms: Vec<(usize, Room)> = Vec::new();
    let mut places: HashMap<ValueId, Vec<(usize, usize)>> = HashMap::new();
    for (n, Join { op, block, parts }) in joins {
        let Some(first) = parts.first() else { continue };
        let fits = |&&(room, at): &&(usize, usize)| {
            let room: &Room = &rooms[room].1;
            room.block == block && room.parts[at..].starts_with(&parts)
        };
        let found = places.get(&first.value).and_then(|places| places.iter().find(fits)).copied();
        let count = parts.len();
        if let Some((room, first)) = found {
            rooms[room].1.looks.push(Look { op, first, count });
            continue;
        }
        for (at, part) in parts.iter().enumerate() {
            places.entry(part.value).or_default().push((rooms.len(), at));
        }
        rooms.push((n, Room { block, parts, looks: vec![Look { op, first: 0, count }] }));
    }
    // In the order of the graph: a layer writes to the first room that wants it.
    rooms.sort_by_key(|(n, _)| *n);
    rooms.into_iter().map(|(_, room)| room).collect()
}

impl Room {
    /// Makes the room, lets layers write to it, and replaces the joins; `now` records which values were replaced.
    fn build(self, graph: &mut Graph, now: &mut HashMap<ValueId, ValueId>) {
        let first = self.first_op(graph);
        let like = self.looks[0].op;
        let Some(sizes) = graph.result(like, 0).and_then(|v| float_sizes(graph, v)) else { return };
        let channels = self.parts.iter().map(|part| part.channels).sum();
        let sizes: Vec<i64> =
            sizes.iter().enumerate().map(|(d, n)| if d == 1 { channels } else { *n }).collect();
        let mut maker = Maker { graph: &mut *graph, at: first, like };
        let sizes = maker.constant(Type::list(Type::int()), Attr::Ints(sizes.into()));
        let room = maker.tensor(layer::ROOM, &[sizes]);
        let mut channel = 0;
        for part in &self.parts {
            let value = now.get(&part.value).copied().unwrap_or(part.value);
            self.write(graph, (room, channel), Part { value, ..*part }, first, now);
            channel += part.channels;
        }
        for look in &self.looks {
            let width = |parts: &[Part]| parts.iter().map(|part| part.channels).sum::<i64>();
            let start = width(&self.parts[..look.first]);
            let count = width(&self.parts[look.first..look.first + look.count]);
            let ty = graph.result(look.op, 0).map_or(Type::tensor(), |v| graph.ty(v).clone());
            let mut maker = Maker { graph: &mut *graph, at: look.op, like: look.op };
            let start = maker.constant(Type::int(), Attr::Int(start));
            let count = maker.constant(Type::int(), Attr::Int(count));
            let result = maker.emit(layer::PART, &[room, start, count], ty);
            now.extend(graph.result(look.op, 0).map(|old| (old, result)));
            graph.replace_op(look.op, &[result]);
        }
    }

    /// The first op of the block that makes a part; the first join where none does.
    fn first_op(&self, graph: &Graph) -> OpId {
        let made = |part: &Part| graph.def_op(part.value).filter(|op| graph.parent(*op) == Some(self.block));
        let all = self.parts.iter().filter_map(made).chain(self.looks.iter().map(|look| look.op));
        let mut first = self.looks[0].op;
        for op in all {
            if op != first && graph.is_before(op, first) {
                first = op;
            }
        }
        first
    }

    /// Lets the layer that makes a part write it to the room, or copies the part as soon as it is there.
    fn write(
        &self,
        graph: &mut Graph,
        (room, channel): (ValueId, i64),
        part: Part,
        first: OpId,
        now: &mut HashMap<ValueId, ValueId>,
    ) {
        let made = graph.def_op(part.value).filter(|op| graph.parent(*op) == Some(self.block));
        let ty = graph.ty(part.value).clone();
        let Some(op) = made else {
            let mut maker = Maker { graph, at: first, like: first };
            let channel = maker.constant(Type::int(), Attr::Int(channel));
            maker.emit(layer::PLACE, &[part.value, room, channel], ty);
            return;
        };
        if is_layer(graph, part.value) {
            let mut operands = graph.operands(op)[..layer::CONV_FORMAT].to_vec();
            let mut maker = Maker { graph: &mut *graph, at: op, like: op };
            let channel = maker.constant(Type::int(), Attr::Int(channel));
            operands.extend([room, channel]);
            let result = maker.emit(layer::CONV_INTO, &operands, ty);
            now.insert(part.value, result);
            graph.replace_op(op, &[result]);
            return;
        }
        let channel_op = graph.create(Symbol::new("prim::Constant"), &[], &[Type::int()]);
        graph.set_attr(channel_op, "value", Attr::Int(channel));
        let channel = graph.results(channel_op)[0];
        let place = graph.create(Symbol::new(layer::PLACE), &[part.value, room, channel], &[ty]);
        graph.set_location_id(place, graph.location_id(op));
        graph.insert_after(place, op);
        graph.insert_after(channel_op, op);
    }
}
