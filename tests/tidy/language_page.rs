//! `docs/language.md`: what of the language is supported, what is refused, and which recorded programs show it.
//!
//! The rows are written here; the programs are those of `tests/golden`. A row whose programs do not exist fails the
//! test that keeps the document fresh, so that no claim stands without a case.

use Status::{Part, Refused, Yes};
use std::fmt::Write;

/// How far a row is supported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    /// As in PyTorch.
    Yes,
    /// As in PyTorch, which supports a part of what Python has.
    Part,
    /// An error of PyTorch's, with its message.
    Refused,
}

/// One row: what it is, how far it goes, and the recorded programs by the beginnings of their names.
struct Row(&'static str, Status, &'static str, &'static [&'static str]);

/// A section of rows.
struct Section(&'static str, &'static [Row]);

/// The document for the names of the recorded programs. The error names the rows that no program shows.
pub(super) fn language(programs: &[String]) -> Result<String, String> {
    let mut out = String::from(HEAD);
    let mut unshown = Vec::new();
    for Section(title, rows) in SECTIONS {
        let _ = write!(out, "\n## {title}\n\n| | | recorded programs |\n|---|---|---|\n");
        for Row(what, status, note, shown_by) in *rows {
            let mut names: Vec<&str> = Vec::new();
            for start in *shown_by {
                let found = programs.iter().filter(|n| is_of(n, start));
                let before = names.len();
                names.extend(found.map(String::as_str));
                if names.len() == before {
                    unshown.push(format!("{what}: no recorded program {start}"));
                }
            }
            let _ = writeln!(out, "| {what} | {}{note} | {} |", word(*status), shown_by.join(", "));
        }
    }
    out.push_str(TAIL);
    if unshown.is_empty() { Ok(out) } else { Err(unshown.join("\n")) }
}

/// `control.break` is shown by `control.break`, `control.break.2`, not by `control.breaks`.
fn is_of(name: &str, program: &str) -> bool {
    name.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn word(status: Status) -> &'static str {
    match status {
        Yes => "yes",
        Part => "in part",
        Refused => "refused",
    }
}

const HEAD: &str = "# The language

Generated from `tests/tidy/language_page.rs`; `BLESS=1 cargo test --test root docs` rewrites it.

What TorchScript has of Python, row by row. **yes**: as PyTorch's compiler has it. **in part**: PyTorch itself supports a
part, and so do we. **refused**: an error, with PyTorch's message and its place. The last column names the recorded programs
(`tests/programs`, answers of real PyTorch in `tests/golden`) that hold us to it.
";

const TAIL: &str = "
## Where we differ on purpose

- Where PyTorch's process ends or its compiler fails an assertion of its own, there is an error or the plain meaning: an int
  `% 0` raises `ZeroDivisionError`; `for a, b in t` over a tuple `t` in text unrolls; `yield` and calls of modules are
  refused with a message of the parser or compiler.
- Calls that only Python could run (`super()`, functions marked `@torch.jit.ignore` once loaded) are a named \"unsupported\".
- Functions of `torch.nn.functional`, `torch.functional` and `torch.nn.init` that PyTorch writes in Python are compiled from
  text of our own when source calls them: answers are the same, line numbers in errors raised inside of them are not.
- An operator that is not built here is an error when it runs, not when it is read: a program that never reaches it runs.
- PyTorch's kernels do not always agree with each other, and one answer is given here for all of them. `gelu` of the positive
  infinity is that infinity, as PyTorch's float64 and its single elements have it, where its float32 vectors give NaN.
  Quantized layers round as PyTorch's FBGEMM engine does: QNNPACK rounds biases to integers before it adds them, which moves single
  results by one step, and the x86 engine hands transposed convolutions to another library. Where FBGEMM adds pairs of products in 16 bits, which
  saturate (depthwise layers whose weights use all 8 bits), sums are exact here. Attention of float32 counts as nothing what a key adds that is less than
  e^-87 times as likely as the likeliest; PyTorch's kernel does so for keys that fill its vectors, and not for those left over.
";

