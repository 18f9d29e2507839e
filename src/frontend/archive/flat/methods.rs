//! The methods of a flatbuffer, as the tree that `bytecode.pkl` would hold. It knows nothing of what instructions do.

use super::nodes::Nodes;
use super::table::Table;
use super::values::Values;
use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::pickle::NodeId;

/// Names of instructions by their number in the file, which is their place in PyTorch's `instruction.h`.
const NAMES: [&str; 51] = [
    "OP",
    "OPN",
    "LOAD",
    "MOVE",
    "STOREN",
    "STORE",
    "DROP",
    "DROPR",
    "LOADC",
    "JF",
    "JMP",
    "LOOP",
    "RET",
    "WAIT",
    "CALL",
    "GUARD",
    "TYPECHECK",
    "FAIL_GUARD",
    "PROFILE_OP",
    "TAIL_CALL",
    "INTERFACE_CALL",
    "GET_ATTR",
    "SET_ATTR",
    "LIST_UNPACK",
    "TUPLE_CONSTRUCT",
    "NAMED_TUPLE_CONSTRUCT",
    "LIST_CONSTRUCT",
    "DICT_CONSTRUCT",
    "CREATE_OBJECT",
    "ISINSTANCE",
    "TUPLE_SLICE",
    "TUPLE_INDEX",
    "RAISE_EXCEPTION",
    "DICT_INDEX",
    "UNCHECKED_CAST",
    "__IS__",
    "UN_INITIALIZED",
    "__ISNOT__",
    "FORMAT",
    "DEVICE",
    "DTYPE",
    "DIM",
    "__NOT__",
    "TO_LIST",
    "NUM_TO_TENSOR",
    "IS_CUDA",
    "FORK",
    "WARN",
    "ENTER",
    "EXIT",
    "AWAITABLE",
];

/// The version of bytecode, and all methods.
pub(super) fn read(module: Table, values: &Values, nodes: &mut Nodes) -> Result<NodeId> {
    let mut items = vec![nodes.int(module.u32(0)?)?];
    for at in module.vector(2, 4)?.u32s() {
        let method = values.method(at?)?;
        items.push(one(method, values, nodes)?);
    }
    nodes.tuple(items)
}

/// `(name, (("instructions", …), …), (("arguments", …), ("returns", …)))`.
fn one(method: Table, values: &Values, nodes: &mut Nodes) -> Result<NodeId> {
    let instructions: Result<Vec<NodeId>> =
        method.vector(1, 8)?.elements().map(|bytes| instruction(bytes?, nodes)).collect();
    let operators: Result<Vec<NodeId>> =
        method.vector(2, 4)?.tables().map(|row| operator(row?, nodes)).collect();
    let constants: Result<Vec<NodeId>> = method.vector(3, 4)?.u32s().map(|at| values.at(at?)).collect();
    let types: Result<Vec<NodeId>> = method.vector(4, 4)?.texts().map(|text| nodes.text(text?)).collect();
    let tables = [
        ("instructions", instructions?),
        ("operators", operators?),
        ("constants", constants?),
        ("types", types?),
    ];
    let tables = tables.into_iter().map(|(title, rows)| titled(title, rows, nodes));
    let tables = tables.collect::<Result<Vec<_>>>()?;
    let mut parts = vec![nodes.text(method.text(0)?)?, nodes.tuple(tables)?];
    if let Some(schema) = method.table(6)? {
        let signature = [("arguments", 0), ("returns", 1)].into_iter().map(|(title, field)| {
            let rows = schema.vector(field, 4)?.tables();
            let rows = rows.map(|row| argument(row?, values, nodes)).collect::<Result<Vec<_>>>()?;
            titled(title, rows, nodes)
        });
        let signature = signature.collect::<Result<Vec<_>>>()?;
        parts.push(nodes.tuple(signature)?);
    }
    nodes.tuple(parts)
}

fn titled(title: &str, rows: Vec<NodeId>, nodes: &mut Nodes) -> Result<NodeId> {
    let pair = [nodes.text(title)?, nodes.tuple(rows)?];
    nodes.tuple(pair)
}

/// A struct of eight bytes: the number of the instruction, `n` from byte 2, `x` from byte 4.
fn instruction([op, _, n0, n1, x @ ..]: [u8; 8], nodes: &mut Nodes) -> Result<NodeId> {
    let name = NAMES.get(usize::from(op));
    let name = name.ok_or_else(|| Diagnostic::input(format!("it has an instruction of the number {op}")))?;
    let parts =
        [nodes.text(name)?, nodes.int(i32::from_le_bytes(x))?, nodes.int(u16::from_le_bytes([n0, n1]))?];
    nodes.tuple(parts)
}

fn operator(row: Table, nodes: &mut Nodes) -> Result<NodeId> {
    let mut parts = vec![nodes.text(row.text(0)?)?, nodes.text(row.text(1)?)?];
    let given = row.i32_or(2, -1)?;
    if given >= 0 {
        parts.push(nodes.int(given)?);
    }
    nodes.tuple(parts)
}

fn argument(row: Table, values: &Values, nodes: &mut Nodes) -> Result<NodeId> {
    let fields = [
        ("name", nodes.text(row.text(0)?)?),
        ("type", nodes.text(row.text(1)?)?),
        ("default_value", values.at(row.u32(2)?)?),
    ];
    let fields = fields.map(|(title, content)| {
        let pair = [nodes.text(title)?, content];
        nodes.tuple(pair)
    });
    let fields = fields.into_iter().collect::<Result<Vec<_>>>()?;
    nodes.tuple(fields)
}
