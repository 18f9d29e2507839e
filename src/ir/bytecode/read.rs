//! From bytes to a graph. Trusts none of them: what is not there, does not fit, or is deeper than anything that is written, is no
//! graph, and memory grows no faster than bytes are read.

use super::lists::Extent;
use super::outside::{MAX_DEPTH, MAX_REPEATED, Outside};
use super::types::*;
use crate::diag::Span;
use crate::ir::types::TupleNames;
use crate::ir::{
    Attr, BlockId, Dim, Graph, Location, LocationId, Place, Stride, Symbol, TensorType, Type, TypeKind,
    TypeParameter, ValueId,
};
use crate::tensor::{DType, Device, Tensor};
use num_complex::Complex64;
use smallvec::SmallVec;
use std::sync::Arc;

/// The graph that bytes are of, all of them, with the tensors and sources of `outside`. None where they are of none.
pub fn read(bytes: &[u8], outside: &Outside) -> Option<Graph> {
    all_of(bytes, outside, Reader::graph)
}

/// What a reader reads of bytes, if it is all of them.
pub(super) fn all_of<'a, T>(
    bytes: &'a [u8],
    outside: &'a Outside,
    read: impl FnOnce(&mut Reader<'a>) -> Option<T>,
) -> Option<T> {
    let mut reader = Reader {
        rest: bytes,
        outside,
        symbols: Vec::new(),
        types: Vec::new(),
        lists: outside.lists.iter().map(|list| (list.clone(), Extent::of(list))).collect(),
        extent: Extent::default(),
        repeated: 0,
        depth: 0,
    };
    let found = read(&mut reader)?;
    reader.rest.is_empty().then_some(found)
}

pub(super) struct Reader<'a> {
    rest: &'a [u8],
    outside: &'a Outside,
    symbols: Vec<Symbol>,
    types: Vec<Type>,
    lists: Vec<(Attr, Extent)>,
    /// Of the attributes that were read within the present one.
    extent: Extent,
    /// Attributes in lists that stood there again: a few bytes could name lists of lists that take forever to walk through.
    repeated: usize,
    depth: usize,
}

/// The graph that is being read.
struct Of {
    graph: Graph,
    visible: Vec<ValueId>,
    locations: Vec<LocationId>,
    /// One more than the highest number of a value.
    numbers: u32,
}

/// A type and a name; the name is empty where a number is printed.
struct Named<'a> {
    ty: Type,
    name: &'a str,
    number: u32,
}

