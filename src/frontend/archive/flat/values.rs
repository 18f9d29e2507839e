//! The table of values of a flatbuffer as nodes of a tree. Values name each other by their number.

use super::nodes::Nodes;
use super::table::Table;
use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::limits::Limits;
use crate::frontend::archive::pickle::{
    Dict, Enum, List, Node, NodeId, Object, Scales, StorageRecord, StorageType, TensorRecord, check_extent,
    storage_type,
};
use std::sync::Arc;

/// The values by their number: which node each is, or which method.
pub(super) struct Values<'a> {
    all: Vec<Slot<'a>>,
}

enum Slot<'a> {
    Value,
    Method(Table<'a>),
}

impl<'a> Values<'a> {
    /// The node of a value.
    pub(super) fn at(&self, number: u32) -> Result<NodeId> {
        match self.all.get(number as usize) {
            Some(Slot::Value) => Ok(NodeId(number)),
            Some(Slot::Method(_)) => Err(Diagnostic::input(format!("value {number} is a method"))),
            None => Err(Diagnostic::input(format!("it has no value {number}"))),
        }
    }

    /// The method that a value is.
    pub(super) fn method(&self, number: u32) -> Result<Table<'a>> {
        match self.all.get(number as usize) {
            Some(Slot::Method(method)) => Ok(*method),
            _ => Err(Diagnostic::input(format!("value {number} is not a method"))),
        }
    }
}

/// Reads all values; the first nodes are theirs, in their order.
pub(super) fn read<'a>(
    module: Table<'a>,
    storages: &[u64],
    nodes: &mut Nodes,
    limits: &Limits,
) -> Result<Values<'a>> {
    let table = module.vector(4, 4)?;
    let mut reader = Reader { module, storages, limits, nodes, later: Vec::new(), count: table.len() };
    reader.nodes.charge(64 * table.len() as u64)?;
    // Each value has the node of its number; those that are made beside them come after all.
    reader.nodes.nodes.resize(table.len(), Node::None);
    let mut all = crate::resources::memory::vec_reserved(table.len())?;
    for (number, value) in table.tables().enumerate() {
        let value = value?;
        if value.u8(0)? == 16 {
            all.push(Slot::Method(value.table(1)?.ok_or_else(empty)?));
            continue;
        }
        let node = reader.value(value)?;
        if let Some(slot) = reader.nodes.nodes.get_mut(number) {
            *slot = node;
        }
        all.push(Slot::Value);
    }
    let later = std::mem::take(&mut reader.later);
    let values = Values { all };
    // A value may name one that follows it, or a method, which is not a value.
    later.into_iter().try_for_each(|number| values.at(number).map(drop))?;
    Ok(values)
}

struct Reader<'r, 'a> {
    module: Table<'a>,
    /// Bytes of each storage.
    storages: &'r [u64],
    limits: &'r Limits,
    nodes: &'r mut Nodes,
    /// Numbers of values that others name.
    later: Vec<u32>,
    /// How many values there are.
    count: usize,
}

