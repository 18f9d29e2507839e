#--- input_for_self
def f(x):
    return torch.add(input=x, other=x), torch.sum(input=x, dim=0), x.add(other=x)
#> f(torch.ones(2))
#--- divmod_mixed
def f(a: int, b: float):
    return divmod(a, b), divmod(b, a), divmod(a, 2)
#> f(-7, 2.6)
#> f(3, 0.1)
#> f(16777217, 2.0)
#--- dict_of_zip
def f():
    return dict(zip(["q", "w"], [1, 2])), dict(enumerate(["a", "b"]))
#> f()
#--- hasattr_refused
def f(x: Tuple[int, int]):
    return hasattr(x, "a")
#--- getattr_default_refused
def f(x: int):
    return getattr(x, "a", 1)
#--- check_fails
def f(x):
    torch._check(x.numel() > 0)
    torch._check(message="small", cond=x.numel() > 1)
    return x
#> f(torch.ones(2))
#--- check_arguments
def f(x):
    torch._check(True, "a", cond=True)
    return x
#--- check_twice
def f(x):
    torch._check(True, cond=False)
    return x
#--- legacy_tensors
def f():
    return torch.LongTensor([1, 2]), torch.DoubleTensor(), torch.IntTensor([[3]]), torch.BoolTensor([True]), torch.FloatTensor(2, 3).size()
#> f()
#--- unique
def f(x):
    a = torch.unique(x)
    b, inverse = torch.unique(x, return_inverse=True)
    c, counts = torch.unique_consecutive(x, return_counts=True)
    d, e, g = torch.unique(x, True, True, True)
    return a, b, inverse, c, counts, d, e, g
#> f(torch.tensor([2, 1, 1, 2]))
#--- norms
def f(x):
    return torch.norm(x), torch.norm(x, 1), torch.norm(x, p=2, dim=0), torch.norm(x, dim=1, keepdim=True), torch.tensordot(x, x, 1)
#> f(torch.tensor([[3., 4.], [0., 1.]]))
#--- interpolate
def f(x):
    return F.interpolate(x, scale_factor=2.0), F.interpolate(x, size=3), F.interpolate(x[None], size=(3, 2), mode="bilinear", align_corners=True), F.interpolate(x, size=[1], mode="area")
#> f(torch.tensor([[[1., 2.]]]))
#--- pool_indices
def f(x):
    y, where = F.max_pool2d(x, 2, return_indices=True)
    return y, where, F.max_unpool2d(y, where, 2), F.max_pool2d(x, [2, 1])
#> f(torch.arange(4.).view(1, 1, 2, 2))
#--- more_functional
def f(x):
    return F.logsigmoid(x), F.local_response_norm(x[None], 2), F.lp_pool1d(x[None], 2.0, 2), F.unfold(x[None, None], [1, 2]), F.grid_sample(x[None, None], torch.zeros(1, 1, 1, 2), align_corners=True)
#> f(torch.tensor([[0.5, -0.5]]))
#--- init
def f(x):
    y = torch.nn.init.constant_(torch.empty_like(x), 3.0)
    return y, torch.nn.init.zeros_(torch.ones_like(x)), torch.nn.init.ones_(torch.zeros_like(x))
#> f(torch.ones(2))
#--- bfloat16_method
def f(x):
    return x.bfloat16()
#--- view_with_numbers
def f(x):
    return x.view(2, -1), x.view([4]), x.view((1, 4)), x.view(4)
#> f(torch.arange(4))
#--- view_of_text
def f(x):
    return x.view("a")
#--- continue_does_not_refine
def f(xs: List[Optional[int]]):
    total = 0
    for x in xs:
        if x is None:
            continue
        else:
            total += x
    return total
#> f([1, None, 2])
#--- after_break
def f(n: int):
    for i in range(n):
        break
        undefined_name
    return n
#--- dispatch_needs_literals
def f(x, flag: bool):
    return torch.unique(x, return_inverse=flag)
#--- indented

    def f(x: int):
        # indented as a whole
        return x + 1
