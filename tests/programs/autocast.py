#--- of_all_kinds
def of_all_kinds(x: Tensor, w: Tensor):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.mm(x, w)
        z = y.softmax(0)
        k = torch.mm(y, w) + x
        s = y.sum()
        t = y.sum(dtype=torch.bfloat16)
        e = y.exp()
        c = torch.cat([y, x])
        r = y.relu()
    return y, z, k, s, t, e, c, r, torch.mm(x, w)

#> of_all_kinds(torch.tensor([[1.0, 2.0], [3.0, 4.5]]), torch.tensor([[0.5, -1.0], [0.25, 1.01]]))
#> of_all_kinds(torch.tensor([[1.0, 2.0], [3.0, 4.5]]).half(), torch.tensor([[0.5, -1.0], [0.25, 1.01]]).half())
#> of_all_kinds(torch.tensor([[1.0, 2.0], [3.0, 4.5]]).double(), torch.tensor([[0.5, -1.0], [0.25, 1.01]]).double())
#--- half
def half(x: Tensor):
    with torch.amp.autocast("cpu", torch.float16):
        y = torch.matmul(x, x)
    return y

#> half(torch.tensor([[1.0, 2.001], [3.0, 4.5]]))
#--- nested
def nested(x: Tensor):
    with torch.autocast("cpu"):
        with torch.autocast("cpu", enabled=False):
            a = torch.mm(x, x)
        with torch.autocast("cuda"):
            b = torch.mm(x, x)
        with torch.autocast("cpu", dtype=torch.float16):
            c = torch.mm(x, x)
        d = torch.mm(x, x)
    return a, b, c, d

#> nested(torch.tensor([[1.0, 2.001], [3.0, 4.5]]))
#--- cuda_on_cpu
def cuda_on_cpu(x: Tensor):
    with torch.cuda.amp.autocast():
        y = torch.mm(x, x)
        h = y.to(torch.bfloat16).exp()
    return y, h

#> cuda_on_cpu(torch.tensor([[1.0, 2.001], [3.0, 4.5]]))
#--- cpu_form
def cpu_form(x: Tensor):
    with torch.cpu.amp.autocast():
        y = torch.mm(x, x)
    return y

#> cpu_form(torch.tensor([[1.0, 2.001], [3.0, 4.5]]))
#--- calls_are_part
def product(x: Tensor, w: Tensor):
    return torch.mm(x, w)

def calls_are_part(x: Tensor, b: bool):
    outside = product(x, x)
    with torch.autocast("cpu"):
        if b:
            y = product(x, x)
        else:
            y = torch.mm(x, x.t())
        for i in range(2):
            y = product(y, x)
    return outside, y, product(y.float(), x)

#> calls_are_part(torch.tensor([[1.0, 2.001], [3.0, 4.5]]), True)
#> calls_are_part(torch.tensor([[1.0, 2.001], [3.0, 4.5]]), False)
#--- forks_are_not_part
def forks_are_not_part(x: Tensor):
    with torch.autocast("cpu"):
        y = torch.jit.wait(torch.jit.fork(product, x, x))
    return y

def product(x: Tensor, w: Tensor):
    return torch.mm(x, w)

#> forks_are_not_part(torch.tensor([[1.0, 2.001], [3.0, 4.5]]))
#--- one_object_twice
def one_object_twice(x: Tensor):
    context = torch.autocast("cpu")
    with context:
        y = torch.mm(x, x)
    a = torch.mm(x, x)
    with context:
        z = torch.mm(x, x)
    return y, a, z

#> one_object_twice(torch.tensor([[1.0, 2.001], [3.0, 4.5]]))
#--- early_return
def early_return(x: Tensor):
    with torch.autocast("cpu"):
        if bool(x.sum() > 0):
            return torch.mm(x, x)
    return x

#> early_return(torch.tensor([[1.0, 2.001], [3.0, 4.5]]))
#> early_return(torch.tensor([[-1.0, 2.001], [-3.0, -4.5]]))
#--- writes_stay
def writes_stay(x: Tensor):
    with torch.autocast("cpu"):
        y = torch.mm(x, x)
        y.exp_()
        z = torch.zeros(2, 2)
        z.add_(y)
    return y, z

#> writes_stay(torch.tensor([[0.5, 1.001], [0.25, -1.0]]))
#--- dtype_that_is_not_known
def dtype_that_is_not_known(x: Tensor, dtype: int):
    with torch.autocast("cpu", dtype):
        y = torch.mm(x, x)
    return y

#> dtype_that_is_not_known(torch.tensor([[1.0, 2.001], [3.0, 4.5]]), 5)
#--- flag_that_is_not_known
def flag_that_is_not_known(x: Tensor, on: bool):
    with torch.autocast("cpu", enabled=on):
        y = torch.mm(x, x)
    return y

#> flag_that_is_not_known(torch.tensor([[1.0, 2.001], [3.0, 4.5]]), True)
#--- device_that_is_not_known
def device_that_is_not_known(x: Tensor):
    with torch.autocast(x.device.type):
        y = torch.mm(x, x)
    return y

#> device_that_is_not_known(torch.tensor([[1.0, 2.001], [3.0, 4.5]]))
#--- with_a_name
def with_a_name(x: Tensor):
    with torch.autocast("cpu") as context:
        y = torch.mm(x, x)
        on = context._enabled
    return y, on

#> with_a_name(torch.tensor([[1.0, 2.001], [3.0, 4.5]]))
#--- either_of_two
def either_of_two(x: Tensor, b: bool):
    on, off = torch.autocast("cpu"), torch.autocast("cpu", enabled=False)
    context = off
    if b:
        context = on
    with context:
        y = torch.mm(x, x)
    return y

#> either_of_two(torch.tensor([[1.0, 2.001], [3.0, 4.5]]), True)
#--- unsafe
def unsafe(x: Tensor):
    with torch.autocast("cpu"):
        y = torch.nn.functional.binary_cross_entropy(x, x)
    return y

#> unsafe(torch.tensor([[0.5, 0.25], [0.75, 1.0]]))
#--- dtypes_of_devices
def dtypes_of_devices():
    return [torch.get_autocast_dtype(device) for device in ["cpu", "cuda", "xpu", "mps", "hpu", "meta", "cuda:1"]]

def no_device():
    return torch.get_autocast_dtype("tpu")

#> dtypes_of_devices()
#> no_device()
#--- casts_themselves
def casts_themselves(x: Tensor):
    y = torch.ops.aten._autocast_to_reduced_precision(x, False, True, torch.float16, torch.bfloat16)
    z = torch.ops.aten._autocast_to_reduced_precision(x, True, False, torch.float16, torch.bfloat16)
    return y, z, torch.ops.aten._autocast_to_full_precision(x, False, True), torch.ops.aten._autocast_to_full_precision(x, True, False)

#> casts_themselves(torch.tensor([1.0, 2.001]))
#> casts_themselves(torch.tensor([1.0, 2.001]).half())
#> casts_themselves(torch.tensor([1.0, 2.001]).double())
#> casts_themselves(torch.tensor([1, 2]))
#--- gradients
def gradients(x: Tensor, w: Tensor):
    x.requires_grad_()
    with torch.autocast("cpu"):
        y = torch.mm(x, w).exp()
        z = torch.nn.functional.linear(y, w)
    loss = z.float().sum()
    return torch.autograd.grad([loss], [x]), z

#> gradients(torch.tensor([[0.5, 1.001], [0.25, -1.0]]), torch.tensor([[0.3, 0.1], [0.7, 1.01]]))
