//! What rules say of open sizes holds for numbers in their place, and no more is said than that.

use super::open::{Made, OpenSizes, by_numbers};
use super::{Known, Operands, Results, infer, layouts};
use crate::dialects::Registry;
use crate::ir::{Argument, Attr, Dim, Stride, TensorType, TypeKind};
use crate::tensor::{DType, contiguous_strides};
use std::cell::Cell;

fn rows(open: &OpenSizes, sizes: &[Dim]) -> Known {
    let strides = open.row_major(sizes);
    Known::Tensor(TensorType {
        dtype: Some(DType::F32),
        sizes: Some(sizes.into()),
        strides,
        ..TensorType::default()
    })
}

/// What a row says of operands.
fn said(open: &OpenSizes, schema: &str, values: &[Known]) -> Vec<Known> {
    let registry = Registry::builtin();
    let row = registry.iter().find(|row| row.schema_text().starts_with(schema)).expect("a row");
    let symbols = Cell::new(-1);
    infer(&Operands { open: Some(open), ..Operands::new(row, values, &symbols) }).expect("a rule")
}

/// A rule of one int.
fn of_int(open: &OpenSizes, size: Dim, rule: impl Fn(i64) -> i64) -> Dim {
    let number = |known: &[Known]| match known {
        [Known::Int(Dim::Known(n))] => Some(vec![Known::Int(Dim::Known(rule(*n)))]),
        _ => None,
    };
    let results: Results = by_numbers(open, &[Known::Int(size)], &number);
    match results.as_deref() {
        Some([Known::Int(dim)]) => *dim,
        other => panic!("{other:?}"),
    }
}

#[test]
fn formulas_of_one_size_are_recognized_and_others_are_not() {
    let open = OpenSizes::new(1, 100);
    let of = |rule: fn(i64) -> i64| of_int(&open, Dim::Open(0), rule);
    assert_eq!(of(|n| n), Dim::Open(0));
    assert_eq!(of(|_| 7), Dim::Known(7));
    let twice = of(|n| 2 * n);
    let half = of(|n| (n + 1) / 2);
    let less = of(|n| 3 * n - 1);
    let all = [Dim::Open(0), twice, half, less];
    assert!(
        all.iter().enumerate().all(|(n, dim)| matches!(dim, Dim::Open(_)) && !all[..n].contains(dim)),
        "{all:?}"
    );
    // The same formula is the same size.
    assert_eq!((of(|n| n + n), of(|n| n / 2 + n % 2)), (twice, half));
    // What one rule adds another takes away.
    let more = of(|n| n + 5);
    assert_eq!(of_int(&open, more, |n| n - 5), Dim::Open(0));
    // Thresholds, remainders and powers have no formula here.
    for rule in [
        |n: i64| n.min(50),
        |n: i64| n.max(50),
        |n: i64| n % 7,
        |n: i64| n * n * n * n * n,
        |n: i64| 1000 / n,
    ] {
        assert_eq!(of(rule), Dim::Unknown);
    }
    // Beyond what an open size may be, a threshold does not matter.
    assert_eq!(of(|n| n.min(100_000)), Dim::Open(0));
}

#[test]
fn calls_are_held_to_what_rules_were_asked_for() {
    let open = OpenSizes::new(2, 100);
    assert!(open.hold(&[2, 400]) && !open.hold(&[1, 9]) && !open.hold(&[9, 401]));
    // A size that becomes less than 2.
    let half = of_int(&open, Dim::Open(0), |n| n / 2);
    assert!(matches!(half, Dim::Open(_)));
    assert!(open.hold(&[4, 9]) && !open.hold(&[3, 9]));
    // A window that fits from 30 on.
    let window = |known: &[Known]| match known {
        [Known::Int(Dim::Known(n))] if *n >= 30 => Some(vec![Known::Int(Dim::Known(n - 28))]),
        _ => None,
    };
    let found = by_numbers(&open, &[Known::Int(Dim::Open(1))], &window);
    assert!(matches!(found.as_deref(), Some([Known::Int(Dim::Open(_))])), "{found:?}");
    assert!(open.hold(&[60, 30]) && !open.hold(&[60, 29]));
}

