//! Recurrent layers: LSTM, GRU and plain cells, alone, over sequences and over packed sequences.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{layers, trial};
use crate::dialects::{Args, Effects, OpDef, Outputs, one, opaque};
use crate::kernels::compute::{Dense, Real, compute_dtype};
use crate::kernels::matrix::gemm::{Matrix, Onto, matmul};
use crate::kernels::rows::vector::{gru_row, lstm_row};
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::{DType, Scalar, Tensor, view};
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
        |a| sequence(a, Kind::Lstm),
    ).infer(layers::sequences)
    .effects(Effects::RANDOM),
    opaque(
        "aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
        |a| packed(a, Kind::Lstm),
    ).infer(layers::packed)
    .effects(Effects::RANDOM),
    opaque(
        "aten::gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        |a| sequence(a, Kind::Gru),
    ).infer(layers::sequences)
    .effects(Effects::RANDOM),
    opaque(
        "aten::gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        |a| packed(a, Kind::Gru),
    ).infer(layers::packed)
    .effects(Effects::RANDOM),
    opaque(
        "aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        |a| sequence(a, Kind::Tanh),
    ).infer(layers::sequences)
    .effects(Effects::RANDOM),
    opaque(
        "aten::rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        |a| packed(a, Kind::Tanh),
    ).infer(layers::packed)
    .effects(Effects::RANDOM),
    opaque(
        "aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        |a| sequence(a, Kind::Relu),
    ).infer(layers::sequences)
    .effects(Effects::RANDOM),
    opaque(
        "aten::rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        |a| packed(a, Kind::Relu),
    ).infer(layers::packed)
    .effects(Effects::RANDOM),
    opaque(
        "aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
        |a| {
            let hx = a.tensors(1)?;
            let [h, c] = &hx[..] else {
                return fail("lstm_cell expects two hidden states");
            };
            cell(a, Kind::Lstm, h, Some(c))
        },
    ).infer(trial::stand_ins),
    opaque(
        "aten::gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        |a| cell(a, Kind::Gru, a.tensor(1)?, None),
    ).infer(trial::stand_ins),
    opaque(
        "aten::rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        |a| cell(a, Kind::Tanh, a.tensor(1)?, None),
    ),
    opaque(
        "aten::rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        |a| cell(a, Kind::Relu, a.tensor(1)?, None),
    ),
    opaque(
        "aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
        pack,
    ),
    opaque(
        "aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> (Tensor, Tensor)",
        pad,
    ),
];

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// What a cell computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

impl Kind {
    /// Blocks of rows in the weights.
    fn gates(self) -> usize {
        match self {
            Kind::Lstm => 4,
            Kind::Gru => 3,
            Kind::Tanh | Kind::Relu => 1,
        }
    }
}

/// The parameters of one layer in one direction.
struct Cell<R> {
    kind: Kind,
    w_ih: Dense<R>,
    w_hh: Dense<R>,
    /// The two biases; of a GRU they do not simply add.
    biases: Option<(Scratch<R>, Scratch<R>)>,
    /// Projection of an LSTM's output.
    w_hr: Option<Dense<R>>,
    /// Features of the input.
    input: usize,
    /// Features of the cell.
    hidden: usize,
    /// Features of the output: the projected ones where there is a projection.
    output: usize,
}

impl<R: Real> Cell<R> {
    fn new(
        kind: Kind,
        w: [&Tensor; 2],
        biases: [Option<&Tensor>; 2],
        w_hr: Option<&Tensor>,
        input: usize,
    ) -> Result<Cell<R>> {
        let (si, sh) = (w[0].sizes(), w[1].sizes());
        let ([rows, columns], [rows2, output]) = (&si[..], &sh[..]) else {
            return fail("weights of recurrent layers must be matrices");
        };
        let hidden = *rows as usize / kind.gates();
        if *columns as usize != input {
            return fail(format!("input has inconsistent input_size: got {input} expected {columns}"));
        }
        let projected = w_hr.map_or(Some(hidden), |w| {
            let s = w.sizes();
            (s.len() == 2 && s[1] as usize == hidden).then(|| s[0] as usize)
        });
        let fits = rows == rows2
            && *rows as usize == hidden * kind.gates()
            && projected == Some(*output as usize)
            && biases.iter().flatten().all(|b| b.numel() == *rows as usize);
        if !fits {
            return fail(format!(
                "weights of sizes {:?} and {:?} make no recurrent cell",
                si.as_slice(),
                sh.as_slice()
            ));
        }
        let bias = |b: Option<&Tensor>| match b {
            Some(b) => b.elements_as::<R>(),
            None => memory::filled(*rows as usize, R::ZERO),
        };
        let any = biases.iter().any(Option::is_some);
        Ok(Cell {
            kind,
            w_ih: Dense::new(w[0])?,
            w_hh: Dense::new(w[1])?,
            biases: if any { Some((bias(biases[0])?, bias(biases[1])?)) } else { None },
            w_hr: w_hr.map(Dense::new).transpose()?,
            input,
            hidden,
            output: *output as usize,
        })
    }

