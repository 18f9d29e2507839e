//! Which elements of its buffers a kernel touches, from the numbers that it is called with.
//!
//! Integers are followed as intervals, loop by loop; what is loaded or carried may be any number of its type. The answer is a
//! bound: where it lies within the buffers, the kernel runs without checks. Nothing here runs a kernel.

use super::{Carried, Chosen, Elem, For, If, Kernel, Local, Prim, Reg, Stmt, Ty, While};
use crate::dialects::scalar::{Binary, Compare, Unary};
use crate::tensor::Scalar;

/// Bounds and steps of loops are no larger, so that the index after the last iteration is a number too.
pub const FARTHEST: i64 = 1 << 61;

/// The least and the greatest number that a register may hold.
type Interval = [i64; 2];

/// The lowest and the highest element that is touched of each parameter; None for those of which none is.
pub type Reach = Vec<Option<[i64; 2]>>;

/// What a kernel touches when it is called with these integers, one a parameter, None for other arguments. None where loops
/// might not end, or a buffer of the kernel's own may be too small.
pub fn reach(kernel: &Kernel, integers: &[Option<i64>]) -> Option<Reach> {
    let mut known = vec![None; kernel.types.len()];
    for (param, integer) in kernel.params.iter().zip(integers) {
        if let (Ty::Scalar(elem), Some(value)) = (param.ty, integer) {
            known[param.reg.index()] = exact_in(i128::from(*value), elem);
        }
    }
    let reach = vec![None; kernel.types.len()];
    let mut walk = Walk { kernel, known, compared: vec![None; kernel.types.len()], reach };
    walk.block(&kernel.body)?;
    let within = |[low, high]: [i64; 2], size: u32| low >= 0 && high < i64::from(size);
    let fits =
        |local: &Local| walk.reach[local.reg.index()].is_none_or(|touched| within(touched, local.size));
    if !kernel.locals.iter().all(fits) {
        return None;
    }
    Some(kernel.params.iter().map(|param| walk.reach[param.reg.index()]).collect())
}

struct Walk<'k> {
    kernel: &'k Kernel,
    /// Of integers and bools; None where all numbers of the type are possible.
    known: Vec<Option<Interval>>,
    /// What a bool says.
    compared: Vec<Option<Prim>>,
    reach: Vec<Option<[i64; 2]>>,
}

