#--- layer_norm_backward
def f(masked: bool):
    x = torch.arange(12, dtype=torch.float32).view(2, 2, 3).sin()
    g = torch.arange(12, dtype=torch.float32).view(2, 2, 3).cos()
    w = torch.tensor([0.5, 2.0, -1.0])
    b = torch.tensor([0.0, 1.0, 2.0])
    y, mean, rstd = torch.native_layer_norm(x, [3], w, b, 1e-5)
    mask = [True, True, True]
    if masked:
        mask = [True, False, False]
    return torch.ops.aten.native_layer_norm_backward(g, x, [3], mean, rstd, w, b, mask)
#> f(False)
#--- group_norm_backward
def f(groups: int, weighted: bool):
    x = torch.arange(48, dtype=torch.float32).view(2, 4, 3, 2).sin()
    g = torch.arange(48, dtype=torch.float32).view(2, 4, 3, 2).cos()
    w: Optional[Tensor] = None
    if weighted:
        w = torch.tensor([0.5, 2.0, -1.0, 3.0])
    y, mean, rstd = torch.native_group_norm(x, w, None, 2, 4, 6, groups, 1e-5)
    return torch.ops.aten.native_group_norm_backward(g, x, mean, rstd, w, 2, 4, 6, groups, [True, True, True])
