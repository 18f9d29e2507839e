//! Recurrent layers and cells with packed weights: the input is quantized as a whole, the state at each step; gates are
//! computed in float32.

use super::linear::{dynamic, half};
use super::packed::{CellWeights, LinearWeights, payload};
use super::stage::Epilogue;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Effects, Kernel, OpDef, Outputs, Quantized, one, opaque};
use crate::kernels::rows::vector::{gru_row, lstm_row};
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::{Tensor, view};
use crate::value::{Object, Value};
use smallvec::smallvec;

const fn own(schema: &'static str, eval: Kernel) -> OpDef {
    opaque(schema, eval).quantized(Quantized::Own)
}

/// The rows.
#[rustfmt::skip] // one line an op
pub static OPS: &[OpDef] = &[
    own("aten::quantized_lstm.input(Tensor input, Tensor[] hx, __torch__.torch.classes.rnn.CellParamsBase[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first, *, ScalarType? dtype=None, bool use_dynamic=False) -> (Tensor, Tensor, Tensor)", |a| sequence(a, Kind::Lstm)).effects(Effects::RANDOM),
    own("aten::quantized_lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, __torch__.torch.classes.rnn.CellParamsBase[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, *, ScalarType? dtype=None, bool use_dynamic=False) -> (Tensor, Tensor, Tensor)", |a| packed(a, Kind::Lstm)).effects(Effects::RANDOM),
    own("aten::quantized_gru.input(Tensor input, Tensor hx, __torch__.torch.classes.rnn.CellParamsBase[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)", |a| sequence(a, Kind::Gru)).effects(Effects::RANDOM),
    own("aten::quantized_gru.data(Tensor data, Tensor batch_sizes, Tensor hx, __torch__.torch.classes.rnn.CellParamsBase[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)", |a| packed(a, Kind::Gru)).effects(Effects::RANDOM),
    own("quantized::quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, __torch__.torch.classes.quantized.LinearPackedParamsBase w_ih, __torch__.torch.classes.quantized.LinearPackedParamsBase w_hh, Tensor bias_ih, Tensor bias_hh) -> (Tensor, Tensor)", |a| single(a, Kind::Lstm)),
    own("quantized::quantized_gru_cell_dynamic(Tensor input, Tensor hx, __torch__.torch.classes.quantized.LinearPackedParamsBase w_ih, __torch__.torch.classes.quantized.LinearPackedParamsBase w_hh, Tensor b_ih, Tensor b_hh) -> Tensor", |a| single(a, Kind::Gru)),
    own("quantized::quantized_rnn_relu_cell_dynamic(Tensor input, Tensor hx, __torch__.torch.classes.quantized.LinearPackedParamsBase w_ih, __torch__.torch.classes.quantized.LinearPackedParamsBase w_hh, Tensor b_ih, Tensor b_hh) -> Tensor", |a| single(a, Kind::Relu)),
    own("quantized::quantized_rnn_tanh_cell_dynamic(Tensor input, Tensor hx, __torch__.torch.classes.quantized.LinearPackedParamsBase w_ih, __torch__.torch.classes.quantized.LinearPackedParamsBase w_hh, Tensor b_ih, Tensor b_hh) -> Tensor", |a| single(a, Kind::Tanh)),
    own("quantized::make_quantized_cell_params_dynamic(__torch__.torch.classes.quantized.LinearPackedParamsBase w_ih, __torch__.torch.classes.quantized.LinearPackedParamsBase w_hh, Tensor bias_ih, Tensor bias_hh, bool reduce_range=False) -> __torch__.torch.classes.rnn.CellParamsBase", |a| {
        let cell = CellWeights::Dynamic {
            input: linear_object(a, 0)?,
            hidden: linear_object(a, 1)?,
            input_bias: a.tensor(2)?.clone(),
            hidden_bias: a.tensor(3)?.clone(),
            reduce_range: a.bool(4)?,
        };
        one(Value::Object(cell.object()))
    }),
    own("quantized::make_quantized_cell_params_fp16(__torch__.torch.classes.quantized.LinearPackedParamsBase w_ih, __torch__.torch.classes.quantized.LinearPackedParamsBase w_hh) -> __torch__.torch.classes.rnn.CellParamsBase", |a| {
        one(Value::Object(CellWeights::Half { input: linear_object(a, 0)?, hidden: linear_object(a, 1)? }.object()))
    }),
];

