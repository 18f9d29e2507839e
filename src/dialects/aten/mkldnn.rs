//! Tensors in the layout of oneDNN, into which `torch.utils.mkldnn.to_mkldnn` brings the weights of a model. Here a tensor has
//! no such layout: going there and back leaves the numbers as they are, and its ops compute what the plain ones compute.

use crate::dialects::{OpDef, composite};

/// The rows.
pub static OPS: &[OpDef] = &[
    composite(
        "aten::to_mkldnn(Tensor self, ScalarType? dtype=None) -> Tensor",
        "def to_mkldnn(self: Tensor, dtype: Optional[int]) -> Tensor:
    if dtype is None:
        return torch.clone(self)
    return self.to(dtype, copy=True)
",
    ),
    composite(
        "aten::to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
        "def to_dense(self: Tensor, dtype: Optional[int], masked_grad: Optional[bool]) -> Tensor:
    if dtype is None:
        return self
    return self.to(dtype)
",
    )
    .hidden_marks("aten::to_dense(Tensor(a) self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor(a)"),
    composite(
        "aten::mkldnn_linear(Tensor self, Tensor weight, Tensor? bias=None) -> Tensor",
        "def mkldnn_linear(self: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    return torch.nn.functional.linear(self, weight, bias)
",
    ),
    composite(
        "aten::mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor",
        "def mkldnn_convolution(self: Tensor, weight: Tensor, bias: Optional[Tensor], padding: List[int], stride: List[int], dilation: List[int], groups: int) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, dilation, False, [0], groups)
",
    ),
    composite(
        "aten::mkldnn_max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
        "def mkldnn_max_pool2d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool) -> Tensor:
    return torch.max_pool2d(self, kernel_size, stride, padding, dilation, ceil_mode)
",
    ),
    composite(
        "aten::mkldnn_max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
        "def mkldnn_max_pool3d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool) -> Tensor:
    return torch.max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode)
",
    ),
    composite(
        "aten::mkldnn_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
        "def mkldnn_adaptive_avg_pool2d(self: Tensor, output_size: List[int]) -> Tensor:
    return torch.nn.functional.adaptive_avg_pool2d(self, output_size)
",
    ),
    composite(
        "aten::mkldnn_reorder_conv2d_weight(Tensor self, SymInt[2] padding=[0, 0], SymInt[2] stride=[1, 1], SymInt[2] dilation=[1, 1], SymInt groups=1, SymInt[]? input_size=None) -> Tensor",
        "def mkldnn_reorder_conv2d_weight(self: Tensor, padding: List[int], stride: List[int], dilation: List[int], groups: int, input_size: Optional[List[int]]) -> Tensor:
    return torch.clone(self)
",
    ),
    composite(
        "aten::mkldnn_reorder_conv3d_weight(Tensor self, SymInt[3] padding=[0, 0, 0], SymInt[3] stride=[1, 1, 1], SymInt[3] dilation=[1, 1, 1], SymInt groups=1, SymInt[]? input_size=None) -> Tensor",
        "def mkldnn_reorder_conv3d_weight(self: Tensor, padding: List[int], stride: List[int], dilation: List[int], groups: int, input_size: Optional[List[int]]) -> Tensor:
    return torch.clone(self)
",
    ),
];