    /// Runs over steps of `batches[t]` rows each (never growing), backwards if `reverse`. `h` and `c` (one row a
    /// sequence) hold the state before and after; the outputs of step t go to `out` at columns `column..`.
    fn run(
        &self,
        x: &[R],
        batches: &[usize],
        reverse: bool,
        state: &mut State<R>,
        out: &mut [R],
        (width, column): (usize, usize),
    ) -> Result<()> {
        let rows: usize = batches.iter().sum();
        let gates = self.kind.gates() * self.hidden;
        let (w_ih, w_hh) = (self.w_ih.open()?, self.w_hh.open()?);
        let w_hr = self.w_hr.as_ref().map(Dense::open).transpose()?;
        let mut from_input = memory::filled(rows * gates, R::ZERO)?;
        if let Some((b, _)) = &self.biases {
            from_input.chunks_mut(gates.max(1)).for_each(|row| row.copy_from_slice(b));
        }
        let onto = if self.biases.is_some() { Onto::Existing } else { Onto::Nothing };
        matmul(
            Matrix::dense(x, rows, self.input),
            Matrix::dense(&w_ih, gates, self.input).t(),
            &mut from_input,
            gates,
            onto,
        )?;
        let most = batches.iter().copied().max().unwrap_or(0);
        let mut from_state = memory::filled(most * gates, R::ZERO)?;
        let mut cells = memory::filled(most * self.hidden, R::ZERO)?;
        let mut end = 0;
        let starts = memory::collected(batches.iter().map(|n| {
            end += n;
            end - n
        }))?;
        let count = batches.len();
        for t in (0..count).map(|t| if reverse { count - 1 - t } else { t }) {
            let (n, start) = (batches[t], starts[t]);
            let from_state = &mut from_state[..n * gates];
            if let Some((_, b)) = &self.biases {
                from_state.chunks_mut(gates.max(1)).for_each(|row| row.copy_from_slice(b));
            }
            matmul(
                Matrix::dense(&state.h, n, self.output),
                Matrix::dense(&w_hh, gates, self.output).t(),
                from_state,
                gates,
                onto,
            )?;
            let given = &from_input[start * gates..(start + n) * gates];
            let cells = &mut cells[..n * self.hidden];
            self.step(given, from_state, state, cells);
            match &w_hr {
                Some(w) => matmul(
                    Matrix::dense(cells, n, self.hidden),
                    Matrix::dense(w, self.output, self.hidden).t(),
                    &mut state.h,
                    self.output,
                    Onto::Nothing,
                )?,
                None => state.h[..n * self.output].copy_from_slice(cells),
            }
            for row in 0..n {
                out[(start + row) * width + column..][..self.output]
                    .copy_from_slice(&state.h[row * self.output..(row + 1) * self.output]);
            }
        }
        Ok(())
    }