fn linear_object(a: &Args<'_>, n: usize) -> Result<Object> {
    payload::<LinearWeights>(a.value(n)?)?;
    a.value(n)?.to_object().cloned()
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Lstm,
    Gru,
    Relu,
    Tanh,
}

impl Kind {
    fn gates(self) -> usize {
        match self {
            Kind::Lstm => 4,
            Kind::Gru => 3,
            Kind::Relu | Kind::Tanh => 1,
        }
    }
}

/// The two products of a cell.
struct Cell<'a> {
    kind: Kind,
    input: &'a LinearWeights,
    hidden: &'a LinearWeights,
    reduce_range: bool,
}

/// What a cell remembers, one row a sequence.
struct State {
    h: Scratch<f32>,
    c: Scratch<f32>,
}

impl<'a> Cell<'a> {
    fn of(kind: Kind, cell: &'a CellWeights) -> Result<Cell<'a>> {
        let weights = |object: &'a Object| {
            object
                .native::<LinearWeights>()
                .ok_or_else(|| Diagnostic::internal("a cell without packed weights"))
        };
        let (input, hidden, reduce_range) = match cell {
            CellWeights::Dynamic { input, hidden, reduce_range, .. } => (input, hidden, *reduce_range),
            CellWeights::Half { input, hidden } => (input, hidden, false),
        };
        let cell = Cell { kind, input: weights(input)?, hidden: weights(hidden)?, reduce_range };
        cell.check()?;
        Ok(cell)
    }

    fn check(&self) -> Result<()> {
        let (i, h) = (self.input.weight.sizes(), self.hidden.weight.sizes());
        if i[0] != h[0] || h[0] != h[1].saturating_mul(self.kind.gates() as i64) {
            return Err(Diagnostic::runtime(format!(
                "weights of sizes {:?} and {:?} make no recurrent cell",
                i.as_slice(),
                h.as_slice()
            )));
        }
        Ok(())
    }

    fn width(&self) -> usize {
        self.hidden.weight.sizes()[1].max(0) as usize
    }

    fn product(&self, x: &Tensor, weights: &LinearWeights) -> Result<Tensor> {
        if weights.is_half() {
            half(x, weights, Epilogue::None)
        } else {
            dynamic(x, weights, self.reduce_range, Epilogue::None)
        }
    }

    /// The gates of all steps as far as they follow from the input.
    fn from_input(&self, x: &Tensor) -> Result<Scratch<f32>> {
        self.product(x, self.input)?.elements::<f32>()
    }

    /// One step of the first `rows` sequences; `given` holds their gates from the input.
    fn step(&self, given: &[f32], rows: usize, state: &mut State) -> Result<()> {
        let n = self.width();
        let h = Tensor::from_vec(&state.h[..rows * n], &[rows as i64, n as i64])?;
        let mut sums = self.product(&h, self.hidden)?.elements::<f32>()?;
        let gates = self.kind.gates() * n;
        let mut cells = vec![0f32; n];
        for row in 0..rows {
            let (x, sums) =
                (&given[row * gates..(row + 1) * gates], &mut sums[row * gates..(row + 1) * gates]);
            let own = &mut state.h[row * n..(row + 1) * n];
            match self.kind {
                Kind::Gru => gru_row(x, sums, own, &mut cells),
                _ => {
                    sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += *x);
                    match self.kind {
                        Kind::Lstm => lstm_row(sums, &mut state.c[row * n..(row + 1) * n], &mut cells),
                        Kind::Relu => cells.iter_mut().zip(&*sums).for_each(|(c, s)| *c = s.max(0.0)),
                        _ => cells.iter_mut().zip(&*sums).for_each(|(c, s)| *c = f64::from(*s).tanh() as f32),
                    }
                }
            }
            own.copy_from_slice(&cells);
        }
        Ok(())
    }
}