impl Walk<'_> {
    fn of(&self, reg: Reg) -> Interval {
        let all = self.kernel.elem(reg).int_range().unwrap_or([i64::MIN, i64::MAX]);
        self.known[reg.index()].unwrap_or(all)
    }

    fn block(&mut self, body: &[Stmt]) -> Option<()> {
        body.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt) -> Option<()> {
        match statement {
            Stmt::Let(dst, prim) => {
                self.known[dst.index()] = self.primitive(*dst, prim);
                self.compared[dst.index()] = (self.kernel.elem(*dst) == Elem::Bool).then_some(*prim);
            }
            Stmt::Load { buffer, index, .. }
            | Stmt::Store { buffer, index, .. }
            | Stmt::Accumulate { buffer, index, .. } => self.touch(*buffer, *index),
            Stmt::For(l) => return self.for_loop(l),
            Stmt::While(l) => return self.while_loop(l),
            Stmt::If(branch) => return self.branch(branch),
            Stmt::Require { condition, .. } => self.assume(*condition, true, 0),
        }
        Some(())
    }

    fn touch(&mut self, buffer: Reg, index: Reg) {
        let [low, high] = self.of(index);
        let reach = &mut self.reach[buffer.index()];
        *reach = Some(reach.map_or([low, high], |[l, h]| [l.min(low), h.max(high)]));
    }

    fn for_loop(&mut self, l: &For) -> Option<()> {
        let [begin, end, step] = [l.begin, l.end, l.step].map(|reg| self.of(reg));
        let is_near = |[low, high]: Interval| low >= -FARTHEST && high <= FARTHEST;
        if step[0] <= 0 || ![begin, end, step].into_iter().all(is_near) {
            return None;
        }
        let runs = begin[0] < end[1];
        let before = self.known.clone();
        if runs {
            let is_exact = [begin, end, step].iter().all(|[low, high]| low == high);
            let whole = (end[1] - 1 - begin[0]) / step[0] * step[0];
            let last = if is_exact { begin[0] + whole } else { end[1] - 1 };
            self.known[l.iv.index()] = Some([begin[0], last]);
            l.carried.iter().for_each(|c| self.known[c.param.index()] = None);
            self.block(&l.body)?;
        }
        let after: Vec<Option<Interval>> = l.carried.iter().map(|c| self.after(c, runs)).collect();
        // What iterations ask for need not hold where there were none.
        self.known = before;
        for (c, after) in l.carried.iter().zip(after) {
            self.known[c.result.index()] = after;
        }
        Some(())
    }

    /// A carried number after its loop: that of the last iteration, or the first if there was none.
    fn after(&self, c: &Carried, runs: bool) -> Option<Interval> {
        let init = self.of(c.init);
        if !runs {
            return Some(init);
        }
        let next = self.of(c.next);
        Some([init[0].min(next[0]), init[1].max(next[1])])
    }

    /// It ends where its run must end, however long it goes on; what it carries may be any number.
    fn while_loop(&mut self, l: &While) -> Option<()> {
        let before = self.known.clone();
        l.carried.iter().for_each(|c| self.known[c.param.index()] = None);
        self.block(&l.body)?;
        self.known = before;
        l.carried.iter().for_each(|c| self.known[c.result.index()] = None);
        Some(())
    }

    fn branch(&mut self, branch: &If) -> Option<()> {
        let mut given = Vec::new();
        for (body, holds) in [(&branch.then, true), (&branch.otherwise, false)] {
            let before = self.known.clone();
            self.assume(branch.condition, holds, 0);
            self.block(body)?;
            let side = |c: &Chosen| self.of(if holds { c.then } else { c.otherwise });
            given.push(
                branch.results.iter().map(|c| self.is_integer(c.result).then(|| side(c))).collect::<Vec<_>>(),
            );
            self.known = before;
        }
        for (n, c) in branch.results.iter().enumerate() {
            let [Some([a, b]), Some([x, y])] = [given[0][n], given[1][n]] else { continue };
            self.known[c.result.index()] = Some([a.min(x), b.max(y)]);
        }
        Some(())
    }

    fn is_integer(&self, reg: Reg) -> bool {
        self.kernel.elem(reg).int_range().is_some()
    }

    /// Narrows what was compared, knowing whether the comparison holds.
    fn assume(&mut self, condition: Reg, holds: bool, depth: usize) {
        match self.compared[condition.index()] {
            // A chain of conditions that is longer says less.
            _ if depth > 32 => {}
            Some(Prim::Binary(Binary::And, x, y)) if holds => {
                self.assume(x, holds, depth + 1);
                self.assume(y, holds, depth + 1);
            }
            Some(Prim::Compare(op, x, y)) if !self.kernel.elem(x).is_float() => {
                use Compare::{Eq, Ge, Gt, Le, Lt, Ne};
                let op = match (op, holds) {
                    (op, true) => op,
                    (Lt, false) => Ge,
                    (Le, false) => Gt,
                    (Gt, false) => Le,
                    (Ge, false) => Lt,
                    (Eq, false) => Ne,
                    (Ne, false) => Eq,
                };
                let ([x0, x1], [y0, y1]) = (self.of(x), self.of(y));
                let (nx, ny) = match op {
                    Lt => ([x0, x1.min(y1.saturating_sub(1))], [y0.max(x0.saturating_add(1)), y1]),
                    Le => ([x0, x1.min(y1)], [y0.max(x0), y1]),
                    Gt => ([x0.max(y0.saturating_add(1)), x1], [y0, y1.min(x1.saturating_sub(1))]),
                    Ge => ([x0.max(y0), x1], [y0, y1.min(x1)]),
                    Eq => ([x0.max(y0), x1.min(y1)], [x0.max(y0), x1.min(y1)]),
                    Ne => ([x0, x1], [y0, y1]),
                };
                // An empty interval is one of code that is not reached.
                let kept = |[low, high]: Interval, old| if low <= high { [low, high] } else { old };
                self.known[x.index()] = Some(kept(nx, [x0, x1]));
                self.known[y.index()] = Some(kept(ny, [y0, y1]));
            }
            _ => {}
        }
    }

    fn primitive(&self, dst: Reg, prim: &Prim) -> Option<Interval> {
        let elem = self.kernel.elem(dst);
        elem.int_range()?;
        match *prim {
            Prim::Const(Scalar::Int(x)) => exact_in(x.into(), elem),
            Prim::Const(Scalar::Bool(x)) => exact_in(x.into(), elem),
            Prim::Unary(Unary::Neg, x) => {
                let [low, high] = self.of(x).map(i128::from);
                in_range(-high, -low, elem)
            }
            Prim::Binary(op, x, y) => self.binary(op, self.of(x), self.of(y), elem),
            Prim::Select(_, x, y) => {
                let (x, y) = (self.of(x), self.of(y));
                Some([x[0].min(y[0]), x[1].max(y[1])])
            }
            Prim::Convert(x) if !self.kernel.elem(x).is_float() && elem != Elem::Bool => {
                let [low, high] = self.of(x).map(i128::from);
                in_range(low, high, elem)
            }
            _ => None,
        }
    }

    fn binary(&self, op: Binary, x: Interval, y: Interval, elem: Elem) -> Option<Interval> {
        let ([x0, x1], [y0, y1]) = (x.map(i128::from), y.map(i128::from));
        let hull = |corners: [i128; 4]| {
            let [a, b, c, d] = corners;
            in_range(a.min(b).min(c).min(d), a.max(b).max(c).max(d), elem)
        };
        match op {
            // Bools are numbers of their own arithmetic.
            _ if elem == Elem::Bool => None,
            Binary::Add => in_range(x0 + y0, x1 + y1, elem),
            Binary::Sub => in_range(x0 - y1, x1 - y0, elem),
            Binary::Mul => hull([x0 * y0, x0 * y1, x1 * y0, x1 * y1]),
            Binary::Min => in_range(x0.min(y0), x1.min(y1), elem),
            Binary::Max => in_range(x0.max(y0), x1.max(y1), elem),
            Binary::Div if y0 > 0 => hull([x0 / y0, x0 / y1, x1 / y0, x1 / y1]),
            Binary::Rem if y0 > 0 && x0 == x1 && y0 == y1 => in_range(x0 % y0, x0 % y0, elem),
            Binary::Rem if y0 > 0 && x0 >= 0 && x1 < y0 => in_range(x0, x1, elem),
            Binary::Rem if y0 > 0 => in_range((1 - y1).max(x0.min(0)), (y1 - 1).min(x1.max(0)), elem),
            Binary::And if x0 >= 0 || y0 >= 0 => {
                // A mask that is not negative bounds the result.
                let high = if x0 < 0 {
                    y1
                } else if y0 < 0 {
                    x1
                } else {
                    x1.min(y1)
                };
                in_range(0, high, elem)
            }
            Binary::Shr if x0 >= 0 && y0 >= 0 => in_range(0, x1, elem),
            _ => None,
        }
    }
}