    /// The step in vectors, where numbers are float32 and the kind has gates; false, with nothing done, elsewhere.
    /// `remembered` is used up.
    fn vector_step(&self, given: &[R], remembered: &mut [R], state: &mut State<R>, cells: &mut [R]) -> bool {
        let gated = matches!(self.kind, Kind::Lstm | Kind::Gru);
        if R::DTYPE != DType::F32 || !gated || self.hidden == 0 {
            return false;
        }
        let given = bytemuck::cast_slice::<R, f32>(given);
        let remembered = bytemuck::cast_slice_mut::<R, f32>(remembered);
        let (h, c) =
            (bytemuck::cast_slice::<R, f32>(&state.h), bytemuck::cast_slice_mut::<R, f32>(&mut state.c));
        let cells = bytemuck::cast_slice_mut::<R, f32>(cells);
        let (n, gates) = (self.hidden, self.kind.gates() * self.hidden);
        let rows = cells.chunks_mut(n).zip(given.chunks(gates)).zip(remembered.chunks_mut(gates));
        for (row, ((cells, x), sums)) in rows.enumerate() {
            if self.kind == Kind::Gru {
                gru_row(x, sums, &h[row * self.output..][..n], cells);
            } else {
                sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += *x);
                lstm_row(sums, &mut c[row * n..(row + 1) * n], cells);
            }
        }
        true
    }

    /// The cells' new outputs from the gates' sums; an LSTM's state of cells follows. `remembered` is used up.
    fn step(&self, given: &[R], remembered: &mut [R], state: &mut State<R>, cells: &mut [R]) {
        if self.vector_step(given, remembered, state, cells) {
            return;
        }
        let n = self.hidden;
        let gates = self.kind.gates() * n;
        for (row, cells) in cells.chunks_mut(n.max(1)).enumerate() {
            let (x, h) = (&given[row * gates..][..gates], &remembered[row * gates..][..gates]);
            for (j, out) in cells.iter_mut().enumerate() {
                let sum = |gate: usize| x[gate * n + j] + h[gate * n + j];
                *out = match self.kind {
                    Kind::Tanh => sum(0).tanh(),
                    Kind::Relu => sum(0).greater(R::ZERO),
                    Kind::Lstm => {
                        let c = &mut state.c[row * n + j];
                        *c = sum(1).sigmoid() * *c + sum(0).sigmoid() * sum(2).tanh();
                        sum(3).sigmoid() * c.tanh()
                    }
                    Kind::Gru => {
                        let (reset, update) = (sum(0).sigmoid(), sum(1).sigmoid());
                        let new = (x[2 * n + j] + reset * h[2 * n + j]).tanh();
                        (state.h[row * self.output + j] - new) * update + new
                    }
                };
            }
        }
    }
}

/// What a layer remembers: one row a sequence.
struct State<R> {
    h: Scratch<R>,
    /// Of an LSTM.
    c: Scratch<R>,
}

/// The call of a layered network, in terms of packed steps.
struct Network<'a> {
    kind: Kind,
    params: Vec<Tensor>,
    has_biases: bool,
    layers: usize,
    bidirectional: bool,
    h: &'a Tensor,
    c: Option<&'a Tensor>,
    batches: Scratch<usize>,
    /// The chance in training that an output between layers is dropped, and who draws.
    dropout: (f64, &'a Args<'a>),
}

