//! A module as flat tables: functions, blocks, ops, values, each named by its index.
//!
//! Subgraphs are blocks of the op that holds them, so that a fused group opens like a branch; below the entry so are the
//! functions that calls run, so that a module's methods open in their place. Flat, since nested data would let a deep graph
//! exhaust the stack of its reader.

use serde::Serialize;
use std::collections::BTreeMap;

/// All tables.
#[derive(Debug, Default, Serialize)]
pub struct Model {
    /// Version of this form.
    pub version: u32,
    /// The function that is shown first.
    pub entry: usize,
    /// Functions in their order.
    pub functions: Vec<Function>,
    /// Blocks; the body of a function is one.
    pub blocks: Vec<Block>,
    /// Ops, in program order within their block.
    pub ops: Vec<Op>,
    /// Values.
    pub values: Vec<Value>,
    /// What the registry says of the kinds that occur: schemas, and a sentence where there is one.
    pub docs: BTreeMap<String, Vec<String>>,
}

/// A function.
#[derive(Debug, Serialize)]
pub struct Function {
    /// Its name; empty for a graph without one.
    pub name: String,
    /// Its schema.
    pub schema: String,
    /// Its body.
    pub block: usize,
}

/// A block of ops.
#[derive(Debug, Serialize)]
pub struct Block {
    /// `block0`, `subgraph`, or the function's name.
    pub name: String,
    /// The op that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<usize>,
    /// Values that it takes.
    pub inputs: Vec<usize>,
    /// Its ops.
    pub ops: Vec<usize>,
    /// Values that it gives.
    pub outputs: Vec<usize>,
}

/// An op.
#[derive(Debug, Serialize)]
pub struct Op {
    /// `aten::add`
    pub kind: String,
    /// What kind of work it is; pictures colour by it.
    pub part: Part,
    /// The block it stands in.
    pub block: usize,
    /// Values that it takes.
    pub operands: Vec<usize>,
    /// Values that it gives.
    pub results: Vec<usize>,
    /// Names and texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, String)>,
    /// Blocks that it holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<usize>,
    /// `file:line:column`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The module that traced code came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// A short constant, to be written where it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant: Option<String>,
    /// It does something besides computing its results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub effects: bool,
    /// Microseconds that it took, where a profile says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// Bytes of what it gave, where inputs were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// A constant.
    Constant,
    /// Holds blocks that run or loop.
    Control,
    /// Calls a function, which it holds as a block.
    Call,
    /// Stands for the module that the ops in its block came from.
    Scope,
    /// Computes, as its row says.
    Compute,
    /// Lists, tuples, attributes, conversions: the `prim` dialect.
    Data,
    /// Holds a subgraph.
    Fused,
    /// Of an undeclared dialect.
    Foreign,
}

/// A value.
#[derive(Debug, Serialize)]
pub struct Value {
    /// `x.1`, without the percent sign.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Dtype and sizes that it had in a run: `float32[1,3]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// The op that gives it; none for an input of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<usize>,
    /// The block it belongs to.
    pub block: usize,
}
