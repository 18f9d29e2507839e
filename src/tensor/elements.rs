//! Moving elements without reading them: gathers by position, for any dtype, by size of the element only.

use super::{Dims, Layout, Tensor};
use crate::diag::{Diagnostic, Result};
use crate::resources::{Collect, Scratch};
use bytemuck::Pod;

/// Runs `$body` with `$P` bound to plain bytes of the size of an element.
macro_rules! by_size {
    ($size:expr, $P:ident => $body:expr) => {
        match $size {
            1 => {
                type $P = u8;
                $body
            }
            2 => {
                type $P = u16;
                $body
            }
            4 => {
                type $P = u32;
                $body
            }
            8 => {
                type $P = u64;
                $body
            }
            _ => {
                type $P = [u64; 2];
                $body
            }
        }
    };
}

impl Tensor {
    /// A new dense tensor of `sizes` whose n-th element is this tensor's element at logical position
    /// `positions[n]`. Fails if a position is outside.
    pub fn take_positions(&self, positions: &[usize], sizes: &[i64]) -> Result<Tensor> {
        if let Some(quantizer) = self.quantizer().filter(|q| q.is_uniform()) {
            let taken = self.integers().take_positions(positions, sizes)?;
            return Tensor::quantized(&taken, self.dtype(), quantizer);
        }
        let dense = self.contiguous()?;
        let layout = dense.layout();
        let storage = dense.storage();
        let bytes = storage.read()?;
        let size = self.dtype().size();
        let bytes = &bytes[layout.offset.min(bytes.len() / size) * size..];
        by_size!(size, P => {
            let taken = take::<P>(bytes, layout.numel(), positions)?;
            Tensor::from_bytes(self.dtype(), sizes, bytemuck::cast_slice(&taken))
        })
    }

    /// Writes `source`'s n-th element (of the same dtype, in logical order) to this dense tensor's logical position
    /// `positions[n]`, one after the other: the last one wins.
    pub fn put_positions(&self, positions: &[usize], source: &Tensor) -> Result<()> {
        if !self.is_contiguous() || self.dtype() != source.dtype() || source.numel() != positions.len() {
            return Err(Diagnostic::internal(format!(
                "put_positions: {} positions from {source:?} into {self:?}",
                positions.len()
            )));
        }
        let source =
            if source.storage().same(&self.storage()) { source.copy()? } else { source.contiguous()? };
        let size = self.dtype().size();
        let (to, from) = (self.layout(), source.layout());
        let (to_storage, from_storage) = (self.storage(), source.storage());
        let from_bytes = from_storage.read_beside(&to_storage)?;
        let from_bytes = &from_bytes[from.offset.min(from_bytes.len() / size) * size..];
        let mut to_bytes = to_storage.write()?;
        let start = to.offset.min(to_bytes.len() / size) * size;
        by_size!(size, P => put::<P>(&mut to_bytes[start..], to.numel(), positions, from_bytes))
    }

    /// The same storage through another layout made from the present one.
    pub fn look(&self, rule: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Tensor> {
        self.with_layout(rule(&self.layout())?)
    }

    /// The elements as a dense tensor of other sizes with as many elements.
    pub fn reshaped(&self, sizes: &[i64]) -> Result<Tensor> {
        let layout = self.layout();
        match super::view::try_view(&layout, sizes) {
            Some(layout) => self.with_layout(layout),
            None => {
                let copy = self.copy()?;
                copy.with_layout(Layout::contiguous(sizes)?)
            }
        }
    }

    /// Repeated to `sizes` without a copy; sizes must be broadcastable.
    pub fn broadcast_to(&self, sizes: &[i64]) -> Result<Tensor> {
        self.look(|layout| super::view::expand(layout, sizes, self.dtype()))
    }
}

fn outside(position: usize, count: usize) -> Diagnostic {
    Diagnostic::internal(format!("position {position} in a tensor of {count} elements"))
}

fn take<P: Pod>(bytes: &[u8], count: usize, positions: &[usize]) -> Result<Scratch<P>> {
    let elements: &[P] = bytemuck::cast_slice(&bytes[..count * size_of::<P>()]);
    positions.iter().map(|p| elements.get(*p).copied().ok_or_else(|| outside(*p, count))).try_scratch()
}

fn put<P: Pod>(to: &mut [u8], count: usize, positions: &[usize], from: &[u8]) -> Result<()> {
    let to: &mut [P] = bytemuck::cast_slice_mut(&mut to[..count * size_of::<P>()]);
    let from: &[P] = bytemuck::cast_slice(&from[..positions.len() * size_of::<P>()]);
    for (position, element) in positions.iter().zip(from) {
        *to.get_mut(*position).ok_or_else(|| outside(*position, count))? = *element;
    }
    Ok(())
}

/// Sizes that several tensors broadcast to.
pub fn broadcast_all<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<Dims> {
    tensors.into_iter().try_fold(Dims::new(), |sizes, t| super::broadcast_sizes(&sizes, &t.sizes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DType;

    #[test]
    fn elements_move_by_logical_position() {
        let t = Tensor::from_vec(&[1i16, 2, 3, 4, 5, 6], &[2, 3]).expect("valid");
        let transposed = t.look(|l| super::super::view::transpose(l, 0, 1)).expect("view");
        let taken = transposed.take_positions(&[1, 0, 5], &[3]).expect("inside");
        assert_eq!(taken.to_vec::<i16>().expect("i16"), [4, 1, 6]);
        assert!(t.take_positions(&[6], &[1]).is_err());
        let target = Tensor::zeros(DType::I16, &[3]).expect("small");
        target.put_positions(&[2, 2, 0], &taken).expect("inside");
        assert_eq!(target.to_vec::<i16>().expect("i16"), [6, 0, 1]);
    }
}
