//! The built-in lowerings: what elementwise rows do not say as data, written as loops. Each is compared with the kernel of
//! its row, on both engines, on arguments that are drawn (`src/toolkit/lowerings/tests.rs`).

mod bincount;
mod bucketize;
mod convolution;
mod gather;
mod matmul;
mod pad;
mod scatter;
mod sign;
mod walk;

use super::by_op::Lowering;
use convolution::ConvByNest;
use std::sync::{Arc, LazyLock};

/// All of them; of two for one op, the one that comes last is asked first.
pub(super) static LOWERINGS: LazyLock<Vec<Arc<dyn Lowering>>> = LazyLock::new(|| {
    let convolutions = [
        ("conv1d-by-nest", "aten::conv1d"),
        ("conv2d-by-nest", "aten::conv2d"),
        ("conv3d-by-nest", "aten::conv3d"),
        ("convolution-by-nest", "aten::convolution"),
        ("convolution-with-flags-by-nest", "aten::_convolution"),
    ];
    let mut all: Vec<Arc<dyn Lowering>> = vec![
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
        Arc::new(matmul::MatmulByNest),
        Arc::new(matmul::AddmmByNest),
        Arc::new(matmul::LinearByNest),
        Arc::new(sign::SignBit),
        Arc::new(sign::CopySign),
    ];
    all.extend(convolutions.map(|(name, op)| Arc::new(ConvByNest { name, op }) as Arc<dyn Lowering>));
    all
});
