//! L-BFGS: a step asks for the loss several times. Vectors are handled by the rules; here stand the iteration and the line search
//! (strong Wolfe conditions), whose numbers are rounded where PyTorch has them in tensors and not where it has Python's floats.

use super::kept::Memory;
use super::rules::text_of;
use super::{Closure, Optimizer};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Run;
use crate::ir::Type;
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::{List, Value};

/// A number, and whether PyTorch has it in a tensor.
#[derive(Clone, Copy, Debug)]
struct Number {
    value: f64,
    tensor: bool,
}

fn float(value: f64) -> Number {
    Number { value, tensor: false }
}

fn tensor(value: f64) -> Number {
    Number { value, tensor: true }
}

/// Arithmetic in the dtype of the parameters where a tensor takes part.
#[derive(Clone, Copy)]
struct Arithmetic(DType);

impl Arithmetic {
    fn round(self, x: f64) -> f64 {
        if self.0 == DType::F32 { f64::from(x as f32) } else { x }
    }

    fn of(self, a: Number, b: Number, op: fn(f64, f64) -> f64) -> Number {
        match a.tensor || b.tensor {
            true => tensor(self.round(op(self.round(a.value), self.round(b.value)))),
            false => float(op(a.value, b.value)),
        }
    }

    fn add(self, a: Number, b: Number) -> Number {
        self.of(a, b, |a, b| a + b)
    }

    fn sub(self, a: Number, b: Number) -> Number {
        self.of(a, b, |a, b| a - b)
    }

    fn mul(self, a: Number, b: Number) -> Number {
        self.of(a, b, |a, b| a * b)
    }

    fn div(self, a: Number, b: Number) -> Number {
        self.of(a, b, |a, b| a / b)
    }

    fn less(self, a: Number, b: Number) -> bool {
        self.of(a, b, |a, b| f64::from(u8::from(a < b))).value == 1.0
    }

    fn least(self, a: Number, b: Number) -> Number {
        if self.less(b, a) { b } else { a }
    }

    fn most(self, a: Number, b: Number) -> Number {
        if self.less(a, b) { b } else { a }
    }

    /// The minimum of the cubic through two points with their slopes, within bounds.
    fn cubic(self, one: Point, two: Point, bounds: Option<(Number, Number)>) -> Number {
        let ordered = !self.less(two.at, one.at);
        let (low, high) = bounds.unwrap_or(if ordered { (one.at, two.at) } else { (two.at, one.at) });
        let slope = self
            .div(self.mul(float(3.0), self.sub(float(one.loss), float(two.loss))), self.sub(one.at, two.at));
        let d1 = self.sub(self.add(one.slope, two.slope), slope);
        let square = self.sub(self.mul(d1, d1), self.mul(one.slope, two.slope));
        if square.value.is_nan() || square.value < 0.0 {
            return self.div(self.add(low, high), float(2.0));
        }
        let d2 = Number { value: self.round(square.value.sqrt()), ..square };
        let (near, far) = if ordered { (one, two) } else { (two, one) };
        let top = self.sub(self.add(far.slope, d2), d1);
        let bottom = self.add(self.sub(far.slope, near.slope), self.mul(float(2.0), d2));
        let shift = self.mul(self.sub(far.at, near.at), self.div(top, bottom));
        self.least(self.most(self.sub(far.at, shift), low), high)
    }
}

/// A trial of the line search.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Number,
    loss: f64,
    slope: Number,
}

/// A step under way.
struct Search<'a> {
    run: &'a Run,
    closure: Closure<'a>,
    parameters: Vec<Tensor>,
    maximize: bool,
    arithmetic: Arithmetic,
}

