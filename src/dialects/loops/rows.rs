//! The rows of the dialect: what each of its ops does besides computing, and a sentence. What operands it takes is asked of a
//! kernel as a whole ([`super::decode`]), since types flow from buffers to what is loaded of them.

use super::names::{self, LAWS, primitive};
use crate::dialects::{Effects, OpDef, control};

const fn acting(schema: &'static str, effects: Effects, doc: &'static str) -> OpDef {
    control(schema).effects(effects).laws(LAWS).doc(doc)
}

static OPS: &[OpDef] = &[
    primitive("loop::const(...) -> ...", "The number in the attribute `value`, of the result's type."),
    primitive("loop::fma(...) -> ...", "x * y + z of floats, rounded once."),
    primitive("loop::select(...) -> ...", "The second operand where the first holds, the third otherwise."),
    primitive(
        "loop::convert(...) -> ...",
        "The operand as a number of the result's type, as `.to(dtype)` converts.",
    ),
    primitive("loop::bitcast(...) -> ...", "The bits of the operand as a type of the same width."),
    acting(
        "loop::alloc(...) -> ...",
        // Two of them are two buffers, and one in a loop is that of an iteration.
        Effects::WRITES_WORLD,
        "A buffer of the kernel's own, as long as its block runs: the attribute `size` is the number of its elements, which are \
         any numbers before they are stored to.",
    ),
    acting("loop::load(...) -> ...", Effects::READS_WORLD, "The element of a buffer at an index."),
    acting("loop::store(...) -> ...", Effects::WRITES_WORLD, "Writes to a buffer: buffer, index, value."),
    acting(
        "loop::accumulate(...) -> ...",
        Effects::WRITES_WORLD,
        "Combines an element of a buffer with a value, indivisibly: buffer, index, value. The attribute `op` is add, min, \
         max, and, or or xor.",
    ),
    acting(
        "loop::for(...) -> ...",
        Effects::CONTROL,
        "Runs its block for each index: first, bound, step, then the values that the first iteration gets. The attribute \
         `mark` says how iterations may run, `lanes` how many partial results a reduction has, `steps` what an iteration \
         takes of the run's budget.",
    ),
    acting(
        "loop::while(...) -> ...",
        Effects::CONTROL,
        "Runs its block as long as a condition holds: the condition of the first iteration, then the values that it gets. The \
         block gives the condition of the next iteration and its values. It ends where the run must end; the attribute \
         `steps` says what an iteration takes of the run's budget, 1 without it.",
    ),
    acting(
        "loop::if(...) -> ...",
        Effects::CONTROL,
        "Runs its first block where its operand holds, its second otherwise, and gives the numbers that the block gives.",
    ),
    acting(
        "loop::require(...) -> ...",
        // What it guards stays after it.
        Effects::WRITES_WORLD,
        "Ends the kernel with the error that the attribute `message` is where its operand does not hold.",
    ),
];

/// All rows, file by file.
pub static TABLES: &[&[OpDef]] = &[OPS, names::UNARY, names::BINARY, names::COMPARE];

/// The names of all ops, without the namespace.
pub(super) fn op_names() -> impl Iterator<Item = &'static str> {
    let rows = TABLES.iter().flat_map(|rows| rows.iter());
    rows.filter_map(|row| row.schema.split_once("::")?.1.split_once('(').map(|(name, _)| name))
}
