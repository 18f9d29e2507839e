//! Numbers and text that a rule mentions, and what follows from them: where a rule lies only at few numbers, those
//! are most often near the ones that stand in it.

use crate::ir::Attr;
use crate::rewrite::load::rule::{CompiledRule, Term};
use crate::rewrite::load::syntax::{Expr, Literal};
use std::sync::Arc;

/// Numbers that are combined with each other, at most.
const MAX_COMBINED: usize = 8;
/// Elements of a tensor, at most, where a rule asks for large ones.
const MAX_ELEMENTS: i64 = 4096;

/// What a rule mentions.
#[derive(Default)]
pub struct Mentions {
    /// Ints, as they stand there.
    pub ints: Vec<i64>,
    /// Ints that laws about those may turn on: roots, halves, sums and differences.
    pub derived: Vec<i64>,
    /// Floats, and those beside them.
    pub floats: Vec<f64>,
    /// Text.
    pub texts: Vec<Arc<str>>,
    /// Small ints of conditions: sizes, ranks or numbers of elements that are asked for.
    pub sizes: Vec<i64>,
}

impl Mentions {
    /// What stands in the terms and conditions of a rule.
    pub fn of(rule: &CompiledRule) -> Mentions {
        let mut found = Mentions::default();
        let mut exprs = Vec::new();
        rule.conditions.iter().for_each(|c| c.exprs(&mut |e| exprs.push(e.clone())));
        exprs.iter().for_each(|e| found.expr(e));
        let sizes = found.ints.iter().flat_map(|n| [n.saturating_sub(1), *n, n.saturating_add(1)]);
        found.sizes = sizes.filter(|n| (0..=512).contains(n)).collect();
        found.sizes.sort_unstable();
        found.sizes.dedup();
        found.term(&rule.left);
        found.term(&rule.right);
        found.derive();
        found
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Constant(_, Some(Attr::Int(x))) => self.ints.push(*x),
            Term::Constant(_, Some(Attr::Float(x))) => self.floats.push(*x),
            Term::Constant(_, Some(Attr::Str(x))) => self.texts.push(Arc::clone(x)),
            Term::Op(node) => {
                node.operands.iter().chain(node.blocks.iter().flatten()).for_each(|t| self.term(t))
            }
            Term::List(_, items) => items.iter().for_each(|t| self.term(t)),
            Term::Compute(expr, _) => self.expr(expr),
            _ => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Literal(Literal::Int(x)) => self.ints.extend([*x, x.saturating_neg()]),
            Expr::Literal(Literal::Float(x)) => self.floats.extend([*x, -*x]),
            Expr::Literal(Literal::Str(x)) => self.texts.push(x.as_str().into()),
            Expr::Call(_, arguments, _) | Expr::List(arguments) => {
                arguments.iter().for_each(|a| self.expr(a));
            }
            Expr::Binary(_, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Expr::Negate(a) => self.expr(a),
            _ => {}
        }
    }

    fn derive(&mut self) {
        let mut ints = self.ints.clone();
        ints.sort_unstable();
        ints.dedup();
        ints.truncate(MAX_COMBINED);
        for x in &ints {
            let root = (*x as f64).abs().sqrt() as i64;
            self.derived.extend([root, -root, x / 2, x.saturating_neg(), x.saturating_mul(2)]);
            for y in &ints {
                self.derived.extend([x.saturating_add(*y), x.saturating_sub(*y)]);
                self.derived.extend(x.checked_div(*y));
            }
        }
        self.derived.retain(|x| x.unsigned_abs() > 6 && !self.ints.contains(x));
        self.derived.sort_unstable();
        self.derived.dedup();
        let floats = self.floats.clone();
        for x in floats.iter().take(MAX_COMBINED) {
            self.floats.extend([x.next_up(), x.next_down(), x / 2.0, x * 2.0, x.abs().sqrt(), -x]);
        }
    }

    /// Numbers that elements of tensors should be, too.
    pub fn elements(&self) -> Vec<f64> {
        let ints = self.ints.iter().chain(&self.derived).filter(|x| x.unsigned_abs() < 1 << 53);
        ints.map(|x| *x as f64).chain(self.floats.iter().copied()).collect()
    }

    /// How many elements a tensor may have.
    pub fn largest(&self) -> i64 {
        let wanted = self.sizes.iter().copied().max().unwrap_or(0);
        wanted.saturating_mul(8).clamp(400, MAX_ELEMENTS)
    }
}
