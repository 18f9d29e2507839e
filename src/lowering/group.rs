//! Reads a fusion group into one scalar program with loads and stores at its borders.

mod program;
mod refusals;
mod rows;

pub use program::{BlockSums, Form, GroupProgram, InputSig, Leaf, Leaves, Load, Piece, RowReduction, Slot};

use crate::diag::{Diagnostic, Result};
use crate::dialects::fusion;
use crate::dialects::rows::{RowMeaning, RowProgram};
use crate::dialects::scalar::{Inst, Program, Static, Sv};
use crate::dialects::shapes::layouts::replaces_tensor;
use crate::dialects::{Op, Order, Registry, Variant};
use crate::eval::{OperandKind, compile_elementwise};
use crate::ir::{Argument, Attr, Graph, OpId, Schema, TypeKind, ValueId};
use crate::tensor::{DType, Scalar};
use smallvec::SmallVec;

/// What a value of the group's graph is while it is read.
#[derive(Clone)]
enum Known {
    Tensor(Tensor),
    /// A number; None where only the run knows it, then `Sv` is its parameter.
    Number(Scalar),
    Passed(Sv),
    /// A chunked or whole input, loaded on first use.
    Source(usize, Option<(i64, i64, i64)>),
    /// Pieces joined along a dimension.
    Joined(Vec<Tensor>, i64),
    /// Sums of blocks of rows.
    Sums(Tensor, BlockSums),
    /// Text, None and the like.
    Other(Attr),
}

#[derive(Clone)]
struct Tensor {
    value: Sv,
    has_dims: bool,
    leaves: Leaves,
    /// None for a constant of rank 0.
    form: Option<usize>,
}

impl GroupProgram {
    /// Reads a group for inputs of a signature. Fails with `Unsupported` where an op or a dtype cannot be fused.
    pub fn new(graph: &Graph, inputs: &[InputSig], registry: &Registry) -> Result<GroupProgram> {
        if inputs.len() != graph.inputs().len() {
            let (given, taken) = (inputs.len(), graph.inputs().len());
            return Err(Diagnostic::internal(format!("{given} inputs for a group that takes {taken}")));
        }
        let mut reader = Reader::new(graph, inputs, registry)?;
        for op in graph.block_ops(graph.root()) {
            reader.op(op)?;
        }
        reader.finish()
    }
}

struct Reader<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
    inputs: &'a [InputSig],
    known: Vec<Option<Known>>,
    program: RowProgram,
    /// Parameter n of the program is `params[n]` while reading; they are sorted at the end.
    params: Vec<Source>,
    loads: Vec<Load>,
    scalars: Vec<(usize, DType)>,
    reductions: Vec<RowReduction>,
    forms: Vec<Form>,
    /// Inputs that are written to, and what they become.
    writes: Vec<(usize, Tensor)>,
}

/// What a parameter of the program under construction stands for.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Load,
    Scalar,
    Reduction,
    Count,
}

