//! The `torchvision` dialect: the operators that torchvision registers, which its detection models call. They have no
//! derivative here.

mod boxes;
mod deform;
mod roi;

use super::OpDef;

/// All rows, file by file, in the order of registration.
pub static TABLES: &[&[OpDef]] = &[boxes::OPS, roi::OPS, deform::OPS];