#[test]
fn strides_are_products_of_sizes() {
    let open = OpenSizes::new(2, 100);
    let images = rows(&open, &[Dim::Open(0), Dim::Known(3), Dim::Open(1), Dim::Known(8)]);
    let Known::Tensor(ty) = &images else { panic!() };
    let strides = ty.strides.as_deref().expect("are known");
    let step = |factor: i64, sizes: &[u32]| Stride::Open(factor, sizes.into());
    assert_eq!(strides, [step(24, &[1]), step(8, &[1]), Stride::Known(8), Stride::Known(1)]);
    let [Known::Tensor(sum)] = &said(&open, "aten::relu(", std::slice::from_ref(&images))[..] else {
        panic!()
    };
    assert_eq!((sum.strides.as_deref(), &sum.sizes), (Some(strides), &ty.sizes));
    // The product of two sizes is a size, of whose parts strides are made.
    let ints = [Known::Int(Dim::Known(1)), Known::Int(Dim::Known(-1))];
    let values = [images, ints[0].clone(), ints[1].clone()];
    let [Known::Tensor(flat)] = &said(&open, "aten::flatten.using_ints(", &values)[..] else { panic!() };
    assert!(matches!(flat.sizes.as_deref(), Some([Dim::Open(0), Dim::Open(2)])), "{flat:?}");
    assert_eq!(flat.strides.as_deref(), Some(&[step(24, &[1]), Stride::Known(1)][..]));
}

#[test]
fn whether_sizes_are_equal_to_a_number_is_not_known() {
    let open = OpenSizes::new(1, 100);
    let equal = |known: &[Known]| match known {
        [Known::Int(Dim::Known(n))] => Some(vec![Known::Bool(*n == 77)]),
        _ => None,
    };
    assert_eq!(by_numbers(&open, &[Known::Int(Dim::Open(0))], &equal), Some(vec![Known::Nothing]));
}

#[test]
fn what_is_said_of_open_sizes_is_said_of_numbers() {
    let registry = Registry::builtin();
    let mut said_so = 0;
    for row in registry.iter() {
        let Ok(schema) = row.schema() else { continue };
        if schema.arguments.first().is_none_or(|a| !a.ty.is_tensor()) {
            continue;
        }
        let rest = schema.arguments.iter().skip(1).map(argument);
        let Some(rest) = rest.collect::<Option<Vec<Known>>>() else { continue };
        let open = OpenSizes::new(2, 16);
        let symbols = Cell::new(-1);
        let ask = |first: Known, open: Option<&OpenSizes>| {
            let values: Vec<Known> = [first].into_iter().chain(rest.clone()).collect();
            infer(&Operands { open, ..Operands::new(row, &values, &symbols) })
        };
        let Some(general) = ask(rows(&open, &[Dim::Open(0), Dim::Known(3), Dim::Open(1)]), Some(&open))
        else {
            continue;
        };
        for given in [[2, 2], [5, 4], [40, 9], [64, 64]].into_iter().filter(|given| open.hold(given)) {
            let sizes = [given[0], 3, given[1]];
            let dims: Vec<Dim> = sizes.iter().copied().map(Dim::Known).collect();
            let first = Known::Tensor(TensorType {
                dtype: Some(DType::F32),
                sizes: Some(dims.into()),
                strides: Some(layouts::strides(&contiguous_strides(&sizes))),
                ..TensorType::default()
            });
            let Some(exact) = ask(first, None) else { continue };
            for (general, exact) in general.iter().zip(&exact) {
                let (Known::Tensor(general), Known::Tensor(exact)) = (general, exact) else { continue };
                said_so += usize::from(agree(&open, general, exact, &given, row.schema_text()));
            }
        }
    }
    assert!(said_so > 500, "{said_so}");
}

