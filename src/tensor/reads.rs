//! Which memory was read since some moment: what is computed from other things than the elements of a tensor holds for other
//! elements as well.

use std::sync::atomic::{AtomicU64, Ordering};

/// The last moment that was asked for.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A moment, since which reads are known.
#[derive(Clone, Copy, Debug)]
pub struct Moment(u64);

impl Moment {
    /// From now on reads are known.
    pub fn now() -> Moment {
        Moment(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// The moment before which memory was read last.
pub(super) struct LastRead(AtomicU64);

impl LastRead {
    /// Of memory that is made now.
    pub(super) fn new() -> LastRead {
        LastRead(AtomicU64::new(LAST.load(Ordering::Relaxed)))
    }

    /// Whether that is this moment or a later one.
    pub(super) fn is_since(&self, moment: Moment) -> bool {
        self.0.load(Ordering::Relaxed) >= moment.0
    }

    /// It is read now. Costs two loads where that is known.
    pub(super) fn note(&self) {
        let now = LAST.load(Ordering::Relaxed);
        if self.0.load(Ordering::Relaxed) < now {
            // The largest stays: another thread may have seen an earlier moment.
            self.0.fetch_max(now, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{DType, Tensor};

    #[test]
    fn reads_are_known_and_looks_are_not() {
        let tensor = Tensor::zeros(DType::F32, &[4, 4]).expect("small");
        let moment = Moment::now();
        let view = tensor.with_layout(tensor.layout()).expect("the same");
        assert_eq!((view.numel(), tensor.is_contiguous(), tensor.storage().is_foreign()), (16, true, false));
        assert!(!moment.knows_read(&tensor.storage()));
        let _ = view.to_vec::<f32>();
        assert!(moment.knows_read(&tensor.storage()));
        assert!(!Moment::now().knows_read(&tensor.storage()));
    }

    #[test]
    fn writes_count() {
        let tensor = Tensor::zeros(DType::F32, &[4]).expect("small");
        let moment = Moment::now();
        drop(tensor.storage().write().expect("ours"));
        assert!(moment.knows_read(&tensor.storage()));
    }

    #[test]
    fn two_who_ask_both_know() {
        let tensor = Tensor::zeros(DType::F32, &[4]).expect("small");
        let first = Moment::now();
        let second = Moment::now();
        let _ = tensor.to_vec::<f32>();
        let third = Moment::now();
        assert!(first.knows_read(&tensor.storage()) && second.knows_read(&tensor.storage()));
        assert!(!third.knows_read(&tensor.storage()));
    }
}
