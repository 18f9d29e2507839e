#--- functions
def functions(x: Tensor, w: Tensor, b: Tensor, v: Tensor, t: Tensor):
    one = [1, 1]
    out = [torch.ops.mkldnn._convolution_pointwise(x, w, None, one, one, one, 1, "none", [], "")]
    for attr in ["relu", "sigmoid", "tanh", "swish", "hardswish", "hardsigmoid"]:
        out.append(torch.ops.mkldnn._convolution_pointwise(x, w, b, one, [2, 1], one, 1, attr, [], ""))
        out.append(torch.ops.mkldnn._linear_pointwise(x, v, None, attr, [], None))
    out.append(torch.ops.mkldnn._convolution_pointwise(x, w, b, one, one, one, 1, "leaky_relu", [0.1], ""))
    out.append(torch.ops.mkldnn._linear_pointwise(x, v, None, "hardtanh", [-0.25, 0.5], ""))
    out.append(torch.ops.mkldnn._convolution_transpose_pointwise(x, t, b, one, [1, 0], [2, 2], one, 1, "gelu", [], "tanh"))
    out.append(torch.ops.mkldnn._convolution_transpose_pointwise(x, t, b, one, [0, 0], one, one, 1, "gelu", [], "none"))
    return out

#> functions(torch.arange(24.0).reshape(1, 2, 3, 4) / 8 - 1, torch.arange(54.0).reshape(3, 2, 3, 3) / 16 - 1.5, torch.tensor([0.5, -0.5, 0.25]), torch.arange(8.0).reshape(2, 4) / 4 - 1, torch.arange(54.0).reshape(2, 3, 3, 3) / 16 - 1.5)
#--- unknown_function
def unknown_function(x: Tensor, w: Tensor):
    return torch.ops.mkldnn._linear_pointwise(x, w, None, "mish", [], "")

#> unknown_function(torch.ones(2, 3), torch.ones(4, 3))
#--- joined
def joined(x: Tensor, w: Tensor, other: Tensor, v: Tensor, u: Tensor):
    out: List[Tensor] = []
    one = [1, 1]
    for attr in ["add", "sub", "mul", "div"]:
        out.append(torch.ops.mkldnn._convolution_pointwise(x, other, w, None, one, one, one, 1, attr, 1.0, None, [], ""))
        out.append(torch.ops.mkldnn._convolution_pointwise(x, other, w, None, one, one, one, 1, attr, None, "relu", [], None))
        out.append(torch.ops.mkldnn._linear_pointwise(x, u, v, None, attr))
    target = other.clone()
    same = torch.ops.mkldnn._convolution_pointwise_(target, x, w, None, one, one, one, 1, "add", None, "relu", [], "")
    return out, target, same

#> joined(torch.arange(12.0).reshape(1, 1, 3, 4) / 8 - 1, torch.arange(18.0).reshape(2, 1, 3, 3) / 16 - 0.5, torch.arange(24.0).reshape(1, 2, 3, 4) / 8 + 0.5, torch.arange(8.0).reshape(2, 4) / 4 - 1, torch.arange(6.0).reshape(1, 1, 3, 2) + 1)
#--- reordered
def reordered(x: Tensor, w: Tensor, v: Tensor):
    conv = torch.ops.mkldnn._reorder_convolution_weight(w, [1, 1], [1, 1], [1, 1], 1, None)
    linear = torch.ops.mkldnn._reorder_linear_weight(v)
    y = torch.ops.mkldnn._convolution_pointwise(x, conv, None, [1, 1], [1, 1], [1, 1], 1, "relu", [], "")
    return y, torch.ops.mkldnn._linear_pointwise(x, linear, None, "none", [], "")

#> reordered(torch.arange(12.0).reshape(1, 1, 3, 4) / 8 - 1, torch.arange(18.0).reshape(2, 1, 3, 3) / 16 - 0.5, torch.arange(8.0).reshape(2, 4) / 4 - 1)
#--- prepacked
def prepacked(x: Tensor, w: Tensor, b: Tensor):
    packed = torch.ops.mkldnn_prepacked.conv2d_prepack(w, b, [1, 1], [1, 1], [1, 1], 1, [1, 1, 3, 4], "relu")
    plain = torch.ops.mkldnn_prepacked.conv2d_prepack(w, None, [2, 1], [1, 1], [1, 1], 1, [1, 1, 3, 4], "none")
    return torch.ops.mkldnn_prepacked.conv2d_run(x, packed), torch.ops.mkldnn_prepacked.conv2d_run(x, plain)

#> prepacked(torch.arange(12.0).reshape(1, 1, 3, 4) / 8 - 1, torch.arange(18.0).reshape(2, 1, 3, 3) / 16 - 0.5, torch.tensor([0.5, -0.5]))
