#--- defaults
def g(a: int, b: int = 2, c: str = "x", d: float = 1.5, e: bool = True, h: Optional[int] = None, i: List[int] = [1, 2], j: Tuple[int, str] = (1, "t")):
    return a, b, c, d, e, h, i, j

def f(a: int):
    return g(a), g(a, 3), g(a, c="y"), g(a, h=5, e=False), g(b=1, a=2)
#> f(1)
#> g(1)
#> g(1, 2, "z")
#--- negative_default
def g(a: int = -1, b: float = -0.5):
    return a, b
#> g()
#> g(3)
#--- keyword_only
def g(a: int, *, b: int, c: int = 3):
    return a, b, c

def f():
    return g(1, b=2), g(1, c=5, b=4)
#> f()
#--- keyword_only_missing
def g(a: int, *, b: int):
    return a, b

def f():
    return g(1, 2)
#--- recursion
def f(n: int) -> int:
    return f(n - 1)
#--- unknown_argument
def g(a: int):
    return a

def f():
    return g(a=1, q=2)
#--- missing_argument
def g(a: int, b: int):
    return a

def f():
    return g(1)
#--- too_many_arguments
def g(a: int):
    return a

def f():
    return g(1, 2)
#--- twice_given
def g(a: int):
    return a

def f():
    return g(1, a=2)
#--- undefined_function
def f():
    return missing(1)
#--- order_of_definition
def f(x: int):
    return later(x) + 1

def later(x: int):
    return x * 2
#> f(3)
#--- call_chain_error
def a(x: int):
    return b(x)

def b(x: int):
    return c(x)

def c(x: int):
    return x.nothing
#--- runtime_call_chain
def a(x: int):
    return b(x) + 1

def b(x: int):
    y = c(x)
    return y

def c(x: int):
    if x > 2:
        raise ValueError("too big: " + str(x))
    return x
#> a(1)
#> a(3)
#--- tensor_defaults_unannotated
def f(x, y=2.0):
    return x
#--- type_comment
def f(a, b):
    # type: (int, List[str]) -> Tuple[int, str]
    return a, b[0]
#> f(1, ["z"])
#--- returns_function_result
def pair(x: int) -> Tuple[int, int]:
    return x, x + 1

def f(x: int):
    a, b = pair(x)
    return pair(b)[1] + a
#> f(3)
#--- void_call
def say(x: int) -> None:
    print("x is", x)

def f(x: int):
    say(x)
    r = say(x + 1)
    return r
#> f(1)
#--- shadow_builtin
def f(len: int, str: int):
    return len + str
#> f(1, 2)
#--- shadow_function
def g(x: int):
    return x

def f(g: int):
    return g + 1
#> f(1)
#--- many_results
def many(x: int):
    return x, str(x), [x], {"k": x}, None, 1.5

def f(x: int):
    a, b, c, d, e, g = many(x)
    return g, e, d, c, b, a
#> f(4)
#--- varargs_refused
def f(*args):
    return args
#--- kwargs_refused
def f(**kw):
    return kw
#--- lambda_refused
def f(x: int):
    g = lambda y: y
    return g(x)
#--- nested_def_refused
def f(x: int):
    def g(y: int):
        return y
    return g(x)
#--- try_refused
def f(x: int):
    try:
        return x
    except:
        return 0
#--- import_refused
def f(x: int):
    import math
    return x
#--- walrus_refused
def f(x: int):
    if (y := x) > 1:
        return y
    return 0
#--- class_refused
def f(x: int):
    class A:
        pass
    return x
#--- annotation_mismatch
def f(x: int):
    y: str = x
    return y
#--- return_mismatch
def f(x: int) -> str:
    return x
#--- bad_annotation
def f(x: Foo):
    return x
#--- bad_annotation_arity
def f(x: List[int, str]):
    return x
#--- optional_bare
def f(x: Optional):
    return x
#--- list_bare
def f(x: List):
    return x
#--- dict_arity
def f(x: Dict[int]):
    return x
#--- callable_annotation
def f(x: Callable[[int], int]):
    return x
#--- string_annotation
def f(x: "int", y: "List[str]") -> "int":
    return x + len(y)
#> f(1, ["a"])
#--- torch_annotations
def f(x: torch.Tensor, d: torch.device, t: torch.dtype) -> torch.Tensor:
    return torch.zeros([2], dtype=t, device=d) + x
#> f(torch.ones(2), torch.device("cpu"), torch.float64)
#--- tuple_annotation_empty
def f() -> Tuple[()]:
    return ()
#> f()
#--- broadcasting_list
def f(x: BroadcastingList2[int]):
    return x[0] + x[1]
#> f([1, 2])
#> f(3)
#--- int_for_float_argument
def f(x: float):
    return x
#> f(1)
#--- wrong_argument_type
def f(x: int):
    return x
#> f("a")
#--- wrong_argument_count
def f(x: int):
    return x
#> f(1, 2)
#> f()
#--- fork_and_wait
def work(x, n: int):
    for i in range(n):
        x = x + i
    return x

def f(x):
    a = torch.jit.fork(work, x, 3)
    b = torch.jit.fork(work, x, n=4)
    return torch.jit.wait(a) + b.wait()
#> f(torch.ones(2))
#--- fork_raises
def work(n: int):
    if n > 2:
        raise ValueError("no")
    return n

def f(n: int):
    a = torch.jit.fork(work, n)
    return torch.jit.wait(a)
#> f(1)
#--- futures_in_list
def work(n: int):
    return n * n

def f(n: int):
    futures: List[Future[int]] = []
    for i in range(n):
        futures.append(torch.jit.fork(work, i))
    total = 0
    for future in futures:
        total += torch.jit.wait(future)
    return total
#> f(4)
#--- no_grad
def f(x):
    with torch.no_grad():
        y = x * 2
    return y, y.requires_grad
#> f(torch.ones(2))
#--- no_grad_return
def g(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x * 2
    return x

def f(x):
    y = g(x)
    return torch.is_grad_enabled(), y
#> f(torch.ones(2))
#--- getattr_hasattr
def f(x):
    a = getattr(x, "shape")
    b = hasattr(x, "dtype")
    c = hasattr(x, "nothing")
    if hasattr(x, "nothing"):
        x.nothing()
    return a, b, c, getattr(x, "nothing", 5)
#> f(torch.ones(2))
#--- tensors_become_numbers_within_tuples
def inner(p: Tuple[int, Tuple[float, Tensor]]) -> float:
    return p[0] + p[1][0]

def f(x: Tensor, y: Tensor) -> Tuple[int, float]:
    return x, y

def g(x: Tensor) -> Tuple[Optional[int], Tuple[float, Tensor]]:
    return x, (x, x)

def h(x: Tensor) -> float:
    return inner((x, (x, x)))
#> f(torch.tensor(3), torch.tensor(2.5))
#> g(torch.tensor(4))
#> h(torch.tensor(2))
#--- half_of_a_tuple_becomes_numbers
def f(x: Tensor, y: Tensor) -> Tuple[int, str]:
    return x, y
#--- tuples_in_variables_stay
def f(x: Tensor) -> int:
    y: Tuple[int, int] = (x, x)
    return y[0]
#> f(torch.tensor(4))
