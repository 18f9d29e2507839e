//! The pickle machine: a loop over 35 opcodes with a stack, marks and a memo, all capped. Every length is
//! compared with the bytes left before anything is allocated, and every allocation is charged to a budget.

use super::finish::finish;
use super::globals::{Element, Global, resolve};
use super::{Dict, Enum, List, Node, NodeId, Object, Pickle, StorageRecord, TensorRecord};
use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::limits::Limits;
use std::sync::Arc;

/// Reads one pickle. Errors name the byte where the offending opcode stands.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Pickle> {
    let mut machine = Machine::new(bytes, limits);
    loop {
        let at = machine.at;
        match machine.step() {
            Ok(Flow::Next) => {}
            Ok(Flow::Stop(root)) => return finish(machine.nodes, root, limits),
            Err(mut error) => {
                let report = error.report_mut();
                report.message = format!("byte {at}: {}", report.message);
                return Err(error);
            }
        }
    }
}

enum Flow {
    Next,
    Stop(NodeId),
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: &'a Limits,
    nodes: Vec<Node>,
    stack: Vec<NodeId>,
    /// Heights of the stack at the open marks; nothing below the last one can be popped.
    marks: Vec<usize>,
    memo: Vec<Option<NodeId>>,
    ops_left: u64,
    bytes_left: u64,
    /// The nodes of `None`, `False`, `True` and of the ints from 0 to 255, made when first needed.
    common: Vec<Option<NodeId>>,
}

impl<'a> Machine<'a> {
    fn new(bytes: &'a [u8], limits: &'a Limits) -> Self {
        Machine {
            bytes,
            at: 0,
            limits,
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            ops_left: limits.pickle_ops,
            bytes_left: limits.budget(bytes.len()),
            common: vec![None; 3 + 256],
        }
    }