/// An interval of exact results; None where a result wraps.
fn in_range(low: i128, high: i128, elem: Elem) -> Option<Interval> {
    let [least, most] = elem.int_range()?;
    let fits = low >= i128::from(least) && high <= i128::from(most);
    fits.then_some([low as i64, high as i64])
}

fn exact_in(value: i128, elem: Elem) -> Option<Interval> {
    in_range(value, value, elem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::loops::decode;
    use crate::ir::parse_graph;

    /// What a body touches of `%a` in iterations `%i` from 0 to `n` in steps of `step`.
    fn touched(body: &str, n: i64, step: i64) -> Option<Option<[i64; 2]>> {
        let text = format!(
            "graph(%a : loop.buffer<loop.f32>, %p : loop.buffer<loop.i64>, %n : loop.i64, %s : loop.i64):
  %zero : loop.i64 = loop::const[value=0]()
  %three : loop.i64 = loop::const[value=3]()
   = loop::for(%zero, %n, %s)
    block0(%i : loop.i64):
{body}
      -> ()
  return ()
"
        );
        let kernel = decode(&parse_graph(&text).expect("parses")).expect("is well formed");
        reach(&kernel, &[None, None, Some(n), Some(step)]).map(|reach| reach[0])
    }

    #[test]
    fn indices_are_followed_through_loops_and_arithmetic() {
        let load = |index: &str| {
            format!("      %at : loop.i64 = {index}\n      %x : loop.f32 = loop::load(%a, %at)")
        };
        let cases = [
            ("loop::add(%i, %three)", 10, 1, [3, 12]),
            ("loop::sub(%three, %i)", 10, 1, [-6, 3]),
            ("loop::mul(%i, %n)", 10, 1, [0, 90]),
            ("loop::rem(%i, %three)", 10, 1, [0, 2]),
            ("loop::div(%i, %three)", 10, 1, [0, 3]),
            ("loop::min(%i, %three)", 10, 1, [0, 3]),
            ("loop::and(%i, %three)", 10, 1, [0, 3]),
            ("loop::neg(%i)", 10, 1, [-9, 0]),
            // The last iteration of a step of 4 below 10 is 8.
            ("loop::add(%i, %three)", 10, 4, [3, 11]),
            ("loop::load(%p, %i)", 10, 1, [i64::MIN, i64::MAX]),
            // What wraps may be anything.
            ("loop::mul(%i, %n)", 1 << 40, 1, [i64::MIN, i64::MAX]),
        ];
        for (index, n, step, expected) in cases {
            assert_eq!(touched(&load(index), n, step), Some(Some(expected)), "{index} below {n} by {step}");
        }
        assert_eq!(touched(&load("loop::neg(%i)"), 0, 1), Some(None), "no iteration touches anything");
        assert_eq!(touched(&load("loop::neg(%i)"), 10, 0), None, "a step of 0 does not end");
        assert_eq!(touched(&load("loop::neg(%i)"), i64::MAX, 1), None, "an index beyond all numbers");
    }

    #[test]
    fn conditions_narrow_what_they_compare() {
        let body = "      %at : loop.i64 = loop::load(%p, %i)
      %low : loop.bool = loop::ge(%at, %zero)
      %high : loop.bool = loop::lt(%at, %three)
      %both : loop.bool = loop::and(%low, %high)
       = loop::if(%both)
        block0():
          %x : loop.f32 = loop::load(%a, %at)
          -> ()
        block1():
          -> ()";
        assert_eq!(touched(body, 10, 1), Some(Some([0, 2])));
        let swapped = body.replace("loop::ge(%at, %zero)", "loop::le(%zero, %at)");
        assert_eq!(touched(&swapped, 10, 1), Some(Some([0, 2])));
        let required = "      %at : loop.i64 = loop::load(%p, %i)
      %high : loop.bool = loop::lt(%at, %three)
       = loop::require[message=\"too high\"](%high)
      %x : loop.f32 = loop::load(%a, %at)";
        assert_eq!(touched(required, 10, 1), Some(Some([i64::MIN, 2])));
        let other = "      %at : loop.i64 = loop::load(%p, %i)
      %high : loop.bool = loop::ge(%at, %three)
       = loop::if(%high)
        block0():
          -> ()
        block1():
          %x : loop.f32 = loop::load(%a, %at)
          -> ()";
        assert_eq!(touched(other, 10, 1), Some(Some([i64::MIN, 2])));
    }
}
