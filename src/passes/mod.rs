//! Passes: graph to graph. One file a pass; its name is the file's, the flag's and the test folder's.
//!
//! A pass is a plain function; [`TABLE`] has one row for each, the [`manager`] runs them by name. Passes know rows
//! and analyses; they do not know how graphs are run or lowered. `docs/add-a-pass.md` adds one from nothing.

mod context;
pub mod manager;
mod pass;

mod assign_layouts;
mod autocast;
mod batch_mm;
mod canonicalize;
mod canonicalize_ops;
mod check_inplace;
mod constant_pooling;
mod constant_propagation;
mod convert_activation;
mod create_autodiff_subgraphs;
mod cse;
mod dce;
mod decompose_ops;
mod dissolve_groups;
mod erase_shape_information;
mod fold_frozen;
mod fold_frozen_conv;
mod fold_sizes;
mod freeze;
mod freeze_attributes;
mod fuse;
mod fuse_addmm;
mod fuse_attention;
mod fuse_layers;
mod fuse_linear;
mod fuse_rows;
mod inline;
mod inline_fork_wait;
mod inline_meanings;
pub mod loop_nests;
mod loop_unrolling;
mod lower_all_tuples;
mod lower_simple_tuples;
mod normalize_ops;
mod peel_loops;
mod peephole;
mod place_parts;
mod propagate_shapes;
mod refine_integer_values;
mod refine_tuple_types;
mod remove_dropout;
mod remove_exceptions;
mod remove_expands;
mod remove_inplace_ops;
mod remove_mutation;
mod simplify;
mod transform_conv1d_to_conv2d;
mod variadic;

mod constants;
mod copy;
mod rule_group;
mod subgraphs;
mod input_shapes;
mod layer_parts;
mod tuples;
mod walk;

pub use autocast::{has_autocast, refused_call};
pub use context::{Context, Extras};
pub use freeze_attributes::{FrozenAttribute, FrozenAttributes};
pub use fuse::{fuse, fuse_elementwise};
pub(crate) use inline_meanings::arguments as attribute_constants;
pub use manager::{PassSet, Pipeline};
pub use pass::{GraphRun, ModuleRun, OptionKind, OptionValue, Options, Pass, PassOption, Run};

