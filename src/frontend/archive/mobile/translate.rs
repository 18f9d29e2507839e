//! From instructions to graphs: the stack machine runs on names of values instead of values.
//!
//! PyTorch makes the jumps of bytecode from `prim::If` and `prim::Loop` alone, so that both are found again by their
//! form. A jump of another form is an error. Loops are translated again where their variables turn out to have another
//! type than before them.

use super::code::{Code, Instruction};
use super::slots::{self, Stored};
use super::types;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::frontend::archive::emit::Emitter;
use crate::ir::unify::unify_as;
use crate::ir::{
    Argument, Attr, BlockId, Function, Graph, Module, OpId, Schema, Symbol, Type, TypeKind, ValueId,
};
use hashbrown::HashSet;
use indexmap::IndexMap;
use std::ops::Range;

/// Blocks nested deeper than this are refused.
const MAX_NESTING: usize = 100;

/// Instructions of one method that are examined, those of loops that are translated again included.
const MAX_STEPS: usize = 4 << 20;

/// A method as a function. Errors name the instruction.
pub(super) fn function(registry: &Registry, module: &Module, code: &Code) -> Result<Function> {
    let (mut machine, arguments, returns) = Machine::after(registry, module, code, None)?;
    let result = machine.pop()?;
    let result = match returns.as_slice() {
        [wanted] => machine.emitter.cast(result, wanted)?,
        _ => result,
    };
    machine.emitter.graph.add_output(result);
    let ty = machine.emitter.graph.ty(result).clone();
    let name = Symbol::new(&code.name);
    let schema = Schema::new(name, arguments, vec![Argument::new("", ty)]);
    Ok(Function { name, schema, graph: machine.emitter.graph, span: None })
}

/// A method as its signature says it is, without what it does; None where bytecode does not keep the signature.
pub(super) fn declared(registry: &Registry, module: &Module, code: &Code) -> Result<Option<Function>> {
    if code.signature.is_none() {
        return Ok(None);
    }
    let machine = Machine::before(registry, module, code, None);
    let (arguments, returns) = machine.signature()?;
    let name = Symbol::new(&code.name);
    let returns = returns.into_iter().map(|ty| Argument::new("", ty)).collect();
    let schema = Schema::new(name, arguments, returns);
    Ok(Some(Function { name, schema, graph: machine.emitter.graph, span: None }))
}

/// What a method stores in attributes of classes that have none yet.
pub(super) fn stored(registry: &Registry, module: &Module, code: &Code) -> Result<Stored> {
    let (machine, ..) = Machine::after(registry, module, code, Some(Stored::new()))?;
    Ok(machine.stored.unwrap_or_default())
}

/// The machine between two instructions.
pub(super) struct Machine<'a> {
    pub(super) emitter: Emitter<'a>,
    pub(super) code: &'a Code,
    pub(super) stack: Vec<ValueId>,
    /// What a block finds on the stack and may not take.
    floor: usize,
    pub(super) registers: IndexMap<i64, ValueId>,
    /// Values that are never read: results of `prim::Uninitialized`.
    pub(super) unset: HashSet<ValueId>,
    /// What was stored in attributes that are not known, where that is asked for.
    stored: Option<Stored>,
    steps: usize,
    nesting: usize,
    at: usize,
}

/// A machine with the arguments and the types of results of its method.
type Ran<'a> = (Machine<'a>, Vec<Argument>, Vec<Type>);

impl<'a> Machine<'a> {
    /// The machine when the method is at its end.
    fn before(
        registry: &'a Registry,
        module: &'a Module,
        code: &'a Code,
        stored: Option<Stored>,
    ) -> Machine<'a> {
        let graph = Graph::new();
        let block = graph.root();
        Machine {
            emitter: Emitter { registry, module, graph, block },
            code,
            stack: Vec::new(),
            floor: 0,
            registers: IndexMap::new(),
            unset: HashSet::new(),
            stored,
            steps: 0,
            nesting: 0,
            at: 0,
        }
    }

    fn after(
        registry: &'a Registry,
        module: &'a Module,
        code: &'a Code,
        stored: Option<Stored>,
    ) -> Result<Ran<'a>> {
        let mut machine = Machine::before(registry, module, code, stored);
        let (arguments, returns) = machine.signature()?;
        for argument in &arguments {
            let value = machine.emitter.graph.add_input(argument.ty.clone());
            machine.stack.push(value);
        }
        machine.run(0..code.instructions.len()).map_err(|error| {
            let shown = code.instructions.get(machine.at).map_or("", |i| &*i.name);
            super::code::named(error, &format!("instruction {} ({})", machine.at, shown.escape_debug()))
        })?;
        Ok((machine, arguments, returns))
    }
}

