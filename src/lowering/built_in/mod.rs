//! The built-in lowerings: what elementwise rows do not say as data, written as loops. Each is compared with the kernel of
//! its row, on both engines, on arguments that are drawn (`tests`).

mod bincount;
mod bucketize;
mod gather;
mod matmul;
mod pad;
mod scatter;
mod walk;

use super::convert::Lowering;
use std::sync::{Arc, LazyLock};

/// All of them; of two for one op, the one that comes last is asked first.
pub(super) static LOWERINGS: LazyLock<Vec<Arc<dyn Lowering>>> = LazyLock::new(|| {
    vec![
        Arc::new(bincount::Bincount),
        Arc::new(bucketize::Bucketize),
        Arc::new(scatter::IndexAdd),
        Arc::new(scatter::ScatterAdd),
        Arc::new(scatter::ScatterSum),
        Arc::new(gather::Gather),
        Arc::new(gather::IndexSelect),
        Arc::new(gather::Embedding),
        Arc::new(pad::ConstantPad),
        Arc::new(matmul::MmByNest),
        Arc::new(matmul::BmmByNest),
    ]
});
