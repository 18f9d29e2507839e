//! Functions that PyTorch writes in Python, as TorchScript text of our own: those of `torch` itself, of
//! `torch.nn.init` and `torch.nn.utils.rnn`, and of `torch.nn.functional` (`functional` has the short ones that are made by rule, `layers` the
//! longer ones, `attention` and `resampling` theirs). Facts: names, parameters and defaults of the documentation.

mod attention;
mod classes;
mod functional;
mod layers;
mod resampling;

pub(super) use classes::class_source;

/// The text of a function of a module, with its helpers.
pub(super) fn source(module: &str, name: &str) -> Option<String> {
    let find =
        |table: &[(&str, &str)]| table.iter().find(|(n, _)| *n == name).map(|(_, text)| (*text).to_string());
    let text = match module {
        "torch" => find(TORCH)?,
        "torch.nn.init" => find(INIT)?,
        "torch.nn.utils.rnn" => find(SEQUENCES)?,
        "torch.nn.functional" => functional::source(name)
            .or_else(|| find(layers::TABLE))
            .or_else(|| find(attention::TABLE))
            .or_else(|| resampling::source(name))?,
        _ => return None,
    };
    let helpers: String = HELPERS.iter().filter(|(n, _)| text.contains(n)).map(|(_, text)| *text).collect();
    Some(format!("{helpers}{text}"))
}

/// The functions that a name stands for, the one that fits the arguments being called; empty for other names.
pub(super) fn overloads(module: &str, name: &str) -> Vec<String> {
    match module {
        "torch.nn.functional" => resampling::overloads(name),
        "torch" if name == "_assert" => vec!["_assert__0".into(), "_assert__1".into()],
        _ => Vec::new(),
    }
}

/// How PyTorch's messages call a function of its library: without its module and the number of the overload.
pub(super) fn shown_name(qualified: &str) -> Option<&str> {
    let name = qualified.strip_prefix("torch.")?.rsplit('.').next()?;
    Some(name.split("__").next().filter(|n| !n.is_empty()).unwrap_or(name))
}

/// The function of `torch.nn.functional` after a name that stands for it.
pub(super) fn python_name(name: &str) -> &str {
    if name == "threshold" { "_threshold" } else { name }
}

/// The op after a name of `torch.nn.functional`.
pub(super) fn op_name(name: &str) -> &str {
    if name == "logsigmoid" { "log_sigmoid" } else { name }
}

/// Names below `torch` and `torch.functional` that Python has and no operator stands for: a call says so.
pub(super) fn only_python(name: &str) -> bool {
    ONLY_PYTHON.contains(&name)
}

const ONLY_PYTHON: &[&str] = &[
    "are_deterministic_algorithms_enabled",
    "asarray",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "dsmm",
    "enable_grad",
    "finfo",
    "fork",
    "from_numpy",
    "frombuffer",
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "get_default_device",
    "get_default_dtype",
    "get_deterministic_debug_mode",
    "get_file_path",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "get_rng_state",
    "hsmm",
    "iinfo",
    "import_ir_module",
    "import_ir_module_from_buffer",
    "inference_mode",
    "init_num_threads",
    "initial_seed",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_autocast_cache_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_inference_mode_enabled",
    "is_storage",
    "is_tensor",
    "is_warn_always_enabled",
    "load",
    "parse_ir",
    "parse_schema",
    "pca_lowrank",
    "saddmm",
    "save",
    "seed",
    "set_anomaly_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "spmm",
    "svd_lowrank",
    "sym_float",
    "sym_fresh_size",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
    "thread_safe_generator",
    "typename",
    "unravel_index",
    "use_deterministic_algorithms",
];

/// A function that stands for several: which one is said by flags that must be literals.
#[derive(Debug)]
pub(super) struct Dispatch {
    /// Flags as (name, position), most significant first.
    pub(super) flags: &'static [(&'static str, usize)],
    /// The functions, by the flags read as a binary number.
    pub(super) functions: &'static [&'static str],
}

