//! Arguments of a recorded case in other orders of memory: their elements are the same, so answers must be too, and kernels
//! and the types that rows infer are seen with strides that recordings seldom have. Sizes and values are not touched.

use crate::diag::Result;
use crate::tensor::{Tensor, view};
use crate::value::Value;
use clap::ValueEnum;

/// How tensors among the arguments lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// As recorded.
    #[default]
    Recorded,
    /// The first dimension innermost.
    Columns,
    /// The second dimension innermost, as channels of images.
    Channels,
    /// In order of rows, each element apart from the next: a slice of a larger tensor.
    Spread,
}

/// An argument whose tensors lie in an order. Tensors of a list share no memory afterwards.
pub(super) fn ordered(value: Value, order: Order) -> Result<Value> {
    Ok(match value {
        Value::Tensor(tensor) if order != Order::Recorded && tensor.is_plain() => {
            Value::Tensor(reordered(&tensor, order)?)
        }
        Value::List(list) if list.element_type().is_tensor() => {
            let items = list.items().to_vec().into_iter().map(|item| ordered(item, order));
            Value::list(list.element_type().clone(), items.collect::<Result<_>>()?)
        }
        other => other,
    })
}

fn reordered(tensor: &Tensor, order: Order) -> Result<Tensor> {
    let rank = tensor.rank() as i64;
    let outer: Vec<i64> = match order {
        Order::Columns => (0..rank).rev().collect(),
        Order::Channels if rank > 2 => [0].into_iter().chain(2..rank).chain([1]).collect(),
        Order::Spread => return spread(tensor),
        Order::Recorded | Order::Channels => return Ok(tensor.clone()),
    };
    let mut inverse = vec![0; outer.len()];
    for (to, from) in outer.iter().enumerate() {
        inverse[*from as usize] = to as i64;
    }
    let turned = tensor.detach().with_layout(view::permute(&tensor.layout(), &outer)?)?.copy()?;
    let made = turned.with_layout(view::permute(&turned.layout(), &inverse)?)?;
    same_grad(tensor, made)
}

/// Every second element of a tensor that is twice as long in its last dimension.
fn spread(tensor: &Tensor) -> Result<Tensor> {
    let Some(last) = tensor.sizes().last().copied().filter(|n| *n > 0) else { return Ok(tensor.clone()) };
    let mut sizes = tensor.sizes().to_vec();
    let doubled = sizes.len() - 1;
    sizes[doubled] = last * 2;
    let wide = Tensor::zeros(tensor.dtype(), &sizes)?;
    let mut layout = wide.layout();
    layout.sizes[doubled] = last;
    layout.strides[doubled] = 2;
    let made = wide.with_layout(layout)?;
    made.copy_from(&tensor.detach())?;
    same_grad(tensor, made)
}

fn same_grad(from: &Tensor, to: Tensor) -> Result<Tensor> {
    if from.requires_grad() {
        to.set_requires_grad(true)?;
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stay_while_strides_change() {
        let elements: Vec<f32> = (0..24u8).map(f32::from).collect();
        let tensor = Tensor::from_vec::<f32>(&elements, &[2, 3, 2, 2]).expect("small");
        let orders = [
            (Order::Columns, [1, 2, 6, 12]),
            (Order::Channels, [12, 1, 6, 3]),
            (Order::Spread, [24, 8, 4, 2]),
        ];
        for (order, strides) in orders {
            let Value::Tensor(found) = ordered(Value::Tensor(tensor.clone()), order).expect("small") else {
                panic!("a tensor stays one");
            };
            assert_eq!(found.strides().to_vec(), strides, "{order:?}");
            assert_eq!(found.to_vec::<f32>().expect("floats"), elements, "{order:?}");
        }
    }
}
