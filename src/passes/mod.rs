//! Passes: graph to graph. One file a pass; its name is the file's, the flag's and the test folder's.
//!
//! A pass is a plain function; [`TABLE`] has one row for each, the [`manager`] runs them by name. Passes know rows
//! and analyses; they do not know how graphs are run or lowered. `docs/add-a-pass.md` adds one from nothing.

mod context;
pub mod manager;
mod options;
mod pass;

mod append_carried;
mod assign_layouts;
mod attribute_writes;
mod autocast;
mod bailout_graph;
mod batch_carried_mm;
mod batch_mm;
mod canonicalize;
mod canonicalize_ops;
mod chain_layers;
mod check_inplace;
mod check_strict_fusion;
mod constant_pooling;
mod constant_propagation;
mod convert_activation;
mod create_autodiff_subgraphs;
mod cse;
mod dce;
mod decompose_ops;
mod detach_no_grad;
mod dissolve_groups;
mod drop_carried;
mod drop_neutral;
mod eliminate_redundant_guards;
mod erase_shape_information;
mod fold_dicts;
mod fold_frozen;
mod fold_frozen_conv;
mod fold_requires_grad;
mod fold_sizes;
mod fold_writes;
mod freeze;
mod freeze_attributes;
mod functionalize;
mod functionalize_containers;
mod functionalize_tensors;
mod hoist_draws;
mod fuse;
mod fuse_attention;
mod fuse_copies;
mod fuse_layers;
mod fuse_linear;
mod fuse_rows;
mod grad_mode;
mod guard_types;
mod inline;
mod inline_fork_wait;
mod inline_meanings;
mod insert_bailouts;
mod insert_guards;
mod insert_requires_grad_check;
pub mod loop_nests;
mod loop_unrolling;
mod lower_all_tuples;
mod lower_grad_of;
mod lower_simple_tuples;
mod merge_branches;
mod normalize_ops;
mod open_numbers;
mod peel_loops;
mod peephole;
mod place_parts;
mod profile;
mod propagate_shapes;
mod refine_integer_values;
mod refine_tuple_types;
mod remove_exceptions;
mod remove_inplace_ops;
mod remove_mutation;
mod remove_profiling;
mod simplify;
mod specialize_autogradzero;
mod split_sums;
mod variables;
mod variadic;

mod constants;
mod container_uses;
mod copy;
mod fired_rules;
mod rule_group;
mod subgraphs;
mod input_shapes;
mod layer_parts;
mod tensor_uses;
mod tuples;
mod type_guard;
mod unfused;
mod walk;

pub use autocast::{has_autocast, refused_call};
pub use bailout_graph::bailout_rest;
pub use check_strict_fusion::check_strict_fusion;
pub use context::{Context, Extras, Meanings};
pub use drop_neutral::has_neutral;
pub use fired_rules::FiredRules;
pub use freeze_attributes::{FrozenAttribute, FrozenAttributes, is_lent};
pub use functionalize::copied_back;
pub use fuse::{fuse, fuse_elementwise};
pub use hoist_draws::{draws, is_random};
pub use inline_meanings::arguments as attribute_constants;
pub use manager::{PassSet, Pipeline};
pub use options::{OptionKind, OptionValue, Options, PassOption};
pub use pass::{GraphRun, ModuleRun, Pass, Run};
pub use profile::none_counts;
pub use propagate_shapes::{inferred_type, known_by_symbols, known_values};
pub use rule_group::{Directed, Then};
pub use unfused::{producers, users, why_apart, why_outside};

