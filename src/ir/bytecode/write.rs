//! From a graph to bytes.

use super::outside::{MAX_DEPTH, Outside};
use super::types::*;
use crate::diag::{Source, Span};
use crate::ir::{
    Attr, BlockId, Dim, Graph, Location, LocationId, OpId, Place, Stride, Symbol, TensorType, Type, TypeKind,
    TypeParameter, ValueId,
};
use crate::tensor::{Device, Tensor};
use hashbrown::HashMap;
use std::sync::Arc;

/// The bytes of a graph, with its tensors and sources in `outside`. None for a graph that holds an object of a custom class or
/// nests too deep; `outside` may have grown all the same.
pub fn write(graph: &Graph, outside: &mut Outside) -> Option<Vec<u8>> {
    written(outside, |writer| writer.graph(graph))
}

/// What a writer writes, where it can.
pub(super) fn written(
    outside: &mut Outside,
    write: impl FnOnce(&mut Writer<'_>) -> Option<()>,
) -> Option<Vec<u8>> {
    let tensors = outside.tensors.iter().enumerate().map(|(n, tensor)| (tensor.id(), n as u64)).collect();
    let sources = outside.sources.iter().enumerate().map(|(n, source)| (address(source), n as u64)).collect();
    let lists = outside.lists.iter().enumerate();
    let known = lists.filter_map(|(n, attr)| Some((attr.identity()?, n as u64))).collect();
    let mut writer = Writer {
        out: Vec::new(),
        outside,
        tensors,
        sources,
        symbols: HashMap::new(),
        types: HashMap::new(),
        known,
        lists: HashMap::new(),
        depth: 0,
    };
    write(&mut writer)?;
    Some(writer.out)
}

fn address(source: &Arc<Source>) -> usize {
    Arc::as_ptr(source) as usize
}

pub(super) struct Writer<'a> {
    out: Vec<u8>,
    outside: &'a mut Outside,
    tensors: HashMap<usize, u64>,
    sources: HashMap<usize, u64>,
    symbols: HashMap<Symbol, u64>,
    types: HashMap<Type, u64>,
    /// Lists outside, and those that were written.
    known: HashMap<usize, u64>,
    lists: HashMap<usize, u64>,
    depth: usize,
}

/// The graph that is being written.
struct Of<'a> {
    graph: &'a Graph,
    /// Where values stand among those that are visible.
    places: HashMap<ValueId, u64>,
    visible: u64,
    locations: HashMap<LocationId, u64>,
}

impl Of<'_> {
    fn define(&mut self, value: ValueId) {
        self.places.insert(value, self.visible);
        self.visible += 1;
    }
}