/// What a name of a module stands for by its flags.
pub(super) fn dispatch(module: &str, name: &str) -> Option<&'static Dispatch> {
    DISPATCHES.iter().find(|(m, n, _)| *m == module && *n == name).map(|(_, _, dispatch)| dispatch)
}

const fn indexed(functions: &'static [&'static str], position: usize) -> Dispatch {
    const FLAGS: [&[(&str, usize)]; 7] = [
        &[("return_indices", 0)],
        &[("return_indices", 1)],
        &[("return_indices", 2)],
        &[("return_indices", 3)],
        &[("return_indices", 4)],
        &[("return_indices", 5)],
        &[("return_indices", 6)],
    ];
    Dispatch { flags: FLAGS[position], functions }
}

static DISPATCHES: &[(&str, &str, Dispatch)] = &[
    ("torch.nn.functional", "max_pool1d", indexed(&["_max_pool1d", "max_pool1d_with_indices"], 6)),
    ("torch.nn.functional", "max_pool2d", indexed(&["_max_pool2d", "max_pool2d_with_indices"], 6)),
    ("torch.nn.functional", "max_pool3d", indexed(&["_max_pool3d", "max_pool3d_with_indices"], 6)),
    (
        "torch.nn.functional",
        "adaptive_max_pool1d",
        indexed(&["_adaptive_max_pool1d", "adaptive_max_pool1d_with_indices"], 2),
    ),
    (
        "torch.nn.functional",
        "adaptive_max_pool2d",
        indexed(&["_adaptive_max_pool2d", "adaptive_max_pool2d_with_indices"], 2),
    ),
    (
        "torch.nn.functional",
        "adaptive_max_pool3d",
        indexed(&["_adaptive_max_pool3d", "adaptive_max_pool3d_with_indices"], 2),
    ),
    (
        "torch.nn.functional",
        "fractional_max_pool2d",
        indexed(&["_fractional_max_pool2d", "fractional_max_pool2d_with_indices"], 4),
    ),
    (
        "torch.nn.functional",
        "fractional_max_pool3d",
        indexed(&["_fractional_max_pool3d", "fractional_max_pool3d_with_indices"], 4),
    ),
    ("torch", "lu", Dispatch { flags: &[("get_infos", 2)], functions: &["_lu_no_infos", "_lu_with_infos"] }),
    (
        "torch",
        "unique",
        Dispatch {
            flags: &[("return_inverse", 2), ("return_counts", 3)],
            functions: &["_unique", "_unique_counts", "_unique_inverse", "_unique_both"],
        },
    ),
    (
        "torch",
        "unique_consecutive",
        Dispatch {
            flags: &[("return_inverse", 1), ("return_counts", 2)],
            functions: &["_runs", "_runs_counts", "_runs_inverse", "_runs_both"],
        },
    ),
];

const HELPERS: &[(&str, &str)] = &[
    (
        "_reduction_number(",
        include_str!("functions/reduction_number.py"),
    ),
    (
        "_unpooled(",
        include_str!("functions/unpooled.py"),
    ),
    (
        "_fans(",
        include_str!("functions/fans.py"),
    ),
    (
        "_distinct(",
        "def _distinct(input: Tensor, sorted: bool, return_inverse: bool, return_counts: bool, dim: Optional[int]):
    if dim is not None:
        return torch.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        return torch._unique2(input, sorted, return_inverse, return_counts)
",
    ),
    (
        "_int_list(",
        include_str!("functions/int_list.py"),
    ),
    (
        "_float_list(",
        include_str!("functions/float_list.py"),
    ),
    (
        "_contracted(",
        include_str!("functions/contracted.py"),
    ),
];

