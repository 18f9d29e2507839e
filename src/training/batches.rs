//! Which samples make which batch: in order, or shuffled as PyTorch's `DataLoader` shuffles under the same seed. Either way the
//! random generator moves as a loader moves it, so that dropout after it has PyTorch's numbers.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Registry, Run};
use crate::ir::Type;
use crate::runtime::ScriptComposites;
use crate::tensor::Tensor;
use crate::value::{List, Value};
use std::sync::Arc;

/// Draws what a loader draws when an epoch begins: a number that it keeps for its workers, and the seed of the order where it
/// shuffles.
const SEED: &str = "
def seed(shuffle: bool):
    seed = torch.empty([], dtype=torch.int64).random_()
    if shuffle:
        seed = torch.empty([], dtype=torch.int64).random_()
    return int(seed)
";
const ORDER: &str = "
def order(n: int):
    return torch.randperm(n)
";
const TAKE: &str = "
def take(x: Tensor, samples: Tensor):
    return x.index_select(0, samples)
";

/// The samples of an epoch in batches.
pub struct Batches {
    registry: Arc<Registry>,
    samples: usize,
    size: usize,
    shuffle: bool,
    /// The samples of the epoch in the order in which they are taken.
    order: Vec<i64>,
    /// How many of them are taken.
    taken: usize,
}

impl Batches {
    /// Batches of `size` of a number of samples; the last one of an epoch may be smaller. Fails without samples.
    pub fn new(registry: &Arc<Registry>, samples: usize, size: usize, shuffle: bool) -> Result<Batches> {
        if samples == 0 || size == 0 {
            return Err(Diagnostic::input("there are no samples to train with"));
        }
        let registry = Arc::clone(registry);
        Ok(Batches { registry, samples, size, shuffle, order: Vec::new(), taken: 0 })
    }

    /// The samples of the next batch, and whether an epoch begins with it.
    pub fn next(&mut self, run: &Run) -> Result<(Vec<i64>, bool)> {
        let begins = self.taken >= self.order.len();
        if begins {
            self.order = self.epoch(run)?;
            self.taken = 0;
        }
        let batch: Vec<i64> = self.order.iter().skip(self.taken).take(self.size).copied().collect();
        self.taken += batch.len();
        Ok((batch, begins))
    }

    /// Whether the epoch ends with the batch that was given last.
    pub fn ends(&self) -> bool {
        self.taken >= self.order.len()
    }

    /// The given samples of arrays.
    pub fn take(&self, arrays: &[Value], samples: &[i64], run: &Run) -> Result<Vec<Value>> {
        let samples = Value::Tensor(Tensor::from_vec(samples, &[samples.len() as i64])?);
        run.offer_composites(|| ScriptComposites::of(&self.registry));
        let one = |array: &Value| run.function("the batch", TAKE, vec![array.clone(), samples.clone()]);
        arrays.iter().map(one).collect()
    }

    fn epoch(&self, run: &Run) -> Result<Vec<i64>> {
        run.offer_composites(|| ScriptComposites::of(&self.registry));
        let seed = run.function("the order of samples", SEED, vec![Value::Bool(self.shuffle)])?.to_int()?;
        if !self.shuffle {
            return Ok((0..self.samples as i64).collect());
        }
        let own = Run::silent();
        own.seed(seed as u64);
        own.offer_composites(|| ScriptComposites::of(&self.registry));
        let order = own.function("the order of samples", ORDER, vec![Value::Int(self.samples as i64)])?;
        order.to_tensor()?.to_vec::<i64>()
    }

    /// The epoch under way, for a checkpoint.
    pub(super) fn state(&self) -> Result<Value> {
        let taken = Value::Int(self.taken as i64);
        let order = Tensor::from_vec(&self.order, &[self.order.len() as i64])?;
        Ok(Value::List(List::new(Type::any(), vec![taken, Value::Tensor(order)])))
    }

    /// Goes on in an epoch. Fails where it is one of other samples.
    pub(super) fn resume(&mut self, state: &Value) -> Result<()> {
        let wrong = || Diagnostic::input("the checkpoint was made with other data");
        let list = state.to_list()?.to_vec();
        let [taken, order] = list.as_slice() else { return Err(wrong()) };
        let order = order.to_tensor()?.to_vec::<i64>()?;
        let known = |sample: &i64| usize::try_from(*sample).is_ok_and(|n| n < self.samples);
        if !(order.is_empty() || order.len() == self.samples) || !order.iter().all(known) {
            return Err(wrong());
        }
        self.taken = usize::try_from(taken.to_int()?).map_err(|_| wrong())?;
        self.order = order;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_take_every_sample_once() {
        let run = Run::silent();
        for shuffle in [false, true] {
            let mut batches = Batches::new(&Registry::builtin(), 7, 3, shuffle).expect("samples");
            let mut all: Vec<i64> = Vec::new();
            for n in 0..3 {
                let (batch, begins) = batches.next(&run).expect("a batch");
                assert_eq!((begins, batch.len()), (n == 0, if n == 2 { 1 } else { 3 }));
                all.extend(batch);
            }
            assert!(batches.ends());
            assert_eq!(all.iter().enumerate().all(|(n, x)| n as i64 == *x), !shuffle);
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
        }
        assert!(Batches::new(&Registry::builtin(), 0, 1, false).is_err());
    }
}
