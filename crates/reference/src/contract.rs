//! Products of matrices, linear layers and convolutions: sums of products over an index that is gone in the result. They know
//! no blocking, no packing and no order of sums but that of the index.

use crate::array::{Array, broadcast, rounded};
use crate::promote::{Operand, category, common};
use crate::scalar::{product, sum};
use crate::{Answer, Outside, refused};
use flambeau_base::tensor::Scalar;

/// The sum of the products of pairs.
fn dot_of(pairs: impl Iterator<Item = (Scalar, Scalar)>, zero: Scalar) -> Answer<Scalar> {
    let mut so_far = zero;
    for (a, b) in pairs {
        so_far = sum(false, so_far, product(a, b)?)?;
    }
    Ok(so_far)
}

fn zero_of(a: &Array, b: &Array) -> Answer<Scalar> {
    if a.dtype != b.dtype {
        return refused("factors of two dtypes");
    }
    rounded(Scalar::Int(0), a.dtype)
}

/// Products of matrices that lie in the last two dimensions, the others broadcast.
fn matrices(a: &Array, b: &Array) -> Answer<Array> {
    let zero = zero_of(a, b)?;
    let (outer_a, outer_b) = (a.rank() - 2, b.rank() - 2);
    let (rows, inner, columns) = (a.sizes[outer_a], a.sizes[outer_a + 1], b.sizes[outer_b + 1]);
    if b.sizes[outer_b] != inner {
        return refused("a row is not as long as a column");
    }
    let outer = broadcast([&a.sizes[..outer_a], &b.sizes[..outer_b]])?;
    let sizes = [outer.as_slice(), &[rows, columns]].concat();
    Array::of(a.dtype, &sizes, |index| {
        let (outer, last) = index.split_at(index.len() - 2);
        let element = |m: &Array, i: usize, j: usize| m.repeated_but_last_two_at(outer, i, j);
        dot_of((0..inner).map(|k| (element(a, last[0], k), element(b, k, last[1]))), zero)
    })
}

impl Array {
    /// An element of a matrix, of those that broadcast in front of the last two dimensions.
    fn repeated_but_last_two_at(&self, outer: &[usize], row: usize, column: usize) -> Scalar {
        let own = self.rank() - 2;
        let mut place: Vec<usize> = outer[outer.len() - own..]
            .iter()
            .zip(&self.sizes)
            .map(|(i, n)| if *n == 1 { 0 } else { *i })
            .collect();
        place.extend([row, column]);
        self.at(&place)
    }
}

/// Products of arrays of given ranks.
pub(crate) fn of_ranks(a: &Array, b: &Array, ranks: [usize; 2]) -> Answer<Array> {
    if [a.rank(), b.rank()] != ranks || a.rank() == 3 && a.sizes[0] != b.sizes[0] {
        return refused("arrays of other ranks");
    }
    matmul(a, b)
}

/// Vectors are rows on the left and columns on the right.
pub(crate) fn matmul(a: &Array, b: &Array) -> Answer<Array> {
    if a.rank() == 0 || b.rank() == 0 {
        return refused("a number is not a matrix");
    }
    let as_matrix = |m: &Array, at: usize| match m.rank() {
        1 => {
            let mut sizes = m.sizes.clone();
            sizes.insert(at, 1);
            m.sized(sizes)
        }
        _ => Ok(m.clone()),
    };
    let found = matrices(&as_matrix(a, 0)?, &as_matrix(b, 1)?)?;
    let mut sizes = found.sizes.clone();
    if b.rank() == 1 {
        sizes.remove(sizes.len() - 1);
    }
    if a.rank() == 1 {
        sizes.remove(sizes.len() - 1 - usize::from(b.rank() > 1));
    }
    found.sized(sizes)
}

/// beta * c + alpha * product; c does not count where beta is 0.
pub(crate) fn added(c: &Array, found: &Array, beta: Scalar, alpha: Scalar) -> Answer<Array> {
    if c.dtype != found.dtype {
        return refused("a summand of another dtype");
    }
    let (beta, alpha) = (rounded(beta, c.dtype)?, rounded(alpha, c.dtype)?);
    let zero = rounded(Scalar::Int(0), c.dtype)?;
    if broadcast([c.sizes.as_slice(), found.sizes.as_slice()])? != found.sizes {
        return refused("a summand of other sizes");
    }
    Array::of(c.dtype, &found.sizes, |index| {
        let own = if beta == zero { zero } else { product(beta, c.repeated_at(index))? };
        sum(false, own, product(alpha, found.at(index))?)
    })
}