const TORCH: &[(&str, &str)] = &[
    // Both stand in one text of PyTorch's, whose lines errors show.
    ("_assert__0", include_str!("functions/assert__0.py")),
    ("_assert__1", "\ndef _assert__1(condition: Tensor, message: str):
    assert bool(condition), message
"),
    ("_unique", "def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tensor:
    values, inverse, counts = _distinct(input, sorted, False, False, dim)
    return values
"),
    ("_unique_counts", "def _unique_counts(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = _distinct(input, sorted, False, True, dim)
    return values, counts
"),
    ("_unique_inverse", "def _unique_inverse(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = _distinct(input, sorted, True, False, dim)
    return values, inverse
"),
    ("_unique_both", "def _unique_both(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    return _distinct(input, sorted, True, True, dim)
"),
    ("_runs", "def _runs(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tensor:
    values, inverse, counts = torch.ops.aten.unique_consecutive(input, False, False, dim)
    return values
"),
    ("_runs_counts", "def _runs_counts(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = torch.ops.aten.unique_consecutive(input, False, True, dim)
    return values, counts
"),
    ("_runs_inverse", "def _runs_inverse(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = torch.ops.aten.unique_consecutive(input, True, False, dim)
    return values, inverse
"),
    ("_runs_both", "def _runs_both(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten.unique_consecutive(input, True, True, dim)
"),
    ("cdist", include_str!("functions/cdist.py")),
    ("_lu_with_infos", "def _lu_with_infos(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
    return torch._lu_with_info(A, pivot, not get_infos)
"),
    ("_lu_no_infos", "def _lu_no_infos(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Tuple[Tensor, Tensor]:
    factors, pivots, _ = torch._lu_with_info(A, pivot, not get_infos)
    return factors, pivots
"),
    ("stft", include_str!("functions/stft.py")),
    ("tensordot", "def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Optional[Tensor] = None) -> Tensor:
    of_a, of_b = _contracted(dims)
    if out is None:
        return torch.ops.aten.tensordot(a, b, of_a, of_b)
    else:
        return torch.ops.aten.tensordot(a, b, of_a, of_b, out=out)
"),
    ("norm", include_str!("functions/norm.py")),
];

const SEQUENCES: &[(&str, &str)] = &[
    ("pack_padded_sequence", include_str!("functions/pack_padded_sequence.py")),
    ("pad_packed_sequence", include_str!("functions/pad_packed_sequence.py")),
    ("pack_sequence", "def pack_sequence(sequences: List[Tensor], enforce_sorted: bool = True) -> torch.nn.utils.rnn.PackedSequence:
    lengths = torch.as_tensor([sequence.size(0) for sequence in sequences])
    return torch.nn.utils.rnn.pack_padded_sequence(torch.nn.utils.rnn.pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)
"),
    ("invert_permutation", "def invert_permutation(permutation: Optional[Tensor]) -> Optional[Tensor]:
    if permutation is None:
        return None
    inverse = torch.empty_like(permutation, memory_format=torch.legacy_contiguous_format)
    inverse.scatter_(0, permutation, torch.arange(0, permutation.numel(), device=permutation.device))
    return inverse
"),
    ("pad_sequence", "def pad_sequence(sequences: Union[Tensor, List[Tensor]], batch_first: bool=False, padding_value: float=0.0, padding_side: str='right') -> Tensor:
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    return torch._C._nn.pad_sequence(sequences, batch_first, padding_value, padding_side)
"),
];

const INIT: &[(&str, &str)] = &[
    (
        "zeros_",
        "def zeros_(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        return tensor.zero_()
",
    ),
    (
        "ones_",
        "def ones_(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        return tensor.fill_(1.0)
",
    ),
    (
        "constant_",
        "def constant_(tensor: Tensor, val: float) -> Tensor:
    with torch.no_grad():
        return tensor.fill_(val)
",
    ),
    // Glorot and Bengio, 2010: the variance is 2 / (fan_in + fan_out).
    (
        "xavier_uniform_",
        "def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Optional[Generator] = None) -> Tensor:
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(_fans(tensor))))
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)
",
    ),
    (
        "xavier_normal_",
        "def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Optional[Generator] = None) -> Tensor:
    std = gain * math.sqrt(2.0 / float(_fans(tensor)))
    with torch.no_grad():
        return tensor.normal_(0.0, std, generator=generator)
",
    ),
];