impl Network<'_> {
    /// The output (rows in the order of the input, features of both directions), and the last states.
    fn run(&self, input: &Tensor) -> Result<(Tensor, Tensor, Option<Tensor>)> {
        let dtype = input.dtype();
        crate::dispatch_real!(dtype, "rnn", R => self.typed::<R>(input, dtype))
    }

    fn typed<R: Real>(&self, input: &Tensor, dtype: DType) -> Result<(Tensor, Tensor, Option<Tensor>)> {
        let directions = if self.bidirectional { 2 } else { 1 };
        let projects = self.c.is_some_and(|c| c.sizes().last() != self.h.sizes().last());
        let per_cell = 2 + if self.has_biases { 2 } else { 0 } + usize::from(projects);
        let count = self.layers * directions;
        if self.params.len() != count * per_cell {
            return fail("got an incorrect number of RNN parameters");
        }
        let sequences = self.batches.iter().copied().max().unwrap_or(0);
        let hidden = self.check_state(self.h, "hidden", count, sequences)?;
        let cell = match self.c {
            Some(c) => self.check_state(c, "cell", count, sequences)?,
            None => hidden,
        };
        let (h0, c0) = (self.h.elements_as::<R>()?, self.c.map(Tensor::elements_as::<R>).transpose()?);
        let (mut h_last, mut c_last) = (memory::reserved(h0.len())?, Scratch::default());
        let rows: usize = self.batches.iter().sum();
        let mut x = input.elements_as::<R>()?;
        let mut features = x.len() / rows.max(1);
        for layer in 0..self.layers {
            let mut out = memory::filled(rows * hidden * directions, R::ZERO)?;
            for direction in 0..directions {
                let at = layer * directions + direction;
                let p = &self.params[at * per_cell..(at + 1) * per_cell];
                let biases = if self.has_biases { [Some(&p[2]), Some(&p[3])] } else { [None, None] };
                let w_hr = if projects { p.last() } else { None };
                let net = Cell::<R>::new(self.kind, [&p[0], &p[1]], biases, w_hr, features)?;
                if net.output != hidden || net.hidden != cell {
                    return fail(format!(
                        "Expected hidden size {} of the parameters, got {hidden}",
                        net.output
                    ));
                }
                let mut state = State {
                    h: memory::copied(&h0[at * sequences * hidden..(at + 1) * sequences * hidden])?,
                    c: c0.as_ref().map_or(Ok(Scratch::default()), |c| {
                        memory::copied(&c[at * sequences * cell..(at + 1) * sequences * cell])
                    })?,
                };
                let place = (hidden * directions, direction * hidden);
                net.run(&x, &self.batches, direction == 1, &mut state, &mut out, place)?;
                h_last.extend(state.h)?;
                c_last.extend(state.c)?;
            }
            (x, features) = (out, hidden * directions);
            if self.dropout.0 > 0.0 && layer + 1 < self.layers {
                let output = Tensor::from_vec(&x, &[rows as i64, features as i64])?;
                x = crate::dialects::dropout::drop_out(
                    self.dropout.1,
                    &output,
                    self.dropout.0,
                    false,
                    false,
                )?
                .elements_as::<R>()?;
            }
        }
        let sizes = |n: usize| [count as i64, sequences as i64, n as i64];
        let round = |values: &[R], sizes: &[i64]| Tensor::from_vec(values, sizes)?.to_dtype(dtype);
        let c_last = self.c.map(|_| round(&c_last, &sizes(cell))).transpose()?;
        Ok((round(&x, &[rows as i64, features as i64])?, round(&h_last, &sizes(hidden))?, c_last))
    }

    /// The features of a state of sizes (layers * directions, sequences, features).
    fn check_state(&self, t: &Tensor, name: &str, count: usize, sequences: usize) -> Result<usize> {
        let sizes = t.sizes();
        match sizes[..] {
            [l, n, h] if l as usize == count && n as usize == sequences => Ok(h as usize),
            _ => fail(format!("Expected {name} size ({count}, {sequences}, *), got {:?}", sizes.as_slice())),
        }
    }
}

fn layer_count(layers: i64) -> Result<usize> {
    usize::try_from(layers)
        .ok()
        .filter(|n| *n <= 1 << 16)
        .ok_or_else(|| Diagnostic::runtime("the number of layers must be positive"))
}

/// The states of an argument: a tensor, or an LSTM's pair.
fn states(a: &Args<'_>, n: usize, kind: Kind) -> Result<(Tensor, Option<Tensor>)> {
    if kind != Kind::Lstm {
        return Ok((a.tensor(n)?.clone(), None));
    }
    match <[Tensor; 2]>::try_from(a.tensors(n)?) {
        Ok([h, c]) => Ok((h, Some(c))),
        Err(_) => fail("lstm expects two hidden states"),
    }
}

fn outputs(y: Tensor, h: Tensor, c: Option<Tensor>) -> Outputs {
    let mut outputs: Outputs = smallvec![y.into(), h.into()];
    outputs.extend(c.map(Into::into));
    outputs
}

fn check_dtypes(input: &Tensor, others: &[&Tensor]) -> Result<()> {
    if let Some(other) = others.iter().find(|t| t.dtype() != input.dtype()) {
        return fail(format!(
            "Input and parameter tensors are not the same dtype, found input tensor with {} and parameter tensor with {}",
            input.dtype().type_name(),
            other.dtype().type_name()
        ));
    }
    Ok(())
}

fn sequence(a: &Args<'_>, kind: Kind) -> Result<Outputs> {
    let (input, (h, c), params) = (a.tensor(0)?, states(a, 1, kind)?, a.tensors(2)?);
    let layers = layer_count(a.int(4)?)?;
    let batch_first = a.bool(8)?;
    if input.rank() != 3 {
        crate::tensor::wrap_dim(2, input.rank())?;
        return fail(format!("RNN input must have 3 dimensions, got {}", input.rank()));
    }
    check_dtypes(input, &params.iter().chain([&h]).collect::<Vec<_>>())?;
    let turned = if batch_first { input.look(|l| view::transpose(l, 0, 1))? } else { input.clone() };
    let (time, batch) = (turned.sizes()[0], turned.sizes()[1]);
    if time <= 0 {
        return fail("Expected sequence length to be larger than 0 in RNN");
    }
    let network = Network {
        kind,
        params,
        has_biases: a.bool(3)?,
        layers,
        bidirectional: a.bool(7)?,
        h: &h,
        c: c.as_ref(),
        batches: memory::filled(time as usize, batch as usize)?,
        dropout: (if a.bool(6)? { a.float(5)? } else { 0.0 }, a),
    };
    let (y, h, c) = network.run(&turned)?;
    let features = y.sizes()[1];
    let y = y.reshaped(&[time, batch, features])?;
    let y = if batch_first { y.look(|l| view::transpose(l, 0, 1))? } else { y };
    Ok(outputs(y, h, c))
}

