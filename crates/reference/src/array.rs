//! Arrays of numbers, read from tensors element by element and asked for by index. They know where an element lies and how a
//! dtype rounds; they know no op, and use none of the loops by which tensors are read elsewhere.

use crate::{Answer, Outside, refused};
use flambeau_base::tensor::{DType, Scalar, Tensor};
use half::{bf16, f16};
use num_complex::Complex64;

/// Numbers in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) dtype: DType,
    pub(crate) sizes: Vec<usize>,
    pub(crate) items: Vec<Scalar>,
}

impl Array {
    /// The elements of a tensor: element (i, j, ...) lies at offset + i * stride 0 + j * stride 1 + ...
    pub(crate) fn read(tensor: &Tensor) -> Answer<Array> {
        if !tensor.is_plain() {
            return Err(Outside::Unknown);
        }
        let (dtype, layout) = (tensor.dtype(), tensor.layout());
        let sizes: Vec<usize> = layout.sizes.iter().map(|n| *n as usize).collect();
        let bytes = tensor.storage().read().map_err(|e| Outside::Refused(e.message().to_string()))?;
        let mut items = Vec::new();
        for index in indices(&sizes) {
            let steps = index.iter().zip(&layout.strides).map(|(i, stride)| *i as i64 * stride);
            let place = (layout.offset as i64 + steps.sum::<i64>()) as usize * dtype.size();
            items.push(decoded(dtype, &bytes[place..place + dtype.size()])?);
        }
        Ok(Array { dtype, sizes, items })
    }

    /// A dense tensor of the same elements.
    pub(crate) fn write(&self) -> Answer<Tensor> {
        let mut bytes = Vec::new();
        for item in &self.items {
            encode(self.dtype, *item, &mut bytes)?;
        }
        let sizes: Vec<i64> = self.sizes.iter().map(|n| *n as i64).collect();
        Tensor::from_bytes(self.dtype, &sizes, &bytes).map_err(|e| Outside::Refused(e.message().to_string()))
    }

    /// An array of which each element is computed from its index and rounded to the dtype.
    pub(crate) fn of(
        dtype: DType,
        sizes: &[usize],
        mut element: impl FnMut(&[usize]) -> Answer<Scalar>,
    ) -> Answer<Array> {
        let items = indices(sizes).map(|index| rounded(element(&index)?, dtype)).collect::<Answer<_>>()?;
        Ok(Array { dtype, sizes: sizes.to_vec(), items })
    }

    /// An array whose elements are those of this one at other places.
    pub(crate) fn look(
        &self,
        sizes: &[usize],
        mut place: impl FnMut(&[usize]) -> Vec<usize>,
    ) -> Answer<Array> {
        Array::of(self.dtype, sizes, |index| Ok(self.at(&place(index))))
    }

    pub(crate) fn rank(&self) -> usize {
        self.sizes.len()
    }

    pub(crate) fn numel(&self) -> usize {
        self.sizes.iter().product()
    }

    pub(crate) fn at(&self, index: &[usize]) -> Scalar {
        let place = index.iter().zip(&self.sizes).fold(0, |place, (i, n)| place * n + i);
        self.items[place]
    }

    /// The element where an array that broadcasts is read: dimensions are counted from the last, and those of size 1 repeat.
    pub(crate) fn repeated_at(&self, index: &[usize]) -> Scalar {
        let own = &index[index.len() - self.rank()..];
        let own: Vec<usize> =
            own.iter().zip(&self.sizes).map(|(i, n)| if *n == 1 { 0 } else { *i }).collect();
        self.at(&own)
    }

    pub(crate) fn to(&self, dtype: DType) -> Answer<Array> {
        Array::of(dtype, &self.sizes, |index| Ok(self.at(index)))
    }

    /// The same elements in the same order under other sizes.
    pub(crate) fn sized(&self, sizes: Vec<usize>) -> Answer<Array> {
        if sizes.iter().product::<usize>() != self.numel() {
            return refused("other sizes have another number of elements");
        }
        Ok(Array { dtype: self.dtype, sizes, items: self.items.clone() })
    }

    /// A dimension that may be counted from behind; a number counts as having one.
    pub(crate) fn dim(&self, dim: i64) -> Answer<usize> {
        dimension(dim, self.rank().max(1))
    }
}

/// A dimension of `rank`, which may be counted from the end.
pub(crate) fn dimension(dim: i64, rank: usize) -> Answer<usize> {
    let rank = rank as i64;
    if dim < -rank || dim >= rank {
        return refused("there is no such dimension");
    }
    Ok((if dim < 0 { dim + rank } else { dim }) as usize)
}

/// All indices of an array of given sizes, the last dimension fastest.
pub(crate) fn indices(sizes: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let sizes = sizes.to_vec();
    (0..sizes.iter().product::<usize>()).map(move |n| {
        let mut rest = n;
        let mut index = vec![0; sizes.len()];
        for (i, size) in index.iter_mut().zip(&sizes).rev() {
            *i = rest % size;
            rest /= size;
        }
        index
    })
}

/// The sizes that arrays broadcast to.
pub(crate) fn broadcast<'a>(all: impl IntoIterator<Item = &'a [usize]>) -> Answer<Vec<usize>> {
    let mut common: Vec<usize> = Vec::new();
    for sizes in all {
        while common.len() < sizes.len() {
            common.insert(0, 1);
        }
        let start = common.len() - sizes.len();
        for (own, other) in common[start..].iter_mut().zip(sizes) {
            match (*own, *other) {
                (1, n) => *own = n,
                (n, m) if n == m || m == 1 => {}
                _ => return refused("sizes do not broadcast"),
            }
        }
    }
    Ok(common)
}

