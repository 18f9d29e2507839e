def quantized_gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor, packed_hh: Tensor, col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: number, scale_hh: number, zero_point_ih: number, zero_point_hh: number) -> Tensor:
    x = torch.fbgemm_linear_int8_weight_fp32_activation(input, w_ih, packed_ih, col_offsets_ih, scale_ih, zero_point_ih, b_ih)
    h = torch.fbgemm_linear_int8_weight_fp32_activation(hx, w_hh, packed_hh, col_offsets_hh, scale_hh, zero_point_hh, b_hh)
    xr, xz, xn = x.chunk(3, 1)
    hr, hz, hn = h.chunk(3, 1)
    n = torch.tanh(xn + torch.sigmoid(hr + xr) * hn)
    return (hx - n) * torch.sigmoid(hz + xz) + n