/// All passes, one row each, in the order of `--help-passes`.
#[rustfmt::skip]
pub static TABLE: &[Pass] = &[
    Pass::graph("append-carried", "Updates loop-carried lists in place instead of copying them to append, remove or set an item", append_carried::run),
    Pass::graph("assign-layouts", "Assigns channels-last layouts to packed convolutions and restores strides where they are observable", assign_layouts::run),
    Pass::graph("autocast", "Casts inputs of ops within `with torch.autocast(...)` as PyTorch does", autocast::run).options(autocast::OPTIONS),
    Pass::graph("batch-carried-mm", "Replaces products summed over loop iterations by one product after the loop", batch_carried_mm::run),
    Pass::graph("batch-mm", "Batches matrix products that are summed or share an operand", batch_mm::run),
    Pass::graph("canonicalize", "Renumbers values in order of appearance", canonicalize::run),
    Pass::graph("canonicalize-graph-fuser-ops", "Alias of canonicalize-ops under PyTorch's name", canonicalize_ops::run),
    Pass::graph("canonicalize-ops", "Canonicalizes arithmetic and chunk for fusion", canonicalize_ops::run),
    Pass::graph("check-inplace", "Rejects writes to results of Python functions", check_inplace::run),
    Pass::graph("check-strict-fusion", "Rejects work of torch.jit.strict_fusion that is not in one fusion group, with reasons", check_strict_fusion::run).options(check_strict_fusion::OPTIONS),
    Pass::graph("constant-loop-unrolling", "Unrolls loops with a constant trip count", loop_unrolling::constant_only)
        .options(loop_unrolling::OPTIONS),
    Pass::graph("constant-pooling", "Merges equal constants and hoists them to the top of the graph", constant_pooling::run),
    Pass::graph("constant-propagation", "Folds ops whose operands are constants", constant_propagation::run),
    Pass::graph("constant-propagation-immutable-types", "Folds ops on constant numbers and text; tensors and lists stay", constant_propagation::immutable_types),
    Pass::graph("create-autodiff-subgraphs", "Groups differentiable ops as TorchScript's executor does", create_autodiff_subgraphs::run).options(&[PassOption::int("threshold", 2, 0, "minimum number of ops of a group")]),
    Pass::graph("cse", "Eliminates common subexpressions", cse::run),
    Pass::graph("dce", "Eliminates dead ops without side effects", dce::block),
    Pass::graph("dce-graph", "Eliminates dead code, including dead stores", dce::run),
    Pass::graph("dce-allow-deleting-nodes-with-side-effects", "Eliminates dead ops even if they have side effects", dce::with_side_effects),
    Pass::directed("decompose-norms", "Replaces batch and layer norm in evaluation by elementwise work and row reductions", Directed::group("decompose-norms")),
    Pass::directed("decompose-ops", "Decomposes addmm into mm and add", decompose_ops::DIRECTED),
    Pass::graph("detach-no-grad", "Detaches values computed under no_grad instead of disabling and enabling gradient recording", detach_no_grad::run),
    Pass::graph("dissolve-groups", "Inlines fusion groups into the enclosing graph", dissolve_groups::run),
    Pass::graph("drop-carried", "Drops loop-carried values that only compute themselves", drop_carried::run),
    Pass::graph("drop-neutral", "Folds x * 1, x + 0 and x - 0 of tensors as PyTorch's executor does", drop_neutral::run),
    Pass::graph("eliminate-redundant-guards", "Moves guards to definitions and drops those that follow from others", eliminate_redundant_guards::run),
    Pass::graph("erase-shape-information", "Erases dtypes, sizes and layouts from types", erase_shape_information::run),
    Pass::graph("fold-dicts", "Folds lookups of constant keys in dictionaries constructed in the graph", fold_dicts::run),
    Pass::graph("fold-frozen", "Folds batch norm into constant weights of a preceding convolution or linear", fold_frozen::run),
    Pass::graph("fold-frozen-conv-add-or-sub", "Folds addition and subtraction of constants into frozen convolutions", fold_frozen_conv::add_or_sub),
    Pass::graph("fold-frozen-conv-mul-or-div", "Folds multiplication and division by constants into frozen convolutions", fold_frozen_conv::mul_or_div),
    Pass::graph("fold-constants", "Folds constant expressions whose results do not escape the graph, including tensors", constant_propagation::fold),
    Pass::graph("fold-grad-mode", "Folds whether gradients are recorded where the graph never changes it", grad_mode::fold).options(grad_mode::OPTIONS),
    Pass::graph("fold-requires-grad", "Makes constants of `requires_grad` where types say it", fold_requires_grad::run),
    Pass::graph("fold-sizes", "Folds sizes, ranks and dtypes that are known from types", fold_sizes::run),
    Pass::graph("fold-writes", "Folds tensors constructed from constants, including writes to them, if they do not escape the graph", fold_writes::run),
    Pass::module("freeze", "Freezes a loaded model's attributes to constants, in forward and in preserved methods", freeze::run).options(freeze::OPTIONS),
    Pass::graph("freeze-attributes", "Freezes attributes of a loaded model that are never set or written, as plans do", freeze_attributes::run).options(freeze_attributes::OPTIONS),
    Pass::graph("hoist-draws", "Hoists random draws, and what they depend on, to the start of the graph", hoist_draws::run),
    Pass::graph("functionalize", "Computes the final values of mutated inputs functionally and copies them back at the end", functionalize::run).options(functionalize::OPTIONS),
    Pass::graph("functionalize-containers", "Converts mutated lists and dictionaries to SSA values, carried through branches and loops", functionalize_containers::run).options(functionalize_containers::OPTIONS),
    Pass::graph("functionalize-tensors", "Converts mutated tensors to SSA values, also through views, branches and loops", functionalize_tensors::run),
    Pass::graph("functional-to-inplace-activation", "Converts activations to their in-place forms where the input is dead afterwards", convert_activation::functional_to_inplace),
    Pass::graph("fuse", "Fuses elementwise ops and row reductions into fusion groups", fuse::run).options(fuse::OPTIONS),
    Pass::directed("fuse-addmm", "Fuses mm and add into addmm", Directed::group("fuse-addmm").keeps_matched()),
    Pass::graph("fuse-attention", "Fuses scaled dot-product attention into one op", fuse_attention::run),
    Pass::graph("fuse-copies", "Lets fusion groups store results directly into the destinations of copies", fuse_copies::run),
    Pass::graph("fuse-layers", "Fuses a convolution or linear map with constant weights and its epilogue", fuse_layers::run),
    Pass::graph("fuse-linear", "Fuses products with a transposed weight into linear", fuse_linear::run),
    Pass::graph("guard-types", "Guards fusion groups by a check of their operands' types, with a fallback", guard_types::run),
    Pass::graph("inline", "Inlines calls of functions and methods", inline::run).reads_functions(),
    Pass::graph("inline-autodiff-subgraphs", "Inlines small differentiable groups", create_autodiff_subgraphs::inline).options(&[PassOption::int("threshold", 5, 0, "minimum number of ops of a group that stays")]),
    Pass::graph("inline-fork-wait", "Inlines forks at the point where they start", inline_fork_wait::run),
    Pass::graph("inline-meanings", "Inlines ops that are defined in TorchScript", inline_meanings::run).options(&[
        PassOption::bool("layers", false, "also inline built-in composites that are made of layers or of elementwise work"),
        PassOption::bool("all", false, "also inline built-in composites, not only ops of dialect files"),
        PassOption::bool("derivatives", true, "also inline ops that declare a derivative, which is then derived from the definition"),
    ]),
    Pass::graph("inplace-to-functional-activation", "Converts in-place activations of fresh tensors to their functional forms", convert_activation::inplace_to_functional),
    Pass::graph("insert-bailouts", "Gives guards a bailout: the unspecialized rest of the function", insert_bailouts::run).options(insert_bailouts::OPTIONS),
    Pass::graph("insert-guards", "Replaces profiles by guards", insert_guards::run),
    Pass::graph("insert-requires-grad-check", "Guards differentiable groups by a check of requires_grad, with a fallback", insert_requires_grad_check::run),
    Pass::graph("loop-canonicalize", "Folds constants of a kernel, and loops of zero or one iteration", loop_nests::canonicalize),
    Pass::graph("loop-check-bounds", "Inserts bounds checks that end a kernel with an error", loop_nests::check_bounds_pass),
    Pass::graph("loop-fuse", "Fuses adjacent loops of a kernel over the same index range", loop_nests::fuse).options(loop_nests::LOOP_OPTIONS),
    Pass::graph("loop-hoist", "Hoists loop invariants of a kernel", loop_nests::hoist),
    Pass::graph("loop-interchange", "Interchanges a loop of a kernel with the loop nested in it", loop_nests::interchange).options(loop_nests::LOOP_OPTIONS),
    Pass::graph("loop-parallelize", "Marks loops of a kernel as parallel", loop_nests::parallelize).options(loop_nests::MARK_OPTIONS),
    Pass::graph("loop-reuse-buffers", "Lets buffers of a kernel's own whose lives do not overlap share memory", loop_nests::reuse_buffers),
    Pass::graph("loop-tile", "Tiles loops of a kernel", loop_nests::tile).options(loop_nests::TILE_OPTIONS),
    Pass::graph("loop-unroll", "Unrolls loops of a kernel, with an epilogue loop for the remainder", loop_nests::unroll).options(loop_nests::UNROLL_OPTIONS),
    Pass::graph("loop-vectorize", "Marks loops of a kernel as vectorizable", loop_nests::vectorize).options(loop_nests::MARK_OPTIONS),
    Pass::graph("loop-unrolling", "Unrolls counted loops, fully if the trip count is small", loop_unrolling::run),
    Pass::graph("lower-all-tuples", "Removes tuples, including inputs and outputs of the graph", lower_all_tuples::run).options(lower_all_tuples::OPTIONS),
    Pass::graph("lower-grad-mode", "Lowers blocks of torch.no_grad to ops that ask for the mode and set it", grad_mode::lower),
    Pass::graph("lower-grad-of", "Replaces blocks of gradients by conditions on whether any is defined", lower_grad_of::run),
    Pass::graph("lower-simple-tuples", "Folds TupleConstruct followed by TupleUnpack", lower_simple_tuples::run),
    Pass::graph("merge-branches", "Merges a branch into the preceding one if that determines its condition", merge_branches::run),
    Pass::graph("normalize-ops", "Renames aliases of ops to one canonical name", normalize_ops::run),
    Pass::graph("peel-loops", "Peels loop iterations", peel_loops::run).options(&[PassOption::int("count", 1, 0, "iterations to peel")]),
    Pass::graph("peephole", "Applies PyTorch's peephole rules, saturated in an e-graph", peephole::run).options(peephole::OPTIONS),
    Pass::graph("chain-layers", "Lets a depthwise convolution read the pointwise one before it in bands that stay in cache", chain_layers::run),
    Pass::graph("place-parts", "Lets packed convolutions write directly into the result of a concatenation", place_parts::run),
    Pass::graph("profile", "Inserts profiling of tensors at their uses, as TorchScript's profiling executor does", profile::run),
    Pass::graph("propagate-shapes", "Infers dtypes, sizes and layouts from the inputs and records them in types", propagate_shapes::run),
    Pass::graph("refine-integer-values", "Replaces ints by constants where a comparison implies their value", refine_integer_values::run),
    Pass::graph("refine-tuple-types", "Refines tuple types from the types of their elements", refine_tuple_types::run),
    Pass::directed("remove-dropout", "Removes dropout in evaluation mode", rule_group::REMOVE_DROPOUT),
    Pass::graph("remove-exceptions", "Removes branches that raise, assuming that they are never taken", remove_exceptions::run),
    Pass::directed("remove-expands", "Removes implicit expands that broadcasting makes redundant", Directed::group("remove-expands")),
    Pass::graph("remove-inplace-ops", "Replaces in-place arithmetic by functional ops without checking that this is sound", remove_inplace_ops::run),
    Pass::graph("remove-list-mutation", "Folds appends and insertions into list construction", remove_mutation::lists),
    Pass::graph("remove-mutation", "Replaces in-place ops on fresh tensors and lists by functional ops", remove_mutation::run).options(remove_mutation::OPTIONS),
    Pass::graph("remove-profiling", "Removes profiles; types are kept, refined by the profile, or erased for tensors", remove_profiling::run).options(remove_profiling::OPTIONS),
    Pass::graph("remove-tensor-mutation", "Replaces in-place ops on fresh tensors by functional ops", remove_mutation::tensors).options(remove_mutation::OPTIONS),
    Pass::graph("simplify", "Applies the built-in rewrite rules, saturated in an e-graph", simplify::run).options(simplify::OPTIONS),
    Pass::graph("specialize-autogradzero", "Specializes a backward graph for the gradients that profiles saw defined", specialize_autogradzero::run),
    Pass::directed("transform-conv1d-to-conv2d", "Replaces conv1d by conv2d over images of height one", Directed::group("transform-conv1d-to-conv2d")),
    Pass::graph("split-sums", "Splits sums of fused work in two: row sums inside a group, and their total", split_sums::run),
    Pass::graph("use-variadic-cat", "Replaces cat of a fresh list by VarConcat of its elements", variadic::cat),
    Pass::graph("use-variadic-stack", "Replaces stack of a fresh list by VarStack of its elements", variadic::stack),
];

