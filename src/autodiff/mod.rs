//! Differentiation. Each op's row says its derivative as TorchScript text, its *cell*; what is here knows cells and no op by
//! name. The *tape* records operations as they run and runs their cells backward: it defines what a gradient is, as eager
//! PyTorch does. The *transform* makes a backward graph of a graph from the same cells, to be fused and compiled.

mod cell;
mod engine;
mod history;
mod node;
mod optimizer;
mod record;
mod region;
mod saved;
mod tape;
mod transform;
mod unpack;
mod views;

pub use cell::{Cells, Recipe};
pub use optimizer::{Optimizer, RunText};
pub use tape::Tape;
pub use transform::{Backward, Split, Wanted, backward, bytes_of, split, unfolded_draws};