const SECTIONS: &[Section] = &[
    Section(
        "Lexical",
        &[
            Row(
                "indentation, comments, joined lines, docstrings",
                Yes,
                "",
                &[
                    "syntax.comment_lines",
                    "syntax.backslash",
                    "syntax.docstring",
                    "text.multiline_call",
                    "library.indented",
                ],
            ),
            Row(
                "int and float literals",
                Yes,
                "; 64 bits, `010` is 8, `0xdeadBEEF` is a float",
                &["numbers.int_limits", "numbers.too_large"],
            ),
            Row("imaginary literals", Yes, "", &["syntax.complex_literal", "numbers.complex_numbers"]),
            Row(
                "text: quotes, triple quotes, joined, escapes",
                Yes,
                "; no `\\x`, `\\u`, `\\r` in text",
                &["text.escapes", "text.escapes_ok"],
            ),
            Row("f-strings", Part, ": from Python, not in text", &["syntax.fstring"]),
            Row("`1_000`, bytes", Refused, "", &["syntax.underscore_literal"]),
            Row("`# type:` comments of functions", Yes, "", &["functions.type_comment"]),
        ],
    ),
    Section(
        "Statements",
        &[
            Row(
                "assignment, to several targets, unpacking, starred",
                Yes,
                "",
                &["control.swap", "containers.starred", "containers.unpack_errors", "syntax.wrong_target"],
            ),
            Row(
                "annotated assignment",
                Yes,
                "; a value is needed",
                &["syntax.annotated_without_value", "functions.annotation_mismatch"],
            ),
            Row(
                "`+= -= *= /= %= |= &= ^= <<= >>= **=`",
                Yes,
                " on names, attributes, items, slices",
                &["numbers.augmented_ok", "tensors.augmented", "containers.list_augmented"],
            ),
            Row("`//=`, `@=`", Refused, "", &["numbers.floor_division_assign"]),
            Row(
                "`if`, `elif`, `else`",
                Yes,
                "",
                &["control.assigned_in_one_arm", "control.different_types_in_arms", "syntax.stray_else"],
            ),
            Row(
                "`while`",
                Yes,
                "; no `else`",
                &["control.while_breaks", "control.while_condition_with_call"],
            ),
            Row(
                "`for` over ranges, lists, tuples, dicts, text, tensors, `zip`, `enumerate`",
                Yes,
                "; no `else`",
                &[
                    "control.range_forms",
                    "control.zip_enumerate_ok",
                    "control.tuple_loops",
                    "text.iteration",
                    "tensors.loops",
                    "containers.dict_order",
                ],
            ),
            Row(
                "`break`, `continue`",
                Yes,
                "; not in loops over tuples and modules",
                &[
                    "control.nested_continue",
                    "control.break_outside",
                    "control.break_in_tuple_loop",
                    "library.after_break",
                ],
            ),
            Row(
                "early `return`",
                Yes,
                "",
                &[
                    "control.early_returns",
                    "control.return_in_while_in_for",
                    "control.return_in_unrolled_loop",
                ],
            ),
            Row(
                "`raise`",
                Yes,
                "; classes of Python are kept",
                &["control.exceptions_in_arms", "syntax.raise_text", "syntax.raise_class"],
            ),
            Row("`assert`", Yes, "", &["syntax.assert_message_expression", "refine.optional_assert_chain"]),
            Row(
                "`del` of names and items",
                Yes,
                "",
                &["syntax.del_variable", "syntax.del_then_use", "containers.list_del"],
            ),
            Row(
                "`pass`, expressions, `print`",
                Yes,
                "",
                &["syntax.pass_statements", "syntax.expression_statements", "text.printing"],
            ),
            Row(
                "`with`",
                Part,
                ": `__exit__` gets None and cannot swallow an exception",
                &["classes.context", "syntax.with_non_class", "functions.no_grad"],
            ),
            Row(
                "`try`, `import`, `global`, `:=`, `async`, `match`",
                Refused,
                "",
                &[
                    "functions.try_refused",
                    "functions.import_refused",
                    "syntax.global_statement",
                    "functions.walrus_refused",
                ],
            ),
            Row(
                "functions and classes inside of functions, `lambda`",
                Refused,
                "",
                &["functions.nested_def_refused", "functions.class_refused", "functions.lambda_refused"],
            ),
        ],
    ),
    Section(
        "Expressions",
        &[
            Row(
                "`+ - * / // % ** @`",
                Yes,
                "; int `**` int is a float, `/` of ints too",
                &["numbers.int_arithmetic", "numbers.float_arithmetic", "numbers.mixed", "tensors.matmul"],
            ),
            Row(
                "`<< >> & | ^ ~`",
                Yes,
                " on ints, bools and tensors; `~int` is refused",
                &["numbers.bool_arithmetic", "numbers.invert"],
            ),
            Row(
                "unary `-`, `not`",
                Yes,
                "; unary `+` is refused",
                &["numbers.unary_plus", "syntax.not_of_list"],
            ),
            Row(
                "comparisons",
                Yes,
                "",
                &["control.comparisons_do_not_chain", "containers.tuple_compare", "text.concat_compare"],
            ),
            Row(
                "`is`, `is not`, `in`, `not in`",
                Yes,
                "",
                &["refine.none_comparisons", "containers.list_in_ok", "syntax.in_tensor"],
            ),
            Row(
                "`and`, `or`",
                Yes,
                "; they give a bool",
                &["control.chained_logic", "refine.optional_or_guard"],
            ),
            Row("`a if c else b`", Yes, "", &["control.ternaries", "refine.optional_ternary_chain"]),
            Row(
                "calls by position and keyword, defaults, keyword-only",
                Yes,
                "",
                &[
                    "functions.defaults",
                    "functions.keyword_only",
                    "functions.twice_given",
                    "library.input_for_self",
                ],
            ),
            Row("`f(*tuple)`", Yes, "; of tuples alone", &["containers.starred_call"]),
            Row(
                "`*args`, `**kwargs` in definitions",
                Refused,
                "",
                &["functions.varargs_refused", "functions.kwargs_refused"],
            ),
            Row(
                "subscripts and slices of lists, tuples, text",
                Yes,
                "",
                &[
                    "containers.list_slices",
                    "containers.list_slice_negative_step",
                    "containers.tuple_dynamic_index",
                    "text.index_slice",
                ],
            ),
            Row(
                "indexing of tensors: numbers, slices, None, `...`, masks, indices",
                Yes,
                "",
                &["tensors.indexing", "tensors.advanced", "tensors.two_ellipses"],
            ),
            Row(
                "stores to items and slices of tensors",
                Yes,
                "",
                &["tensors.stores", "tensors.store_bool_int"],
            ),
            Row(
                "list, tuple, dict literals",
                Yes,
                "",
                &["containers.heterogeneous", "containers.empty_literals", "containers.annotated_empties"],
            ),
            Row(
                "set literals, trailing comma in a dict",
                Refused,
                "",
                &["containers.set_literal", "syntax.dict_trailing_comma"],
            ),
            Row(
                "comprehensions of lists and dicts",
                Part,
                ": one `for`, no `if`",
                &["containers.comprehensions", "containers.comprehensions_ok", "syntax.set_comp"],
            ),
            Row(
                "`%` and `.format` of text",
                Part,
                ": no widths or precisions",
                &["text.formatting", "text.bad_format"],
            ),
        ],
    ),
    Section(
        "Types",
        &[
            Row(
                "`Tensor`, `int`, `float`, `bool`, `complex`, `str`, `None`",
                Yes,
                "",
                &["functions.torch_annotations", "numbers.complex_numbers"],
            ),
            Row(
                "`List`, `Dict`, `Tuple`, `list`, `dict`, `tuple`",
                Yes,
                "; bare ones of `typing` are refused",
                &[
                    "functions.tuple_annotation_empty",
                    "functions.dict_arity",
                    "functions.list_bare",
                    "functions.bad_annotation_arity",
                ],
            ),
            Row(
                "`Optional`, `Union`, `X \\| Y`",
                Yes,
                "",
                &["refine.union_pep604", "refine.union_optional", "functions.optional_bare"],
            ),
            Row("`Any`", Yes, "", &["refine.any_tests"]),
            Row("named tuples, with defaults", Yes, "", &["classes.named_tuples"]),
            Row("enums of int, float, text", Yes, "", &["classes.enums"]),
            Row("`BroadcastingListN`", Yes, "", &["functions.broadcasting_list"]),
            Row(
                "devices, dtypes, layouts (ints to programs)",
                Yes,
                "",
                &["tensors.dtype_values", "tensors.properties"],
            ),
            Row("`Future`", Yes, "", &["functions.futures_in_list", "modules.forked"]),
            Row(
                "`Callable`, unknown names",
                Refused,
                "",
                &["functions.callable_annotation", "functions.bad_annotation"],
            ),
            Row("annotations as text", Yes, "; not of `A \\| B`", &["functions.string_annotation"]),
        ],
    ),
    Section(
        "Typing",
        &[
            Row(
                "parameters without annotation are tensors",
                Yes,
                "",
                &["functions.tensor_defaults_unannotated"],
            ),
            Row(
                "results inferred, united over returns",
                Yes,
                "",
                &[
                    "control.mixed_returns",
                    "control.none_or_value",
                    "control.implicit_none",
                    "control.missing_return",
                ],
            ),
            Row(
                "variables keep their type in branches and loops",
                Yes,
                "; at top level they may change it",
                &[
                    "control.type_change_top_level",
                    "control.type_change_in_loop",
                    "control.different_types_unused",
                ],
            ),
            Row(
                "refinement of `Optional`",
                Yes,
                ": `is None`, `and`, `or`, `assert`, early exits; not by `while`, `break`, `continue`",
                &[
                    "refine.optional_paths",
                    "refine.optional_early_raise",
                    "refine.while_does_not_refine",
                    "refine.optional_in_loop",
                    "library.continue_does_not_refine",
                ],
            ),
            Row(
                "refinement by `isinstance`",
                Yes,
                "",
                &[
                    "refine.union_narrowing",
                    "refine.union_tuple_test",
                    "refine.any_refined",
                    "refine.static_isinstance",
                ],
            ),
            Row(
                "empty literals take the type that is wanted",
                Yes,
                "; otherwise `List[Tensor]`, `Dict[str, Tensor]`",
                &["containers.empty_list_wrong", "containers.annotated_empties"],
            ),
            Row(
                "containers are invariant",
                Yes,
                "",
                &["containers.wrong_element", "containers.wrong_dict_value"],
            ),
            Row(
                "conversions without being asked",
                Yes,
                ": tensors to numbers, ints to floats for operators, tuples to lists, one number for `int[2]`",
                &["tensors.implicit", "functions.int_for_float_argument", "numbers.int_to_float_refused"],
            ),
            Row(
                "overloads in the order of schemas",
                Yes,
                "",
                &[
                    "tensors.wrong_types",
                    "library.view_with_numbers",
                    "library.view_of_text",
                    "functional.receiver_is_no_element",
                ],
            ),
            Row(
                "arms that the compiler can decide are not compiled",
                Yes,
                "",
                &["control.metacompiled_arms", "functions.getattr_hasattr", "library.hasattr_refused"],
            ),
        ],
    ),
    Section(
        "Functions, classes, modules",
        &[
            Row(
                "functions that call functions",
                Yes,
                "; recursion is refused",
                &[
                    "functions.order_of_definition",
                    "functions.recursion",
                    "functions.call_chain_error",
                    "functions.runtime_call_chain",
                ],
            ),
            Row(
                "defaults",
                Yes,
                ", also computed ones",
                &["functions.negative_default", "calls.computed_defaults"],
            ),
            Row(
                "classes: attributes, methods, static methods, properties, operators",
                Yes,
                "",
                &["classes.counter"],
            ),
            Row(
                "interfaces of classes and modules, chosen while running",
                Yes,
                "",
                &["classes.interface_by_value", "modules.interface_list"],
            ),
            Row(
                "modules: parameters, buffers, constants, attributes, exported methods",
                Yes,
                "",
                &["modules.containers"],
            ),
            Row(
                "`Sequential`, `ModuleList`, `ModuleDict`, `ParameterList`",
                Yes,
                ": unrolled, indexed by constants",
                &["modules.containers"],
            ),
            Row("hooks", Yes, "", &["modules.hooks"]),
            Row("`__getstate__`, `__setstate__`", Yes, "", &["modules.state"]),
            Row("overloaded methods, `@unused`", Yes, "", &["modules.overloads"]),
            Row("traced functions", Yes, "", &["modules.traced"]),
        ],
    ),
    Section(
        "Builtins",
        &[
            Row(
                "`len range enumerate zip min max abs sum any all sorted round divmod pow`",
                Yes,
                "",
                &[
                    "containers.sorted_and_friends",
                    "containers.min_max_forms",
                    "numbers.divmod_pow",
                    "numbers.rounding_ok",
                    "library.divmod_mixed",
                ],
            ),
            Row(
                "`int float bool complex str`",
                Yes,
                "",
                &["numbers.casts", "text.int_float_parse", "text.str_of"],
            ),
            Row(
                "`list tuple dict`",
                Yes,
                "",
                &[
                    "containers.list_from_things_ok",
                    "containers.tuple_of_list",
                    "containers.dict_constructors",
                    "library.dict_of_zip",
                ],
            ),
            Row("`chr ord hex oct bin hash id`", Yes, "", &["text.chr_ord_hex"]),
            Row(
                "`isinstance hasattr getattr`",
                Yes,
                "",
                &["refine.isinstance_ternary", "library.getattr_default_refused"],
            ),
            Row(
                "`map filter set iter type repr input open eval reversed`",
                Refused,
                "",
                &[
                    "syntax.python_builtins",
                    "syntax.python_map",
                    "syntax.python_set",
                    "syntax.python_type",
                    "syntax.python_reversed",
                ],
            ),
            Row("methods of text", Yes, "", &["text.methods", "text.split_join", "text.pad"]),
            Row("methods of lists", Yes, "", &["containers.list_methods", "containers.list_index_errors"]),
            Row(
                "methods of dicts",
                Yes,
                "",
                &["containers.dict_methods", "containers.dict_keys_of_kinds", "containers.dict_errors"],
            ),
            Row("`math`, `cmath`", Yes, "", &["numbers.math_functions", "numbers.constants"]),
            Row(
                "properties of tensors, `tolist`, casts",
                Yes,
                "",
                &[
                    "tensors.properties",
                    "tensors.tolist",
                    "tensors.casts",
                    "library.tolist_kinds",
                    "functional.type_method",
                    "library.bfloat16_method",
                ],
            ),
            Row(
                "`torch.nn.functional`, `torch.functional`, `torch.nn.init`",
                Yes,
                "; random initializers are refused",
                &[
                    "tensors.functional",
                    "library.unique",
                    "library.norms",
                    "library.interpolate",
                    "library.pool_indices",
                    "library.more_functional",
                    "library.init",
                    "functional.attention",
                    "functional.interpolate_by_types",
                    "functional.unpool",
                    "functional.fractional_pool",
                    "functional.short_time_fourier",
                    "functional.python_only",
                ],
            ),
            Row(
                "`torch._check`, `torch.LongTensor` and related constructors",
                Yes,
                "",
                &["library.check_fails", "library.check_arguments", "library.legacy_tensors"],
            ),
            Row(
                "`fork`, `wait`",
                Yes,
                "",
                &["functions.fork_and_wait", "functions.fork_raises", "modules.forked"],
            ),
            Row("`no_grad`", Yes, "", &["functions.no_grad", "functions.no_grad_return"]),
        ],
    ),
    Section(
        "Errors",
        &[
            Row(
                "of the compiler, with the line, the place, the chain of calls",
                Yes,
                "",
                &["functions.call_chain_error", "functions.undefined_function"],
            ),
            Row("of the parser", Yes, "", &["syntax.no_colon", "syntax.bad_indent", "syntax.unclosed"]),
            Row(
                "candidates and suggestions",
                Yes,
                "",
                &["tensors.unknown_function", "tensors.unknown_method", "text.unknown_method"],
            ),
            Row(
                "of running programs, with the traceback and the class",
                Yes,
                "",
                &[
                    "functions.runtime_call_chain",
                    "containers.list_index_errors",
                    "tensors.shape_mismatch",
                    "text.index_error",
                ],
            ),
        ],
    ),
];