#> f(2, True)
#> f(4, False)
#> f(1, True)
#--- convolution_backward
def f(stride: int, padding: int, dilation: int, groups: int, transposed: bool):
    x = torch.arange(2 * 4 * 9, dtype=torch.float64).view(2, 4, 9).sin()
    if transposed:
        w = torch.arange(4 * 2 * 3, dtype=torch.float64).view(4, 2, 3).cos()
    else:
        w = torch.arange(6 * (4 // groups) * 3, dtype=torch.float64).view(6, 4 // groups, 3).cos()
    y = torch.convolution(x, w, None, [stride], [padding], [dilation], transposed, [0], groups)
    g = (y * 3.0).cos()
    return torch.ops.aten.convolution_backward(g, x, w, [y.size(1)], [stride], [padding], [dilation], transposed, [0], groups, [True, True, True])
#> f(1, 0, 1, 1, False)
#> f(2, 1, 1, 2, False)
#> f(3, 2, 2, 1, False)
#> f(2, 1, 1, 2, True)
#> f(1, 1, 2, 1, True)
#--- convolution_backward_of_images
def f(mask: List[bool]):
    x = torch.arange(1 * 2 * 5 * 4, dtype=torch.float64).view(1, 2, 5, 4).sin()
    w = torch.arange(3 * 2 * 3 * 2, dtype=torch.float64).view(3, 2, 3, 2).cos()
    y = torch.convolution(x, w, None, [2, 1], [1, 1], [1, 2], False, [0, 0], 1)
    return torch.ops.aten.convolution_backward(y.cos(), x, w, [3], [2, 1], [1, 1], [1, 2], False, [0, 0], 1, mask)
#> f([True, True, True])
#--- average_pool_backward
def f(kernel: List[int], stride: List[int], padding: List[int], ceil: bool, counted: bool, divisor: Optional[int]):
    x = torch.arange(2 * 7 * 6, dtype=torch.float64).view(1, 2, 7, 6).sin()
    y = torch.ops.aten.avg_pool2d(x, kernel, stride, padding, ceil, counted, divisor)
    return torch.ops.aten.avg_pool2d_backward(y.cos(), x, kernel, stride, padding, ceil, counted, divisor)
#> f([2, 2], [2, 2], [0, 0], False, True, None)
#> f([3, 2], [2, 2], [1, 1], True, True, None)
#> f([3, 3], [2, 3], [1, 1], True, False, None)
#> f([3, 3], [1, 2], [0, 1], False, False, 5)
#> f([2, 3], [], [0, 0], False, True, None)
#--- adaptive_average_pool_backward
def f(rows: int, columns: int):
    x = torch.arange(2 * 7 * 6, dtype=torch.float64).view(1, 2, 7, 6).sin()
    y = torch.ops.aten._adaptive_avg_pool2d(x, [rows, columns])
    return torch.ops.aten._adaptive_avg_pool2d_backward(y.cos(), x)
#> f(3, 2)
#> f(1, 1)
#> f(5, 6)
#--- fourier_transforms_beneath_torch.fft
def f(norm: int):
    x = torch.arange(24, dtype=torch.float64).view(2, 3, 4).sin()
    a = torch.ops.aten._fft_r2c(x, [1, 2], norm, True)
    b = torch.ops.aten._fft_r2c(x, [2], norm, False)
    c = torch.ops.aten._fft_c2c(b, [0, 1], norm, True)
    d = torch.ops.aten._fft_c2c(b, [1], norm, False)
    e = torch.ops.aten._fft_c2r(a, [1, 2], norm, 4)
    return torch.view_as_real(a), torch.view_as_real(b), torch.view_as_real(c), torch.view_as_real(d), e
#> f(0)
#> f(1)
#> f(2)
#--- random_numbers_into_a_tensor
def f(seed: int):
    torch.manual_seed(seed)
    a = torch.zeros([0])
    torch.rand([3], out=a)
    b = torch.zeros([2, 2])
    torch.randn([2, 2], out=b)
    c = torch.zeros([2], dtype=torch.int64)
    torch.randint(10, [2], out=c)
    d = torch.zeros([4], dtype=torch.int64)
    torch.randint(-5, 5, [4], out=d)
    e = torch.zeros([3])
    torch.bernoulli(torch.full([3], 0.5), out=e)
    g = torch.zeros([2], dtype=torch.int64)
    torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 2, out=g)
    h = torch.zeros([3])
    torch.normal(1.0, 2.0, [3], out=h)
    return a, b, c, d, e, g, h
#> f(3)
#--- refused_arguments
def f(which: int):
    if which == 1:
        return torch.cov(torch.ones([5]), fweights=torch.ones([5]))
    if which == 2:
        return torch.complex(torch.ones([2], dtype=torch.float64), torch.ones([2], dtype=torch.float64), out=torch.zeros([2], dtype=torch.complex64))
    if which == 3:
        return torch.ops.aten.conv2d(torch.ones([1, 1, 4, 3]), torch.ones([1, 2, 2]), None, [1, 1], "same")
    if which == 4:
        return torch.multinomial(torch.tensor([0.5, -1.0]), 2, True)
    if which == 5:
        return torch.ops.aten.linalg_vector_norm(torch.ones([2]), 1j)
    if which == 6:
        return torch.ops.aten.ormqr(torch.ones([2, 2]), torch.ones([1]), torch.ones([2, 2]))
    if which == 7:
        return torch.ops.aten.multi_margin_loss(torch.ones([5, 4]), torch.ones([5]))
    return torch.ops.aten.max_unpool3d(torch.ones([1, 1, 2, 2, 2]), torch.zeros([1, 1, 2, 2, 2], dtype=torch.int64), [4, 4, 4], [0, 0, 0], [0, 0, 0])
#> f(1)
#> f(2)
#> f(3)
#> f(4)
#> f(5)
#> f(6)
#> f(7)
#> f(8)
#--- dropout_between_layers
def f(kind: int, dropout: float, bidirectional: bool):
    torch.manual_seed(5)
    d = 1
    if bidirectional:
        d = 2
    gates = [4, 3, 1][kind] * 3
    params: List[Tensor] = []
    for layer in range(2):
        for direction in range(d):
            width = 2
            if layer > 0:
                width = 3 * d
            params.append(torch.arange(gates * width, dtype=torch.float32).view(gates, width).sin())
            params.append(torch.arange(gates * 3, dtype=torch.float32).view(gates, 3).cos())
    x = torch.arange(3 * 2 * 2, dtype=torch.float32).view(3, 2, 2).sin()
    h = torch.zeros([2 * d, 2, 3])
    if kind == 0:
        y, a, b = torch.lstm(x, [h, h], params, False, 2, dropout, True, bidirectional, False)
        return y, a
    if kind == 1:
        y, a = torch.gru(x, h, params, False, 2, dropout, True, bidirectional, True)
        return y, a
    y, a = torch.rnn_tanh(x, h, params, False, 2, dropout, True, bidirectional, False)
    return y, a
#> f(0, 0.5, False)
#> f(0, 0.3, True)
#> f(2, 0.5, False)
#> f(2, 0.25, True)
#--- rrelu_in_training
def f(training: bool, lower: float):
    torch.manual_seed(5)
    x = torch.arange(-6, 6, dtype=torch.float32).view(3, 4) / 3.0
    y = torch.rrelu(x, lower, 0.5, training)
    z = x.double()
    torch.rrelu_(z, lower, 0.5, training)
    return y, z, torch.rand([2])
#> f(True, 0.1)
#> f(False, 0.1)
#> f(True, 0.6)
#--- refused_base
def f(x: Tensor):
    return x.float_power_(2.0)
#> f(torch.ones(2))
#> f(torch.ones(2, dtype=torch.float64))
#--- booleans_as_a_whole
def f(x):
    return torch.ops.aten._is_all_true(x > 0), torch.ops.aten._is_any_true(x > 1), torch.ops.aten._is_all_true(x[0:0] > 0)
#> f(torch.tensor([1.0, 2.0, -1.0]))
#> f(torch.tensor([1.0, 0.5]))
#--- bags_without_a_backward
def f(w, at, offsets):
    return torch.ops.aten._embedding_bag_forward_only(w, at, offsets, False, 1)[0]
#> f(torch.arange(12.).reshape(4, 3), torch.tensor([0, 2, 3, 1]), torch.tensor([0, 3]))
#--- attention_without_keys
def f(q, k):
    return torch.nn.functional.scaled_dot_product_attention(q, k, k)
#> f(torch.arange(24.).reshape(1, 2, 3, 4), torch.zeros(1, 2, 0, 4))
#--- several_results_written
def several_results_written(a: Tensor):
    e = torch.empty([0])
    i = torch.empty([0], dtype=torch.int32)
    c = torch.empty([0], dtype=torch.complex64)
    qr = torch.ops.aten.linalg_qr(a, "reduced", Q=e.clone(), R=e.clone())
    lu = torch.ops.aten.linalg_lu_factor_ex(a, LU=e.clone(), pivots=i.clone(), info=i.clone())
    unpacked = torch.lu_unpack(lu[0], lu[1], P=e.clone(), L=e.clone(), U=e.clone())
    sym = a + a.t()
    eigh = torch.ops.aten.linalg_eigh(sym, "L", eigvals=e.clone(), eigvecs=e.clone())
    svd = torch.ops.aten.linalg_svd(a, False, U=e.clone(), S=e.clone(), Vh=e.clone())
    inverse, info = torch.ops.aten.linalg_inv_ex(a, inverse=e.clone(), info=i.clone())
    solved = torch.ops.aten.linalg_solve_ex(a, a, result=e.clone(), info=i.clone())
    logs = torch.ops.aten.linalg_slogdet(a, sign=e.clone(), logabsdet=e.clone())
    counted = torch.histogram(a, 4, hist=e.clone(), bin_edges=e.clone())
    x, m = torch.triangular_solve(a, a, X=e.clone(), M=e.clone())
    values, vectors = torch.ops.aten.linalg_eig(sym, eigenvalues=c.clone(), eigenvectors=c.clone())
    l, failed = torch.ops.aten.linalg_cholesky_ex(a @ a.t(), L=e.clone(), info=i.clone())
    shown = qr[0].abs(), qr[1].abs(), lu, unpacked, eigh[0], svd[1], inverse, info, solved, logs, counted, x, m
    return shown, values.real.sort(), l, failed

#> several_results_written(torch.tensor([[4.0, 1.0, 2.0], [0.5, 3.0, -1.0], [1.5, -2.0, 5.0]]))
#--- results_of_another_dtype
def results_of_another_dtype(a: Tensor):
    return torch.ops.aten.linalg_qr(a, "reduced", Q=torch.empty([0], dtype=torch.float64), R=torch.empty([0]))

#> results_of_another_dtype(torch.tensor([[4.0, 1.0], [0.5, 3.0]]))
#--- odd_sums_of_products
def odd_sums_of_products(b: Tensor, x: Tensor, w: Tensor):
    return torch.addmm(b, x, w)

#> odd_sums_of_products(torch.ones(2), torch.ones(1, 2), torch.ones(2, 1))
#> odd_sums_of_products(torch.ones(3, 2, 2), torch.ones(2, 3), torch.ones(3, 2))
#> odd_sums_of_products(torch.tensor([1, 2]), torch.ones(2, 3), torch.ones(3, 2))
#--- complex_corners
def complex_corners(x: Tensor, z: Tensor):
    inf = float("inf")
    n = torch.nan_to_num(torch.complex(torch.tensor([inf, 1.0, float("nan")]), torch.tensor([inf, -inf, 2.0])))
    log = torch.logaddexp(torch.complex(torch.tensor([-inf]), torch.tensor([0.0])), torch.complex(torch.tensor([-inf]), torch.tensor([0.0])))
    s = torch.linalg.svdvals(z.expand([3, 3]))
    return n, log, torch.logcumsumexp(z, 1), s[0], torch.linalg.matrix_rank(z.expand([3, 3])), torch.renorm(x, 2.0, 0, 0.5)

#> complex_corners(torch.full([1, 2], 60000.0, dtype=torch.float16), torch.complex(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[0.5, -1.0, 2.0]])))
#--- lists_of_complex
def lists_of_complex(x: complex):
    return torch.tensor([x, x])

#> lists_of_complex(1j)
#--- refused_complex
def refused_complex(x: Tensor):
    return torch.relu(x)

#> refused_complex(torch.complex(torch.ones(2), torch.ones(2)))
#> refused_complex(torch.tensor([True]))
#--- of_nothing
def of_nothing(n: int):
    a = torch.linalg.cond(torch.zeros([0, 0])), torch.linalg.cond(torch.zeros([3, 0, 0]), "fro")
    return a, torch.fft.rfftfreq(-2), torch.fft.fftfreq(0), torch.fft.fftfreq(n)

#> of_nothing(3)
#> of_nothing(-2)
#--- whole_frequencies
def whole_frequencies():
    return torch.fft.fftfreq(5, dtype=torch.int64)

#> whole_frequencies()
#--- einsum_in_memory
def sized(sizes: List[int]):
    n = 1
    for size in sizes:
        n *= size
    return torch.arange(n, dtype=torch.float32).view(sizes)

def f(equation: str, a: List[int], b: List[int], c: Optional[List[int]] = None):
    operands = [sized(a), sized(b)]
    if c is not None:
        operands.append(sized(c))
    result = torch.einsum(equation, operands)
    return result.stride(), result

#> f("ij,jk->ki", [2, 3], [3, 4])
#> f("bijk,bkl->bjil", [2, 3, 4, 5], [2, 5, 3])
#> f("bildsk,biokl->bolsd", [1, 3, 4, 5, 1, 3], [1, 3, 2, 3, 4])
#> f("cdab,dcbe->daec", [4, 4, 2, 3], [4, 4, 3, 1])
#> f("i,j->ji", [3], [4])
#> f("ai,bia->iba", [1, 3], [2, 3, 1])
#> f("ab,bc->ca", [2, 1], [1, 3])
#> f("aeb,cbd->eadc", [3, 3, 2], [1, 2, 2])
#> f("bac,ca,cba->cba", [3, 3, 4], [4, 3], [4, 3, 3])
#> f("...i,...i->...", [2, 1, 3], [4, 3])
#--- products_of_countless_batches
def f(depth: int, dtype: int):
    a = torch.ones([1, 1, 4], dtype=dtype).expand(1099511627776, 1, 1, 4)
    b = torch.ones([depth, 2], dtype=dtype).expand(1099511627776, depth, 2)
    return torch.matmul(a, b)

#> f(4, 6)
#> f(5, 4)
#--- combinations_of_more_than_there_are
def f(x: Tensor, r: int, repeat: bool):
    return torch.combinations(x, r, repeat)

#> f(torch.ones(3), 4, False)
#> f(torch.ones(0), 2, True)
#> f(torch.ones(0), 2, False)
#> f(torch.ones(2), 3, True)
#--- smallest_integers_have_no_magnitude
def f():
    x = torch.tensor([-128, 127, -128, 0, 6], dtype=torch.int8)
    y = torch.tensor([127, -128, -128, -128, -128], dtype=torch.int8)
    return torch.gcd(x, y), torch.lcm(x, y), torch.gcd(x.to(torch.int16), y.to(torch.int16))
#> f()
#--- doubles_become_bytes_by_64_bits
def f(x: Tensor):
    return x.to(torch.uint8), x.to(torch.int8), (x * 1.0).to(torch.uint8), x.float().to(torch.uint8)
#> f(torch.tensor([-2147483649.0, 4294967295.0, 4294967297.0, -1.5, 255.5], dtype=torch.float64))
#--- nan_to_num_keeps_integers
def f(x: Tensor):
    return torch.nan_to_num(x, None, 1e30), torch.nan_to_num(x, 2.5).to(torch.float32)
#> f(torch.tensor([1, 2], dtype=torch.int8))
#--- truth_of_eight_bit_floats
def f(x: Tensor):
    y = x.to(torch.float8_e5m2)
    return y.all(), y.any(), y.reshape(2, 3).all(1)
#> f(torch.tensor([1.0, 2.0, 3.0, 4.0, 0.5, 0.25]))
#--- initializers_without_gradients
def f():
    torch.manual_seed(0)
    a = torch.ops.aten._no_grad_uniform_(torch.zeros([5, 4]), -0.5, 0.5)
    return a, torch.ops.aten._no_grad_normal_(torch.zeros([3]), 1.0, 2.0)
#> f()
#--- products_round_at_each_step
def f(x: Tensor):
    h = x.half()
    return torch.prod(h), torch.prod(h, 0), torch.prod(x.double() * 1e300, 0), torch.prod(x * 1e30, 0), torch.prod(h.reshape(1, 3), 1)
#> f(torch.tensor([1.068, 65504.0, 0.1177]))
