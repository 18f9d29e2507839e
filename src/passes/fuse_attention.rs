//! Finds attention in products of queries and keys, what is done to their products (a factor, terms that broadcast, other
//! sizes on the way), a softmax along keys and products with values, and makes one op of it, which keeps no scores.
//!
//! What may be a part is said by rows ([`LayerPart`]). Types must say float32 on the CPU and all sizes; nothing may write to
//! what is read; what goes in between has one user. Terms are added in the program's order; a factor of queries becomes one
//! of scores.

use super::layer_parts::{Call, Maker, float_dims, is_none};
use super::{Context, constants};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::dialects::LayerPart;
use crate::dialects::fusion::layer;
use crate::ir::{Attr, Dim, Graph, OpId, Type, ValueId};
use crate::value::Value;

/// Ops between products and softmax.
const MAX_STEPS: usize = 16;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    let mut changed = false;
    for op in graph.all_ops() {
        let Some(found) = Finder { graph, context, db: &db, op }.attention() else { continue };
        if !context.step(|| format!("makes an attention of {}", graph.op_line(op))) {
            break;
        }
        found.apply(graph, op);
        changed = true;
    }
    Ok(changed)
}

/// An attention, whose last product is the op that it is found by.
struct Attention {
    query: ValueId,
    /// Features, then keys.
    key: ValueId,
    value: ValueId,
    /// In the order in which they are added.
    biases: Vec<ValueId>,
    scale: f64,
    /// What goes besides the last product, users first.
    ops: Vec<OpId>,
}

struct Finder<'a> {
    graph: &'a Graph,
    context: &'a Context<'a>,
    db: &'a AliasDb,
    /// The last product.
    op: OpId,
}

/// Batch, heads, rows and columns.
type Sizes = [Dim; 4];