/// All passes, one row each, in the order of `--help-passes`.
#[rustfmt::skip]
pub static TABLE: &[Pass] = &[
    Pass::graph("assign-layouts", "Lets packed convolutions give images with their channels innermost, and restores strides where they are seen", assign_layouts::run),
    Pass::graph("autocast", "Casts inputs of ops within `with torch.autocast(...)` as PyTorch does", autocast::run),
    Pass::graph("batch-mm", "Joins sums of matrix products, and products with a common side", batch_mm::run),
    Pass::graph("canonicalize", "Numbers values in order of appearance", canonicalize::run),
    Pass::graph("canonicalize-graph-fuser-ops", "PyTorch's name of canonicalize-ops", canonicalize_ops::run),
    Pass::graph("canonicalize-ops", "Brings arithmetic and chunk to the form that fusion knows", canonicalize_ops::run),
    Pass::graph("check-inplace", "Refuses writes to results of Python functions", check_inplace::run),
    Pass::graph("constant-loop-unrolling", "Unrolls loops over a known number of turns", loop_unrolling::constant_only),
    Pass::graph("constant-pooling", "Keeps one of equal constants, at the top of the graph", constant_pooling::run),
    Pass::graph("constant-propagation", "Computes now what can be computed now", constant_propagation::run),
    Pass::graph("constant-propagation-immutable-types", "The same for numbers and text only", constant_propagation::immutable_types),
    Pass::graph("create-autodiff-subgraphs", "Gathers what TorchScript differentiates in groups", create_autodiff_subgraphs::run).options(&[PassOption::int("threshold", 2, 0, "smaller groups are dissolved")]),
    Pass::graph("cse", "Replaces an op by an equal one that is in scope, where nobody can tell", cse::run),
    Pass::graph("dce", "Removes ops whose results nobody uses and that do nothing else", dce::block),
    Pass::graph("dce-graph", "The same; writes to memory that nobody looks at go too", dce::run),
    Pass::graph("dce-allow-deleting-nodes-with-side-effects", "Removes ops whose results nobody uses, whatever else they do", dce::with_side_effects),
    Pass::graph("decompose-ops", "Takes addmm apart", decompose_ops::run),
    Pass::graph("dissolve-groups", "Puts the work of fusion groups back in their places", dissolve_groups::run),
    Pass::graph("erase-shape-information", "Forgets what types say of tensors", erase_shape_information::run),
    Pass::graph("fold-frozen", "Folds batch norm into constant weights before it", fold_frozen::run),
    Pass::graph("fold-frozen-conv-add-or-sub", "Folds sums with constants into constant convolutions before them", fold_frozen_conv::add_or_sub),
    Pass::graph("fold-frozen-conv-mul-or-div", "Folds products with constants into constant convolutions before them", fold_frozen_conv::mul_or_div),
    Pass::graph("fold-constants", "Computes what is made of constants alone and stays inside the graph, tensors too", constant_propagation::fold),
    Pass::graph("fold-sizes", "Makes constants of sizes, ranks and dtypes that types tell", fold_sizes::run),
    Pass::module("freeze", "Makes constants of a loaded model's attributes, in forward and in methods that are preserved", freeze::run).options(freeze::OPTIONS),
    Pass::graph("freeze-attributes", "Makes constants of attributes of a loaded model that nothing sets or writes to, as a plan does", freeze_attributes::run),
    Pass::graph("functional-to-inplace-activation", "Lets activations write to what nobody looks at afterwards", convert_activation::functional_to_inplace),
    Pass::graph("fuse", "Gathers elementwise tensor work, and what combines rows, in fusion groups", fuse::run),
    Pass::graph("fuse-addmm", "Makes addmm of products and sums", fuse_addmm::run),
    Pass::graph("fuse-attention", "Makes one op of products of queries and keys, their softmax and products with values", fuse_attention::run),
    Pass::graph("fuse-layers", "Makes one op of a convolution or linear map with constant weights and what is done to its results", fuse_layers::run),
    Pass::graph("fuse-linear", "Finds linear in products with a transposed weight", fuse_linear::run),
    Pass::graph("inline", "Replaces calls of functions and methods by their graphs", inline::run).reads_functions(),
    Pass::graph("inline-autodiff-subgraphs", "Dissolves small differentiable groups", create_autodiff_subgraphs::inline).options(&[PassOption::int("threshold", 5, 0, "groups of at least so many ops stay")]),
    Pass::graph("inline-fork-wait", "Does the work of forks where they begin", inline_fork_wait::run),
    Pass::graph("inline-meanings", "Replaces ops that are defined in TorchScript by their meaning", inline_meanings::run).options(&[
        PassOption::bool("all", false, "built-in composites too, not only ops of text files"),
        PassOption::bool("derivatives", true, "ops that declare a derivative too, which is then that of the meaning"),
    ]),
    Pass::graph("inplace-to-functional-activation", "Replaces activations that write to new objects by ones that give new ones", convert_activation::inplace_to_functional),
    Pass::graph("loop-canonicalize", "Folds numbers of a kernel, and loops with no iteration or one", loop_nests::canonicalize),
    Pass::graph("loop-check-bounds", "Makes a kernel end with an error where it would reach outside of its buffers", loop_nests::check_bounds_pass),
    Pass::graph("loop-fuse", "Makes one loop of neighbouring loops of a kernel over the same indices", loop_nests::fuse).options(loop_nests::LOOP_OPTIONS),
    Pass::graph("loop-hoist", "Moves what is the same in all iterations before the loops of a kernel", loop_nests::hoist),
    Pass::graph("loop-interchange", "Lets a loop of a kernel and the one within it change places", loop_nests::interchange).options(loop_nests::LOOP_OPTIONS),
    Pass::graph("loop-parallelize", "Marks loops of a kernel whose iterations may run on several cores", loop_nests::parallelize).options(loop_nests::MARK_OPTIONS),
    Pass::graph("loop-tile", "Splits loops of a kernel into loops over tiles and loops within them", loop_nests::tile).options(loop_nests::TILE_OPTIONS),
    Pass::graph("loop-unroll", "Copies the bodies of loops of a kernel, with what is left in a loop behind", loop_nests::unroll).options(loop_nests::UNROLL_OPTIONS),
    Pass::graph("loop-vectorize", "Marks loops of a kernel whose iterations may share vector registers", loop_nests::vectorize).options(loop_nests::MARK_OPTIONS),
    Pass::graph("loop-unrolling", "Unrolls counted loops, short ones to the end", loop_unrolling::run),
    Pass::graph("lower-all-tuples", "Removes tuples, at the borders of the graph too", lower_all_tuples::run),
    Pass::graph("lower-simple-tuples", "Removes pairs of making and taking apart a tuple", lower_simple_tuples::run),
    Pass::graph("normalize-ops", "Gives each op one name", normalize_ops::run),
    Pass::graph("peel-loops", "Puts the first turns of loops before them", peel_loops::run).options(&[PassOption::int("count", 1, 0, "turns")]),
    Pass::graph("peephole", "Applies PyTorch's peephole rules, saturated in an e-graph", peephole::run).options(peephole::OPTIONS),
    Pass::graph("place-parts", "Lets packed convolutions write to their part of images that are joined", place_parts::run),
    Pass::graph("propagate-shapes", "Writes dtypes, sizes and layouts that follow from the inputs into the types", propagate_shapes::run),
    Pass::graph("refine-integer-values", "Makes constants of ints where a comparison tells what they are", refine_integer_values::run),
    Pass::graph("refine-tuple-types", "Gives tuples the types of what they are made of", refine_tuple_types::run),
    Pass::graph("remove-dropout", "Drops dropout that does nothing", remove_dropout::run),
    Pass::graph("remove-exceptions", "Assumes that branches that raise are not taken", remove_exceptions::run),
    Pass::graph("remove-expands", "Drops expands that broadcasting does anyway", remove_expands::run),
    Pass::graph("remove-inplace-ops", "Replaces in-place arithmetic for backends that know no writes; nothing is checked", remove_inplace_ops::run),
    Pass::graph("remove-list-mutation", "Makes lists full that are filled right after they were made", remove_mutation::lists),
    Pass::graph("remove-mutation", "Replaces writes to new objects by ops that give new ones", remove_mutation::run).options(remove_mutation::OPTIONS),
    Pass::graph("remove-tensor-mutation", "The same for tensors", remove_mutation::tensors).options(remove_mutation::OPTIONS),
    Pass::graph("simplify", "Applies the built-in rewrite rules, saturated in an e-graph", simplify::run).options(simplify::OPTIONS),
    Pass::graph("transform-conv1d-to-conv2d", "Replaces conv1d by conv2d with a height of one", transform_conv1d_to_conv2d::run),
    Pass::graph("use-variadic-cat", "Joins tensors without a list", variadic::cat),
    Pass::graph("use-variadic-stack", "Stacks tensors without a list", variadic::stack),
];

