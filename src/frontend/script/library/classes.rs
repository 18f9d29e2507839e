//! The classes: of contexts, `torch.autocast` and its forms for one device, which the pass `autocast` knows by name, and
//! `torch.jit.strict_fusion`, which `check-strict-fusion` knows; `torch.nn.utils.rnn.PackedSequence`, a named tuple.

/// The module that has a class, by the name that programs call it by, and the class's text.
pub(in crate::frontend::script) fn class_source(path: &str) -> Option<(&'static str, String)> {
    match path {
        "torch.autocast" | "torch.amp.autocast" | "torch.amp.autocast_mode.autocast" => {
            Some(("torch.amp.autocast_mode", class(ANY_DEVICE)))
        }
        "torch.cuda.amp.autocast" => {
            Some(("torch.cuda.amp.autocast_mode", class(&one_device("cuda", "torch.float16"))))
        }
        "torch.cpu.amp.autocast" => {
            Some(("torch.cpu.amp.autocast_mode", class(&one_device("cpu", "torch.bfloat16"))))
        }
        "torch.nn.utils.rnn.PackedSequence" => Some(("torch.nn.utils.rnn", PACKED.to_string())),
        "torch.jit.strict_fusion" => Some(("torch.jit", STRICT_FUSION.to_string())),
        _ => None,
    }
}

const PACKED: &str = "class PackedSequence(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Optional[Tensor]
    unsorted_indices: Optional[Tensor]
";

const STRICT_FUSION: &str = include_str!("functions/strict_fusion.py");

fn class(constructor: &str) -> String {
    format!("{FIELDS}{constructor}{REST}")
}

const FIELDS: &str = "class autocast:
    fast_dtype: int
    _enabled: bool
    device: str
";

const ANY_DEVICE: &str = "
    def __init__(self, device_type: str, dtype: Optional[int] = None, enabled: bool = True, cache_enabled: Optional[bool] = None):
        self.fast_dtype = torch.get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled
        self.device = device_type
";

fn one_device(device: &str, dtype: &str) -> String {
    format!(
        "
    def __init__(self, enabled: bool = True, dtype: int = {dtype}, cache_enabled: bool = True):
        self._enabled = enabled
        self.device = \"{device}\"
        self.fast_dtype = dtype
"
    )
}

const REST: &str = "
    def __enter__(self):
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any):
        return None

    def __call__(self, func):
        return func
";
