//! Training of loaded programs: parameters by name, losses, schedules of the learning rate, clipping, checkpoints, and
//! [`Trainer`], which joins them. What a derivative or an optimizer computes stands in `autodiff`; files and commands are the
//! tools' business.

mod batches;
mod checkpoint;
mod loss;
mod parameters;
mod schedule;
mod steps;
mod trainer;

pub use batches::Batches;
pub use checkpoint::{load_values, save_values};
pub use loss::Loss;
pub use parameters::{Modes, Named, buffers, matches, parameters, state};
pub use schedule::Schedule;
pub use trainer::{Clip, Step, Trainer};
