//! Lets a packed depthwise convolution read the pointwise one before it band by band, while what that makes lies in a cache:
//! the images between them are never stored as a whole. Which pairs pay is the kernel's to say ([`bands::pays`]).

use super::layer_parts::{Maker, float_dims, float_sizes, is_none};
use super::{Context, constants};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::dialects::fusion::layer;
use crate::ir::{Dim, Graph, OpId, Type, ValueId};
use crate::kernels::float::{ConvShape, bands};

/// What an open size is tried as.
const OPEN: [usize; 6] = [7, 14, 28, 56, 112, 224];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = context.analysis::<AliasDb>(graph);
    let found: Vec<[OpId; 2]> =
        graph.all_ops().into_iter().filter_map(|op| Some([chained(graph, &db, op)?, op])).collect();
    let mut changed = false;
    for [first, second] in found {
        if !context.step(|| "chains two convolutions".to_string()) {
            break;
        }
        let operand = |op: OpId, n: usize| graph.operand(op, n);
        let (Some(input), Some(one), Some(other), Some(format)) =
            (operand(first, 0), operand(first, 1), operand(second, 1), operand(second, layer::CONV_FORMAT))
        else {
            continue;
        };
        let ty = graph.result(second, 0).map_or(Type::tensor(), |result| graph.ty(result).clone());
        let mut maker = Maker { graph: &mut *graph, at: second, like: second };
        let result = maker.emit(layer::CONV_CHAIN, &[input, one, other, format], ty);
        graph.replace_op(second, &[result]);
        graph.erase(first);
        changed = true;
    }
    Ok(changed)
}

/// The pointwise convolution whose result an op, a depthwise one, may read in bands.
fn chained(graph: &Graph, db: &AliasDb, second: OpId) -> Option<OpId> {
    let between = plain(graph, second)?;
    let first = graph.def_op(between)?;
    let input = plain(graph, first)?;
    let format = constants::int_of(graph, graph.operand(first, layer::CONV_FORMAT)?)?;
    let only_read_here = graph.uses(between).count() == 1 && graph.parent(first) == graph.parent(second);
    let calm = !db.op_has_writers(graph, first) && !db.op_has_writers(graph, second);
    let shapes = [shape_of(graph, first)?, shape_of(graph, second)?];
    let &[_, channels, height, width] = float_dims(graph, input)? else { return None };
    let wide = channels.known()? > layer::FEW_CHANNELS as i64;
    let fits = format == layer::CHANNELS_LAST && only_read_here && calm && wide;
    (fits && pays(&shapes, [height, width])).then_some(first)
}

/// Whether bands pay for images of these sizes; where one is open, for some: the op asks in each call.
fn pays(shapes: &[ConvShape; 2], [height, width]: [Dim; 2]) -> bool {
    let sizes = |dim: Dim| match dim.known() {
        Some(n) => usize::try_from(n).into_iter().collect(),
        None => OPEN.to_vec(),
    };
    let pays = |height, width| bands::pays(&shapes[0], &shapes[1], [height, width]);
    sizes(height).into_iter().any(|height| sizes(width).into_iter().any(|width| pays(height, width)))
}

/// The images that a packed convolution reads, if nothing else comes to them.
fn plain(graph: &Graph, op: OpId) -> Option<ValueId> {
    let is_conv = graph.kind(op) == layer::CONV;
    let &[input, _, residual, gate, _] = graph.operands(op) else { return None };
    (is_conv && is_none(graph, residual) && is_none(graph, gate)).then_some(input)
}

/// The numbers of a packed convolution, from the op that packs it. None: something is done to its inputs first.
fn shape_of(graph: &Graph, op: OpId) -> Option<ConvShape> {
    let packed = graph.def_op(graph.operand(op, 1)?).filter(|op| graph.kind(*op) == layer::PACK_CONV)?;
    let weight = float_sizes(graph, graph.operand(packed, 0)?)?;
    let pair = |n: usize| {
        let ints = constants::ints_of(graph, graph.operand(packed, n)?)?;
        let &[a, b] = ints.as_slice() else { return None };
        Some([usize::try_from(a).ok()?, usize::try_from(b).ok()?])
    };
    let padding = layer::padding(&constants::ints_of(graph, graph.operand(packed, 3)?)?)?;
    let groups = constants::int_of(graph, graph.operand(packed, 5)?)?;
    layer::conv_shape(&weight, (pair(2)?, padding, pair(4)?), groups)
}