impl Search<'_> {
    fn rule(&self, name: &str, values: Vec<Value>) -> Result<Value> {
        self.run.function("the optimizer lbfgs", &text_of(name), values)
    }

    /// The loss with gradients computed.
    fn loss(&mut self) -> Result<f64> {
        let former = self.run.set_grad_enabled(true);
        let loss = (self.closure)();
        self.run.set_grad_enabled(former);
        loss.map(|loss| if self.maximize { -loss } else { loss })
    }

    fn gather(&self) -> Result<Tensor> {
        let one = |p: &Tensor| match p.grad() {
            Some(gradient) => Ok(gradient.detach()),
            None => Tensor::zeros(p.dtype(), &p.sizes()),
        };
        let gradients = self.parameters.iter().map(one).collect::<Result<Vec<Tensor>>>()?;
        let values = vec![Value::tensors(gradients), Value::Bool(self.maximize)];
        Ok(self.rule("lbfgs_gather", values)?.to_tensor()?.clone())
    }

    fn shift(&self, direction: &Tensor, by: f64) -> Result<()> {
        let all = Value::tensors(self.parameters.clone());
        self.rule("lbfgs_move", vec![all, Value::Tensor(direction.clone()), Value::Float(by)]).map(|_| ())
    }

    /// Slope along a direction; largest element of gradient and direction; sum of the gradient's sizes.
    fn numbers(&self, gradient: &Tensor, direction: &Tensor) -> Result<[f64; 4]> {
        let values = vec![Value::Tensor(gradient.clone()), Value::Tensor(direction.clone())];
        let Value::Tuple(found) = self.rule("lbfgs_numbers", values)? else {
            return Err(Diagnostic::internal("lbfgs_numbers gives four numbers"));
        };
        let mut out = [0.0; 4];
        for (slot, value) in out.iter_mut().zip(found.items()) {
            *slot = super::kinds::number(value).unwrap_or(f64::NAN);
        }
        Ok(out)
    }

    /// Loss, gradient and slope at a distance from where the parameters are, which stay.
    fn trial(&mut self, start: &[Tensor], at: Number, direction: &Tensor) -> Result<(Point, Tensor)> {
        self.shift(direction, at.value)?;
        let loss = self.loss()?;
        let gradient = self.gather()?;
        for (parameter, value) in self.parameters.iter().zip(start) {
            parameter.detach().copy_from(value)?;
        }
        let [slope, ..] = self.numbers(&gradient, direction)?;
        Ok((Point { at, loss, slope: tensor(slope) }, gradient))
    }

    /// A distance that fulfils the strong Wolfe conditions, or the best one found within the limit of evaluations.
    fn line(
        &mut self,
        direction: &Tensor,
        first: Number,
        start: (Point, Tensor),
        most: i64,
        tolerance: f64,
    ) -> Result<(Point, Tensor, i64)> {
        const DECREASE: f64 = 1e-4;
        const CURVATURE: f64 = 0.9;
        let a = self.arithmetic;
        let origin = self.parameters.iter().map(|p| p.detach().copy()).collect::<Result<Vec<Tensor>>>()?;
        let base = start.0;
        let too_high = |p: &Point| {
            let bound = a.add(float(base.loss), a.mul(a.mul(float(DECREASE), p.at), base.slope));
            a.less(bound, float(p.loss))
        };
        let flat_enough = |p: &Point| {
            !a.less(a.mul(float(-CURVATURE), base.slope), Number { value: p.slope.value.abs(), ..p.slope })
        };
        let [_, _, size, _] = self.numbers(&start.1, direction)?;
        let mut last = start.clone();
        let mut new = self.trial(&origin, first, direction)?;
        let (mut evaluations, mut iteration, mut done) = (1, 0, false);
        let mut bracket: Vec<(Point, Tensor)> = Vec::new();
        while iteration < most {
            if too_high(&new.0) || (iteration > 1 && new.0.loss >= last.0.loss) {
                bracket = vec![last.clone(), new.clone()];
                break;
            }
            if flat_enough(&new.0) {
                bracket = vec![new.clone()];
                done = true;
                break;
            }
            if new.0.slope.value >= 0.0 {
                bracket = vec![last.clone(), new.clone()];
                break;
            }
            let (from, to) = (last.0.at, new.0.at);
            let bounds = (a.add(to, a.mul(float(0.01), a.sub(to, from))), a.mul(to, float(10.0)));
            let next = a.cubic(last.0, new.0, Some(bounds));
            last = new;
            new = self.trial(&origin, next, direction)?;
            evaluations += 1;
            iteration += 1;
        }
        if iteration == most {
            let zero = Point { at: float(0.0), ..base };
            bracket = vec![(zero, start.1.clone()), new.clone()];
        }
        let mut stuck = false;
        let lowest = |b: &[(Point, Tensor)]| match b {
            [one, two] if one.0.loss <= two.0.loss => (0, 1),
            [_, _] => (1, 0),
            _ => (0, 0),
        };
        let (mut low, mut high) = lowest(&bracket);
        while !done && iteration < most {
            let [one, two] = bracket.as_slice() else { break };
            let (one, two) = (one.0, two.0);
            let width = a.sub(two.at, one.at);
            let width = Number { value: width.value.abs(), ..width };
            if a.less(a.mul(width, tensor(size)), float(tolerance)) {
                break;
            }
            let mut at = a.cubic(one, two, None);
            let (least, largest) = (a.least(one.at, two.at), a.most(one.at, two.at));
            let margin = a.mul(float(0.1), a.sub(largest, least));
            if a.less(a.least(a.sub(largest, at), a.sub(at, least)), margin) {
                if stuck || !a.less(at, largest) || !a.less(least, at) {
                    let (above, below) = (a.sub(at, largest), a.sub(at, least));
                    at = match above.value.abs() < below.value.abs() {
                        true => a.sub(largest, margin),
                        false => a.add(least, margin),
                    };
                    stuck = false;
                } else {
                    stuck = true;
                }
            } else {
                stuck = false;
            }
            let new = self.trial(&origin, at, direction)?;
            evaluations += 1;
            iteration += 1;
            if too_high(&new.0) || new.0.loss >= bracket[low].0.loss {
                bracket[high] = new;
                (low, high) = lowest(&bracket);
                continue;
            }
            if flat_enough(&new.0) {
                done = true;
            } else if a.mul(new.0.slope, a.sub(bracket[high].0.at, bracket[low].0.at)).value >= 0.0 {
                bracket[high] = bracket[low].clone();
            }
            bracket[low] = new;
        }
        let (point, gradient) = bracket
            .into_iter()
            .nth(low)
            .ok_or_else(|| Diagnostic::internal("a line search without an end"))?;
        Ok((point, gradient, evaluations))
    }
}