impl<'a> Reader<'a> {
    fn new(graph: &'a Graph, inputs: &'a [InputSig], registry: &'a Registry) -> Result<Reader<'a>> {
        let known = vec![None; graph.value_capacity()];
        let (program, params) = (RowProgram::new(), Vec::new());
        let mut r = Reader {
            graph,
            registry,
            inputs,
            known,
            program,
            params,
            loads: Vec::new(),
            scalars: Vec::new(),
            reductions: Vec::new(),
            forms: Vec::new(),
            writes: Vec::new(),
        };
        for (n, (value, sig)) in graph.inputs().iter().zip(inputs).enumerate() {
            let known = match sig {
                InputSig::Tensor(dtype, _) => {
                    supported(*dtype)?;
                    Known::Source(n, None)
                }
                InputSig::Int => r.passed(n, DType::I64),
                InputSig::Float => r.passed(n, DType::F64),
                InputSig::Bool => r.passed(n, DType::Bool),
            };
            r.known[value.index()] = Some(known);
        }
        Ok(r)
    }

    fn passed(&mut self, input: usize, dtype: DType) -> Known {
        self.params.push(Source::Scalar);
        self.scalars.push((input, dtype));
        Known::Passed(self.program.param(dtype))
    }

    fn refuse(&self, op: OpId, why: &str) -> Diagnostic {
        Diagnostic::unsupported(format!("{} cannot be fused: {why}", self.graph.kind(op)))
    }

    fn op(&mut self, op: OpId) -> Result<()> {
        let kind = self.graph.kind(op);
        match kind.as_str() {
            "prim::Constant" => self.constant(op),
            fusion::CHUNK => self.chunk(op),
            fusion::CONCAT => self.concat(op),
            fusion::COPY => self.copy(op),
            _ if !self.writes.is_empty() => Err(self.refuse(op, "it follows a write")),
            fusion::sums::BLOCK_SUMS => self.block_sums(op),
            _ if self.row_meaning(op).is_some() => self.along_rows(op),
            _ => self.elementwise(op),
        }
    }

    fn constant(&mut self, op: OpId) -> Result<()> {
        let value = self.graph.result(op, 0).ok_or_else(|| self.refuse(op, "it has no result"))?;
        let ty = self.graph.ty(value).kind().clone();
        let known = match self.graph.attr(op, "value") {
            Some(Attr::Int(x)) if ty == TypeKind::Bool => Known::Number(Scalar::Bool(*x != 0)),
            Some(Attr::Int(x)) => Known::Number(Scalar::Int(*x)),
            Some(Attr::Float(x)) => Known::Number(Scalar::Float(*x)),
            Some(Attr::Bool(x)) => Known::Number(Scalar::Bool(*x)),
            Some(Attr::Tensor(t)) if t.rank() == 0 && Elementary::of(t.dtype()) => {
                // A tensor of rank 0: its number, with the dtype of the tensor.
                let (number, dtype) = (t.item()?, t.dtype());
                let value = self.program.constant(number, dtype);
                Known::Tensor(Tensor { value, has_dims: false, leaves: SmallVec::new(), form: None })
            }
            Some(Attr::Tensor(_)) => return Err(self.refuse(op, "it holds a tensor with dimensions")),
            Some(other) => Known::Other(other.clone()),
            None => Known::Other(Attr::None),
        };
        self.known[value.index()] = Some(known);
        Ok(())
    }

    fn known(&self, op: OpId, value: ValueId) -> Result<Known> {
        self.known[value.index()].clone().ok_or_else(|| self.refuse(op, "an operand is not known"))
    }

    /// The tensor of a value, loaded if it is an input.
    fn tensor(&mut self, op: OpId, value: ValueId) -> Result<Tensor> {
        match self.known(op, value)? {
            Known::Tensor(t) => Ok(t),
            Known::Source(input, chunk) => {
                let InputSig::Tensor(dtype, has_dims) = self.inputs[input] else {
                    return Err(self.refuse(op, "an operand is not a tensor"));
                };
                let tensor = self.load(Load { input, chunk, dtype, domain: SmallVec::new() }, has_dims);
                self.known[value.index()] = Some(Known::Tensor(tensor.clone()));
                Ok(tensor)
            }
            _ => Err(self.refuse(op, "an operand is not a tensor")),
        }
    }

    fn load(&mut self, load: Load, has_dims: bool) -> Tensor {
        let n = self.loads.len();
        self.params.push(Source::Load);
        let value = self.program.param(load.dtype);
        self.loads.push(load);
        let form = Some(self.form(Form::Leaf(Leaf::Load(n))));
        Tensor { value, has_dims, leaves: SmallVec::from_slice(&[Leaf::Load(n)]), form }
    }

    fn form(&mut self, form: Form) -> usize {
        self.forms.push(form);
        self.forms.len() - 1
    }

    fn chunk(&mut self, op: OpId) -> Result<()> {
        let attr = |name| self.graph.attr(op, name).and_then(Attr::as_int);
        let (Some(chunks), Some(dim), Some(operand)) =
            (attr("chunks"), attr("dim"), self.graph.operand(op, 0))
        else {
            return Err(self.refuse(op, "it needs `chunks` and `dim`"));
        };
        let results = self.graph.results(op);
        if results.len() as i64 != chunks {
            return Err(self.refuse(op, "it has not as many results as parts"));
        }
        match self.known(op, operand)? {
            Known::Source(input, None) => {
                for (part, result) in results.into_iter().enumerate() {
                    self.known[result.index()] = Some(Known::Source(input, Some((dim, chunks, part as i64))));
                }
            }
            Known::Tensor(whole) if whole.leaves.iter().all(|leaf| self.is_whole(*leaf)) => {
                for (part, result) in results.into_iter().enumerate() {
                    let tensor = self.part_of(&whole, (dim, chunks, part as i64));
                    self.known[result.index()] = Some(Known::Tensor(tensor));
                }
            }
            _ => return Err(self.refuse(op, "its operand is a part already, or no tensor")),
        }
        Ok(())
    }

    /// Whether a leaf is a whole input.
    fn is_whole(&self, leaf: Leaf) -> bool {
        matches!(leaf, Leaf::Load(load) if self.loads[load].chunk.is_none()) && self.reductions.is_empty()
    }

    /// A part of a tensor that the group computes: the same computation over parts of what it is computed from.
    fn part_of(&mut self, whole: &Tensor, chunk: (i64, i64, i64)) -> Tensor {
        let inputs = whole.leaves.iter().filter_map(|leaf| match leaf {
            Leaf::Load(load) => Some(self.loads[*load].input),
            Leaf::Reduced(..) => None,
        });
        let domain: SmallVec<[usize; 4]> = inputs.collect();
        let insts = self.program.insts()[..=whole.value.index()].to_vec();
        let mut needed = vec![false; insts.len()];
        needed[whole.value.index()] = true;
        for at in (0..insts.len()).rev().filter(|at| *at <= whole.value.index()) {
            if needed[at] {
                let operands = std::cell::RefCell::new(SmallVec::<[usize; 3]>::new());
                insts[at].0.map_operands(|x| {
                    operands.borrow_mut().push(x.index());
                    x
                });
                operands.into_inner().into_iter().for_each(|x| needed[x] = true);
            }
        }
        let mut map: Vec<Sv> = Vec::with_capacity(insts.len());
        let mut leaves = SmallVec::new();
        let mut forms = SmallVec::new();
        for (at, (inst, dtype)) in insts.iter().enumerate() {
            let value = match inst {
                // Unneeded values map to something that is never read.
                _ if !needed[at] => whole.value,
                Inst::Param(n) if self.params[*n as usize] == Source::Load => {
                    let load = self.params[..*n as usize].iter().filter(|s| **s == Source::Load).count();
                    let input = self.loads[load].input;
                    let load = Load { input, chunk: Some(chunk), dtype: *dtype, domain: domain.clone() };
                    let tensor = self.load(load, true);
                    leaves.extend(tensor.leaves);
                    forms.extend(tensor.form);
                    tensor.value
                }
                Inst::Param(_) => self.program.push(*inst, *dtype),
                inst => self.program.push(inst.map_operands(|x| map[x.index()]), *dtype),
            };
            map.push(value);
        }
        let form = Some(self.form(Form::Elementwise(forms, false, Order::Operands)));
        Tensor { value: map[whole.value.index()], has_dims: whole.has_dims, leaves, form }
    }

    /// Stores a value where an input lies. Nothing that comes after it reads.
    fn copy(&mut self, op: OpId) -> Result<()> {
        let [target, value] = [0, 1].map(|n| self.graph.operand(op, n));
        let (Some(target), Some(value)) = (target, value) else {
            return Err(self.refuse(op, "it needs a tensor and what it becomes"));
        };
        let input = self.graph.inputs().iter().position(|input| *input == target);
        let input = input.ok_or_else(|| self.refuse(op, "it writes to a value that is not an input"))?;
        let value = self.tensor(op, value)?;
        let InputSig::Tensor(dtype, has_dims) = self.inputs[input] else {
            return Err(self.refuse(op, "it writes to a value that is not a tensor"));
        };
        if self.program.dtype(value.value) != dtype || has_dims != value.has_dims {
            return Err(self.refuse(op, "what it copies is of another dtype or rank"));
        }
        if self.writes.iter().any(|(other, _)| *other == input) {
            return Err(self.refuse(op, "it is the second write to an input"));
        }
        self.writes.push((input, value));
        Ok(())
    }

    fn concat(&mut self, op: OpId) -> Result<()> {
        let dim = self.graph.attr(op, "dim").and_then(Attr::as_int);
        let dim = dim.ok_or_else(|| self.refuse(op, "it needs `dim`"))?;
        if !self.reductions.is_empty() {
            return Err(self.refuse(op, "what it joins is computed along rows"));
        }
        let operands = self.graph.operands(op).to_vec();
        let parts = operands.iter().map(|v| self.tensor(op, *v)).collect::<Result<Vec<Tensor>>>()?;
        let Some(first) = parts.first() else { return Err(self.refuse(op, "it has no operands")) };
        let dtype = self.program.dtype(first.value);
        if parts.iter().any(|p| self.program.dtype(p.value) != dtype || !p.has_dims) {
            return Err(self.refuse(op, "its operands differ in dtype or have no dimensions"));
        }
        if let Some(result) = self.graph.result(op, 0) {
            self.known[result.index()] = Some(Known::Joined(parts, dim));
        }
        Ok(())
    }

    /// An op whose row has a scalar meaning.
    fn elementwise(&mut self, op: OpId) -> Result<()> {
        let row = self.find_row(op)?;
        self.probe(op, row)?;
        let call = self.call(op, row)?;
        let compiled = compile_elementwise(row, &call.kinds, call.statics)?;
        self.fit_numbers(op, row, compiled.common)?;
        let value = self.splice(&compiled.program, &call.values, compiled.output)?;
        if let Some(out) = self.graph.result(op, 0) {
            let form = Some(self.form(Form::Elementwise(call.forms, call.beside_number, row.def().order)));
            let tensor = Tensor { value, has_dims: call.has_dims, leaves: call.leaves, form };
            self.known[out.index()] = Some(Known::Tensor(tensor));
        }
        Ok(())
    }

    /// Sorts the operands of an op by what they are.
    fn call(&mut self, op: OpId, row: &Op) -> Result<Call> {
        let mut call = Call::default();
        let arguments = &row.schema()?.arguments;
        call.beside_number = arguments.iter().any(|a| replaces_tensor(arguments, a));
        for (n, argument) in arguments.iter().enumerate() {
            let given = match self.graph.operand(op, n) {
                Some(value) => match self.known(op, value)? {
                    Known::Source(..) => Known::Tensor(self.tensor(op, value)?),
                    other => other,
                },
                None => Known::from_default(argument.default.as_ref()),
            };
            if row.def().rows.is_some() {
                match call.rows.take(argument, &given) {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(why) => return Err(self.refuse(op, &why)),
                }
            }
            // A factor of 1 is left out, as the row expects.
            let is_factor = argument.keyword_only || argument.name == "alpha";
            match (role(argument), given) {
                (Role::Static, given) => call.statics.push(given.to_static().ok_or_else(|| {
                    self.refuse(op, &format!("its argument {} is not a constant", argument.name))
                })?),
                (_, Known::Other(Attr::None)) => call.kinds.push(None),
                (_, Known::Number(Scalar::Int(1))) if is_factor => call.kinds.push(None),
                (_, Known::Number(c)) => {
                    call.kinds.push(Some(OperandKind::Number(c.dtype())));
                    call.values.push(self.program.constant(c, c.dtype()));
                }
                (_, Known::Passed(v)) => {
                    call.kinds.push(Some(OperandKind::Number(self.program.dtype(v))));
                    call.values.push(v);
                }
                (_, Known::Tensor(t)) => {
                    let kind = if t.has_dims { OperandKind::Dims } else { OperandKind::Zero };
                    call.kinds.push(Some(kind(self.program.dtype(t.value))));
                    call.values.push(t.value);
                    call.has_dims |= t.has_dims;
                    call.beside_number |= t.form.is_none();
                    call.forms.extend(t.form);
                    if call.mixes(&t) {
                        return Err(self.refuse(op, "dimensions of a reduction are missing"));
                    }
                    // In the order of operands, as the first of them decides the layout of the result.
                    for leaf in t.leaves {
                        if !call.leaves.contains(&leaf) {
                            call.leaves.push(leaf);
                        }
                    }
                }
                (_, Known::Source(..) | Known::Joined(..) | Known::Sums(..) | Known::Other(_)) => {
                    return Err(self.refuse(op, &format!("of its argument {}", argument.name)));
                }
            }
        }
        Ok(call)
    }

    /// Copies an op's program into the group's; conversions of constants are done here, once.
    fn splice(&mut self, other: &Program, params: &[Sv], result: Sv) -> Result<Sv> {
        let mut map: Vec<Sv> = Vec::with_capacity(other.insts().len());
        for (inst, dtype) in other.insts() {
            supported(*dtype)?;
            let value = match inst {
                Inst::Param(n) => *params
                    .get(*n as usize)
                    .ok_or_else(|| Diagnostic::internal("a scalar program with too many parameters"))?,
                Inst::Convert(x) => {
                    let x = map[x.index()];
                    match self.program.insts()[x.index()].0 {
                        Inst::Const(c) => {
                            let c = rounded(c, self.program.dtype(x));
                            self.program.constant(c, *dtype)
                        }
                        _ => self.program.convert(x, *dtype),
                    }
                }
                inst => self.program.push(inst.map_operands(|x| map[x.index()]), *dtype),
            };
            map.push(value);
        }
        Ok(map[result.index()])
    }

    /// The first elementwise overload whose arguments fit.
    fn find_row(&self, op: OpId) -> Result<&'a Op> {
        let overloads = self.registry.overloads(self.graph.kind(op)).iter();
        let mut fitting = overloads.filter(|candidate| {
            candidate.variant() == Variant::Plain
                && candidate.def().scalar.is_some()
                && candidate.schema().is_ok_and(|schema| self.fits(op, schema))
        });
        fitting.next().ok_or_else(|| self.refuse(op, "no elementwise overload takes its operands"))
    }

