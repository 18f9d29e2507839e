//! The pickle machine: a loop over 35 opcodes with a stack, marks and a memo, all capped. Every length is
//! compared with the bytes left before anything is allocated, and every allocation is charged to a budget.

use super::finish::finish;
use super::globals::resolve;
use super::tree::{Dict, List, Node, NodeId, Pickle};
use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::limits::Limits;

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

pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    pub(super) limits: &'a Limits,
    pub(super) nodes: Vec<Node>,
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
            return Err(Diagnostic::input("PROTO occurs in the middle of the pickle"));
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
    pub(super) fn work(&mut self, steps: u64) -> Result<()> {
        self.ops_left = self.ops_left.checked_sub(steps).ok_or_else(|| {
            Diagnostic::input(format!("the pickle takes more than {} steps", self.limits.pickle_ops))
        })?;
        Ok(())
    }

    /// Counts bytes that are about to be allocated.
    pub(super) fn charge(&mut self, bytes: u64) -> Result<()> {
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

    pub(super) fn push(&mut self, id: NodeId) -> Result<()> {
        if self.stack.len() >= self.limits.pickle_stack {
            return Err(too_many("values on its stack", self.limits.pickle_stack));
        }
        self.stack.push(id);
        Ok(())
    }

    pub(super) fn push_new(&mut self, node: Node) -> Result<()> {
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

    pub(super) fn pop(&mut self) -> Result<NodeId> {
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
    pub(super) fn top(&self) -> Result<NodeId> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let top = self.stack.last().filter(|_| self.stack.len() > floor);
        top.copied().ok_or_else(|| Diagnostic::input("the pickle reads an empty stack"))
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

    pub(super) fn node(&self, id: NodeId) -> &Node {
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
        // A str of TorchScript is any bytes.
        let text = crate::value::bytes::text(bytes);
        self.charge(text.len() as u64)?;
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
        _ => return Diagnostic::input(format!("{op:#04x} is not a pickle opcode")),
    };
    Diagnostic::input(format!("the opcode {name} ({op:#04x}) is not one that TorchScript writes"))
        .hint("save the model again with torch.jit.save")
}