    /// Executes one opcode.
    fn step(&mut self) -> Result<Flow> {
        let first = self.at == 0;
        self.work(1)?;
        let op = self.u8()?;
        if first && op != b'\x80' {
            return Err(Diagnostic::input("the pickle does not start with its protocol number"));
        }
        match op {
            b'\x80' => self.protocol(first)?,
            b'.' => return self.stop(),
            b'(' => self.mark()?,
            b'N' => self.push_common(0, Node::None)?,
            b'\x89' => self.push_common(1, Node::Bool(false))?,
            b'\x88' => self.push_common(2, Node::Bool(true))?,
            b'K' => {
                let value = self.u8()?;
                self.push_int(value.into())?;
            }
            b'M' => {
                let value = u16::from_le_bytes(self.array()?);
                self.push_int(value.into())?;
            }
            b'J' => {
                let value = i32::from_le_bytes(self.array()?);
                self.push_int(value.into())?;
            }
            b'\x8a' => self.long()?,
            b'G' => {
                let value = f64::from_be_bytes(self.array()?);
                self.push_new(Node::Float(value))?;
            }
            b'X' => {
                let length = u32::from_le_bytes(self.array()?);
                self.text(length.into())?;
            }
            b'\x8d' => {
                let length = u64::from_le_bytes(self.array()?);
                self.text(length)?;
            }
            b']' => self.push_new(Node::List(Box::default()))?,
            b'}' => self.push_new(Node::Dict(Box::default()))?,
            b')' => self.push_new(Node::Tuple(Box::default()))?,
            b't' => {
                let items = self.pop_mark()?;
                self.push_tuple(items)?;
            }
            b'\x85'..=b'\x87' => {
                let items = self.pop_many(usize::from(op - b'\x84'))?;
                self.push_tuple(items)?;
            }
            b'l' => {
                let items = self.pop_mark()?;
                self.charge(4 * items.len() as u64)?;
                self.push_new(Node::List(Box::new(List { items, type_text: None })))?;
            }
            b'd' => {
                let items = self.pop_mark()?;
                self.push_new(Node::Dict(Box::default()))?;
                self.set_items(&items)?;
            }
            b'a' => {
                let items = self.pop_many(1)?;
                self.append(items)?;
            }
            b'e' => {
                let items = self.pop_mark()?;
                self.append(items)?;
            }
            b's' => {
                let items = self.pop_many(2)?;
                self.set_items(&items)?;
            }
            b'u' => {
                let items = self.pop_mark()?;
                self.set_items(&items)?;
            }
            b'q' => {
                let slot = self.u8()?;
                self.memoize(slot.into())?;
            }
            b'r' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.memoize(slot as usize)?;
            }
            b'h' => {
                let slot = self.u8()?;
                self.recall(slot.into())?;
            }
            b'j' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.recall(slot as usize)?;
            }
            b'c' => self.global()?,
            b'\x81' => self.new_object()?,
            b'b' => self.build()?,
            b'R' => self.reduce()?,
            b'Q' => self.persistent()?,
            _ => return Err(refused_opcode(op)),
        }
        Ok(Flow::Next)
    }

    fn protocol(&mut self, first: bool) -> Result<()> {
        let version = self.u8()?;
        if !first {
            return Err(Diagnostic::input("PROTO stands in the middle of the pickle"));
        }
        if !(2..=4).contains(&version) {
            return Err(Diagnostic::input(format!(
                "the pickle has protocol {version}; TorchScript writes 2"
            )));
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<Flow> {
        match (self.stack.as_slice(), self.marks.as_slice()) {
            (_, [_, ..]) => return Err(Diagnostic::input("the pickle ends with an open mark")),
            ([root], []) if self.at == self.bytes.len() => return Ok(Flow::Stop(*root)),
            ([_], []) => {}
            (values, []) => {
                return Err(Diagnostic::input(format!("the pickle ends with {} values", values.len())));
            }
        }
        let rest = self.bytes.len() - self.at;
        Err(Diagnostic::input(format!("{rest} bytes follow the end of the pickle")))
    }

    // --- bytes and budgets ---

    fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let left = self.bytes.len() - self.at;
        let Some(count) = usize::try_from(count).ok().filter(|count| *count <= left) else {
            return Err(Diagnostic::input(format!(
                "the pickle is cut off: {count} bytes are announced and {left} are left"
            )));
        };
        let bytes = self.bytes.get(self.at..self.at + count).unwrap_or_default();
        self.at += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64)?);
        Ok(out)
    }

    fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Counts steps, so that cheap opcodes cannot ask for much work.
    fn work(&mut self, steps: u64) -> Result<()> {
        self.ops_left = self.ops_left.checked_sub(steps).ok_or_else(|| {
            Diagnostic::input(format!("the pickle takes more than {} steps", self.limits.pickle_ops))
        })?;
        Ok(())
    }

    /// Counts bytes that are about to be allocated.
    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| {
            let budget = self.limits.budget(self.bytes.len());
            Diagnostic::input(format!("the data of the pickle takes more than {budget} bytes of memory"))
        })?;
        Ok(())
    }

    // --- stack, marks and memo ---

    fn add(&mut self, node: Node) -> Result<NodeId> {
        let boxed = match &node {
            Node::List(_) => size_of::<List>(),
            Node::Dict(_) => size_of::<Dict>(),
            _ => 0, // charged by the callers, who know the lengths
        };
        self.charge((size_of::<Node>() + boxed) as u64)?;
        let index = u32::try_from(self.nodes.len()).map_err(|_| too_many("values", u32::MAX as usize))?;
        self.nodes.push(node);
        Ok(NodeId(index))
    }

    fn push(&mut self, id: NodeId) -> Result<()> {
        if self.stack.len() >= self.limits.pickle_stack {
            return Err(too_many("values on its stack", self.limits.pickle_stack));
        }
        self.stack.push(id);
        Ok(())
    }

    fn push_new(&mut self, node: Node) -> Result<()> {
        let id = self.add(node)?;
        self.push(id)
    }

    fn push_int(&mut self, value: i64) -> Result<()> {
        match usize::try_from(value) {
            Ok(small @ 0..=255) => self.push_common(3 + small, Node::Int(value)),
            _ => self.push_new(Node::Int(value)),
        }
    }

    fn push_common(&mut self, slot: usize, node: Node) -> Result<()> {
        let id = match self.common.get(slot).copied().flatten() {
            Some(id) => id,
            None => {
                let id = self.add(node)?;
                if let Some(known) = self.common.get_mut(slot) {
                    *known = Some(id);
                }
                id
            }
        };
        self.push(id)
    }

    fn push_tuple(&mut self, items: Vec<NodeId>) -> Result<()> {
        self.charge(4 * items.len() as u64)?;
        self.push_new(Node::Tuple(items.into()))
    }

    fn mark(&mut self) -> Result<()> {
        if self.marks.len() >= self.limits.pickle_stack {
            return Err(too_many("open marks", self.limits.pickle_stack));
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Takes the top values, lowest first.
    fn pop_many(&mut self, count: usize) -> Result<Vec<NodeId>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(count) {
            Some(start) if start >= floor => Ok(self.stack.split_off(start)),
            _ => Err(Diagnostic::input("the pickle takes a value from an empty stack")),
        }
    }

    fn pop(&mut self) -> Result<NodeId> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let empty = || Diagnostic::input("the pickle takes a value from an empty stack");
        if self.stack.len() <= floor { Err(empty()) } else { self.stack.pop().ok_or_else(empty) }
    }

    /// Takes the values above the last mark, and the mark.
    fn pop_mark(&mut self) -> Result<Vec<NodeId>> {
        let start = self
            .marks
            .pop()
            .ok_or_else(|| Diagnostic::input("the pickle closes a mark that it did not open"))?;
        Ok(self.stack.split_off(start.min(self.stack.len())))
    }

    /// The value on top, which stays there.
    fn top(&self) -> Result<NodeId> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let top = self.stack.last().filter(|_| self.stack.len() > floor);
        top.copied().ok_or_else(|| Diagnostic::input("the pickle looks at an empty stack"))
    }

    fn memoize(&mut self, slot: usize) -> Result<()> {
        if slot >= self.limits.pickle_memo {
            return Err(too_many("memo slots", self.limits.pickle_memo));
        }
        let top = self.top()?;
        if slot >= self.memo.len() {
            self.memo.resize(slot + 1, None);
        }
        if let Some(place) = self.memo.get_mut(slot) {
            *place = Some(top);
        }
        Ok(())
    }

    fn recall(&mut self, slot: usize) -> Result<()> {
        match self.memo.get(slot).copied().flatten() {
            Some(id) => self.push(id),
            None => Err(Diagnostic::input(format!("the pickle recalls memo slot {slot}, which is empty"))),
        }
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index()).unwrap_or(&Node::None)
    }

    // --- data ---

    fn long(&mut self) -> Result<()> {
        let length = self.u8()?;
        let bytes = self.take(length.into())?;
        if bytes.len() > 8 {
            return Err(Diagnostic::input(format!(
                "an int of {} bytes does not fit TorchScript's 64 bits",
                bytes.len()
            )));
        }
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        for (to, from) in wide.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.push_int(i64::from_le_bytes(wide))
    }

    fn text(&mut self, length: u64) -> Result<()> {
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| Diagnostic::input("a str is not UTF-8"))?;
        self.charge(length)?;
        self.push_new(Node::Str(text.into()))
    }

    fn append(&mut self, items: Vec<NodeId>) -> Result<()> {
        self.charge(4 * items.len() as u64)?;
        let target = self.top()?;
        match self.nodes.get_mut(target.index()) {
            Some(Node::List(list)) if list.type_text.is_none() => list.items.extend(items),
            Some(Node::List(_)) => {
                return Err(Diagnostic::input("the pickle appends to a list after its type was set"));
            }
            other => {
                let kind = other.map_or("nothing", |node| node.kind());
                return Err(Diagnostic::input(format!("the pickle appends to {kind}, not to a list")));
            }
        }
        Ok(())
    }

    fn set_items(&mut self, items: &[NodeId]) -> Result<()> {
        self.charge(4 * items.len() as u64)?;
        let target = self.top()?;
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Diagnostic::input("the pickle sets items of a dict with a key that has no value"));
        }
        match self.nodes.get_mut(target.index()) {
            Some(Node::Dict(dict)) if dict.type_text.is_none() => {
                dict.pairs.extend(pairs.iter().map(|[key, value]| (*key, *value)));
            }
            Some(Node::Dict(_)) => {
                return Err(Diagnostic::input("the pickle sets items of a dict after its type was set"));
            }
            other => {
                let kind = other.map_or("nothing", |node| node.kind());
                return Err(Diagnostic::input(format!("the pickle sets items of {kind}, not of a dict")));
            }
        }
        Ok(())
    }

    // --- globals and what is built with them ---

    fn global(&mut self) -> Result<()> {
        let module = self.line()?;
        let name = self.line()?;
        self.charge((module.len() + name.len()) as u64)?;
        let global = resolve(module, name)?;
        self.push_new(Node::Global(global))
    }

    /// The text up to the next newline.
    fn line(&mut self) -> Result<&'a str> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let window = rest.get(..self.limits.class_name_bytes).unwrap_or(rest);
        let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
            return Err(Diagnostic::input(format!(
                "the name of a global does not end within {} bytes",
                window.len()
            )));
        };
        let line = self.take(end as u64)?;
        self.take(1)?;
        std::str::from_utf8(line).map_err(|_| Diagnostic::input("the name of a global is not UTF-8"))
    }

    fn new_object(&mut self) -> Result<()> {
        let arguments = self.pop()?;
        let class = self.pop()?;
        let Node::Global(Global::Class(class)) = self.node(class) else {
            let kind = self.node(class).kind();
            return Err(Diagnostic::input(format!(
                "NEWOBJ makes an instance of {kind}; only classes of the model can have instances"
            )));
        };
        let class = class.clone();
        if !matches!(self.node(arguments), Node::Tuple(items) if items.is_empty()) {
            return Err(Diagnostic::input(format!("NEWOBJ gives arguments to `{class}`")));
        }
        self.charge((size_of::<Object>() + class.len()) as u64)?;
        self.push_new(Node::Object(Box::new(Object { class, state: None })))
    }

    fn build(&mut self) -> Result<()> {
        let state = self.pop()?;
        let target = self.top()?;
        match self.nodes.get_mut(target.index()) {
            Some(Node::Object(object)) if object.state.is_none() => object.state = Some(state),
            Some(Node::Object(object)) => {
                return Err(Diagnostic::input(format!(
                    "an instance of `{}` gets a second state",
                    object.class
                )));
            }
            other => {
                let kind = other.map_or("nothing", |node| node.kind());
                return Err(Diagnostic::input(format!("BUILD sets the state of {kind}, not of an object")));
            }
        }
        Ok(())
    }

    fn reduce(&mut self) -> Result<()> {
        let arguments = self.pop()?;
        let function = self.pop()?;
        let Node::Global(global) = self.node(function) else {
            let kind = self.node(function).kind();
            return Err(Diagnostic::input(format!("REDUCE calls {kind}, not one of the known constructors")));
        };
        let global = global.clone();
        if let Global::Class(class) = global {
            return self.enum_member(class, arguments);
        }
        let Node::Tuple(items) = self.node(arguments) else {
            let kind = self.node(arguments).kind();
            return Err(Diagnostic::input(format!("REDUCE has {kind} as arguments, not a tuple")));
        };
        if items.len() > 8 {
            return Err(Diagnostic::input(format!(
                "REDUCE has {} arguments; no constructor takes so many",
                items.len()
            )));
        }
        let items: Vec<NodeId> = items.to_vec();
        match (&global, items.as_slice()) {
            (Global::Tensor, [storage, offset, sizes, strides, grad, hooks, rest @ ..])
                if rest.len() <= 1 =>
            {
                self.tensor([*storage, *offset, *sizes, *strides, *grad, *hooks], rest.first().copied())
            }
            (Global::Parameter, &[tensor, grad, hooks]) => self.parameter(tensor, grad, hooks),
            (Global::OrderedDict, []) => self.push_new(Node::Dict(Box::default())),
            (Global::Device, &[name]) => self.device(name),
            (Global::Complex, &[re, im]) => self.complex(re, im),
            (Global::TypedList(element), &[list]) => self.typed_list(*element, list),
            (Global::TypeTag, &[value, text]) => self.type_tag(value, text),
            (Global::Storage(row), _) => {
                Err(Diagnostic::input(format!("REDUCE calls `{}`, which is no constructor here", row.class)))
            }
            (_, items) => {
                Err(Diagnostic::input(format!("a constructor is called with {} arguments", items.len())))
            }
        }
    }

    /// A class is called for the members of an enum only; the argument is the bare value.
    fn enum_member(&mut self, class: Box<str>, value: NodeId) -> Result<()> {
        if !matches!(self.node(value), Node::Int(_) | Node::Float(_) | Node::Str(_)) {
            let kind = self.node(value).kind();
            return Err(Diagnostic::input(format!("the enum `{class}` has a member with {kind} as value")));
        }
        self.charge((size_of::<Enum>() + class.len()) as u64)?;
        self.push_new(Node::Enum(Box::new(Enum { class, value })))
    }

    fn device(&mut self, name: NodeId) -> Result<()> {
        let Node::Str(text) = self.node(name) else {
            return Err(Diagnostic::input("a device has a name that is no str"));
        };
        let text = device_name(text)?;
        self.push_new(Node::Device(text))
    }

    fn complex(&mut self, re: NodeId, im: NodeId) -> Result<()> {
        let (&Node::Float(re), &Node::Float(im)) = (self.node(re), self.node(im)) else {
            return Err(Diagnostic::input("a complex has parts that are no floats"));
        };
        self.push_new(Node::Complex(re, im))
    }

    fn typed_list(&mut self, element: Element, list: NodeId) -> Result<()> {
        let Node::List(items) = self.node(list) else {
            let kind = self.node(list).kind();
            return Err(Diagnostic::input(format!("a {} is built from {kind}", element.list_type())));
        };
        let count = items.items.len() as u64;
        self.work(count)?;
        let Node::List(items) = self.node(list) else { return Ok(()) };
        for item in &items.items {
            let node = self.node(*item);
            let fits = match element {
                Element::Int => matches!(node, Node::Int(_)),
                Element::Float => matches!(node, Node::Float(_)),
                Element::Bool => matches!(node, Node::Bool(_)),
                Element::Tensor => matches!(node, Node::Tensor(_) | Node::None),
            };
            if !fits {
                return Err(Diagnostic::input(format!("a {} contains {}", element.list_type(), node.kind())));
            }
        }
        self.set_type(list, element.list_type().into())
    }

    fn type_tag(&mut self, value: NodeId, text: NodeId) -> Result<()> {
        let Node::Str(text) = self.node(text) else {
            return Err(Diagnostic::input("a type tag is no str"));
        };
        if text.len() > self.limits.type_text_bytes {
            return Err(Diagnostic::input(format!(
                "a type tag has {} bytes, and the limit is {}",
                text.len(),
                self.limits.type_text_bytes
            )));
        }
        let text = text.clone();
        self.set_type(value, text)
    }

    /// Notes the type of a list or dict, whose identity stays, and pushes it.
    fn set_type(&mut self, value: NodeId, text: Box<str>) -> Result<()> {
        self.charge(text.len() as u64)?;
        let place = match self.nodes.get_mut(value.index()) {
            Some(Node::List(list)) => &mut list.type_text,
            Some(Node::Dict(dict)) => &mut dict.type_text,
            other => {
                let kind = other.map_or("nothing", |node| node.kind());
                return Err(Diagnostic::input(format!("a type tag stands on {kind}, not on a list or dict")));
            }
        };
        if place.as_ref().is_some_and(|old| *old != text) {
            return Err(Diagnostic::input("a list or dict gets a second, different type"));
        }
        *place = Some(text);
        self.push(value)
    }

    // --- tensors ---

    /// A persistent id is exactly `("storage", class, key, device, number of elements)`.
    fn persistent(&mut self) -> Result<()> {
        let id = self.pop()?;
        let wrong = || Diagnostic::input("a persistent id is not (\"storage\", class, key, device, numel)");
        let Node::Tuple(items) = self.node(id) else { return Err(wrong()) };
        let &[tag, class, key, device, numel] = &**items else { return Err(wrong()) };
        let (Node::Str(tag), Node::Global(Global::Storage(element))) = (self.node(tag), self.node(class))
        else {
            return Err(wrong());
        };
        let (Node::Str(key), Node::Str(device), &Node::Int(numel)) =
            (self.node(key), self.node(device), self.node(numel))
        else {
            return Err(wrong());
        };
        if &**tag != "storage" {
            return Err(wrong());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if key.is_empty() || key.len() > 64 || !key.chars().all(plain) {
            return Err(Diagnostic::input("the key of a storage is no plain name"));
        }
        let (key, device, element) = (key.clone(), device_name(device)?, *element);
        let fits =
            |numel: &u64| numel.checked_mul(element.bytes).is_some_and(|bytes| i64::try_from(bytes).is_ok());
        let Some(numel) = u64::try_from(numel).ok().filter(fits) else {
            return Err(Diagnostic::input(format!(
                "storage `{key}` has the impossible size of {numel} elements"
            )));
        };
        self.charge((size_of::<StorageRecord>() + key.len() + device.len()) as u64)?;
        self.push_new(Node::Storage(Arc::new(StorageRecord { key, element, device, numel })))
    }

    /// `_rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks, metadata)`.
    fn tensor(&mut self, arguments: [NodeId; 6], metadata: Option<NodeId>) -> Result<()> {
        let [storage, offset, sizes, strides, requires_grad, hooks] = arguments;
        let Node::Storage(storage) = self.node(storage) else {
            return Err(Diagnostic::input("a tensor is built from something that is no storage"));
        };
        let storage = Arc::clone(storage);
        let (&Node::Int(offset), &Node::Bool(requires_grad)) = (self.node(offset), self.node(requires_grad))
        else {
            return Err(Diagnostic::input("a tensor has an offset or requires_grad of a wrong type"));
        };
        self.check_hooks(hooks)?;
        let sizes = self.dims(sizes, "sizes")?;
        let strides = self.dims(strides, "strides")?;
        check_extent(&storage, offset, &sizes, &strides)?;
        let (conj, neg) = self.metadata(metadata)?;
        self.charge((size_of::<TensorRecord>() + 16 * sizes.len()) as u64)?;
        let record =
            TensorRecord { storage, offset, sizes, strides, requires_grad, parameter: false, conj, neg };
        self.push_new(Node::Tensor(Box::new(record)))
    }

    fn parameter(&mut self, tensor: NodeId, requires_grad: NodeId, hooks: NodeId) -> Result<()> {
        self.check_hooks(hooks)?;
        let (Node::Tensor(record), &Node::Bool(requires_grad)) =
            (self.node(tensor), self.node(requires_grad))
        else {
            return Err(Diagnostic::input("a parameter is built from something that is no tensor"));
        };
        let record = TensorRecord { requires_grad, parameter: true, ..TensorRecord::clone(record) };
        self.charge((size_of::<TensorRecord>() + 16 * record.sizes.len()) as u64)?;
        self.push_new(Node::Tensor(Box::new(record)))
    }

    /// Hooks are code, so there must be none.
    fn check_hooks(&self, hooks: NodeId) -> Result<()> {
        match self.node(hooks) {
            Node::None => Ok(()),
            Node::Dict(dict) if dict.pairs.is_empty() => Ok(()),
            _ => Err(Diagnostic::input("a tensor has backward hooks").hint("save the model without hooks")),
        }
    }

    /// A tuple of ints that are not negative, one for each dimension.
    fn dims(&self, id: NodeId, what: &str) -> Result<Box<[i64]>> {
        let Node::Tuple(items) = self.node(id) else {
            return Err(Diagnostic::input(format!("a tensor has {what} that are no tuple")));
        };
        if items.len() > self.limits.dims {
            return Err(Diagnostic::input(format!(
                "a tensor has {} dimensions, and the limit is {}",
                items.len(),
                self.limits.dims
            )));
        }
        let read = |item: &NodeId| match *self.node(*item) {
            Node::Int(value) if value >= 0 => Ok(value),
            Node::Int(value) => Err(Diagnostic::input(format!("a tensor has {value} among its {what}"))),
            ref other => Err(Diagnostic::input(format!("a tensor has {} among its {what}", other.kind()))),
        };
        items.iter().map(read).collect()
    }

    /// The lazy conjugation and negation bits: `{"conj": True}`.
    fn metadata(&self, id: Option<NodeId>) -> Result<(bool, bool)> {
        let Some(id) = id else { return Ok((false, false)) };
        let Node::Dict(dict) = self.node(id) else {
            return match self.node(id) {
                Node::None => Ok((false, false)),
                _ => Err(Diagnostic::input("the metadata of a tensor is no dict")),
            };
        };
        if dict.pairs.len() > 2 {
            return Err(Diagnostic::input("the metadata of a tensor has more than `conj` and `neg`"));
        }
        let (mut conj, mut neg) = (false, false);
        for (key, value) in &dict.pairs {
            match (self.node(*key), self.node(*value)) {
                (Node::Str(key), Node::Bool(value)) if &**key == "conj" => conj = *value,
                (Node::Str(key), Node::Bool(value)) if &**key == "neg" => neg = *value,
                _ => {
                    return Err(Diagnostic::unsupported("a tensor has metadata other than `conj` and `neg`"));
                }
            }
        }
        Ok((conj, neg))
    }
}

