//! The kinds of `prim` ops that the emitter and its passes make, some of which exist only until SSA conversion.

use crate::ir::Symbol;
use crate::kinds;

kinds! {
    load "prim::Load",
    store "prim::Store",
    break_ "prim::BreakStmt",
    continue_ "prim::ContinueStmt",
    return_ "prim::ReturnStmt",
    loop_continuation "prim::LoopContinuation",
    with "prim::With",
    fork "prim::fork",
    awaitable "prim::awaitable",
    if_ "prim::If",
    loop_ "prim::Loop",
    constant "prim::Constant",
    uninitialized "prim::Uninitialized",
    raise "prim::RaiseException",
    enter "prim::Enter",
    exit "prim::Exit",
}

/// Whether the op's block is a function of its own, with its own returns.
pub(super) fn is_closure(kind: Symbol) -> bool {
    kind == fork() || kind == awaitable()
}