#> f(1)
#--- tolist_kinds
def f(x) -> List[float]:
    return x.tolist()
#> f(torch.tensor([1.5]))
#> f(torch.tensor([1]))
#--- assert_of_numbers_and_tensors
def f(x: Tensor, n: int):
    torch._assert(x.dim() == n, "dimensions")
    torch._assert(x.sum() > 0, "a sum")
    return x + n
#> f(torch.ones(2), 1)
#> f(torch.ones(2), 2)
#> f(-torch.ones(2), 1)
#--- tensors_by_old_types
def f(x: torch.LongTensor, y: FloatTensor) -> torch.FloatTensor:
    return x + y
#> f(torch.tensor([1, 2]), torch.ones(2))
#--- refusals_of_shapes_and_dtypes
def f(x: Tensor, which: int):
    if which == 0:
        return x[:, torch.tensor([7])]
    if which == 1:
        return x[torch.tensor([0]), torch.tensor([7])]
    if which == 2:
        return x.expand(2, 2)
    if which == 3:
        return x.masked_fill(torch.zeros(2), 1.0)
    if which == 4:
        return x.masked_fill(torch.zeros(4), 1.0)
    if which == 5:
        return torch.nn.functional.linear(x.double(), torch.zeros(3, 4), torch.zeros(3))
    return torch.nn.functional.linear(x.double(), torch.zeros(3, 4))
#> f(torch.ones(3, 4), 0)
#> f(torch.ones(3, 4), 1)
#> f(torch.ones(3, 4), 2)
#> f(torch.ones(3, 4), 3)
#> f(torch.ones(3, 4), 4)
#> f(torch.ones(3, 4), 5)
#> f(torch.ones(3, 4), 6)
#--- constants_of_double_promote
def f(x: Tensor):
    return x * torch.ones([], dtype=torch.float64), x + (torch.ones([2], dtype=torch.float64) * 2)[0]
#> f(torch.arange(3))
#--- pad_sequence
def pad_sequence(a: Tensor, b: Tensor):
    xs = torch.nn.utils.rnn.pad_sequence([a, b], batch_first=True, padding_value=-1.0)
    left = torch.nn.utils.rnn.pad_sequence([a, b], padding_side="left")
    with torch.autograd.no_grad():
        rows = torch.nn.utils.rnn.pad_sequence(xs)
    return xs, left, rows

#> pad_sequence(torch.ones(2, 3), torch.arange(12.0).reshape(4, 3))
#--- no_context_enable_grad
def no_context_enable_grad(a: Tensor):
    with torch.enable_grad():
        b = a + 1
    return b

#> no_context_enable_grad(torch.ones(2))
#--- no_context_inference_mode
def no_context_inference_mode(a: Tensor):
    with torch.inference_mode():
        b = a + 1
    return b

#> no_context_inference_mode(torch.ones(2))
#--- math_of_python_alone
def f(x: float):
    return math.exp2(x)
#--- math_products
def f(x: List[float]):
    return math.prod(x)
#--- cmath_isclose
def f(x: complex):
    return cmath.isclose(x, x)
#--- distance_modes
def distance_modes(a: Tensor, b: Tensor, mode: str):
    return torch.cdist(a, b), torch.cdist(a, b, 1.0, mode), torch.cdist(a, b, compute_mode=mode)

#> distance_modes(torch.arange(6.0).reshape(3, 2), torch.ones(2, 2), 'use_mm_for_euclid_dist')
#> distance_modes(torch.arange(6.0).reshape(3, 2), torch.ones(2, 2), 'donot_use_mm_for_euclid_dist')
#--- bags
def bags(w: Tensor, i: Tensor):
    offsets = torch.tensor([0, 2, 4])
    # PyTorch's compiler drops what max_norm asks for.
    a = F.embedding_bag(i, w, offsets, max_norm=0.5)
    b = F.embedding_bag(i, w, offsets, include_last_offset=True, mode='max')
    c = F.embedding_bag(i.view(2, 2), w, mode='sum', per_sample_weights=torch.ones(2, 2) * 2, include_last_offset=True)
    return a, b, c, w

