//! Control flow, calls, forks and `with`: the interpreter runs these. What else they need (blocks, attributes)
//! the verifier knows.

use crate::diag::{Diagnostic, Result};
use crate::dialects::aten::world::wait;
use crate::dialects::constraint::Law;
use crate::dialects::structure::Structure;
use crate::dialects::{Args, Effects, OpDef, Outputs, control, host, one};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    control("prim::If(bool cond) -> ...")
        .laws(&[Law::Structure(Structure::Branches)])
        .doc("runs one of two blocks"),
    control("prim::Loop(int max_trip_count, bool cond, ...) -> ...")
        .laws(&[Law::Structure(Structure::Loop)])
        .doc("runs a block while its condition holds and iterations remain"),
    control("prim::CallFunction(Any function, ...) -> ...").effects(CALL).doc("calls a function"),
    control("prim::CallMethod(Any self, ...) -> ...")
        .effects(CALL)
        .doc("calls a method of the class of an object, found when it runs"),
    control("prim::Enter(Any self) -> Any").effects(CALL).doc("calls `__enter__` of the object of a `with`"),
    control("prim::Exit(Any self) -> Any").effects(CALL).doc("calls `__exit__` of the object of a `with`"),
    control("prim::fork(...) -> Any").effects(CALL).doc("begins other work and gives its future"),
    control("prim::awaitable(...) -> Any").effects(CALL).doc("gives work that begins when it is waited for"),
    control("prim::isinstance(Any value) -> bool")
        .effects(Effects::NONE)
        .doc("whether a value's run-time type is among `types`"),
    host("prim::awaitable_nowait(t self) -> Await(t)", awaitable_nowait).doc("a value as finished work"),
    host("prim::awaitable_wait(Await(t) self) -> t", wait).effects(CALL).doc("runs delayed work"),
    host("prim::RaiseException(str msg, str? cls=None) -> ()", raise)
        .effects(Effects::MAY_RAISE.union(Effects::NEVER_RETURNS).union(Effects::WRITES_WORLD))
        .doc("raises an exception of a class with a message"),
    host("prim::RefuseCall(str reason) -> ()", refuse)
        .effects(Effects::MAY_RAISE.union(Effects::NEVER_RETURNS).union(Effects::WRITES_WORLD))
        .doc("raises RuntimeError: why PyTorch does not run the enclosing function, found when it is first called"),
    host("prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a)", if_then_else)
        .doc("one of two values that are both computed"),
    host("prim::unchecked_cast(t x) -> t", unchanged)
        .facts(&[crate::dialects::Fact::Metadata, crate::dialects::Fact::Nested])
        .doc("the same value under a type that was proven"),
    host("prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)", unchanged)
        .facts(&[crate::dialects::Fact::Metadata, crate::dialects::Fact::Nested])
        .doc("the same value, proven not to be None"),
];

/// What running other code may do.
const CALL: Effects = Effects::ALL;

fn unchanged(args: &Args<'_>) -> Result<Outputs> {
    one(args.value(0)?.clone())
}

fn if_then_else(args: &Args<'_>) -> Result<Outputs> {
    one(args.value(if args.bool(0)? { 1 } else { 2 })?.clone())
}

fn awaitable_nowait(args: &Args<'_>) -> Result<Outputs> {
    let value = args.value(0)?.clone();
    one(Value::Future(crate::value::Future::ready(value.ty(), value)))
}

/// `raise C(msg)`: the class as Python qualifies it. Without a class it is what `assert` raises, which Python sees
/// as `torch.jit.Error`.
fn refuse(args: &Args<'_>) -> Result<Outputs> {
    Err(Diagnostic::raised("RuntimeError", args.str(0)?.to_string()))
}

fn raise(args: &Args<'_>) -> Result<Outputs> {
    let message = String::from_utf8_lossy(&crate::value::bytes::bytes(args.str(0)?)).into_owned();
    let class = args.opt_str(1)?.map_or("torch.jit.Error", |c| c);
    Err(Diagnostic::raised(class, message))
}