/// Pipelines with a name: what every run does, stages of PyTorch's executor under their names, and everything. A
/// function's schema, and the identity of objects that callers observe, stay the same under each of them but `optimization`,
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
    ("optimize", "inline,lower-simple-tuples,repeat{max=4}(constant-propagation-immutable-types,fold-dicts),autocast,remove-mutation{exact history},cse,simplify,constant-propagation-immutable-types,cse,constant-pooling,dce-graph"),
    ("specialize", "dissolve-groups,inline-meanings{layers},repeat{max=2}(freeze-attributes,constant-propagation-immutable-types),dce-graph,remove-dropout,functionalize-containers{loops=false},propagate-shapes,fold-sizes,constant-propagation-immutable-types,remove-mutation{exact},dce-graph,fold-writes,fold-constants,cse,simplify,propagate-shapes,remove-mutation{exact},dce-graph"),
    ("device-plan", "specialize,decompose-norms,fold-constants,cse,propagate-shapes,dce-graph,fuse{alone}"),
    ("layers", "fuse-attention,fuse-layers,assign-layouts,place-parts,chain-layers,dce-graph,fuse"),
    ("plan", "specialize,layers"),
    ("fast-plan", "specialize,frozen-optimization,propagate-shapes,layers"),
    ("update-plan", "specialize,functionalize{elementwise},remove-mutation{exact},cse,simplify,propagate-shapes,dce-graph,layers,fuse-copies,dce-graph"),
    ("record-freeze", "dissolve-groups,inline-meanings{derivatives=false},freeze-attributes{written,lent},fold-requires-grad"),
    ("record", "constant-propagation-immutable-types,remove-dropout,propagate-shapes,fold-sizes,constant-propagation-immutable-types,constant-loop-unrolling{max-body=512 max-iterations=1000},constant-propagation-immutable-types,propagate-shapes,fold-sizes,constant-propagation-immutable-types,lower-simple-tuples,lower-all-tuples{inner},functionalize{views},remove-mutation{exact history},merge-branches,functionalize-tensors,functionalize-containers,cse,dce-graph"),
    ("record-draws", "propagate-shapes,fold-sizes,constant-propagation-immutable-types,remove-mutation{exact history},propagate-shapes,hoist-draws,dce-graph"),
    ("record-finish", "batch-carried-mm,batch-mm,canonicalize-ops,dce-graph,split-sums,fuse,append-carried"),
    ("forward", "propagate-shapes,fold-sizes,constant-propagation-immutable-types,propagate-shapes,remove-mutation{exact history},peephole{contract=exact},lower-simple-tuples,functionalize-containers"),
    ("fold-known", "repeat{max=6}(propagate-shapes,fold-sizes,constant-propagation,constant-loop-unrolling{max-body=512 max-iterations=1000},remove-list-mutation,lower-simple-tuples,dce-graph)"),
    ("derivative", "fold-known,peephole{contract=exact},fold-known,functionalize-containers,dce-graph"),
    ("backward", "lower-simple-tuples,fold-known,peephole{contract=exact},fold-known,functionalize-containers,cse,simplify,propagate-shapes,fold-sizes,constant-propagation,cse,constant-pooling,dce-graph"),
    ("default", "optimize,inline-meanings{derivatives=false},dce-graph,fuse"),
];

impl PassSet {
    /// The built-in passes and pipelines.
    pub fn builtin() -> PassSet {
        let named = NAMED.iter().map(|(name, text)| (name.to_string(), text.to_string()));
        PassSet::of(TABLE.to_vec(), named.collect())
    }
}

/// Reads a pipeline of built-in passes, as plans have one. Pipelines from outside are read by a toolkit.
pub fn parse(text: &str) -> crate::diag::Result<Pipeline> {
    Pipeline::parse(text, &PassSet::builtin())
}