    fn fits(&self, op: OpId, schema: &Schema) -> bool {
        let operands = self.graph.operands(op);
        let rest = schema.arguments.iter().skip(operands.len());
        operands.len() <= schema.arguments.len()
            && rest.into_iter().all(|a| a.default.is_some())
            && operands.iter().zip(&schema.arguments).all(|(value, argument)| {
                let is_tensor = match &self.known[value.index()] {
                    Some(Known::Tensor(_) | Known::Source(..) | Known::Joined(..) | Known::Sums(..)) => true,
                    Some(_) => false,
                    None => return false,
                };
                match argument.ty.kind() {
                    TypeKind::Tensor(_) => is_tensor,
                    TypeKind::Optional(inner) => inner.is_tensor() || !is_tensor,
                    _ => !is_tensor,
                }
            })
    }

    fn finish(mut self) -> Result<GroupProgram> {
        let (mut pieces, mut outputs) = (Vec::new(), Vec::new());
        for (output, value) in self.graph.outputs().to_vec().into_iter().enumerate() {
            let (parts, concat, sums) = match self.known[value.index()].clone() {
                Some(Known::Tensor(t)) => (vec![t], None, None),
                Some(Known::Joined(parts, dim)) => (parts, Some(dim), None),
                Some(Known::Sums(t, sums)) => (vec![t], None, Some(sums)),
                _ => return Err(Diagnostic::unsupported("a group output that no op of it computes")),
            };
            let mut slot = Slot { dtype: DType::F32, pieces: SmallVec::new(), concat };
            for part in parts {
                slot.dtype = self.program.dtype(part.value);
                slot.pieces.push(pieces.len());
                // An output that is a constant has no dimensions.
                let form = part.form.unwrap_or_else(|| self.form(Form::RowMajor(SmallVec::new())));
                let (value, leaves) = (part.value, part.leaves);
                pieces.push(Piece { output, value, leaves, form, reduced: false, sums });
            }
            outputs.push(slot);
        }
        for (n, (_, value)) in self.writes.iter().enumerate() {
            let form = value.form.ok_or_else(|| Diagnostic::unsupported("a write of a constant"))?;
            let (value, leaves) = (value.value, value.leaves.clone());
            pieces.push(Piece { output: outputs.len() + n, value, leaves, form, reduced: false, sums: None });
        }
        let writes =
            self.writes.iter().map(|(input, value)| (*input, self.program.dtype(value.value))).collect();
        let (program, map) = self.sorted();
        let reduced = self.reduced();
        for piece in &mut pieces {
            piece.reduced = reduced[piece.value.index()];
            piece.value = map[piece.value.index()];
        }
        for reduction in &mut self.reductions {
            reduction.value = map[reduction.value.index()];
        }
        Ok(GroupProgram {
            program,
            loads: std::mem::take(&mut self.loads),
            scalars: self.scalars,
            reductions: self.reductions,
            pieces,
            forms: self.forms,
            outputs,
            writes,
        })
    }