impl Optimizer {
    /// A step: iterations until one of the tolerances or counts of the options.
    pub(super) fn lbfgs_step(&mut self, run: &Run, closure: Closure<'_>) -> Result<()> {
        let Some(group) = self.groups.first().filter(|group| !group.parameters.is_empty()) else {
            return closure().map(|_| ());
        };
        let number = |name: &str| group.number(name);
        let (rate, most) = (group.rate(), number("max_iter") as i64);
        let most_evaluations =
            if number("max_eval") < 0.0 { most * 5 / 4 } else { number("max_eval") as i64 };
        let (small_gradient, small_change) = (number("tolerance_grad"), number("tolerance_change"));
        let history = number("history_size") as i64;
        let searches = match group.get("line_search_fn") {
            Value::Str(name) if &*name == "strong_wolfe" => true,
            Value::Str(name) if name.is_empty() => false,
            _ => return Err(Diagnostic::runtime("only 'strong_wolfe' is supported")),
        };
        let maximize = matches!(group.get("maximize"), Value::Bool(true));
        let parameters = group.parameters.clone();
        let dtype = parameters.first().map_or(DType::F32, Tensor::dtype);
        let dtype = if dtype == DType::C64 { DType::F32 } else { dtype };
        let mut search = Search { run, closure, parameters, maximize, arithmetic: Arithmetic(dtype) };
        let memory = &mut self.lbfgs;
        let mut loss = search.loss()?;
        let mut gradient = search.gather()?;
        let mut evaluations = 1;
        memory.evaluations += 1;
        if search.numbers(&gradient, &gradient)?[1] <= small_gradient {
            return Ok(());
        }
        let mut iteration = 0;
        while iteration < most {
            run.check()?;
            iteration += 1;
            memory.iterations += 1;
            let direction = memory.next_direction(&search, &gradient, history)?;
            memory.gradient = Some(gradient.copy()?);
            memory.loss = loss;
            let [slope, _, _, sum] = search.numbers(&gradient, &direction)?;
            let a = search.arithmetic;
            let first = a.div(float(1.0), tensor(sum));
            let mut length = match memory.iterations {
                1 => a.mul(a.least(float(1.0), first), float(rate)),
                _ => float(rate),
            };
            memory.length = length.value;
            if slope > -small_change {
                break;
            }
            let mut tried = 0;
            if searches {
                let start = (Point { at: float(0.0), loss, slope: tensor(slope) }, gradient.copy()?);
                let (point, found, count) =
                    search.line(&direction, length, start, most_evaluations - evaluations, small_change)?;
                (loss, gradient, length, tried) = (point.loss, found, point.at, count);
                memory.length = length.value;
                search.shift(&direction, length.value)?;
            } else {
                search.shift(&direction, length.value)?;
                if iteration != most {
                    loss = search.loss()?;
                    gradient = search.gather()?;
                    tried = 1;
                }
            }
            let [_, largest, size, _] = search.numbers(&gradient, &direction)?;
            evaluations += tried;
            memory.evaluations += tried;
            let moved = a.mul(tensor(size), length).value.abs();
            let stands = largest <= small_gradient && (searches || tried > 0);
            if iteration == most
                || evaluations >= most_evaluations
                || stands
                || moved <= small_change
                || (loss - memory.loss).abs() < small_change
            {
                break;
            }
        }
        Ok(())
    }
}