/// An argument after the tensor: its default, or the number 1.
fn argument(argument: &Argument) -> Option<Known> {
    let is_bool = *argument.ty.kind() == TypeKind::Bool;
    match &argument.default {
        None if *argument.ty.kind() == TypeKind::Int => Some(Known::Int(Dim::Known(1))),
        Some(Attr::Int(n)) if is_bool => Some(Known::Bool(*n != 0)),
        Some(Attr::Bool(x)) => Some(Known::Bool(*x)),
        Some(Attr::Int(n)) => Some(Known::Int(Dim::Known(*n))),
        Some(Attr::Float(x)) => Some(Known::Float(*x)),
        Some(Attr::Str(text)) => Some(Known::Str(text.to_string())),
        Some(Attr::Ints(ints)) => Some(Known::Ints(ints.iter().copied().map(Dim::Known).collect())),
        _ if matches!(argument.ty.kind(), TypeKind::Optional(_)) => Some(Known::None),
        _ => None,
    }
}

/// Whether sizes are said at all; panics where they or strides are others.
fn agree(open: &OpenSizes, general: &TensorType, exact: &TensorType, given: &[i64], row: &str) -> bool {
    let (Some(dims), Some(sizes)) = (general.sizes.as_deref(), exact.sizes.as_deref()) else { return false };
    assert_eq!(dims.len(), sizes.len(), "{row}");
    for (dim, size) in dims.iter().zip(sizes) {
        let (Some(own), Some(size)) = (open.value(*dim, given), size.known()) else { continue };
        assert_eq!(own, size, "{row}: {general:?} for {given:?}");
    }
    for (step, exact) in
        general.strides.iter().flat_map(|s| s.iter()).zip(exact.strides.iter().flat_map(|s| s.iter()))
    {
        let own = match step {
            Stride::Known(n) => Some(*n),
            Stride::Open(factor, sizes) => {
                sizes.iter().try_fold(*factor, |all, n| all.checked_mul(open.value(Dim::Open(*n), given)?))
            }
            Stride::Unknown => None,
        };
        let (Some(own), Some(exact)) = (own, exact.known()) else { continue };
        assert_eq!(own, exact, "{row}: {general:?} for {given:?}");
    }
    true
}

#[test]
fn what_is_known_is_taken_over() {
    let open = OpenSizes::new(2, 100);
    let product = open.row_major(&[Dim::Open(0), Dim::Open(1), Dim::Known(3)]);
    assert!(product.is_some());
    let state = [2, open.most(), 5, 0, 3, 2, 0, 1, 1, 2, 0, -1, 2, 1, 3, 4, 7];
    open.restore(&state).expect("it fits");
    assert_eq!(open.state(), state);
    assert_eq!(open.made(2), Some(Made::Product(3, vec![0, 1])));
    assert_eq!(open.made(3), Some(Made::Sum(2, 0, -1)));
    assert_eq!(open.made(4), Some(Made::Quotient { factor: 1, of: 3, plus: 4, by: 7 }));
    assert!(open.hold(&[5, 6]) && !open.hold(&[4, 6]));
    let most = open.most();
    for wrong in [
        &[][..],
        &[3, most, 2],
        &[2, most + 1, 2],
        &[2, most, 1],
        &[2, most, 2, 9],
        // A size of a higher number, a product that ends early, a division by nothing.
        &[2, most, 2, 1, 0, 2, 0],
        &[2, most, 2, 0, 1, 2, 0],
        &[2, most, 2, 2, 1, 0, 0, 0],
        &[2, most, 2, 0, 1, -1],
    ] {
        assert_eq!(open.restore(wrong), None, "{wrong:?}");
        assert_eq!(open.state(), state);
    }
}