fn decoded(dtype: DType, bytes: &[u8]) -> Answer<Scalar> {
    let mut own = [0; 16];
    own[..bytes.len()].copy_from_slice(bytes);
    let [a, b, c, d, e, f, g, h, ..] = own;
    let eight = |at: usize| f64::from_le_bytes(std::array::from_fn(|n| own[at + n]));
    let four = |at: usize| f64::from(f32::from_le_bytes(std::array::from_fn(|n| own[at + n])));
    Ok(match dtype {
        DType::Bool => Scalar::Bool(a != 0),
        DType::U8 => Scalar::Int(i64::from(a)),
        DType::I8 => Scalar::Int(i64::from(a as i8)),
        DType::I16 => Scalar::Int(i64::from(i16::from_le_bytes([a, b]))),
        DType::I32 => Scalar::Int(i64::from(i32::from_le_bytes([a, b, c, d]))),
        DType::I64 => Scalar::Int(i64::from_le_bytes([a, b, c, d, e, f, g, h])),
        DType::F16 => Scalar::Float(f64::from(f16::from_le_bytes([a, b]))),
        DType::BF16 => Scalar::Float(f64::from(bf16::from_le_bytes([a, b]))),
        DType::F32 => Scalar::Float(four(0)),
        DType::F64 => Scalar::Float(eight(0)),
        DType::C64 => Scalar::Complex(Complex64::new(four(0), four(4))),
        DType::C128 => Scalar::Complex(Complex64::new(eight(0), eight(8))),
        _ => return Err(Outside::Unknown),
    })
}

fn encode(dtype: DType, item: Scalar, out: &mut Vec<u8>) -> Answer<()> {
    match (dtype, item) {
        (DType::Bool, Scalar::Bool(x)) => out.push(u8::from(x)),
        (DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64, Scalar::Int(x)) => {
            out.extend(&x.to_le_bytes()[..dtype.size()]);
        }
        (DType::F16, Scalar::Float(x)) => out.extend(f16::from_f64(x).to_le_bytes()),
        (DType::BF16, Scalar::Float(x)) => out.extend(bf16::from_f64(x).to_le_bytes()),
        (DType::F32, Scalar::Float(x)) => out.extend((x as f32).to_le_bytes()),
        (DType::F64, Scalar::Float(x)) => out.extend(x.to_le_bytes()),
        (DType::C64, Scalar::Complex(z)) => {
            [z.re, z.im].iter().for_each(|x| out.extend((*x as f32).to_le_bytes()));
        }
        (DType::C128, Scalar::Complex(z)) => {
            [z.re, z.im].iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        _ => return Err(Outside::Unknown),
    }
    Ok(())
}

/// A number as a dtype holds it. Integers wrap, floats are rounded to the nearest; a float that no integer of the dtype stands
/// for has none.
pub(crate) fn rounded(x: Scalar, dtype: DType) -> Answer<Scalar> {
    // What is seen of a complex number where a real one is wanted.
    let x = match x {
        Scalar::Complex(z) if !dtype.is_complex() && dtype != DType::Bool => Scalar::Float(z.re),
        x => x,
    };
    Ok(match dtype {
        DType::Bool => Scalar::Bool(truth(x)),
        DType::F32 => Scalar::Float(f64::from(nearest_f32(x))),
        DType::F64 => Scalar::Float(float(x)),
        // Floats of 16 bits are made from float32.
        DType::F16 => Scalar::Float(f64::from(f16::from_f32(nearest_f32(x)))),
        DType::BF16 => Scalar::Float(f64::from(bf16::from_f32(nearest_f32(x)))),
        DType::C64 => match x {
            Scalar::Complex(z) => {
                Scalar::Complex(Complex64::new(f64::from(z.re as f32), f64::from(z.im as f32)))
            }
            x => Scalar::Complex(Complex64::new(f64::from(nearest_f32(x)), 0.0)),
        },
        DType::C128 => Scalar::Complex(complex(x)),
        DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => Scalar::Int(wrapped(x, dtype)?),
        _ => return Err(Outside::Unknown),
    })
}

fn wrapped(x: Scalar, dtype: DType) -> Answer<i64> {
    let bits = dtype.size() as i32 * 8;
    let whole = match x {
        Scalar::Int(x) => x,
        Scalar::Bool(x) => i64::from(x),
        other => {
            let x = float(other).trunc();
            let (low, high) = match dtype.is_signed() {
                true => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)),
                false => (0.0, 2f64.powi(bits)),
            };
            if !(low <= x && x < high) {
                return Err(Outside::Open("a float that no integer of the dtype stands for"));
            }
            x as i64
        }
    };
    let unused = 64 - bits;
    let unsigned = ((whole as u64) << unused >> unused) as i64;
    Ok(if dtype.is_signed() { whole << unused >> unused } else { unsigned })
}

/// Whether a number differs from zero.
pub(crate) fn truth(x: Scalar) -> bool {
    match x {
        Scalar::Bool(x) => x,
        Scalar::Int(x) => x != 0,
        Scalar::Float(x) => x != 0.0,
        Scalar::Complex(z) => z.re != 0.0 || z.im != 0.0,
    }
}

/// A number as a float64; of a complex one the real part.
pub(crate) fn float(x: Scalar) -> f64 {
    match x {
        Scalar::Bool(x) => f64::from(u8::from(x)),
        Scalar::Int(x) => x as f64,
        Scalar::Float(x) => x,
        Scalar::Complex(z) => z.re,
    }
}

/// A number as a complex one.
pub(crate) fn complex(x: Scalar) -> Complex64 {
    match x {
        Scalar::Complex(z) => z,
        x => Complex64::new(float(x), 0.0),
    }
}

fn nearest_f32(x: Scalar) -> f32 {
    match x {
        Scalar::Int(x) => x as f32,
        x => float(x) as f32,
    }
}