/// x * transposed weight + bias
pub(crate) fn linear(x: &Array, weight: &Array, bias: Option<&Array>) -> Answer<Array> {
    let found = match weight.rank() {
        1 => matmul(x, weight)?,
        2 => matmul(x, &crate::shape::transpose(weight, 0, 1)?)?,
        _ => return refused("a weight is a matrix"),
    };
    let Some(bias) = bias else { return Ok(found) };
    let one = Scalar::Int(1);
    let is_vector = bias.rank() == 1 || bias.sizes.iter().filter(|n| **n != 1).count() == 1;
    if x.rank() != 2 && is_vector && bias.dtype != found.dtype {
        return Err(Outside::Open("how the input lies decides whether the dtype of the bias matters"));
    }
    if x.rank() == 2 || is_vector {
        // A product of matrices, of which each row gets the bias.
        if weight.rank() == 1 {
            return refused("a weight is a matrix");
        }
        let out = weight.sizes[0];
        let rows = x.sizes[..x.rank() - 1].iter().product();
        return added(bias, &found.sized(vec![rows, out])?, one, one)?.sized(found.sizes);
    }
    // Any other bias is added in place, in the dtype that both have in common.
    let all = [bias, &found].map(|array| Operand::Tensor(array.clone()));
    let dtype = common(&all)?;
    if category(dtype) > category(found.dtype) {
        return refused("a bias of a higher kind");
    }
    added(&bias.to(dtype)?, &found.to(dtype)?, one, one)?.to(found.dtype)
}

/// How a window moves, one number a dimension.
pub(crate) struct Window<'a> {
    pub(crate) stride: &'a [i64],
    pub(crate) padding: &'a [i64],
    pub(crate) dilation: &'a [i64],
    pub(crate) groups: i64,
}

/// A convolution over as many dimensions: images are (batch, channels, ...), or one image without a batch, and weights (channels
/// of the result, channels of the group, ...).
pub(crate) fn conv(
    x: &Array,
    weight: &Array,
    bias: Option<&Array>,
    window: &Window<'_>,
    dims: usize,
) -> Answer<Array> {
    if x.rank() == dims + 1 {
        let found = conv(&crate::shape::unsqueeze(x, 0)?, weight, bias, window, dims)?;
        return found.sized(found.sizes[1..].to_vec());
    }
    let zero = zero_of(x, weight)?;
    let lengths = [window.stride.len(), window.padding.len(), window.dilation.len()];
    if x.rank() != dims + 2 || weight.rank() != dims + 2 || lengths != [dims; 3] {
        return Err(Outside::Unknown);
    }
    let groups = usize::try_from(window.groups).unwrap_or(0);
    let (out, inner) = (weight.sizes[0], weight.sizes[1]);
    if groups == 0 || x.sizes[1] != inner * groups || out % groups != 0 {
        return refused("channels do not fit");
    }
    let mut sizes = vec![x.sizes[0], out];
    for d in 0..dims {
        let reach = window.dilation[d] * (weight.sizes[d + 2] as i64 - 1) + 1;
        let free = x.sizes[d + 2] as i64 + 2 * window.padding[d] - reach;
        if free < 0 || window.stride[d] <= 0 || window.dilation[d] <= 0 || window.padding[d] < 0 {
            return refused("a window that does not fit");
        }
        sizes.push((free / window.stride[d] + 1) as usize);
    }
    let kernel = &weight.sizes[2..];
    Array::of(x.dtype, &sizes, |index| {
        let group = index[1] / (out / groups);
        let start = match bias {
            Some(bias) => bias.at(&[index[1]]),
            None => zero,
        };
        let mut pairs = Vec::new();
        for tap in crate::array::indices(&[&[inner], kernel].concat()) {
            let place: Option<Vec<usize>> = (0..dims)
                .map(|d| {
                    let from = index[d + 2] as i64 * window.stride[d] - window.padding[d];
                    let i = from + tap[d + 1] as i64 * window.dilation[d];
                    usize::try_from(i).ok().filter(|i| *i < x.sizes[d + 2])
                })
                .collect();
            // Beside the image lie zeros.
            let own = match place {
                Some(place) => x.at(&[&[index[0], group * inner + tap[0]], place.as_slice()].concat()),
                None => zero,
            };
            pairs.push((own, weight.at(&[&[index[1]], tap.as_slice()].concat())));
        }
        dot_of(pairs.into_iter(), start)
    })
}