impl<'a> Reader<'_, 'a> {
    /// A value by the number of its kind in the union.
    fn value(&mut self, value: Table<'a>) -> Result<Node> {
        let kind = value.u8(0)?;
        Ok(match kind {
            0 => Node::None,
            1 => Node::Int(i64::from_le_bytes(value.struct_bytes(1, 0)?)),
            2 => Node::Bool(value.struct_bytes::<1>(1, 0)? != [0]),
            3 => Node::Float(f64::from_le_bytes(value.struct_bytes(1, 0)?)),
            4 => Node::Complex(
                f64::from_le_bytes(value.struct_bytes(1, 0)?),
                f64::from_le_bytes(value.struct_bytes(1, 8)?),
            ),
            _ => {
                let content = value.table(1)?.ok_or_else(empty)?;
                self.content(kind, content)?
            }
        })
    }

    fn content(&mut self, kind: u8, content: Table<'a>) -> Result<Node> {
        Ok(match kind {
            5 => Node::Tensor(Box::new(self.tensor(content)?)),
            6 => Node::Str(self.text(content.text(0)?)?),
            7 => {
                let items = self.children(content, 0)?;
                self.list(items, content.text(1)?)?
            }
            8 => Node::Tuple(self.children(content, 0)?.into()),
            9 => self.dict(content)?,
            10 => self.object(content)?,
            11 => {
                let items = content.vector(0, 8)?.elements();
                self.scalars(items.map(|item| Ok(Node::Int(i64::from_le_bytes(item?)))), "List[int]")?
            }
            12 => {
                let items = content.vector(0, 8)?.elements();
                self.scalars(items.map(|item| Ok(Node::Float(f64::from_le_bytes(item?)))), "List[float]")?
            }
            13 => {
                let items = content.vector(0, 1)?.elements::<1>();
                self.scalars(items.map(|item| Ok(Node::Bool(item? != [0]))), "List[bool]")?
            }
            14 => Node::Device(self.text(content.text(0)?)?),
            15 => {
                let class = self.class(content.text(0)?)?;
                Node::Enum(Box::new(Enum { class, value: self.child(content.u32(1)?)? }))
            }
            other => return Err(Diagnostic::input(format!("it has a value of the kind {other}"))),
        })
    }

    /// A value that another one names; whether it is there is checked once all are read.
    fn child(&mut self, number: u32) -> Result<NodeId> {
        if number as usize >= self.count {
            return Err(Diagnostic::input(format!("it has no value {number}")));
        }
        self.nodes.charge(8)?;
        self.later.push(number);
        Ok(NodeId(number))
    }

    fn children(&mut self, table: Table<'a>, field: usize) -> Result<Vec<NodeId>> {
        table.vector(field, 4)?.u32s().map(|number| self.child(number?)).collect()
    }

    fn text(&mut self, text: &str) -> Result<Box<str>> {
        self.nodes.charge(text.len() as u64)?;
        Ok(text.into())
    }

    fn class(&mut self, name: &str) -> Result<Box<str>> {
        if name.len() > self.limits.class_name_bytes {
            return Err(Diagnostic::input(format!("the name of a class has {} bytes", name.len())));
        }
        self.text(name)
    }

    fn list(&mut self, items: Vec<NodeId>, type_text: &str) -> Result<Node> {
        Ok(Node::List(Box::new(List { items, type_text: self.type_text(type_text)? })))
    }

    fn type_text(&mut self, text: &str) -> Result<Option<Box<str>>> {
        if text.len() > self.limits.type_text_bytes {
            return Err(Diagnostic::input(format!("the text of a type has {} bytes", text.len())));
        }
        if text.is_empty() { Ok(None) } else { self.text(text).map(Some) }
    }

    /// A list whose items have no numbers of their own.
    fn scalars(&mut self, items: impl Iterator<Item = Result<Node>>, type_text: &str) -> Result<Node> {
        let items = items.map(|item| self.nodes.add(item?)).collect::<Result<Vec<_>>>()?;
        self.list(items, type_text)
    }

    fn dict(&mut self, content: Table<'a>) -> Result<Node> {
        let (keys, values) = (self.children(content, 0)?, self.children(content, 1)?);
        if keys.len() != values.len() {
            return Err(Diagnostic::input(format!(
                "a dict has {} keys and {} values",
                keys.len(),
                values.len()
            )));
        }
        let type_text = self.type_text(content.text(2)?)?;
        Ok(Node::Dict(Box::new(Dict {
            pairs: keys.into_iter().zip(values).collect(),
            type_text,
            ordered: false,
        })))
    }

    /// An object of a class of its own, with its attributes, or with what restores it.
    fn object(&mut self, content: Table<'a>) -> Result<Node> {
        const WITH_FIELDS: u8 = 1;
        let number = content.u32(0)?;
        let class = self.module.vector(7, 4)?.table_at(number as usize)?;
        let class = class.ok_or_else(|| Diagnostic::input(format!("it has no class {number}")))?;
        let state = if class.u8(1)? == WITH_FIELDS {
            let values = self.children(content, 2)?;
            let names = class.vector(2, 4)?;
            if names.len() != values.len() {
                return Err(Diagnostic::input(format!(
                    "an object has {} attributes, and its class {}",
                    values.len(),
                    names.len()
                )));
            }
            let names = names.texts().map(|name| self.nodes.text(name?)).collect::<Result<Vec<_>>>()?;
            let pairs = names.into_iter().zip(values).collect();
            self.nodes.add(Node::Dict(Box::new(Dict { pairs, type_text: None, ordered: false })))?
        } else {
            self.child(content.u32(1)?)?
        };
        Ok(Node::Object(Box::new(Object { class: self.class(class.text(0)?)?, state: Some(state) })))
    }

    fn tensor(&mut self, content: Table<'a>) -> Result<TensorRecord> {
        let mut record = self.plain_tensor(content)?;
        if let Some(scheme) = content.table(6)? {
            record.scales = Some(self.scales(scheme)?);
        }
        if record.scales.is_some() != record.storage.element.dtype.starts_with('q') {
            return Err(Diagnostic::input("a tensor has a scale, or none, that does not fit its dtype"));
        }
        Ok(record)
    }

    fn scales(&mut self, scheme: Table<'a>) -> Result<Scales> {
        match scheme.u8(0)? {
            0 => Ok(Scales::PerTensor { scale: scheme.f64(1)?, zero_point: i64::from(scheme.i32_or(2, 0)?) }),
            1 | 4 => {
                let mut channel = |field| {
                    let record = self.plain_tensor(scheme.table(field)?.ok_or_else(empty)?)?;
                    if record.sizes.len() == 1 { Ok(Box::new(record)) } else { Err(empty()) }
                };
                let (scales, zero_points) = (channel(3)?, channel(4)?);
                Ok(Scales::PerChannel { scales, zero_points, axis: i64::from(scheme.i32_or(5, 0)?) })
            }
            other => Err(Diagnostic::unsupported(format!("a tensor of the quantization scheme {other}"))),
        }
    }

    fn plain_tensor(&mut self, content: Table<'a>) -> Result<TensorRecord> {
        let number = content.u32(0)?;
        let size = self.storages.get(number as usize).copied();
        let size = size.ok_or_else(|| Diagnostic::input(format!("it has no storage {number}")))?;
        let element = element(content.u8(1)?)?;
        let storage = Arc::new(StorageRecord {
            key: number.to_string().into(),
            element,
            device: "cpu".into(),
            numel: size / element.bytes,
        });
        let (sizes, strides) = (self.dims(content, 3)?, self.dims(content, 4)?);
        let offset = i64::from(content.i32_or(2, 0)?);
        check_extent(&storage, offset, &sizes, &strides)?;
        self.nodes.charge((size_of::<TensorRecord>() + 16 * sizes.len()) as u64)?;
        Ok(TensorRecord {
            storage,
            offset,
            sizes,
            strides,
            requires_grad: content.u8(5)? != 0,
            parameter: false,
            conj: false,
            neg: false,
            scales: None,
        })
    }

    fn dims(&self, content: Table<'a>, field: usize) -> Result<Box<[i64]>> {
        let dims = content.vector(field, 4)?;
        if dims.len() > self.limits.dims {
            return Err(Diagnostic::input(format!(
                "a tensor has {} dimensions, and the limit is {}",
                dims.len(),
                self.limits.dims
            )));
        }
        let dim = |bytes: Result<[u8; 4]>| match i32::from_le_bytes(bytes?) {
            value @ 0.. => Ok(i64::from(value)),
            value => Err(Diagnostic::input(format!("a tensor has {value} among its sizes or strides"))),
        };
        dims.elements().map(dim).collect()
    }
}

/// The element type of a number of PyTorch's `ScalarType`.
fn element(number: u8) -> Result<&'static StorageType> {
    let name = match number {
        0 => "uint8",
        1 => "int8",
        2 => "int16",
        3 => "int32",
        4 => "int64",
        5 => "float16",
        6 => "float32",
        7 => "float64",
        8 => "complex32",
        9 => "complex64",
        10 => "complex128",
        11 => "bool",
        12 => "qint8",
        13 => "quint8",
        14 => "qint32",
        15 => "bfloat16",
        16 => "quint4x2",
        17 => "quint2x4",
        23 => "float8_e5m2",
        24 => "float8_e4m3fn",
        25 => "float8_e5m2fnuz",
        26 => "float8_e4m3fnuz",
        27 => "uint16",
        28 => "uint32",
        29 => "uint64",
        44 => "float8_e8m0fnu",
        _ => "",
    };
    storage_type(name)
        .ok_or_else(|| Diagnostic::unsupported(format!("a tensor of PyTorch's element type {number}")))
}

fn empty() -> Diagnostic {
    Diagnostic::input("a value has no content")
}