/// The sizes of a packed sequence's steps: positive, never growing, together as many as there are rows.
fn step_sizes(t: &Tensor, rows: usize) -> Result<Scratch<usize>> {
    let sizes = t.elements_as::<i64>()?;
    let falls = sizes.windows(2).all(|w| w[0] >= w[1]);
    let total: i64 = sizes.iter().fold(0, |n, s| n.saturating_add(*s));
    if !falls || sizes.iter().any(|s| *s <= 0) || total != rows as i64 {
        return fail("batch_sizes must be positive, in decreasing order, and add up to the number of rows");
    }
    sizes.into_iter().map(|s| s as usize).scratch()
}

fn packed(a: &Args<'_>, kind: Kind) -> Result<Outputs> {
    let (data, (h, c), params) = (a.tensor(0)?, states(a, 2, kind)?, a.tensors(3)?);
    let layers = layer_count(a.int(5)?)?;
    if data.rank() != 2 {
        return fail(format!("packed data must have 2 dimensions, got {}", data.rank()));
    }
    check_dtypes(data, &params.iter().chain([&h]).collect::<Vec<_>>())?;
    let network = Network {
        kind,
        params,
        has_biases: a.bool(4)?,
        layers,
        bidirectional: a.bool(8)?,
        h: &h,
        c: c.as_ref(),
        batches: step_sizes(a.tensor(1)?, data.sizes()[0] as usize)?,
        dropout: (if a.bool(7)? { a.float(6)? } else { 0.0 }, a),
    };
    let (y, h, c) = network.run(data)?;
    Ok(outputs(y, h, c))
}

/// One step.
fn cell(a: &Args<'_>, kind: Kind, h: &Tensor, c: Option<&Tensor>) -> Result<Outputs> {
    let (input, w) = (a.tensor(0)?, [a.tensor(2)?, a.tensor(3)?]);
    let biases = [a.opt_tensor(4)?, a.opt_tensor(5)?];
    let dtype = input.dtype();
    let (x, s) = (input.sizes(), h.sizes());
    let ([rows, features], [states, width]) = (&x[..], &s[..]) else {
        return fail(format!("Expected 2D input (batch x feature), but got {}D input", x.len()));
    };
    if rows != states {
        return fail(format!("Input batch size {rows} doesn't match hidden0 batch size {states}"));
    }
    if c.is_some_and(|c| c.sizes() != s) {
        return fail("hidden states of an LSTM cell must have the same sizes");
    }
    check_dtypes(input, &[h, w[0], w[1]])?;
    crate::dispatch_real!(dtype, "rnn_cell", R => {
        let net = Cell::<R>::new(kind, w, biases, None, *features as usize)?;
        if net.output != *width as usize {
            return fail(format!("hidden0 has inconsistent hidden_size: got {width}, expected {}", net.output));
        }
        let mut state = State {
            h: h.elements_as::<R>()?,
            c: c.map_or(Ok(Scratch::default()), Tensor::elements_as::<R>)?,
        };
        let mut out = memory::filled(state.h.len(), R::ZERO)?;
        net.run(&input.elements_as::<R>()?, &[*rows as usize], false, &mut state, &mut out, (net.output, 0))?;
        let round = |values: &[R]| Tensor::from_vec(values, &s)?.to_dtype(dtype);
        match c {
            Some(_) => Ok(smallvec![round(&state.h)?.into(), round(&state.c)?.into()]),
            None => one(round(&state.h)?),
        }
    })
}

