//! Convolutions and products by the names of the kernels that PyTorch computes them with; graphs that were traced with
//! dispatch to kernels, and old ones, have these names. They compute what the ops of all kernels compute.

use crate::dialects::{OpDef, composite};

/// The rows.
pub static OPS: &[OpDef] = &[
    composite(
        "aten::thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0]) -> Tensor",
        "def thnn_conv2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int]) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, [1, 1], False, [0, 0], 1)
",
    )
    .out("out"),
    composite(
        "aten::_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding) -> Tensor",
        "def _slow_conv2d_forward(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int]) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, [1, 1], False, [0, 0], 1)
",
    )
    .out("output"),
    composite(
        "aten::slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0]) -> Tensor",
        "def slow_conv3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int]) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, [1, 1, 1], False, [0, 0, 0], 1)
",
    )
    .out("out"),
    composite(
        "aten::slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding) -> Tensor",
        "def slow_conv3d_forward(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int]) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, [1, 1, 1], False, [0, 0, 0], 1)
",
    )
    .out("output"),
    composite(
        "aten::slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor",
        "def slow_conv_dilated2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int]) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, dilation, False, [0, 0], 1)
",
    )
    .out("out"),
    composite(
        "aten::slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor",
        "def slow_conv_dilated3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int]) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, dilation, False, [0, 0, 0], 1)
",
    )
    .out("out"),
    composite(
        "aten::slow_conv_transpose2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor",
        "def slow_conv_transpose2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int], output_padding: List[int], dilation: List[int]) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, dilation, True, output_padding, 1)
",
    )
    .out("out"),
    composite(
        "aten::slow_conv_transpose3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor",
        "def slow_conv_transpose3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int], output_padding: List[int], dilation: List[int]) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, dilation, True, output_padding, 1)
",
    )
    .out("out"),
    composite(
        "aten::_nnpack_spatial_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[2] padding, SymInt[2] stride=[1, 1]) -> Tensor",
        "def _nnpack_spatial_convolution(input: Tensor, weight: Tensor, bias: Optional[Tensor], padding: List[int], stride: List[int]) -> Tensor:
    return torch.convolution(input, weight, bias, stride, padding, [1, 1], False, [0, 0], 1)
",
    ),
    composite(
        "aten::_int_mm(Tensor self, Tensor mat2) -> Tensor",
        "def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    return torch.mm(self.to(torch.int32), mat2.to(torch.int32))
",
    )
    .out("out"),
    composite(
        "aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
        "def _addmm_activation(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: number, alpha: number, use_gelu: bool) -> Tensor:
    y = torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    if use_gelu:
        return torch.nn.functional.gelu(y)
    return torch.relu(y)
",
    )
    .out("out"),
];