    /// Which values depend on a reduction.
    fn reduced(&self) -> Vec<bool> {
        let mut reduced: Vec<bool> = Vec::with_capacity(self.program.insts().len());
        for (inst, _) in self.program.insts() {
            let own = match inst {
                Inst::Param(n) => matches!(self.params[*n as usize], Source::Reduction | Source::Count),
                _ => false,
            };
            reduced.push(own || inst.operands().any(|x| reduced[x.index()]));
        }
        reduced
    }

    /// The program with its parameters sorted: loads, scalars, reductions, the length of rows.
    fn sorted(&self) -> (Program, Vec<Sv>) {
        let mut dtypes = vec![DType::F32; self.params.len()];
        for (inst, dtype) in self.program.insts() {
            if let Inst::Param(n) = inst {
                dtypes[*n as usize] = *dtype;
            }
        }
        let mut sorted = Program::new();
        let mut place = vec![Sv::ABSENT; self.params.len()];
        for wanted in [Source::Load, Source::Scalar, Source::Reduction, Source::Count] {
            for (n, _) in self.params.iter().enumerate().filter(|(_, s)| **s == wanted) {
                place[n] = sorted.param(dtypes[n]);
            }
        }
        let mut map: Vec<Sv> = Vec::new();
        for (inst, dtype) in self.program.insts() {
            map.push(match inst {
                Inst::Param(n) => place[*n as usize],
                inst => sorted.push(inst.map_operands(|x| map[x.index()]), *dtype),
            });
        }
        (sorted, map)
    }
}

