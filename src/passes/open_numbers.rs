//! Open sizes as ints of a graph: each is computed from the sizes of the graph's inputs, by the formula that [`OpenSizes`] keeps of
//! it. Shared by passes; no pass itself.

use super::layer_parts::Maker;
use crate::dialects::shapes::open::{Made, OpenSizes};
use crate::ir::{Attr, Dim, Graph, Stride, Type, ValueId};
use hashbrown::HashMap;

/// How deep formulas are followed.
const MAX_DEPTH: usize = 64;

/// Where open sizes can be read, and those that were computed so far.
pub(super) struct OpenNumbers<'a> {
    open: &'a OpenSizes,
    /// Inputs, with the dimension that is the size.
    places: HashMap<u32, (ValueId, i64)>,
    computed: HashMap<u32, ValueId>,
}

impl<'a> OpenNumbers<'a> {
    /// Of the inputs of a graph, which is not written to.
    pub(super) fn of(graph: &Graph, open: &'a OpenSizes) -> OpenNumbers<'a> {
        let mut places = HashMap::new();
        for input in graph.inputs() {
            let sizes = graph.ty(*input).as_tensor().and_then(|ty| ty.sizes.as_deref());
            for (dim, size) in sizes.unwrap_or_default().iter().enumerate() {
                if let Dim::Open(n) = size {
                    places.entry(*n).or_insert((*input, dim as i64));
                }
            }
        }
        OpenNumbers { open, places, computed: HashMap::new() }
    }

    /// Whether a size is a number or can be computed.
    pub(super) fn has(&self, size: &Dim) -> bool {
        match size {
            Dim::Known(_) => true,
            Dim::Open(n) => self.has_open(*n, 0),
            Dim::Symbol(_) | Dim::Unknown => false,
        }
    }

    /// The same of a stride.
    pub(super) fn has_stride(&self, stride: &Stride) -> bool {
        match stride {
            Stride::Known(_) => true,
            Stride::Open(_, sizes) => sizes.iter().all(|n| self.has_open(*n, 0)),
            _ => false,
        }
    }

    fn has_open(&self, n: u32, depth: usize) -> bool {
        let of = |n: &u32| depth < MAX_DEPTH && self.has_open(*n, depth + 1);
        self.places.contains_key(&n)
            || match self.open.made(n) {
                Some(Made::Product(_, sizes)) => sizes.iter().all(of),
                Some(Made::Sum(a, b, _)) => of(&a) && of(&b),
                Some(Made::Quotient { of: size, .. }) => of(&size),
                None => false,
            }
    }

    /// The int that a size is, for which [`OpenNumbers::has`] holds. What is made first must come before what follows.
    pub(super) fn int(&mut self, maker: &mut Maker<'_>, size: &Dim) -> Option<ValueId> {
        match size {
            Dim::Known(n) => Some(constant(maker, *n)),
            Dim::Open(n) => self.open_int(maker, *n, 0),
            Dim::Symbol(_) | Dim::Unknown => None,
        }
    }

    /// The same of a stride.
    pub(super) fn stride(&mut self, maker: &mut Maker<'_>, stride: &Stride) -> Option<ValueId> {
        match stride {
            Stride::Known(n) => Some(constant(maker, *n)),
            Stride::Open(factor, sizes) => self.product(maker, *factor, sizes, 0),
            _ => None,
        }
    }

    /// A list of the ints that sizes are.
    pub(super) fn ints(&mut self, maker: &mut Maker<'_>, sizes: &[Dim]) -> Option<ValueId> {
        let known: Option<Vec<i64>> = sizes.iter().map(|size| size.known()).collect();
        if let Some(known) = known {
            return Some(maker.constant(Type::list(Type::int()), Attr::Ints(known.into())));
        }
        let items: Vec<ValueId> = sizes.iter().map(|size| self.int(maker, size)).collect::<Option<_>>()?;
        Some(maker.emit("prim::ListConstruct", &items, Type::list(Type::int())))
    }

    /// A list of the ints that strides are.
    pub(super) fn strides(&mut self, maker: &mut Maker<'_>, strides: &[Stride]) -> Option<ValueId> {
        let known: Option<Vec<i64>> = strides.iter().map(Stride::known).collect();
        if let Some(known) = known {
            return Some(maker.constant(Type::list(Type::int()), Attr::Ints(known.into())));
        }
        let items: Vec<ValueId> = strides.iter().map(|s| self.stride(maker, s)).collect::<Option<_>>()?;
        Some(maker.emit("prim::ListConstruct", &items, Type::list(Type::int())))
    }

    fn open_int(&mut self, maker: &mut Maker<'_>, n: u32, depth: usize) -> Option<ValueId> {
        if let Some(known) = self.computed.get(&n) {
            return Some(*known);
        }
        if depth > MAX_DEPTH {
            return None;
        }
        let made = match (self.places.get(&n), self.open.made(n)) {
            (Some((input, dim)), _) => {
                let dim = constant(maker, *dim);
                maker.emit("aten::size", &[*input, dim], Type::int())
            }
            (None, Some(Made::Product(factor, sizes))) => self.product(maker, factor, &sizes, depth + 1)?,
            (None, Some(Made::Sum(a, b, plus))) => {
                let a = self.open_int(maker, a, depth + 1)?;
                let b = self.open_int(maker, b, depth + 1)?;
                let sum = maker.emit("aten::add", &[a, b], Type::int());
                added(maker, sum, plus)
            }
            (None, Some(Made::Quotient { factor, of, plus, by })) => {
                let product = self.product(maker, factor, &[of], depth + 1)?;
                let sum = added(maker, product, plus);
                if by == 1 { sum } else { computed(maker, "aten::floordiv", sum, by) }
            }
            (None, None) => return None,
        };
        self.computed.insert(n, made);
        Some(made)
    }

    fn product(
        &mut self,
        maker: &mut Maker<'_>,
        factor: i64,
        sizes: &[u32],
        depth: usize,
    ) -> Option<ValueId> {
        let mut product = None;
        for size in sizes {
            let size = self.open_int(maker, *size, depth)?;
            product = Some(match product {
                Some(before) => maker.emit("aten::mul", &[before, size], Type::int()),
                None => size,
            });
        }
        Some(match product {
            Some(product) if factor == 1 => product,
            Some(product) => computed(maker, "aten::mul", product, factor),
            None => constant(maker, factor),
        })
    }
}

fn constant(maker: &mut Maker<'_>, n: i64) -> ValueId {
    maker.constant(Type::int(), Attr::Int(n))
}

fn computed(maker: &mut Maker<'_>, kind: &str, value: ValueId, n: i64) -> ValueId {
    let n = constant(maker, n);
    maker.emit(kind, &[value, n], Type::int())
}

fn added(maker: &mut Maker<'_>, value: ValueId, n: i64) -> ValueId {
    if n == 0 { value } else { computed(maker, "aten::add", value, n) }
}