impl Finder<'_> {
    fn attention(&self) -> Option<Attention> {
        let graph = self.graph;
        let (weights, value) = self.product(self.op)?;
        let (sizes, values) = (self.sizes(weights)?, self.sizes(value)?);
        let fits = sizes[..2] == values[..2] && sizes[3] == values[2] && !sizes.contains(&Dim::Known(0));
        let softmax = self.maker(weights)?;
        let rows = matches!(softmax.part, LayerPart::Softmax) && fits;
        let dim = constants::int_of(graph, softmax.get("dim")?)?;
        if !rows || !matches!(dim, -1 | 3) || !is_none(graph, softmax.get("dtype")?) {
            return None;
        }
        let mut found = Attention {
            query: weights,
            key: value,
            value,
            biases: Vec::new(),
            scale: 1.0,
            ops: vec![softmax.op],
        };
        let scores = graph.operand(softmax.op, 0)?;
        self.scores(scores, sizes, &mut found, 0).then(|| {
            found.biases.reverse();
            found
        })
    }

    /// Follows scores to the products that they are made of.
    fn scores(&self, value: ValueId, sizes: Sizes, found: &mut Attention, depth: usize) -> bool {
        let (Some(call), true) = (self.maker(value), depth < MAX_STEPS) else { return false };
        let whole = |v: ValueId| float_dims(self.graph, v).is_some_and(|own| is_view_of(own, sizes));
        if !whole(value) {
            return false;
        }
        let before = (found.ops.len(), found.biases.len(), found.scale);
        found.ops.push(call.op);
        let operands = self.graph.operands(call.op).to_vec();
        let goes_on = match (call.part, operands.as_slice()) {
            (LayerPart::Reshape, [from, ..]) => self.scores(*from, sizes, found, depth + 1),
            (LayerPart::Sum, [a, b, ..]) if self.adds_once(&call) => {
                [(*a, *b), (*b, *a)].into_iter().any(|(scores, bias)| {
                    let (ops, biases) = (found.ops.len(), found.biases.len());
                    found.biases.push(bias);
                    let goes_on = self.is_bias(bias, sizes) && self.scores(scores, sizes, found, depth + 1);
                    if !goes_on {
                        found.ops.truncate(ops);
                        found.biases.truncate(biases);
                    }
                    goes_on
                })
            }
            (LayerPart::Product | LayerPart::Quotient, [from, ..]) => {
                // Terms that are added before the factor would have to be multiplied too.
                self.factor(&call).is_some_and(|factor| {
                    found.scale *= factor;
                    self.products(*from, sizes, found, depth + 1)
                })
            }
            (LayerPart::Matmul, _) => {
                found.ops.pop();
                self.products(value, sizes, found, depth)
            }
            _ => false,
        };
        if !goes_on {
            found.ops.truncate(before.0);
            found.biases.truncate(before.1);
            found.scale = before.2;
        }
        goes_on
    }

    /// Takes the product of queries and keys, maybe in other sizes on the way.
    fn products(&self, value: ValueId, sizes: Sizes, found: &mut Attention, depth: usize) -> bool {
        let (Some(call), true) = (self.maker(value), depth < MAX_STEPS) else { return false };
        found.ops.push(call.op);
        if let (LayerPart::Reshape, Some(from)) = (call.part, self.graph.operand(call.op, 0)) {
            return self.products(from, sizes, found, depth + 1);
        }
        let Some((query, key)) = self.product(call.op) else { return false };
        let (Some(q), Some(k)) = (self.sizes(query), self.sizes(key)) else { return false };
        let fits = q[..3] == sizes[..3] && k[..2] == sizes[..2] && k[3] == sizes[3] && q[3] == k[2];
        (found.query, found.key) = (query, key);
        if let Some(call) = self.maker(query)
            && let (Some(factor), Some(from)) = (self.factor(&call), self.graph.operand(call.op, 0))
            && self.sizes(from) == Some(q)
        {
            found.query = from;
            found.scale *= factor;
            found.ops.push(call.op);
        }
        fits
    }

    /// The op that makes a value which nothing else uses, where it may go.
    fn maker(&self, value: ValueId) -> Option<Call<'_>> {
        let graph = self.graph;
        let made = graph.def_op(value).filter(|_| graph.has_one_use(value))?;
        let plain = graph.parent(made) == graph.parent(self.op) && !self.db.op_has_writers(graph, made);
        plain.then(|| Call::of(graph, self.context, made))?
    }

    /// The operands of a product of matrices.
    fn product(&self, op: OpId) -> Option<(ValueId, ValueId)> {
        let call = Call::of(self.graph, self.context, op)?;
        let product = matches!(call.part, LayerPart::Matmul) && !self.db.op_has_writers(self.graph, op);
        match (product, self.graph.operands(op)) {
            (true, &[a, b]) => Some((a, b)),
            _ => None,
        }
    }

    fn sizes(&self, value: ValueId) -> Option<Sizes> {
        float_dims(self.graph, value)?.try_into().ok()
    }

    fn adds_once(&self, call: &Call<'_>) -> bool {
        match call.get("alpha").and_then(|v| constants::value_of(self.graph, v)) {
            Some(Value::Int(n)) => n == 1,
            Some(Value::Float(x)) => x == 1.0,
            _ => false,
        }
    }

    /// Whether a tensor broadcasts to scores: of their sizes, or with a batch in two dimensions.
    fn is_bias(&self, value: ValueId, [batch, heads, rows, columns]: Sizes) -> bool {
        let Some(own) = float_dims(self.graph, value) else { return false };
        let broadcasts = |own: &[Dim], whole: &[Dim]| {
            own.iter().zip(whole).all(|(n, all)| n == all || *n == Dim::Known(1))
        };
        let four = [batch, heads, rows, columns];
        match own {
            [outer, inner, _, _, _] => {
                let fits = match (outer.known(), inner.known(), batch.known()) {
                    (Some(outer), Some(inner), Some(batch)) => {
                        (outer == 1 || outer.checked_mul(inner) == Some(batch))
                            && inner > 0
                            && batch % inner == 0
                    }
                    _ => false,
                };
                fits && broadcasts(&own[2..], &four[1..])
            }
            own if own.len() <= 4 => broadcasts(own, &four[4 - own.len()..]),
            _ => false,
        }
    }

    /// The number that an op multiplies its first operand with.
    fn factor(&self, call: &Call<'_>) -> Option<f64> {
        let number = match constants::value_of(self.graph, self.graph.operand(call.op, 1)?)? {
            Value::Int(n) => n as f64,
            Value::Float(x) => x,
            Value::Tensor(t) if t.rank() == 0 => t.item().ok()?.to_f64(),
            _ => return None,
        };
        match call.part {
            LayerPart::Product => Some(number),
            LayerPart::Quotient if number != 0.0 => Some(1.0 / number),
            _ => None,
        }
    }
}

/// Whether sizes are those of scores, or these with the batch in two dimensions.
fn is_view_of(own: &[Dim], [batch, heads, rows, columns]: Sizes) -> bool {
    match own {
        [a, b, rest @ ..] if rest.len() == 3 => {
            let both = a.known().and_then(|a| a.checked_mul(b.known()?));
            both.is_some() && both == batch.known() && rest == [heads, rows, columns]
        }
        own => own == [batch, heads, rows, columns],
    }
}

impl Attention {
    fn apply(self, graph: &mut Graph, op: OpId) {
        let mut maker = Maker { graph: &mut *graph, at: op, like: op };
        let biases = maker.emit("prim::ListConstruct", &self.biases, Type::list(Type::tensor()));
        let scale = maker.constant(Type::float(), Attr::Float(self.scale));
        let format = maker.constant(Type::int(), Attr::Int(layer::ROW_MAJOR));
        let ty = maker.graph.result(op, 0).map_or(Type::tensor(), |v| maker.graph.ty(v).clone());
        let operands = [self.query, self.key, self.value, biases, scale, format];
        let result = maker.emit(layer::ATTENTION, &operands, ty);
        graph.replace_op(op, &[result]);
        self.ops.into_iter().for_each(|op| graph.erase(op));
    }
}