impl Of {
    fn name(&mut self, value: ValueId, named: &Named<'_>) {
        match named.name {
            "" => {
                self.graph.set_number(value, named.number);
                self.numbers = self.numbers.max(named.number.saturating_add(1));
            }
            name => self.graph.set_name(value, name),
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn graph(&mut self) -> Option<Graph> {
        let mut graph = Graph::new();
        graph.hides_symbols = self.flag()?;
        let root = graph.root();
        let mut of = Of { graph, visible: Vec::new(), locations: Vec::new(), numbers: 0 };
        self.deeper(|reader| reader.block(&mut of, root))?;
        let next = self.small()?;
        if next < of.numbers {
            return None;
        }
        of.graph.set_next_number(next);
        Some(of.graph)
    }

    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn block(&mut self, of: &mut Of, block: BlockId) -> Option<()> {
        let before = of.visible.len();
        for _ in 0..self.number()? {
            let named = self.named()?;
            let param = of.graph.add_param(block, named.ty.clone());
            of.name(param, &named);
            of.visible.push(param);
        }
        for _ in 0..self.number()? {
            self.op(of, block)?;
        }
        let results = self.uses(of)?;
        of.graph.set_block_results(block, &results);
        of.visible.truncate(before);
        Some(())
    }

    fn op(&mut self, of: &mut Of, block: BlockId) -> Option<()> {
        let kind = self.symbol()?;
        let location = self.location(of)?;
        let operands = self.uses(of)?;
        let mut attrs: SmallVec<[(Symbol, Attr); 4]> = SmallVec::new();
        for _ in 0..self.number()? {
            attrs.push((self.symbol()?, self.attr()?));
        }
        let mut named: SmallVec<[Named<'a>; 1]> = SmallVec::new();
        for _ in 0..self.number()? {
            named.push(self.named()?);
        }
        let types: SmallVec<[Type; 1]> = named.iter().map(|named| named.ty.clone()).collect();
        let op = of.graph.create(kind, &operands, &types);
        of.graph.set_location_id(op, location);
        for (name, attr) in attrs {
            of.graph.set_attr(op, name, attr);
        }
        of.graph.append(block, op);
        let results = of.graph.results(op);
        for (result, named) in results.iter().zip(&named) {
            of.name(*result, named);
        }
        for _ in 0..self.number()? {
            let nested = of.graph.add_block(op);
            self.deeper(|reader| reader.block(of, nested))?;
        }
        of.visible.extend(results);
        Some(())
    }

    fn uses(&mut self, of: &Of) -> Option<SmallVec<[ValueId; 4]>> {
        let mut values = SmallVec::new();
        for _ in 0..self.number()? {
            let after = self.index()?;
            values.push(*of.visible.get(of.visible.len().checked_sub(after.checked_add(1)?)?)?);
        }
        Some(values)
    }

    fn named(&mut self) -> Option<Named<'a>> {
        let ty = self.ty()?;
        let name = self.text()?;
        let number = if name.is_empty() { self.small()? } else { 0 };
        Some(Named { ty, name, number })
    }

    fn location(&mut self, of: &mut Of) -> Option<LocationId> {
        match self.index()? {
            0 => {
                let location = self.deeper(|reader| reader.new_location(of))?;
                let id = of.graph.add_location(location);
                of.locations.push(id);
                Some(id)
            }
            1 => Some(LocationId::UNKNOWN),
            known => of.locations.get(known - 2).copied(),
        }
    }

    fn new_location(&mut self, of: &mut Of) -> Option<Location> {
        let place = match self.number()? {
            0 => Place::Unknown,
            1 => Place::Span(self.span()?),
            2 => Place::File { file: self.symbol()?, line: self.small()?, column: self.small()? },
            _ => return None,
        };
        let scope = if self.flag()? { Some(self.symbol()?) } else { None };
        let inlined_from = if self.flag()? { Some((self.symbol()?, self.location(of)?)) } else { None };
        Some(Location { place, scope, inlined_from })
    }

    pub(super) fn span(&mut self) -> Option<Span> {
        let source = self.outside.sources.get(self.index()?)?;
        let (start, end) = (self.index()?, self.index()?);
        Some(Span::new(source, start, end))
    }

    pub(super) fn attr(&mut self) -> Option<Attr> {
        let tag = self.number()?;
        let mut around = std::mem::take(&mut self.extent);
        let attr = if tag == SAME {
            let n = self.index()?;
            let (attr, extent) = self.lists.get(n)?.clone();
            self.repeated = self.repeated.saturating_add(extent.count);
            if self.depth + extent.depth > MAX_DEPTH || self.repeated > MAX_REPEATED {
                return None;
            }
            self.extent = extent;
            attr
        } else {
            let attr = self.deeper(|reader| reader.attr_inside(tag))?;
            self.extent = self.extent.around();
            if attr.identity().is_some() {
                self.lists.push((attr.clone(), self.extent));
            }
            attr
        };
        around.take_in(self.extent);
        self.extent = around;
        Some(attr)
    }

    fn attr_inside(&mut self, tag: u64) -> Option<Attr> {
        Some(match tag {
            0 => Attr::Int(self.signed()?),
            1 => Attr::Float(self.float()?),
            2 => Attr::Complex(self.complex()?),
            3 => Attr::Str(self.text()?.into()),
            4 => Attr::Tensor(self.tensor()?),
            5 => Attr::Graph(Arc::new(self.graph()?)),
            6 => Attr::Type(self.ty()?),
            7 => Attr::Ints(self.list(Self::signed)?.into()),
            8 => Attr::Floats(self.list(Self::float)?.into()),
            9 => Attr::Complexes(self.list(Self::complex)?.into()),
            10 => Attr::Strs(self.list(|r| r.text().map(Arc::from))?.into()),
            11 => Attr::Tensors(self.list(Self::tensor)?.into()),
            12 => Attr::Graphs(self.list(|r| r.graph().map(Arc::new))?.into()),
            13 => Attr::Types(self.list(Self::ty)?.into()),
            14 => Attr::Bool(self.flag()?),
            15 => Attr::None,
            16 => Attr::Device(self.device()?),
            17 => Attr::List(self.list(Self::attr)?.into()),
            18 => Attr::Tuple(self.list(Self::attr)?.into()),
            19 => Attr::Dict(self.list(|r| Some((r.attr()?, r.attr()?)))?.into()),
            20 => Attr::Enum(Arc::new((self.text()?.into(), self.text()?.into(), self.attr()?))),
            21 => Attr::Raw(self.text()?.into()),
            _ => return None,
        })
    }

    /// As many as are said, which are read one by one: a number takes no memory.
    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut list = Vec::new();
        for _ in 0..self.number()? {
            list.push(read(self)?);
        }
        Some(list)
    }

    pub(super) fn ty(&mut self) -> Option<Type> {
        match self.index()? {
            0 => {
                let ty = Type::new(self.deeper(Self::new_type)?);
                self.types.push(ty.clone());
                (ty.depth() <= MAX_DEPTH).then_some(ty)
            }
            known => self.types.get(known - 1).cloned(),
        }
    }

    fn new_type(&mut self) -> Option<TypeKind> {
        let number = self.number()?;
        if let Some(plain) = usize::try_from(number).ok().and_then(|n| PLAIN.get(n)) {
            return Some(plain.clone());
        }
        Some(match number {
            TENSOR => TypeKind::Tensor(self.tensor_type()?),
            LIST => TypeKind::List(self.ty()?),
            DICT => TypeKind::Dict(self.ty()?, self.ty()?),
            TUPLE => TypeKind::Tuple(self.list(Self::ty)?.into(), None),
            NAMED_TUPLE => {
                let types = self.list(Self::ty)?;
                let name = self.symbol()?;
                let (fields, defaults) = (self.list(Self::symbol)?, self.list(Self::symbol)?);
                let fits = fields.len() == types.len() && defaults.len() <= fields.len();
                let names = fits.then(|| Arc::new(TupleNames { name, fields, defaults }))?;
                TypeKind::Tuple(types.into(), Some(names))
            }
            OPTIONAL => TypeKind::Optional(self.ty()?),
            UNION => TypeKind::Union(self.list(Self::ty)?.into()),
            FUTURE => TypeKind::Future(self.ty()?),
            AWAIT => TypeKind::Await(self.ty()?),
            RREF => TypeKind::RRef(self.ty()?),
            VAR => TypeKind::Var(self.symbol()?),
            FUNCTION => TypeKind::Function(self.symbol()?),
            CLASS => TypeKind::Class(self.symbol()?),
            INTERFACE => TypeKind::Interface(self.symbol()?),
            ENUM => TypeKind::Enum(self.symbol()?, self.ty()?),
            DIALECT => TypeKind::Dialect(self.symbol()?, self.symbol()?, self.list(Self::parameter)?.into()),
            _ => return None,
        })
    }

    fn parameter(&mut self) -> Option<TypeParameter> {
        Some(match self.number()? {
            0 => TypeParameter::Type(self.ty()?),
            1 => TypeParameter::Int(self.signed()?),
            2 => TypeParameter::Str(self.text()?.into()),
            _ => return None,
        })
    }

    fn tensor_type(&mut self) -> Option<TensorType> {
        let bits = self.number()?;
        let is = |bit: u32| bits >> bit & 1 == 1;
        let truth = |known: u32| is(known).then(|| is(known + 1));
        let dtype = if is(0) { Some(DType::from_name(self.text()?)?) } else { None };
        let device = if is(1) { Some(self.device()?) } else { None };
        let sizes = if is(2) { Some(self.list(Self::dim)?.into()) } else { None };
        let strides = if is(3) { Some(self.list(Self::stride)?.into()) } else { None };
        let (requires_grad, undefined, inferred) = (truth(4), truth(6), is(8));
        Some(TensorType { dtype, device, sizes, strides, requires_grad, undefined, inferred })
    }

    fn dim(&mut self) -> Option<Dim> {
        Some(match self.number()? {
            0 => Dim::Unknown,
            1 => Dim::Known(self.signed()?),
            2 => Dim::Symbol(self.signed()?),
            3 => Dim::Open(self.small()?),
            _ => return None,
        })
    }

    fn stride(&mut self) -> Option<Stride> {
        Some(match self.number()? {
            0 => Stride::Unknown,
            1 => Stride::Known(self.signed()?),
            2 => Stride::Open(self.signed()?, self.list(Self::small)?.into()),
            _ => return None,
        })
    }

    fn tensor(&mut self) -> Option<Tensor> {
        let n = self.index()?;
        self.outside.tensors.get(n).cloned()
    }

    fn device(&mut self) -> Option<Device> {
        self.text()?.parse().ok()
    }

    pub(super) fn symbol(&mut self) -> Option<Symbol> {
        match self.index()? {
            0 => {
                let symbol = Symbol::new(self.text()?);
                self.symbols.push(symbol);
                Some(symbol)
            }
            known => self.symbols.get(known - 1).copied(),
        }
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.index()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        std::str::from_utf8(text).ok()
    }

    fn complex(&mut self) -> Option<Complex64> {
        Some(Complex64::new(self.float()?, self.float()?))
    }

    fn float(&mut self) -> Option<f64> {
        let (bytes, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(f64::from_bits(u64::from_le_bytes(*bytes)))
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        (*byte < 2).then_some(*byte == 1)
    }

    fn signed(&mut self) -> Option<i64> {
        let n = self.number()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(super) fn index(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            n |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }
}