/// What an op says of its rows.
#[derive(Default)]
struct RowArguments {
    dims: SmallVec<[i64; 2]>,
    keepdim: bool,
}

impl RowArguments {
    /// Takes an argument that is about rows and no operand; gives whether it was one.
    fn take(&mut self, argument: &Argument, given: &Known) -> std::result::Result<bool, String> {
        match (argument.name.as_str(), given) {
            ("dim", Known::Number(Scalar::Int(dim))) => self.dims.push(*dim),
            ("dim", Known::Other(Attr::Ints(dims))) if !dims.is_empty() => self.dims.extend_from_slice(dims),
            ("keepdim", Known::Number(Scalar::Bool(keep))) => self.keepdim = *keep,
            ("dtype", Known::Other(Attr::None)) => {}
            ("dim" | "keepdim" | "dtype", _) => {
                return Err(format!("of its argument {}", argument.name));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The operands of an op, sorted by what they are.
#[derive(Default)]
struct Call {
    kinds: Vec<Option<OperandKind>>,
    /// Those that are there.
    values: Vec<Sv>,
    statics: Vec<Static>,
    has_dims: bool,
    leaves: Leaves,
    forms: SmallVec<[usize; 3]>,
    /// Whether a number stands in the place of a tensor.
    beside_number: bool,
    /// Of an op along rows.
    rows: RowArguments,
}

impl Call {
    /// Whether a tensor of which a reduction took dimensions meets one that has them: places would not correspond.
    fn mixes(&self, other: &Tensor) -> bool {
        let dropped = |leaf: &Leaf| matches!(leaf, Leaf::Reduced(_, false));
        let all = || self.leaves.iter().chain(&other.leaves);
        all().any(dropped) && !all().all(dropped)
    }
}

enum Role {
    Operand,
    Static,
}

/// Whether an argument is an operand of the scalar program (a tensor or a number) or fixed when it is built.
fn role(argument: &Argument) -> Role {
    let kind = match argument.ty.kind() {
        TypeKind::Optional(inner) => inner.kind(),
        kind => kind,
    };
    match kind {
        TypeKind::Tensor(_) | TypeKind::Number => Role::Operand,
        _ => Role::Static,
    }
}

/// A constant as its dtype holds it.
fn rounded(c: Scalar, dtype: DType) -> Scalar {
    match dtype {
        DType::F32 => Scalar::Float(f64::from(c.to_f64() as f32)),
        _ => c,
    }
}

impl Known {
    fn from_default(default: Option<&Attr>) -> Known {
        match default {
            Some(Attr::Int(x)) => Known::Number(Scalar::Int(*x)),
            Some(Attr::Float(x)) => Known::Number(Scalar::Float(*x)),
            Some(Attr::Bool(x)) => Known::Number(Scalar::Bool(*x)),
            Some(other) => Known::Other(other.clone()),
            None => Known::Other(Attr::None),
        }
    }

    fn to_static(&self) -> Option<Static> {
        match self {
            Known::Number(Scalar::Int(x)) => Some(Static::Int(*x)),
            Known::Number(Scalar::Float(x)) => Some(Static::Float(*x)),
            Known::Number(Scalar::Bool(x)) => Some(Static::Bool(*x)),
            Known::Other(Attr::Str(x)) => Some(Static::Str(x.clone())),
            Known::Other(Attr::None) => Some(Static::None),
            _ => None,
        }
    }
}

/// Dtypes that kernels compute with.
struct Elementary;

impl Elementary {
    fn of(dtype: DType) -> bool {
        matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64 | DType::Bool)
    }
}

fn supported(dtype: DType) -> Result<()> {
    if Elementary::of(dtype) {
        return Ok(());
    }
    Err(Diagnostic::unsupported(format!("fused kernels do not compute with dtype {}", dtype.name())))
}