impl Memory {
    /// The direction of the next iteration, which is remembered.
    fn next_direction(&mut self, search: &Search<'_>, gradient: &Tensor, history: i64) -> Result<Tensor> {
        let empty = || List::new(Type::tensor(), Vec::new());
        let (direction, scale) = match (&self.direction, &self.gradient) {
            (Some(direction), Some(before)) if self.iterations > 1 => {
                let scale = match &self.scale {
                    Some(scale) => scale.clone(),
                    None => Tensor::full(gradient.dtype(), &[], Scalar::Int(1))?,
                };
                let list = |slot: &mut Option<List>| Value::List(slot.get_or_insert_with(empty).clone());
                let values = vec![
                    Value::Tensor(gradient.clone()),
                    Value::Tensor(before.clone()),
                    Value::Tensor(direction.clone()),
                    Value::Float(self.length),
                    list(&mut self.pairs),
                    list(&mut self.steps),
                    list(&mut self.inverse),
                    Value::Tensor(scale),
                    Value::Int(history),
                ];
                match search.rule("lbfgs_direction", values)? {
                    Value::Tuple(parts) => match parts.items() {
                        [Value::Tensor(direction), Value::Tensor(scale)] => {
                            (direction.clone(), Some(scale.clone()))
                        }
                        _ => return Err(Diagnostic::internal("a direction is two tensors")),
                    },
                    _ => return Err(Diagnostic::internal("a direction is two tensors")),
                }
            }
            _ => {
                *self = Memory { evaluations: self.evaluations, iterations: 1, ..Memory::default() };
                let negated = search.rule("lbfgs_negated", vec![Value::Tensor(gradient.clone())])?;
                (negated.to_tensor()?.clone(), None)
            }
        };
        self.direction = Some(direction.clone());
        self.scale = scale;
        Ok(direction)
    }
}