/// Checks that every element lies inside the storage, without overflow.
fn check_extent(storage: &StorageRecord, offset: i64, sizes: &[i64], strides: &[i64]) -> Result<()> {
    if sizes.len() != strides.len() {
        return Err(Diagnostic::input(format!(
            "a tensor has {} sizes and {} strides",
            sizes.len(),
            strides.len()
        )));
    }
    let numel = sizes.iter().try_fold(1i64, |n, size| n.checked_mul(*size));
    let bytes = numel.and_then(|n| n.checked_mul(storage.element.bytes as i64));
    let empty = numel == Some(0) || sizes.contains(&0);
    let last = sizes.iter().zip(strides).try_fold(offset, |last, (size, stride)| {
        size.saturating_sub(1).max(0).checked_mul(*stride).and_then(|far| last.checked_add(far))
    });
    let end = if empty { Some(offset) } else { last.and_then(|last| last.checked_add(1)) };
    let (Some(end), true) = (end, bytes.is_some() || empty) else {
        return Err(Diagnostic::input("a tensor has sizes and strides beyond 64 bits"));
    };
    if offset < 0 || end as u64 > storage.numel {
        return Err(Diagnostic::input(format!(
            "a tensor reaches from element {offset} to {end} of storage `{}`, which has {}",
            storage.key, storage.numel
        )));
    }
    Ok(())
}

