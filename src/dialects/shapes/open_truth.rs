//! What comparisons of open sizes are always. In calls that a plan with open sizes takes, every open size is 2 or more
//! ([`super::open::OpenSizes::hold`]): none is equal to 0 or 1, which is what programs and derivatives ask most; and each is equal
//! to itself. Of all else nothing is said.

use super::Known;
use crate::dialects::Op;
use crate::ir::Dim;
use std::cmp::Ordering;

/// The smallest that an open size is.
const LEAST: i64 = 2;

/// What a comparison of sizes gives, where one of them is open and the answer is the same in all calls.
pub fn compared(op: &Op, operands: &[Known]) -> Option<bool> {
    let is_answer: fn(Order) -> Option<bool> = match op.name().as_str() {
        "aten::eq" => |order| order.is(&[Ordering::Equal]),
        "aten::ne" => |order| order.is(&[Ordering::Less, Ordering::Greater]),
        "aten::lt" => |order| order.is(&[Ordering::Less]),
        "aten::le" => |order| order.is(&[Ordering::Less, Ordering::Equal]),
        "aten::gt" => |order| order.is(&[Ordering::Greater]),
        "aten::ge" => |order| order.is(&[Ordering::Greater, Ordering::Equal]),
        _ => return None,
    };
    match operands {
        [Known::Int(a), Known::Int(b)] if is_open(a) || is_open(b) => is_answer(Order::of(*a, *b)),
        [Known::Ints(a), Known::Ints(b)] if a.iter().chain(b).any(is_open) => {
            let equal = equal(a, b)?;
            match op.name().as_str() {
                "aten::eq" => Some(equal),
                "aten::ne" => Some(!equal),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_open(dim: &Dim) -> bool {
    matches!(dim, Dim::Open(_))
}

/// Whether two lists of sizes are equal.
fn equal(a: &[Dim], b: &[Dim]) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    let pairs: Vec<Option<bool>> =
        a.iter().zip(b).map(|(a, b)| Order::of(*a, *b).is(&[Ordering::Equal])).collect();
    if pairs.contains(&Some(false)) {
        Some(false)
    } else {
        pairs.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
    }
}

/// How a number may stand to another one: some of these.
struct Order(&'static [Ordering]);

impl Order {
    fn of(a: Dim, b: Dim) -> Order {
        use Ordering::{Equal, Greater, Less};
        match (a, b) {
            (Dim::Open(a), Dim::Open(b)) if a == b => Order(&[Equal]),
            (Dim::Known(a), Dim::Known(b)) => Order(match a.cmp(&b) {
                Less => &[Less],
                Equal => &[Equal],
                Greater => &[Greater],
            }),
            (Dim::Open(_), Dim::Known(n)) if n < LEAST => Order(&[Greater]),
            (Dim::Known(n), Dim::Open(_)) if n < LEAST => Order(&[Less]),
            (Dim::Open(_), Dim::Known(LEAST)) => Order(&[Greater, Equal]),
            (Dim::Known(LEAST), Dim::Open(_)) => Order(&[Less, Equal]),
            _ => Order(&[Less, Equal, Greater]),
        }
    }

    /// Whether it is one of these, where that is sure.
    fn is(&self, wanted: &[Ordering]) -> Option<bool> {
        let is_wanted = |order: &Ordering| wanted.contains(order);
        match (self.0.iter().all(is_wanted), self.0.iter().any(is_wanted)) {
            (true, _) => Some(true),
            (_, false) => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Registry;

    fn row(registry: &Registry, schema: &str) -> Op {
        registry.iter().find(|row| row.schema_text().starts_with(schema)).expect("a row").clone()
    }

    /// What is said is so for all numbers that may stand for the sizes, and what is not said differs.
    #[test]
    fn what_is_said_of_open_sizes_holds_for_numbers() {
        let registry = Registry::builtin();
        let dims = [Dim::Open(0), Dim::Open(1), Dim::Known(0), Dim::Known(1), Dim::Known(2), Dim::Known(3)];
        let value = |dim: Dim, open: (i64, i64)| match dim {
            Dim::Open(0) => open.0,
            Dim::Open(_) => open.1,
            other => other.known().expect("a number"),
        };
        let samples: Vec<(i64, i64)> = (2..6).flat_map(|a| (2..6).map(move |b| (a, b))).collect();
        for name in ["eq", "ne", "lt", "le", "gt", "ge"] {
            let op = row(&registry, &format!("aten::{name}.int("));
            for (a, b) in dims.iter().flat_map(|a| dims.iter().map(move |b| (*a, *b))) {
                if !is_open(&a) && !is_open(&b) {
                    continue;
                }
                let answers: Vec<bool> = samples
                    .iter()
                    .map(|open| {
                        let (a, b) = (value(a, *open), value(b, *open));
                        match name {
                            "eq" => a == b,
                            "ne" => a != b,
                            "lt" => a < b,
                            "le" => a <= b,
                            "gt" => a > b,
                            _ => a >= b,
                        }
                    })
                    .collect();
                let same = answers.iter().all(|answer| *answer == answers[0]);
                let said = compared(&op, &[Known::Int(a), Known::Int(b)]);
                assert_eq!(said, same.then_some(answers[0]), "{name} {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn lists_of_sizes_differ_where_one_pair_does() {
        let registry = Registry::builtin();
        let [eq, ne] = ["aten::eq.int_list(", "aten::ne.int_list("].map(|schema| row(&registry, schema));
        let (s0, s1, one) = (Dim::Open(0), Dim::Open(1), Dim::Known(1));
        for (a, b, equal) in [
            (vec![s0, one], vec![s0, one], Some(true)),
            (vec![s0, one], vec![s0], Some(false)),
            (vec![s0, s1], vec![s1, s1], None),
            (vec![s0, s1], vec![s1, one], Some(false)),
        ] {
            let operands = [Known::Ints(a), Known::Ints(b)];
            assert_eq!(compared(&eq, &operands), equal);
            assert_eq!(compared(&ne, &operands), equal.map(|equal| !equal));
        }
    }
}