impl Machine<'_> {
    /// Name and type of an attribute that is known by what is stored in it. None where that is not asked for.
    pub(super) fn stored_attribute(
        &mut self,
        class: Symbol,
        slot: usize,
        value: Option<ValueId>,
    ) -> Option<(Symbol, Type)> {
        let module = self.emitter.module;
        let all = self.stored.as_mut().filter(|_| slot < slots::MAX_SLOTS)?;
        if let Some(value) = value {
            slots::note(all, module, (class, slot), self.emitter.graph.ty(value));
        }
        all.get(&(class, slot)).map(|ty| (slots::name(slot), ty.clone()))
    }

    /// Arguments and types of results. Without a signature, the receiver and as many tensors as the first instruction
    /// stores.
    fn signature(&self) -> Result<(Vec<Argument>, Vec<Type>)> {
        let module = self.emitter.module;
        let class = self.code.name.rsplit_once('.').map_or("", |(class, _)| class);
        let Some((parameters, returns)) = &self.code.signature else {
            let first = self.code.instructions.first();
            let count = first.filter(|i| &*i.name == "STOREN").map_or(1, |i| i.n.clamp(1, 1 << 10));
            let receiver = Argument::new("self", Type::class(Symbol::new(class)));
            let rest = (1..count).map(|n| Argument::new(format!("argument_{n}").as_str(), Type::tensor()));
            return Ok((std::iter::once(receiver).chain(rest).collect(), Vec::new()));
        };
        let argument = |parameter: &super::code::Parameter| -> Result<Argument> {
            let mut argument = Argument::new(&*parameter.name, types::parse(module, &parameter.ty)?);
            argument.default = parameter.default.clone();
            if matches!(argument.ty.kind(), TypeKind::Optional(_)) && argument.default.is_none() {
                // A default of None is written without a default.
                argument.default = Some(Attr::None);
            }
            Ok(argument)
        };
        let mut arguments = parameters.iter().map(argument).collect::<Result<Vec<Argument>>>()?;
        // A default may not stand before an argument without one.
        if let Some(last) = arguments.iter().rposition(|a| a.default.is_none()) {
            arguments[..last].iter_mut().for_each(|a| a.default = None);
        }
        let returns = returns.iter().map(|text| types::parse(module, text)).collect::<Result<_>>()?;
        Ok((arguments, returns))
    }

    pub(super) fn push(&mut self, value: ValueId) {
        self.stack.push(value);
    }

    pub(super) fn pop(&mut self) -> Result<ValueId> {
        if self.stack.len() <= self.floor {
            return Err(Diagnostic::input("a value is taken from an empty stack"));
        }
        self.stack.pop().ok_or_else(|| Diagnostic::input("a value is taken from an empty stack"))
    }

    /// The top values, lowest first.
    pub(super) fn pop_many(&mut self, count: i64) -> Result<Vec<ValueId>> {
        let count = usize::try_from(count).ok();
        let start =
            count.and_then(|count| self.stack.len().checked_sub(count)).filter(|start| *start >= self.floor);
        let start = start.ok_or_else(|| Diagnostic::input("more values are taken than the stack has"))?;
        Ok(self.stack.split_off(start))
    }

    fn instruction(&self, at: usize) -> Result<&Instruction> {
        self.code.instructions.get(at).ok_or_else(|| Diagnostic::input("a jump leaves the method"))
    }

    /// Translates instructions into the current block.
    fn run(&mut self, range: Range<usize>) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            self.at = at;
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(Diagnostic::unsupported(format!(
                    "translating more than {MAX_STEPS} instructions"
                )));
            }
            let instruction = self.instruction(at)?.clone();
            match &*instruction.name {
                "JF" => at = self.branch(at, &instruction, range.end)?,
                "LOOP" => at = self.cycle(at, &instruction, range.end)?,
                "JMP" => {
                    return Err(Diagnostic::unsupported(
                        "a jump that belongs to no condition and to no loop",
                    ));
                }
                "RET" => {
                    if at + 1 != self.code.instructions.len() || self.nesting > 0 {
                        return Err(Diagnostic::unsupported("a return before the end of a method"));
                    }
                    return Ok(());
                }
                _ => {
                    self.step(&instruction)?;
                    at += 1;
                }
            }
        }
        Ok(())
    }

    /// Translates instructions into a block of their own, which starts with the given stack above what it may not take.
    /// Gives what it leaves there.
    fn nested(&mut self, block: BlockId, range: Range<usize>, start: Vec<ValueId>) -> Result<Vec<ValueId>> {
        if self.nesting >= MAX_NESTING {
            return Err(Diagnostic::unsupported(format!("blocks nested more than {MAX_NESTING} deep")));
        }
        let outer_block = std::mem::replace(&mut self.emitter.block, block);
        let outer_floor = std::mem::replace(&mut self.floor, self.stack.len());
        let registers = self.registers.clone();
        self.stack.extend(start);
        self.nesting += 1;
        let result = self.run(range);
        self.nesting -= 1;
        let left = self.stack.split_off(self.floor.min(self.stack.len()));
        self.registers = registers;
        self.floor = outer_floor;
        self.emitter.block = outer_block;
        result.map(|()| left)
    }

    /// `prim::If`: a jump over the first block, which ends with a jump over the second. Gives what comes next.
    fn branch(&mut self, at: usize, jump: &Instruction, limit: usize) -> Result<usize> {
        let condition = self.pop()?;
        let condition = self.emitter.cast(condition, &Type::bool())?;
        let second = target(at, jump.x, limit)?;
        let skip =
            second.checked_sub(1).filter(|skip| *skip > at).map(|skip| self.instruction(skip)).transpose()?;
        let end = match skip {
            Some(skip) if &*skip.name == "JMP" && skip.x > 0 => target(second - 1, skip.x, limit)?,
            _ => return Err(Diagnostic::unsupported("a conditional jump that is not the start of an if")),
        };
        let op = self.emitter.emit("prim::If", &[condition], &[]);
        let mut outcomes = Vec::with_capacity(2);
        for range in [at + 1..second - 1, second..end] {
            let block = self.emitter.graph.add_block(op);
            outcomes.push((block, self.nested(block, range, Vec::new())?));
        }
        self.at = at;
        let [(_, first), (_, other)] = outcomes.as_slice() else {
            return Err(Diagnostic::internal("an if without its blocks"));
        };
        if first.len() != other.len() {
            return Err(Diagnostic::input("the two sides of an if leave different numbers of values"));
        }
        for (a, b) in first.clone().into_iter().zip(other.clone()) {
            let is_unset = self.unset.contains(&a) && self.unset.contains(&b);
            let ty = self.common_type(a, b);
            self.set_unset_type(a, &ty);
            self.set_unset_type(b, &ty);
            let result = self.emitter.graph.add_result(op, ty);
            if is_unset {
                self.unset.insert(result);
            }
            self.push(result);
        }
        for (block, results) in &outcomes {
            self.emitter.graph.set_block_results(*block, results);
        }
        Ok(end)
    }

    /// `prim::Loop`: counter, bound, condition and variables lie on the stack; the body ends with a jump back.
    fn cycle(&mut self, at: usize, head: &Instruction, limit: usize) -> Result<usize> {
        let end = target(at, head.x, limit)?;
        let back =
            end.checked_sub(1).filter(|back| *back > at).map(|back| self.instruction(back)).transpose()?;
        let returns = |back: &&Instruction| &*back.name == "JMP" && back.x == at as i64 - (end as i64 - 1);
        if back.filter(returns).is_none() {
            return Err(Diagnostic::unsupported("a loop whose body does not end with a jump to its start"));
        }
        let mut start = self.pop_many(head.n.checked_add(1).unwrap_or(-1))?;
        if start.len() < 3 {
            return Err(Diagnostic::input("a loop has no counter, bound and condition"));
        }
        let carried = start.split_off(3);
        let (bound, condition) = (start[1], start[2]);
        let bound = self.emitter.cast(bound, &Type::int())?;
        let condition = self.emitter.cast(condition, &Type::bool())?;
        let mut kinds: Vec<Type> = carried.iter().map(|v| self.emitter.graph.ty(*v).clone()).collect();
        let mut unset: Vec<bool> = carried.iter().map(|v| self.unset.contains(v)).collect();
        loop {
            let operands: Vec<ValueId> =
                [bound, condition].into_iter().chain(carried.iter().copied()).collect();
            let op = self.emitter.emit("prim::Loop", &operands, &kinds);
            let outer_unset = self.unset.clone();
            let after = self.body(op, at + 1..end - 1, &kinds)?;
            self.at = at;
            let found: Vec<Type> = after.iter().skip(1).map(|v| self.emitter.graph.ty(*v).clone()).collect();
            let mut grown = false;
            for (n, found) in found.iter().enumerate() {
                let wider = if unset[n] { found.clone() } else { self.unified(&kinds[n], found) };
                unset[n] = false;
                grown |= wider != kinds[n];
                kinds[n] = wider;
            }
            if !grown {
                let op_results = self.emitter.graph.results(op);
                for (value, ty) in carried.iter().zip(&kinds) {
                    self.set_unset_type(*value, ty);
                }
                self.stack.extend(op_results);
                return Ok(end);
            }
            // Translated again from wider types, which end at Any. Values of the first time are gone.
            self.unset = outer_unset;
            self.emitter.graph.erase(op);
        }
    }

    /// The body of a loop whose variables have the given types. Gives what it leaves: the condition and the variables.
    fn body(&mut self, op: OpId, range: Range<usize>, kinds: &[Type]) -> Result<Vec<ValueId>> {
        let block = self.emitter.graph.add_block(op);
        let counter = self.emitter.graph.add_param(block, Type::int());
        let params = kinds.iter().map(|ty| self.emitter.graph.add_param(block, ty.clone()));
        let start: Vec<ValueId> = std::iter::once(counter).chain(params.collect::<Vec<_>>()).collect();
        let mut after = self.nested(block, range, start)?;
        if after.len() != kinds.len() + 1 {
            return Err(Diagnostic::input(
                "the body of a loop leaves another number of values than it takes",
            ));
        }
        let outer = std::mem::replace(&mut self.emitter.block, block);
        let condition = self.emitter.cast(after[0], &Type::bool());
        self.emitter.block = outer;
        after[0] = condition?;
        self.emitter.graph.set_block_results(block, &after);
        Ok(after)
    }

    /// The type of a value that is one of two.
    fn common_type(&self, a: ValueId, b: ValueId) -> Type {
        let (x, y) = (self.emitter.graph.ty(a), self.emitter.graph.ty(b));
        match (self.unset.contains(&a), self.unset.contains(&b)) {
            (true, _) => y.clone(),
            (_, true) => x.clone(),
            _ => self.unified(x, y),
        }
    }

    fn unified(&self, a: &Type, b: &Type) -> Type {
        unify_as(a, b, self.emitter.module, false, None).unwrap_or_else(Type::any)
    }

    /// A value that is never read has whatever type is wanted.
    fn set_unset_type(&mut self, value: ValueId, ty: &Type) {
        if self.unset.contains(&value) {
            self.emitter.graph.set_type(value, ty.clone());
        }
    }
}

/// Where a jump leads: forwards, within the block.
fn target(at: usize, by: i64, limit: usize) -> Result<usize> {
    let target = usize::try_from(by).ok().filter(|by| *by > 0).and_then(|by| at.checked_add(by));
    target.filter(|target| *target <= limit).ok_or_else(|| Diagnostic::unsupported("a jump out of its block"))
}
