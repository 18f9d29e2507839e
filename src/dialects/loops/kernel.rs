//! The closed form of a kernel: what every backend takes. Backends match these enums exhaustively, so that
//! the compiler says when a backend is not finished; what a backend cannot do yet it refuses by name.

use super::Elem;
use crate::dialects::scalar::{Binary, Compare, Unary};
use crate::tensor::Scalar;

/// A virtual register: assigned once, by a statement, a loop or a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg(pub u32);

impl Reg {
    /// A dense index into [`Kernel::types`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The type of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// A number.
    Scalar(Elem),
    /// Memory of the caller, or of the kernel's own.
    Buffer(Elem),
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// Where it is.
    pub reg: Reg,
    /// What it is.
    pub ty: Ty,
    /// Whether the kernel stores to it.
    pub written: bool,
}

/// Memory of a kernel's own: that of one call, or of each part of a parallel loop that is run by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Local {
    /// Where it is.
    pub reg: Reg,
    /// Number of elements. Before a store they are any numbers.
    pub size: u32,
}

/// A kernel. Registers are used only after and below their definition; [`super::decode`] has checked types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// Parameters in the caller's order.
    pub params: Vec<Param>,
    /// Memory of its own; backends provide it before the body runs.
    pub locals: Vec<Local>,
    /// Type of each register.
    pub types: Vec<Ty>,
    /// What to do.
    pub body: Vec<Stmt>,
    /// The parameter that bounds the outermost parallel loop (which runs from 0 in steps of 1), if there is one.
    pub extent: Option<usize>,
    /// What is wrong where a [`Stmt::Require`] does not hold, by its number.
    pub messages: Vec<String>,
}

/// A number of the type of its register.
pub type Const = Scalar;

/// A scalar primitive; its operands and result are scalars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Prim {
    /// A number.
    Const(Const),
    /// Operand and result of one type.
    Unary(Unary, Reg),
    /// Operands and result of one type.
    Binary(Binary, Reg, Reg),
    /// x * y + z, rounded once.
    Fma(Reg, Reg, Reg),
    /// Operands of one type, result a bool.
    Compare(Compare, Reg, Reg),
    /// `condition ? x : y`
    Select(Reg, Reg, Reg),
    /// To the result's type as `.to(dtype)` does.
    Convert(Reg),
    /// The same bits as a type of the same width.
    Bitcast(Reg),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// Computes.
    Let(Reg, Prim),
    /// Reads an element; the index may be a loaded value (gather).
    Load {
        /// Result.
        dst: Reg,
        /// The buffer.
        buffer: Reg,
        /// In elements.
        index: Reg,
    },
    /// Writes an element; the index may be a loaded value (scatter).
    Store {
        /// The buffer.
        buffer: Reg,
        /// In elements.
        index: Reg,
        /// Of the buffer's element type.
        value: Reg,
    },
    /// `buffer[index] = op(buffer[index], value)`, indivisibly.
    Accumulate {
        /// Add, Min, Max, And, Or or Xor.
        op: Binary,
        /// The buffer.
        buffer: Reg,
        /// In elements.
        index: Reg,
        /// Of the buffer's element type.
        value: Reg,
    },
    /// A loop over indices.
    For(Box<For>),
    /// A loop while a condition holds.
    While(Box<While>),
    /// A branch.
    If(Box<If>),
    /// Ends the kernel with an error where a bool does not hold; what was stored before stays.
    Require {
        /// A bool.
        condition: Reg,
        /// An index into [`Kernel::messages`].
        message: usize,
    },
}

/// How the iterations of a loop may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// One after the other.
    Serial,
    /// In any order and at once: across cores, across the threads or warps of a GPU.
    Parallel,
    /// In any order, several at once: in vector registers, by the threads of a GPU's warp.
    Vector,
    /// Both.
    ParallelVector,
}

impl Mark {
    /// Whether iterations may run on several cores.
    pub fn is_parallel(self) -> bool {
        matches!(self, Mark::Parallel | Mark::ParallelVector)
    }

    /// Whether iterations may share vector registers.
    pub fn is_vector(self) -> bool {
        matches!(self, Mark::Vector | Mark::ParallelVector)
    }
}