#> bags(torch.arange(6.0).reshape(3, 2), torch.tensor([0, 2, 1, 2]))
#--- factors
def factors(x: Tensor):
    a, p = torch.lu(x)
    b, q, i = torch.lu(x, get_infos=True)
    return a, p, b, q, i, torch.lu(x, True, True)

#> factors(torch.tensor([[4.0, 3.0], [6.0, 3.0]]))
#> factors(torch.zeros(2, 2))
#--- glorot
def glorot(x: Tensor):
    torch.manual_seed(3)
    a = torch.nn.init.xavier_uniform_(x.clone())
    b = torch.nn.init.xavier_normal_(x.clone(), 2.0)
    return a, b, torch.nn.init.xavier_normal_(torch.ones(2, 3, 2), gain=0.5)

#> glorot(torch.ones(3, 4))
#--- gumbel_of_transposed
def gumbel_of_transposed(x: Tensor):
    torch.manual_seed(5)
    return F.gumbel_softmax(x), F.gumbel_softmax(x.t(), 0.5, True, dim=0)

#> gumbel_of_transposed(torch.arange(12.0).reshape(3, 4) / 5 - 1)
#--- dots_alone
def dots_alone(x: Tensor):
    return x[...]

#> dots_alone(torch.ones(2, 3))
#--- dots_written
def dots_written(x: Tensor):
    x[...] = 3.0
    x[...] += 1.0
    return x, x[..., :], x[..., None]

#> dots_written(torch.ones(2, 3))
#--- packed
def packed(x: Tensor, n: Tensor):
    p = torch.nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True)
    y, lengths = torch.nn.utils.rnn.pad_packed_sequence(p, batch_first=True, padding_value=-1.0)
    return p, p.data, p.batch_sizes, y, lengths

#> packed(torch.arange(24.0).reshape(3, 4, 2), torch.tensor([4, 3, 1]))
#--- packed_in_any_order
def packed_in_any_order(x: Tensor, n: List[int]):
    p = torch.nn.utils.rnn.pack_padded_sequence(x, n, enforce_sorted=False)
    y, lengths = torch.nn.utils.rnn.pad_packed_sequence(p, total_length=6)
    return p, y, lengths

#> packed_in_any_order(torch.arange(24.0).reshape(4, 3, 2), [1, 4, 2])
#--- packed_lists
def packed_lists(xs: List[Tensor], total: int):
    p = torch.nn.utils.rnn.pack_sequence(xs, enforce_sorted=False)
    y, lengths = torch.nn.utils.rnn.pad_packed_sequence(p, True, 0.5, total)
    return y, lengths

#> packed_lists([torch.ones(2), torch.arange(3.0), torch.zeros(1)], 3)
#--- packed_by_hand
def packed_by_hand(x: Tensor):
    p = torch.nn.utils.rnn.PackedSequence(x, torch.tensor([2, 1]), None, None)
    return torch.nn.utils.rnn.pad_packed_sequence(p)

#> packed_by_hand(torch.arange(3.0))
#--- packed_for_lstm
def packed_for_lstm(x: Tensor, n: Tensor, w: List[Tensor]):
    p = torch.nn.utils.rnn.pack_padded_sequence(x, n)
    h = torch.zeros(1, 2, 3)
    y, a, b = torch.lstm(p.data, p.batch_sizes, [h, h], w, True, 1, 0.0, False, False)
    q = torch.nn.utils.rnn.PackedSequence(y, p.batch_sizes, p.sorted_indices, p.unsorted_indices)
    return torch.nn.utils.rnn.pad_packed_sequence(q), a, b

#> packed_for_lstm(torch.arange(12.0).reshape(3, 2, 2) / 7, torch.tensor([3, 2]), [torch.ones(12, 2) / 3, torch.ones(12, 3) / 5, torch.zeros(12), torch.ones(12)])
