#--- padding
def f(x, keep):
    aligned = torch._nested_tensor_from_mask_left_aligned(x, keep)
    y = torch._nested_tensor_from_mask(x, keep, False)
    return aligned, y.is_nested, x.is_nested, y.dim(), y.to_padded_tensor(-1.), y.to_padded_tensor(0., [2, 4, 4])
#> f(torch.arange(24.).reshape(2, 4, 3), torch.tensor([[True, True, True, False], [True, False, False, False]]))
#> f(torch.arange(24.).reshape(2, 4, 3), torch.tensor([[False, True, True, False], [True, False, False, False]]))
#> f(torch.arange(24.).reshape(2, 4, 3), torch.zeros(2, 4))
#> f(torch.arange(24.).reshape(2, 4, 3), torch.zeros(2, 4, dtype=torch.bool))
#> f(torch.arange(24.).reshape(2, 4, 3), torch.zeros(2, 3, dtype=torch.bool))
#--- refused
def f(x, keep):
    return torch._nested_tensor_from_mask(x, keep)
#> f(torch.arange(24.).reshape(2, 4, 3), torch.tensor([[False, True, True, False], [True, False, False, False]]))
#--- encoder_layer
def layer(x, w, gelu: bool, first: bool):
    return torch._transformer_encoder_layer_fwd(x, 4, 2, w[:12], w[:12, 0].contiguous(), w[:4], w[:4, 1].contiguous(), gelu, first, 1e-5, w[4, :], w[5, :], w[6, :], w[7, :], w[2:10], w[2:10, 2].contiguous(), w[:8].t().contiguous(), w[:4, 3].contiguous())

def f(x, keep, w, gelu: bool, first: bool):
    y = torch._nested_tensor_from_mask(x, keep)
    y = layer(layer(y, w, gelu, first), w, gelu, first)
    return y.to_padded_tensor(0., x.size())
#> f((torch.arange(24.).reshape(2, 3, 4) * 7 % 5) / 5, torch.tensor([[True, True, False], [True, True, True]]), (torch.arange(48.).reshape(12, 4) * 5 % 7 - 3) / 4, False, False)
#> f((torch.arange(24.).reshape(2, 3, 4) * 7 % 5) / 5, torch.tensor([[True, False, False], [False, False, False]]), (torch.arange(48.).reshape(12, 4) * 5 % 7 - 3) / 4, True, True)
