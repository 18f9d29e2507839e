#--- attention
def f(q, k, w, b, o):
    return F.multi_head_attention_forward(q, k, k, 4, 2, w, b, None, None, False, 0.0, o, None)
#> f(torch.arange(24.0).view(3, 2, 4) / 9 - 1, torch.arange(16.0).view(2, 2, 4) / 5, torch.arange(48.0).view(12, 4) / 50, torch.ones(12) / 3, torch.eye(4) * 2)
#--- attention_without_weights
def f(q, w, o):
    return F.multi_head_attention_forward(q, q, q, 4, 2, w, None, None, None, True, 0.0, o, None, need_weights=False)[0]
#> f(torch.arange(24.0).view(3, 2, 4) / 9 - 1, torch.arange(48.0).view(12, 4) / 50, torch.eye(4) * 2)
#> f(torch.arange(12.0).view(3, 4) / 9 - 1, torch.arange(48.0).view(12, 4) / 50, torch.eye(4) * 2)
#--- attention_masks
def f(q, w, o, m, p):
    a, s = F.multi_head_attention_forward(q, q, q, 4, 2, w, None, o.view(1, 2, 8)[:, 0:1, 0:4], o.view(1, 2, 8)[:, 0:1, 0:4], False, 0.0, o, None, key_padding_mask=p, attn_mask=m, average_attn_weights=False)
    return a, s
#> f(torch.arange(24.0).view(3, 2, 4) / 9 - 1, torch.arange(48.0).view(12, 4) / 50, torch.eye(4) * 2, torch.ones(3, 3).triu(1).bool(), torch.tensor([[False, False, True], [False, False, False]]))
#--- attention_separate
def f(q, k, o):
    return F.multi_head_attention_forward(q, k, k, 4, 2, None, None, None, None, False, 0.0, o, None, use_separate_proj_weight=True, q_proj_weight=o, k_proj_weight=o * 2, v_proj_weight=o + 1)
#> f(torch.arange(24.0).view(3, 2, 4) / 9 - 1, torch.arange(16.0).view(2, 2, 4) / 5, torch.eye(4) * 2)
#--- interpolate_by_types
def f(x, n: Optional[int], sizes: List[int], factor: float):
    return F.interpolate(x, n), F.interpolate(x, sizes), F.interpolate(x, scale_factor=factor), F.interpolate(x, scale_factor=[factor, 1.0]), F.upsample_bilinear(x, sizes)
#> f(torch.arange(9.0).view(1, 1, 3, 3), 4, [2, 5], 2.0)
#--- interpolate_wrong_type
def f(x):
    return F.interpolate(x, "a")
#--- missing_argument
def f(x):
    return F.relu(), F.leaky_relu(x)
#--- missing_argument_behind_flag
def f(x):
    return F.adaptive_max_pool2d(x)
#--- unpool
def f(x):
    a, i = F.max_pool1d(x, 2, return_indices=True)
    return F.max_unpool1d(a, i, 2), F.max_unpool1d(a, i, 2, output_size=[1, 1, 7])
#> f(torch.tensor([[[1.0, 3.0, 2.0, 5.0, 4.0, 6.0]]]))
#--- unpool_volume
def f(x):
    a, i = F.max_pool3d(x, 2, return_indices=True)
    return F.max_unpool3d(a, i, 2)
#> f(torch.arange(64.0).view(1, 1, 4, 4, 4).sin())
#--- lp_pools
def f(x, y):
    return F.lp_pool1d(x, 2, 2), F.lp_pool1d(x, float("inf"), 2), F.lp_pool2d(y, 3.0, 2, 1), F.lp_pool3d(y.unsqueeze(0), 2, (1, 2, 2))
#> f(torch.arange(8.0).view(1, 2, 4), torch.arange(18.0).view(1, 2, 3, 3))
#--- fractional_pool
def f(x):
    r = torch.full([1, 2, 2], 0.4)
    return F.fractional_max_pool2d(x, 2, output_ratio=[0.5, 0.7], return_indices=True, _random_samples=r), F.fractional_max_pool2d(x, 2, [2, 3], _random_samples=r)
#> f(torch.arange(72.0).view(1, 2, 6, 6).cos())
#--- weighted_losses
def f(x, y, w):
    return F.mse_loss(x, y, weight=w), F.l1_loss(x, y, reduction="sum", weight=w), F.mse_loss(x, y, size_average=False), F.multi_margin_loss(x, torch.tensor([1, 0]))
#> f(torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[2.0, 2.0], [0.0, 1.0]]), torch.tensor([[1.0, 2.0], [0.5, 1.0]]))
#--- padding
def f(x):
    return F.pad(input=x, pad=(1, 0)), F.pad(x, [1, 1], "reflect"), F.pad(x, [0, 1], value=2.5), F.rms_norm(x, [3])
#> f(torch.arange(6.0).view(1, 2, 3))
#--- short_time_fourier
def f(x):
    a = torch.stft(x, 4, return_complex=True)
    return a.abs(), torch.stft(x, 4, 2, center=False, return_complex=True).abs(), torch.istft(torch.stft(x, 4, window=torch.ones(4), return_complex=True), 4, window=torch.ones(4))
#> f(torch.arange(12.0).sin())
#--- nuclear_norm
def f(x):
    return torch.norm(x, "nuc"), torch.norm(x, "nuc", dim=[0, 1])
#> f(torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
#--- type_method
def f(x, t: torch.dtype):
    return x.type(t), x.type(torch.float64), x.type(x.to(torch.int16))