/// One step of a cell.
fn single(a: &Args<'_>, kind: Kind) -> Result<Outputs> {
    let x = a.tensor(0)?;
    let (h, c) = if kind == Kind::Lstm {
        match &a.tensors(1)?[..] {
            [h, c] => (h.clone(), Some(c.clone())),
            _ => return Err(Diagnostic::runtime("lstm_cell expects two hidden states")),
        }
    } else {
        (a.tensor(1)?.clone(), None)
    };
    let cell = Cell { kind, input: payload(a.value(2)?)?, hidden: payload(a.value(3)?)?, reduce_range: true };
    cell.check()?;
    let (sizes, n) = (h.sizes(), cell.width() as i64);
    if x.rank() != 2
        || sizes.as_slice() != [x.sizes()[0], n]
        || c.as_ref().is_some_and(|c| c.sizes() != sizes)
    {
        return Err(Diagnostic::runtime(format!(
            "hidden state of sizes {:?} does not fit",
            sizes.as_slice()
        )));
    }
    let mut state = State {
        h: h.elements_as::<f32>()?,
        c: c.as_ref().map_or(Ok(Scratch::default()), |c| c.elements_as::<f32>())?,
    };
    cell.step(&cell.from_input(x)?, sizes[0] as usize, &mut state)?;
    let h = Tensor::from_vec(&state.h, &sizes)?;
    match c {
        Some(_) => Ok(smallvec![h.into(), Tensor::from_vec(&state.c, &sizes)?.into()]),
        None => one(h),
    }
}

/// A layered network over steps of `batches[t]` rows each.
struct Network<'a> {
    kind: Kind,
    cells: Vec<Cell<'a>>,
    bidirectional: bool,
    h: Tensor,
    c: Option<Tensor>,
    batches: Scratch<usize>,
    dropout: f64,
    args: &'a Args<'a>,
}

impl Network<'_> {
    /// Outputs in the order of the input's rows, then the last states.
    fn run(&self, input: &Tensor) -> Result<(Tensor, Tensor, Option<Tensor>)> {
        let directions = if self.bidirectional { 2 } else { 1 };
        let layers = self.cells.len() / directions;
        let sequences = self.batches.iter().copied().max().unwrap_or(0);
        let rows: usize = self.batches.iter().sum();
        let n = self.cells.first().map_or(0, Cell::width);
        let sizes = [self.cells.len() as i64, sequences as i64, n as i64];
        let fits = |t: &Tensor| t.sizes().as_slice() == sizes;
        if !fits(&self.h) || !self.c.as_ref().is_none_or(fits) || self.cells.iter().any(|c| c.width() != n) {
            return Err(Diagnostic::runtime(format!(
                "Expected hidden states of sizes {sizes:?}, got {:?}",
                self.h.sizes().as_slice()
            )));
        }
        let (h0, c0) =
            (self.h.elements_as::<f32>()?, self.c.as_ref().map(|c| c.elements_as::<f32>()).transpose()?);
        let (mut h_last, mut c_last) = (Scratch::default(), Scratch::default());
        let mut x = input.clone();
        for layer in 0..layers {
            let mut out = memory::filled(rows.saturating_mul(n).saturating_mul(directions), 0f32)?;
            for direction in 0..directions {
                let at = layer * directions + direction;
                let span = at * sequences * n..(at + 1) * sequences * n;
                let mut state = State {
                    h: memory::copied(&h0[span.clone()])?,
                    c: c0.as_ref().map_or(Ok(Scratch::default()), |c| memory::copied(&c[span]))?,
                };
                let place = (directions * n, direction * n);
                self.direction(&self.cells[at], &x, direction == 1, &mut state, &mut out, place)?;
                h_last.extend(state.h)?;
                c_last.extend(state.c)?;
            }
            x = Tensor::from_vec(&out, &[rows as i64, (n * directions) as i64])?;
            if self.dropout > 0.0 && layer + 1 < layers {
                x = crate::dialects::dropout::drop_out(self.args, &x, self.dropout, false, false)?;
            }
        }
        let c = self.c.as_ref().map(|_| Tensor::from_vec(&c_last, &sizes)).transpose()?;
        Ok((x, Tensor::from_vec(&h_last, &sizes)?, c))
    }

    /// All steps of one cell, backwards if `reverse`; outputs go to `out` at columns `column..` of `width`.
    fn direction(
        &self,
        cell: &Cell<'_>,
        x: &Tensor,
        reverse: bool,
        state: &mut State,
        out: &mut [f32],
        (width, column): (usize, usize),
    ) -> Result<()> {
        let given = cell.from_input(x)?;
        let (n, gates) = (cell.width(), self.kind.gates() * cell.width());
        let mut starts = Vec::with_capacity(self.batches.len());
        self.batches.iter().fold(0, |at, rows| {
            starts.push(at);
            at + rows
        });
        let steps = 0..self.batches.len();
        let steps: Vec<usize> = if reverse { steps.rev().collect() } else { steps.collect() };
        for t in steps {
            let (rows, start) = (self.batches[t], starts[t]);
            cell.step(&given[start * gates..(start + rows) * gates], rows, state)?;
            for row in 0..rows {
                out[(start + row) * width + column..][..n].copy_from_slice(&state.h[row * n..(row + 1) * n]);
            }
        }
        Ok(())
    }
}