/// In which order a loop combines what it carries; it fixes the bits of float sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// First to last.
    Sequential,
    /// This many partial results, a power of two: iteration n goes to the partial result n modulo their number. Then
    /// the second half is combined with the first until one is left. Each begins with the value before the loop,
    /// which is to be neutral.
    Lanes(u32),
}

/// `for iv in (begin..end).step_by(step)`; step is positive.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// The index, an `i64`.
    pub iv: Reg,
    /// First value.
    pub begin: Reg,
    /// Bound, left out.
    pub end: Reg,
    /// Distance.
    pub step: Reg,
    /// How it may run.
    pub mark: Mark,
    /// In which order it combines.
    pub order: Order,
    /// Steps of the run's budget that an iteration takes; 0 for a loop whose caller bounds it.
    pub steps: u32,
    /// Values that one iteration hands to the next.
    pub carried: Vec<Carried>,
    /// What to do.
    pub body: Vec<Stmt>,
}

/// A value that one iteration hands to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// Before the first.
    pub init: Reg,
    /// Seen by an iteration.
    pub param: Reg,
    /// Given to the next.
    pub next: Reg,
    /// After the last.
    pub result: Reg,
    /// In a loop with lanes: how `next` is made of `param` and something else, and partial results are combined.
    pub combine: Option<Binary>,
}

/// `while go { (go, carried) = body }`; it ends where its run must end, too.
#[derive(Clone, Debug, PartialEq)]
pub struct While {
    /// Whether there is a first iteration, a bool.
    pub enters: Reg,
    /// Whether there is another one, a bool of the body.
    pub again: Reg,
    /// Steps of the run's budget that an iteration takes, at least 1.
    pub steps: u32,
    /// Values that one iteration hands to the next; none is combined in lanes.
    pub carried: Vec<Carried>,
    /// What to do.
    pub body: Vec<Stmt>,
}

/// A branch.
#[derive(Clone, Debug, PartialEq)]
pub struct If {
    /// A bool.
    pub condition: Reg,
    /// If it holds.
    pub then: Vec<Stmt>,
    /// If not.
    pub otherwise: Vec<Stmt>,
    /// Numbers that it gives.
    pub results: Vec<Chosen>,
}

/// A number that a branch gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// After the branch.
    pub result: Reg,
    /// What it is if the condition holds.
    pub then: Reg,
    /// What it is if not.
    pub otherwise: Reg,
}

impl Prim {
    /// The registers that it reads.
    pub fn operands(&self) -> Vec<Reg> {
        match *self {
            Prim::Const(_) => vec![],
            Prim::Unary(_, x) | Prim::Convert(x) | Prim::Bitcast(x) => vec![x],
            Prim::Binary(_, x, y) | Prim::Compare(_, x, y) => vec![x, y],
            Prim::Fma(x, y, z) | Prim::Select(x, y, z) => vec![x, y, z],
        }
    }
}

impl Stmt {
    /// The statements within it, block by block.
    pub fn blocks(&self) -> impl Iterator<Item = &[Stmt]> {
        let [first, second]: [&[Stmt]; 2] = match self {
            Stmt::For(l) => [&l.body, &[]],
            Stmt::While(l) => [&l.body, &[]],
            Stmt::If(branch) => [&branch.then, &branch.otherwise],
            _ => [&[], &[]],
        };
        [first, second].into_iter()
    }

    /// Whether something holds of it or of a statement within it.
    pub fn any(&self, holds: &impl Fn(&Stmt) -> bool) -> bool {
        holds(self) || self.blocks().flatten().any(|inner| inner.any(holds))
    }

    /// Whether it asks the run's budget, so that it may end before its work is done.
    pub fn takes_steps(&self) -> bool {
        self.any(&|s| matches!(s, Stmt::While(_)) || matches!(s, Stmt::For(l) if l.steps > 0))
    }
}

impl Kernel {
    /// Whether it asks the run's budget, so that it may end before its work is done.
    pub fn takes_steps(&self) -> bool {
        self.body.iter().any(Stmt::takes_steps)
    }

    /// The type of a register.
    pub fn ty(&self, reg: Reg) -> Ty {
        self.types[reg.index()]
    }

    /// The element type of a register.
    pub fn elem(&self, reg: Reg) -> Elem {
        match self.ty(reg) {
            Ty::Scalar(e) | Ty::Buffer(e) => e,
        }
    }
}
