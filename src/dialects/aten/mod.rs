//! The `aten` dialect: operators on tensors, and the builtins of numbers, text and containers that share its
//! namespace. One file a family; a big op has its own.

pub mod activation;
pub mod adaptive_pool;
pub mod arith;
pub mod attention;
pub mod autograd;
pub mod asserts;
pub mod backward;
pub mod binary;
mod chain;
pub mod choose;
pub mod compare;
pub mod contraction;
pub mod convert;
pub mod convolution;
pub mod dict;
pub mod grouped;
pub mod hash;
mod number;
pub mod number_arith;
mod number_convert;
pub mod number_math;
pub mod create;
pub mod calculus;
pub mod distance;
pub mod distributions;
pub mod embed;
pub mod histogram;
pub mod einsum;
pub mod exponential;
pub mod fake_quantize;
pub mod fbgemm;
pub mod fourier;
pub mod index;
pub mod join;
mod rule;
pub mod label_loss;
pub mod linalg_factor;
pub mod interpolate;
pub mod linalg_spectral;
pub mod list;
pub mod loss;
pub mod matrix;
pub mod mkldnn;
mod multiply;
pub mod nested;
mod group_norm;
pub mod norm;
pub mod norm_backward;
mod norm_rows;
pub mod order;
pub mod pad;
pub mod pool;
mod pool_checks;
mod pool_images;
pub mod program;
pub mod random;
mod random_ints;
pub mod recurrent;
pub mod reduce;
pub mod resample;
pub mod sample;
pub mod scan;
pub mod scatter;
pub mod search;
pub mod shape;
pub mod sizes;
pub mod special;
pub mod softmax;
pub mod slow_conv;
pub mod sort;
pub mod split;
pub mod stats;
pub mod text;
pub mod text_case;
pub mod text_find;
pub mod unary;
pub mod view;
pub mod world;

use super::OpDef;

pub use super::dropout;

/// All rows, file by file, in the order of registration.
#[rustfmt::skip] // one line a file, so that additions do not touch each other
pub static TABLES: &[&[OpDef]] = &[
    unary::OPS,
    arith::OPS,
    binary::OPS,
    compare::OPS,
    choose::OPS,
    activation::OPS,
    contraction::OPS,
    grouped::OPS,
    convolution::OPS,
    norm::OPS,
    norm_backward::OPS,
    resample::OPS,
    interpolate::OPS,
    sample::OPS,
    attention::OPS,
    backward::OPS,
    recurrent::OPS,
    loss::OPS,
    label_loss::OPS,
    pool::OPS,
    adaptive_pool::OPS,
    einsum::OPS,
    convert::OPS,
    list::OPS,
    text::OPS,
    text_case::OPS,
    text_find::OPS,
    hash::OPS,
    dict::OPS,
    order::OPS,
    program::OPS,
    sizes::OPS,
    number_arith::OPS,
    number_math::OPS,
    number_convert::OPS,
    special::OPS,
    view::OPS,
    create::OPS,
    matrix::OPS,
    fourier::OPS,
    linalg_factor::OPS,
    exponential::OPS,
    linalg_spectral::OPS,
    join::OPS,
    pad::OPS,
    index::OPS,
    scatter::OPS,
    search::OPS,
    random::OPS,
    reduce::OPS,
    stats::OPS,
    scan::OPS,
    softmax::OPS,
    slow_conv::OPS,
    sort::OPS,
    distance::OPS,
    distributions::OPS,
    calculus::OPS,
    embed::OPS,
    histogram::OPS,
    fake_quantize::OPS,
    fbgemm::OPS,
    shape::OPS,
    split::OPS,
    asserts::OPS,
    world::OPS,
    autograd::OPS,
    mkldnn::OPS,
    nested::OPS,
];

/// Derivatives, a file a family of ops.
#[rustfmt::skip] // one line a file
pub const GRADS: &[(&str, &str)] = &[
    ("elementwise.grad", include_str!("grads/elementwise.grad")),
    ("special.grad", include_str!("grads/special.grad")),
    ("reduce.grad", include_str!("grads/reduce.grad")),
    ("shape.grad", include_str!("grads/shape.grad")),
    ("index.grad", include_str!("grads/index.grad")),
    ("contraction.grad", include_str!("grads/contraction.grad")),
    ("linalg.grad", include_str!("grads/linalg.grad")),
    ("norm.grad", include_str!("grads/norm.grad")),
    ("pool.grad", include_str!("grads/pool.grad")),
    ("loss.grad", include_str!("grads/loss.grad")),
    ("layer.grad", include_str!("grads/layer.grad")),
    ("fourier.grad", include_str!("grads/fourier.grad")),
    ("list.grad", include_str!("grads/list.grad")),
    ("random.grad", include_str!("grads/random.grad")),
];