/// Sequences of falling lengths, step by step without padding.
fn pack(a: &Args<'_>) -> Result<Outputs> {
    let (input, lengths) = (a.tensor(0)?, a.tensor(1)?.elements_as::<i64>()?);
    let input = if a.bool(2)? { input.look(|l| view::transpose(l, 0, 1))? } else { input.clone() };
    let sizes = input.sizes();
    let [time, batch, ref features @ ..] = sizes[..] else {
        return fail("Expected an input of at least 2 dimensions");
    };
    if lengths.len() as i64 != batch {
        return fail(format!(
            "Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={batch})",
            lengths.len()
        ));
    }
    if lengths.is_empty() {
        return fail("Cannot pack empty tensors.");
    }
    if lengths.iter().any(|l| *l <= 0) {
        return fail(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0",
        );
    }
    if lengths.windows(2).any(|w| w[0] < w[1]) {
        return fail(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass \
             `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not \
             need ONNX exportability.",
        );
    }
    if lengths[0] > time {
        return fail(format!("Expected lengths of at most {time} steps, but got {}", lengths[0]));
    }
    let part = features.iter().product::<i64>().max(0) as usize;
    let steps: Vec<i64> =
        (0..lengths[0]).map(|t| lengths.iter().filter(|l| **l > t).count() as i64).collect();
    let rows: i64 = steps.iter().sum();
    let mut positions = memory::reserved((rows as usize).saturating_mul(part))?;
    for (t, n) in steps.iter().enumerate() {
        let start = t * batch as usize * part;
        positions.extend(start..start + *n as usize * part)?;
    }
    let mut packed = vec![rows];
    packed.extend(features);
    let data = input.take_positions(&positions, &packed)?;
    Ok(smallvec![data.into(), Tensor::from_vec(&steps, &[steps.len() as i64])?.into()])
}

/// The way back: missing steps hold `padding_value`.
fn pad(a: &Args<'_>) -> Result<Outputs> {
    let (data, batch_first, value, total) = (a.tensor(0)?, a.bool(2)?, a.scalar(3)?, a.int(4)?);
    let sizes = data.sizes();
    let Some((rows, features)) = sizes.split_first() else {
        return fail("packed data must have at least one dimension");
    };
    let steps = step_sizes(a.tensor(1)?, *rows as usize)?;
    let longest = steps.len() as i64;
    if total > 0 && total < longest {
        return fail(format!(
            "Expected total_length to be at least the length of the longest sequence in input, but got total_length={total} and \
             max sequence length being {longest}"
        ));
    }
    let (time, batch) = (if total > 0 { total } else { longest }, steps.first().copied().unwrap_or(0));
    let mut padded = vec![time, batch as i64];
    padded.extend(features);
    let result = Tensor::full(data.dtype(), &padded, scalar_of(value, data.dtype()))?;
    let part = features.iter().product::<i64>().max(0) as usize;
    let mut positions = memory::reserved(data.numel())?;
    for (t, n) in steps.iter().enumerate() {
        let start = t * batch * part;
        positions.extend(start..start + n * part)?;
    }
    result.put_positions(&positions, data)?;
    let lengths = (0..batch).map(|b| steps.iter().filter(|n| **n > b).count() as i64).scratch()?;
    let result = if batch_first { result.look(|l| view::transpose(l, 0, 1))? } else { result };
    Ok(smallvec![result.into(), Tensor::from_vec(&lengths, &[batch as i64])?.into()])
}

/// The number as the dtype takes it.
fn scalar_of(value: Scalar, dtype: DType) -> Scalar {
    if compute_dtype(dtype).is_floating() { Scalar::Float(value.to_f64()) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from PyTorch: one step of a GRU with all weights 0.5, input 1, state 0.2.
    #[test]
    fn a_step_of_each_kind() {
        let full = |sizes: &[i64], x: f64| Tensor::full(DType::F64, sizes, Scalar::Float(x)).expect("small");
        for (kind, expected) in [(Kind::Gru, 0.310_327_418_379_9), (Kind::Tanh, 0.537_049_566_998_035_3)] {
            let gates = kind.gates() as i64;
            let (w, h) = (full(&[gates, 1], 0.5), full(&[1, 1], 0.2));
            let net = Cell::<f64>::new(kind, [&w, &w], [None, None], None, 1).expect("fits");
            let mut state = State { h: h.elements().expect("f64"), c: Scratch::default() };
            let mut out = [0.0];
            net.run(&[1.0], &[1], false, &mut state, &mut out, (1, 0)).expect("runs");
            assert!((out[0] - expected).abs() < 1e-9, "{kind:?}: {}", out[0]);
        }
    }
}