fn states(a: &Args<'_>, n: usize, kind: Kind) -> Result<(Tensor, Option<Tensor>)> {
    if kind != Kind::Lstm {
        return Ok((a.tensor(n)?.clone(), None));
    }
    match &a.tensors(n)?[..] {
        [h, c] => Ok((h.clone(), Some(c.clone()))),
        _ => Err(Diagnostic::runtime("lstm expects two hidden states")),
    }
}

fn results(y: Tensor, h: Tensor, c: Option<Tensor>) -> Outputs {
    let mut results: Outputs = smallvec![y.into(), h.into()];
    results.extend(c.map(Into::into));
    results
}

/// The packed parameters at `n`, one a cell.
fn with_cells<R>(
    a: &Args<'_>,
    n: usize,
    kind: Kind,
    work: impl FnOnce(Vec<Cell<'_>>) -> Result<R>,
) -> Result<R> {
    let objects = a.list(n)?.to_vec();
    let cells = objects.iter().map(|object| Cell::of(kind, payload(object)?)).collect::<Result<Vec<_>>>()?;
    let (layers, directions) = (a.int(n + 2)?, if a.bool(n + 5)? { 2 } else { 1 });
    if layers.checked_mul(directions) != Some(cells.len() as i64) || cells.is_empty() {
        return Err(Diagnostic::runtime("got an incorrect number of RNN parameters"));
    }
    work(cells)
}

fn sequence(a: &Args<'_>, kind: Kind) -> Result<Outputs> {
    let (input, (h, c), batch_first) = (a.tensor(0)?, states(a, 1, kind)?, a.bool(8)?);
    if input.rank() != 3 {
        return Err(Diagnostic::runtime(format!("RNN input must have 3 dimensions, got {}", input.rank())));
    }
    let turned = if batch_first { input.look(|l| view::transpose(l, 0, 1))? } else { input.clone() };
    let turned = turned.contiguous()?;
    let [time, batch, features] = turned.sizes()[..] else {
        return Err(Diagnostic::internal("three dimensions"));
    };
    if time <= 0 {
        return Err(Diagnostic::runtime("Expected sequence length to be larger than 0 in RNN"));
    }
    with_cells(a, 2, kind, |cells| {
        let network = Network {
            kind,
            cells,
            bidirectional: a.bool(7)?,
            h,
            c,
            batches: memory::filled(time as usize, batch.max(0) as usize)?,
            dropout: if a.bool(6)? { a.float(5)? } else { 0.0 },
            args: a,
        };
        let (y, h, c) = network.run(&turned.reshaped(&[time * batch, features])?)?;
        let width = y.sizes()[1];
        let y = y.reshaped(&[time, batch, width])?;
        let y = if batch_first { y.look(|l| view::transpose(l, 0, 1))? } else { y };
        Ok(results(y, h, c))
    })
}

fn packed(a: &Args<'_>, kind: Kind) -> Result<Outputs> {
    let (data, sizes, (h, c)) = (a.tensor(0)?, a.tensor(1)?.elements_as::<i64>()?, states(a, 2, kind)?);
    let falls = sizes.windows(2).all(|w| w[0] >= w[1]) && sizes.iter().all(|s| *s > 0);
    let total: i64 = sizes.iter().fold(0, |n, s| n.saturating_add(*s));
    if data.rank() != 2 || !falls || total != data.sizes()[0] {
        return Err(Diagnostic::runtime(
            "batch_sizes must be positive, in decreasing order, and add up to the number of rows",
        ));
    }
    with_cells(a, 3, kind, |cells| {
        let network = Network {
            kind,
            cells,
            bidirectional: a.bool(8)?,
            h,
            c,
            batches: sizes.iter().map(|s| *s as usize).scratch()?,
            dropout: if a.bool(7)? { a.float(6)? } else { 0.0 },
            args: a,
        };
        let (y, h, c) = network.run(&data.contiguous()?)?;
        Ok(results(y, h, c))
    })
}