#> f(torch.tensor([1.5, 2.5]), torch.int8)
#--- receiver_is_no_element
def f(x, dim):
    return x.sum(dim)
#--- python_only
def f(x):
    return torch.is_tensor(x)
#--- python_only_far
def f(x):
    return torch.set_num_threads(1)
#--- legacy_keyword
def f():
    return torch.FloatTensor(hello=1)
#--- legacy_floats
def f():
    return torch.IntTensor(1.0, 2)
#--- future_bare
def f():
    return torch.jit.annotate(List[torch.jit.Future], [])
#--- union_without_list
def f():
    x: Union[int, str] = [1]
    return x
#--- union_without_dict
def f():
    x: Union[List[int], str] = {"a": 1}
    return x
#--- dict_for_int
def f():
    x: Optional[int] = dict()
    return x
#--- hex_float
def f():
    return float("0x1.8p3"), float("-0xA.8"), float("0x1p-2")
#> f()
#--- broadcast_mismatch
def f(x):
    return x.t() + x
#> f(torch.ones(3, 4))
#--- tensordot_by_tensor
def f(x, y, dims: Tensor):
    return torch.tensordot(x, y, dims=dims), torch.tensordot(x, x, dims=torch.tensor(1))
#> f(torch.arange(4.0).view(2, 2), torch.arange(4.0).view(2, 2), torch.tensor([[0], [1]]))
#--- subclass_annotations
def f(x: torch.LongTensor, y: torch.nn.Parameter) -> torch.FloatTensor:
    return x + y
#> f(torch.ones(2), torch.ones(2))
#--- print_keyword
def f(x):
    print(x, flush=True)
#--- any_tuple_unpacked
def f(x: Any):
    if isinstance(x, tuple):
        a, b = x
    return 1
#--- operator_in_type
def f(x: Tuple[3 + 4, Tensor]):
    return x
#--- attribute_of_results
def f(x):
    return x.max(dim=1).unknown
#--- tensor_not_in_list
def f(x: List[Tensor]):
    return x.index(torch.tensor(5))
#> f([torch.tensor(4)])
#--- unsortable_tuples
def f(x: List[Any]):
    x.sort()
    return x
#> f([(1, 2), ("a", "b")])
#--- device_of_nonsense
def f(x: torch.device):
    return x
#> f("nonsense")
#> f("no.sense")
#--- transforms_of_real_signals
def f(x):
    r = torch.fft.rfft(x)
    w = torch.fft.fft(x)
    n = x.size(-1)
    back = w.flip(-1).roll(1, -1).conj()
    return r.imag[:, 0], r.imag[:, -1] if n % 2 == 0 else r.imag[:, 0], torch.equal(w, back), torch.angle(r[:, 0])
#> f(torch.linspace(-1, 2, 24).reshape(2, 12).sin())
#> f(torch.linspace(-1, 2, 250).reshape(2, 125).cos())
#> f(torch.linspace(-3, 2, 200, dtype=torch.float64).reshape(2, 100).cos())
#--- signals_of_constant_weights
def weights(outputs: int, inputs: int, taps: int):
    return (torch.arange(outputs * inputs * taps) % 7 - 3).float().reshape(outputs, inputs, taps)

def f(x):
    scale, shift = torch.arange(6).float() + 1, torch.arange(6).float() - 2
    y = torch.nn.functional.pad(x, [2, 0])
    y = torch.relu(torch.conv1d(y, weights(6, 5, 3), shift, [2], [0], [1]))
    z = torch.conv1d(y, weights(6, 1, 5), None, [1], [2], [1], 6)
    z = torch.batch_norm(z, scale, shift, shift, scale, False, 0.1, 0.0, False)
    z = torch.nn.functional.hardtanh(z + y, -4.0, 90.0)
    w = torch.conv1d(z, weights(4, 3, 2), None, [1], [1], [2], 2)
    return y, z.transpose(1, 2), w, w.stride(), torch.max_pool1d(z, [2]), z.mean(2), torch.cat([z, y], 1)
#> f(torch.arange(55).reshape(1, 5, 11).float() % 5 - 2)
#> f(torch.arange(80).reshape(2, 5, 8).float() % 5 - 2)
#> f(torch.arange(66).reshape(2, 11, 3)[:, :5].float() % 5 - 2)
#> f(torch.arange(40).reshape(1, 8, 5).transpose(1, 2).float() % 5 - 2)
#> f(torch.zeros([0, 5, 8]))
#> f(torch.zeros([5, 8]))
#> f(torch.zeros([1, 4, 8]))
#--- one_signal_of_constant_weights
def f(x):
    y = torch.conv1d(x, torch.tensor([[[1.0, -2.0, 3.0]], [[0.5, 0.0, -1.0]]]), torch.tensor([1.0, 2.0]), [1], [1], [1])
    return torch.conv1d(torch.sigmoid(torch.round(y)) > 0.5, torch.ones([1, 2, 1])) if y.sum() > 1e6 else y, torch.relu(y).sum(1)
#> f(torch.arange(9).reshape(1, 1, 9).float() % 4)
#> f(torch.arange(9).reshape(3, 1, 3).float() % 4)
#--- batch_norm_of_wrong_sizes
def f(training: bool, mean: int, variance: int, weight: int):
    one = torch.ones([4])
    return torch.batch_norm(torch.zeros([2, 4, 3]), torch.ones([weight]), one, torch.ones([mean]), torch.ones([variance]), training, 0.1, 1e-5, False)
#> f(True, 6, 4, 5)
#> f(False, 6, 4, 5)
#> f(True, 4, 6, 5)
#> f(False, 4, 4, 5)