impl Writer<'_> {
    pub(super) fn graph(&mut self, graph: &Graph) -> Option<()> {
        let mut of = Of { graph, places: HashMap::new(), visible: 0, locations: HashMap::new() };
        self.flag(graph.hides_symbols);
        self.deeper(|writer| writer.block(&mut of, graph.root()))?;
        self.number(u64::from(graph.next_number()));
        Some(())
    }

    /// The bytes of something by itself, which refers to nothing that was written before.
    pub(super) fn alone(&mut self, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<Vec<u8>> {
        self.out.clear();
        self.symbols.clear();
        self.types.clear();
        self.lists.clear();
        write(self)?;
        Some(std::mem::take(&mut self.out))
    }

    pub(super) fn deeper(&mut self, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let written = write(self);
        self.depth -= 1;
        written
    }

    fn block(&mut self, of: &mut Of<'_>, block: BlockId) -> Option<()> {
        let graph = of.graph;
        let before = of.visible;
        self.number(graph.params(block).len() as u64);
        for param in graph.params(block) {
            self.value(of, *param)?;
            of.define(*param);
        }
        let ops: Vec<OpId> = graph.block_ops(block).collect();
        self.number(ops.len() as u64);
        for op in ops {
            self.op(of, op)?;
        }
        self.uses(of, graph.block_results(block))?;
        of.visible = before;
        Some(())
    }

    fn op(&mut self, of: &mut Of<'_>, op: OpId) -> Option<()> {
        let graph = of.graph;
        self.symbol(graph.kind(op));
        self.location(of, graph.location_id(op))?;
        self.uses(of, graph.operands(op))?;
        let attrs = graph.attrs(op);
        self.number(attrs.len() as u64);
        for (name, attr) in attrs {
            self.symbol(*name);
            self.attr(attr)?;
        }
        let results = graph.results(op);
        self.number(results.len() as u64);
        for result in &results {
            self.value(of, *result)?;
        }
        let blocks = graph.nested_blocks(op);
        self.number(blocks.len() as u64);
        for block in blocks {
            self.deeper(|writer| writer.block(of, *block))?;
        }
        // The op's own blocks do not see them.
        results.into_iter().for_each(|result| of.define(result));
        Some(())
    }

    fn uses(&mut self, of: &Of<'_>, values: &[ValueId]) -> Option<()> {
        self.number(values.len() as u64);
        for value in values {
            let place = *of.places.get(value)?;
            self.number(of.visible.checked_sub(place + 1)?);
        }
        Some(())
    }

    fn value(&mut self, of: &Of<'_>, value: ValueId) -> Option<()> {
        self.ty(of.graph.ty(value))?;
        match of.graph.name(value) {
            Some(name) => self.text(name),
            None => {
                self.number(0);
                self.number(u64::from(of.graph.number(value)?));
            }
        }
        Some(())
    }

    fn location(&mut self, of: &mut Of<'_>, id: LocationId) -> Option<()> {
        let Some(location) = of.graph.location_of(id) else {
            self.number(1);
            return Some(());
        };
        if let Some(known) = of.locations.get(&id) {
            self.number(known + 2);
            return Some(());
        }
        self.number(0);
        self.deeper(|writer| writer.new_location(of, location))?;
        // What it was inlined from has its number by now.
        let next = of.locations.len() as u64;
        of.locations.insert(id, next);
        Some(())
    }

    fn new_location(&mut self, of: &mut Of<'_>, location: &Location) -> Option<()> {
        match &location.place {
            Place::Unknown => self.number(0),
            Place::Span(span) => {
                self.number(1);
                self.span(span);
            }
            Place::File { file, line, column } => {
                self.number(2);
                self.symbol(*file);
                self.number(u64::from(*line));
                self.number(u64::from(*column));
            }
        }
        self.flag(location.scope.is_some());
        if let Some(scope) = location.scope {
            self.symbol(scope);
        }
        self.flag(location.inlined_from.is_some());
        match location.inlined_from {
            Some((function, id)) => {
                self.symbol(function);
                self.location(of, id)
            }
            None => Some(()),
        }
    }

    pub(super) fn span(&mut self, span: &Span) {
        let (sources, all) = (&mut self.sources, &mut self.outside.sources);
        let n = *sources.entry(address(span.source())).or_insert_with(|| {
            all.push(Arc::clone(span.source()));
            all.len() as u64 - 1
        });
        [n, span.start() as u64, span.end() as u64].into_iter().for_each(|n| self.number(n));
    }

    pub(super) fn attr(&mut self, attr: &Attr) -> Option<()> {
        let identity = attr.identity();
        let find = |identity| self.known.get(&identity).or_else(|| self.lists.get(&identity)).copied();
        if let Some(n) = identity.and_then(find) {
            self.tagged(SAME, |w| w.number(n));
            return Some(());
        }
        self.deeper(|writer| writer.attr_inside(attr))?;
        if let Some(identity) = identity {
            self.lists.insert(identity, (self.outside.lists.len() + self.lists.len()) as u64);
        }
        Some(())
    }

    fn attr_inside(&mut self, attr: &Attr) -> Option<()> {
        match attr {
            Attr::Int(n) => self.tagged(0, |w| w.signed(*n)),
            Attr::Float(x) => self.tagged(1, |w| w.float(*x)),
            Attr::Complex(x) => self.tagged(2, |w| [x.re, x.im].into_iter().for_each(|x| w.float(x))),
            Attr::Str(text) => self.tagged(3, |w| w.text(text)),
            Attr::Tensor(tensor) => self.tagged(4, |w| w.tensor(tensor)),
            Attr::Graph(graph) => {
                self.number(5);
                self.graph(graph)?;
            }
            Attr::Type(ty) => {
                self.number(6);
                self.ty(ty)?;
            }
            Attr::Ints(list) => self.tagged(7, |w| w.list(list, |w, n| w.signed(*n))),
            Attr::Floats(list) => self.tagged(8, |w| w.list(list, |w, x| w.float(*x))),
            Attr::Complexes(list) => self.tagged(9, |w| {
                w.list(list, |w, x| [x.re, x.im].into_iter().for_each(|x| w.float(x)));
            }),
            Attr::Strs(list) => self.tagged(10, |w| w.list(list, |w, text| w.text(text))),
            Attr::Tensors(list) => self.tagged(11, |w| w.list(list, |w, tensor| w.tensor(tensor))),
            Attr::Graphs(list) => {
                self.number(12);
                self.each(list, |w, graph| w.graph(graph))?;
            }
            Attr::Types(list) => {
                self.number(13);
                self.each(list, |w, ty| w.ty(ty))?;
            }
            Attr::Bool(x) => self.tagged(14, |w| w.flag(*x)),
            Attr::None => self.number(15),
            Attr::Device(device) => self.tagged(16, |w| w.device(device)),
            Attr::List(list) => {
                self.number(17);
                self.each(list, |w, attr| w.attr(attr))?;
            }
            Attr::Tuple(list) => {
                self.number(18);
                self.each(list, |w, attr| w.attr(attr))?;
            }
            Attr::Dict(list) => {
                self.number(19);
                self.each(list, |w, (key, value)| w.attr(key).and_then(|()| w.attr(value)))?;
            }
            Attr::Enum(parts) => {
                let (class, name, value) = &**parts;
                self.number(20);
                self.text(class);
                self.text(name);
                self.attr(value)?;
            }
            Attr::Raw(text) => self.tagged(21, |w| w.text(text)),
            Attr::Object(_) => return None,
        }
        Some(())
    }

    pub(super) fn tagged(&mut self, tag: u64, write: impl FnOnce(&mut Self)) {
        self.number(tag);
        write(self);
    }

    fn list<T>(&mut self, list: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.number(list.len() as u64);
        list.iter().for_each(|item| write(self, item));
    }

    pub(super) fn each<T>(
        &mut self,
        list: &[T],
        mut write: impl FnMut(&mut Self, &T) -> Option<()>,
    ) -> Option<()> {
        self.number(list.len() as u64);
        list.iter().try_for_each(|item| write(self, item))
    }

    pub(super) fn ty(&mut self, ty: &Type) -> Option<()> {
        if ty.depth() > MAX_DEPTH {
            return None;
        }
        if let Some(known) = self.types.get(ty) {
            self.number(known + 1);
            return Some(());
        }
        self.number(0);
        self.new_type(ty)?;
        // Its parts have their numbers by now.
        let next = self.types.len() as u64;
        self.types.insert(ty.clone(), next);
        Some(())
    }

    fn new_type(&mut self, ty: &Type) -> Option<()> {
        if let Some(plain) = PLAIN.iter().position(|kind| kind == ty.kind()) {
            self.number(plain as u64);
            return Some(());
        }
        let (tag, inner) = match ty.kind() {
            TypeKind::List(inner) => (LIST, inner),
            TypeKind::Optional(inner) => (OPTIONAL, inner),
            TypeKind::Future(inner) => (FUTURE, inner),
            TypeKind::Await(inner) => (AWAIT, inner),
            TypeKind::RRef(inner) => (RREF, inner),
            kind => return self.other_type(kind),
        };
        self.number(tag);
        self.ty(inner)
    }

    fn other_type(&mut self, kind: &TypeKind) -> Option<()> {
        match kind {
            TypeKind::Tensor(tensor) => self.tagged(TENSOR, |w| w.tensor_type(tensor)),
            TypeKind::Dict(key, value) => {
                self.number(DICT);
                self.ty(key)?;
                self.ty(value)?;
            }
            TypeKind::Tuple(types, None) => {
                self.number(TUPLE);
                self.each(types, |w, ty| w.ty(ty))?;
            }
            TypeKind::Tuple(types, Some(names)) => {
                self.number(NAMED_TUPLE);
                self.each(types, |w, ty| w.ty(ty))?;
                self.symbol(names.name);
                self.list(&names.fields, |w, name| w.symbol(*name));
                self.list(&names.defaults, |w, text| w.symbol(*text));
            }
            TypeKind::Union(types) => {
                self.number(UNION);
                self.each(types, |w, ty| w.ty(ty))?;
            }
            TypeKind::Var(name) => self.tagged(VAR, |w| w.symbol(*name)),
            TypeKind::Function(name) => self.tagged(FUNCTION, |w| w.symbol(*name)),
            TypeKind::Class(name) => self.tagged(CLASS, |w| w.symbol(*name)),
            TypeKind::Interface(name) => self.tagged(INTERFACE, |w| w.symbol(*name)),
            TypeKind::Enum(name, values) => {
                self.number(ENUM);
                self.symbol(*name);
                self.ty(values)?;
            }
            TypeKind::Dialect(dialect, name, parameters) => {
                self.number(DIALECT);
                self.symbol(*dialect);
                self.symbol(*name);
                self.each(parameters, Self::parameter)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn parameter(&mut self, parameter: &TypeParameter) -> Option<()> {
        match parameter {
            TypeParameter::Type(ty) => {
                self.number(0);
                self.ty(ty)?;
            }
            TypeParameter::Int(n) => self.tagged(1, |w| w.signed(*n)),
            TypeParameter::Str(text) => self.tagged(2, |w| w.text(text)),
        }
        Some(())
    }

    fn tensor_type(&mut self, tensor: &TensorType) {
        let TensorType { dtype, device, sizes, strides, requires_grad, undefined, inferred } = tensor;
        // What is known is one bit each.
        let known = [
            dtype.is_some(),
            device.is_some(),
            sizes.is_some(),
            strides.is_some(),
            requires_grad.is_some(),
            *requires_grad == Some(true),
            undefined.is_some(),
            *undefined == Some(true),
            *inferred,
        ];
        self.number(known.iter().rev().fold(0, |bits, bit| bits * 2 + u64::from(*bit)));
        if let Some(dtype) = dtype {
            self.text(dtype.name());
        }
        if let Some(device) = device {
            self.device(device);
        }
        if let Some(sizes) = sizes {
            self.list(sizes, |w, dim| match dim {
                Dim::Unknown => w.number(0),
                Dim::Known(n) => w.tagged(1, |w| w.signed(*n)),
                Dim::Symbol(n) => w.tagged(2, |w| w.signed(*n)),
                Dim::Open(n) => w.tagged(3, |w| w.number(u64::from(*n))),
            });
        }
        if let Some(strides) = strides {
            self.list(strides, |w, stride| match stride {
                Stride::Unknown => w.number(0),
                Stride::Known(n) => w.tagged(1, |w| w.signed(*n)),
                Stride::Open(n, sizes) => w.tagged(2, |w| {
                    w.signed(*n);
                    w.list(sizes, |w, size| w.number(u64::from(*size)));
                }),
            });
        }
    }

    fn tensor(&mut self, tensor: &Tensor) {
        let all = &mut self.outside.tensors;
        let n = *self.tensors.entry(tensor.id()).or_insert_with(|| {
            all.push(tensor.clone());
            all.len() as u64 - 1
        });
        self.number(n);
    }

    fn device(&mut self, device: &Device) {
        self.text(&device.to_string());
    }

    pub(super) fn symbol(&mut self, symbol: Symbol) {
        let next = self.symbols.len() as u64;
        match *self.symbols.entry(symbol).or_insert(next) {
            known if known != next => self.number(known + 1),
            _ => {
                self.number(0);
                self.text(symbol.as_str());
            }
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    fn float(&mut self, x: f64) {
        self.out.extend_from_slice(&x.to_bits().to_le_bytes());
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.out.push(u8::from(flag));
    }

    fn signed(&mut self, n: i64) {
        self.number((n.wrapping_shl(1) ^ (n >> 63)) as u64);
    }

    pub(super) fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.out.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.out.push(n as u8);
    }
}