/// Pipelines with a name: what every run does, stages of PyTorch's executor under their names, and everything. A
/// function's schema, and what a caller can tell of identity, stay the same under each of them but `optimization`,
/// which makes constants of objects as PyTorch does, and `plan`, which is for one kind of arguments.
#[rustfmt::skip]
pub static NAMED: &[(&str, &str)] = &[
    ("cleanup", "cse,dce-graph"),
    ("required-passes", "remove-expands,canonicalize-ops,dce"),
    ("optimization", "dce-graph,cse,simplify,constant-propagation,constant-pooling,loop-unrolling,remove-list-mutation,simplify,constant-propagation,cse,check-inplace"),
    ("nondiff-optimization", "decompose-ops,lower-simple-tuples,batch-mm,fuse"),
    ("insensitive-optimization", "inline,required-passes,decompose-ops,constant-propagation,dce,cse,constant-pooling,simplify,dce,lower-simple-tuples,check-inplace"),
    ("no-grad-optimization", "lower-simple-tuples,batch-mm,fuse"),
    ("frozen-optimization", "remove-dropout,repeat{max=4}(fold-frozen,constant-propagation,fold-frozen-conv-add-or-sub,fold-frozen-conv-mul-or-div),dce"),
    ("autocast-contexts", "inline,constant-propagation-immutable-types,autocast,constant-pooling"),
    ("optimize", "inline,lower-simple-tuples,constant-propagation-immutable-types,autocast,remove-mutation{exact history},cse,simplify,constant-propagation-immutable-types,cse,constant-pooling,dce-graph"),
    ("plan", "dissolve-groups,inline-meanings,freeze-attributes,constant-propagation-immutable-types,remove-dropout,propagate-shapes,fold-sizes,constant-propagation-immutable-types,remove-mutation{exact},dce-graph,fuse-attention,fuse-layers,assign-layouts,place-parts,fold-constants,dce-graph,fuse"),
    ("record-freeze", "dissolve-groups,inline-meanings{derivatives=false},freeze-attributes"),
    ("record", "constant-propagation-immutable-types,remove-dropout,propagate-shapes,fold-sizes,constant-propagation-immutable-types,loop-unrolling,constant-propagation-immutable-types,propagate-shapes,lower-simple-tuples,remove-mutation{exact history},cse,dce-graph"),
    ("record-finish", "batch-mm,canonicalize-ops,dce-graph,fuse"),
    ("forward", "propagate-shapes,fold-sizes,constant-propagation-immutable-types,propagate-shapes,peephole{contract=exact},lower-simple-tuples"),
    ("derivative", "repeat{max=6}(propagate-shapes,fold-sizes,peephole{contract=exact},constant-propagation,loop-unrolling,remove-list-mutation,lower-simple-tuples,dce-graph)"),
    ("backward", "lower-simple-tuples,repeat{max=6}(propagate-shapes,fold-sizes,peephole{contract=exact},constant-propagation,loop-unrolling,remove-list-mutation,lower-simple-tuples,dce-graph),cse,simplify,propagate-shapes,fold-sizes,constant-propagation,cse,constant-pooling,dce-graph"),
    ("default", "optimize,inline-meanings{derivatives=false},dce-graph,fuse"),
];

/// Reads a pipeline of built-in passes, as plans have one. Whoever takes a pipeline from outside asks a toolkit.
pub(crate) fn parse(text: &str) -> crate::diag::Result<Pipeline> {
    Pipeline::parse(text, &PassSet::builtin())
}