fn device_name(text: &str) -> Result<Box<str>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == ':' || c == '_';
    if text.is_empty() || text.len() > 32 || !text.chars().all(plain) {
        return Err(Diagnostic::input("the name of a device is no plain name"));
    }
    Ok(text.into())
}

fn too_many(what: &str, limit: usize) -> Diagnostic {
    Diagnostic::input(format!("the pickle has more than {limit} {what}"))
}

/// Opcodes of Python's pickle that TorchScript never writes.
fn refused_opcode(op: u8) -> Diagnostic {
    let name = match op {
        b'0' => "POP",
        b'1' => "POP_MARK",
        b'2' => "DUP",
        b'F' => "FLOAT",
        b'I' => "INT",
        b'L' => "LONG",
        b'P' => "PERSID",
        b'S' => "STRING",
        b'T' | b'U' => "BINSTRING",
        b'V' => "UNICODE",
        b'B' | b'C' | b'\x8e' => "BINBYTES",
        b'g' => "GET",
        b'p' => "PUT",
        b'i' => "INST",
        b'o' => "OBJ",
        b'\x82'..=b'\x84' => "EXT",
        b'\x8b' => "LONG4",
        b'\x8c' => "SHORT_BINUNICODE",
        b'\x8f'..=b'\x91' => "SET",
        b'\x92' => "NEWOBJ_EX",
        b'\x93' => "STACK_GLOBAL",
        b'\x94' => "MEMOIZE",
        b'\x95' => "FRAME",
        _ => return Diagnostic::input(format!("{op:#04x} is no opcode of a pickle")),
    };
    Diagnostic::input(format!("the opcode {name} ({op:#04x}) is not one that TorchScript writes"))
        .hint("save the model again with torch.jit.save")
}
