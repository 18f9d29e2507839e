#--- optional_paths
def f(x: Optional[int], y: Optional[int]):
    if x is not None and y is not None:
        return x + y
    if x is None:
        x = 10
    if y is None or y > 5:
        y = 1
    return x * y
#> f(1, 2)
#> f(None, 3)
#> f(4, None)
#> f(4, 9)
#--- optional_or_guard
def f(x: Optional[int]):
    if x is None or x < 0:
        return -1
    return x + 1
#> f(None)
#> f(-4)
#> f(4)
#--- optional_early_raise
def f(x: Optional[List[int]]):
    if x is None:
        raise ValueError("no list")
    return len(x)
#> f([1])
#> f(None)
#--- optional_assert_chain
def f(x: Optional[str], y: Optional[str]):
    assert x is not None and y is not None
    return x + y
#> f("a", "b")
#> f("a", None)
#--- optional_not_none_else
def f(x: Optional[float]):
    if not x is None:
        y = x * 2
    else:
        y = 0.0
    return y
#> f(1.5)
#> f(None)
#--- optional_in_loop
def f(xs: List[Optional[int]]):
    total = 0
    for x in xs:
        if x is None:
            continue
        total += x
    return total
#> f([1, None, 3])
#> f([None])
#--- optional_rebound
def f(n: int):
    best: Optional[int] = None
    for i in range(n):
        if best is None:
            best = i
        elif i * i % 7 > best:
            best = i * i % 7
    return best
#> f(0)
#> f(4)
#--- optional_attribute_free
def f(x: Optional[Tuple[int, str]]):
    if x is not None:
        a, b = x
        return b + str(a)
    return "none"
#> f((1, "z"))
#> f(None)
#--- optional_unwrap
def f(x: Optional[int]):
    return torch.jit._unwrap_optional(x) + 1
#> f(2)
#> f(None)
#--- optional_ternary_chain
def f(x: Optional[int], y: Optional[int]):
    return x if x is not None else (y if y is not None else 0)
#> f(1, 2)
#> f(None, 2)
#> f(None, None)
#--- optional_tensor
def f(x: Optional[Tensor], y):
    if x is None:
        x = torch.zeros_like(y)
    x = x + y
    return x
#> f(None, torch.ones(2))
#> f(torch.ones(2), torch.ones(2))
#--- unrefined_use
def f(x: Optional[int]):
    return x + 1
#--- refined_by_and_only_inside
def f(x: Optional[int], b: bool):
    if b and x is not None:
        return x + 1
    return x + 2
#--- while_does_not_refine
def f(x: Optional[int]):
    while x is not None:
        x = x + 1
    return x
#--- union_narrowing
def f(x: Union[int, str, List[int]]):
    if isinstance(x, int):
        return "int " + str(x + 1)
    elif isinstance(x, str):
        return "str " + x
    else:
        return "list " + str(len(x))
#> f(1)
#> f("a")
#> f([1, 2])
#--- union_tuple_test
def f(x: Union[int, float, str]):
    if isinstance(x, (int, float)):
        return True
    y = x + "!"
    return len(y) > 3
#> f(1)
#> f(1.5)
#> f("abc")
#--- union_not
def f(x: Union[int, str]):
    if not isinstance(x, int):
        return len(x)
    return x
#> f(3)
#> f("four")
#--- union_assert
def f(x: Union[int, str]):
    assert isinstance(x, str)
    return x + "x"
#> f("a")
#> f(1)
#--- union_optional
def f(x: Optional[Union[int, str]]):
    if x is None:
        return "none"
    if isinstance(x, int):
        return str(x * 2)
    return x
#> f(None)
#> f(2)
#> f("q")
#--- union_pep604
def f(x: int | str, y: int | None):
    if isinstance(x, int) and y is not None:
        return x + y
    return 0
#> f(1, 2)
#> f("a", 2)
#> f(1, None)
#--- union_reassigned
def f(n: int):
    x: Union[int, str] = n
    if n > 1:
        x = "many"
    if isinstance(x, str):
        return x
    return "few"
#> f(1)
#> f(2)
#--- any_tests
def f(x: Any):
    out: List[str] = []
    if isinstance(x, int):
        out.append("int")
    if isinstance(x, (float, str)):
        out.append("float or str")
    if isinstance(x, List[int]):
        out.append("ints")
    if isinstance(x, Dict[str, int]):
        out.append("dict")
    if isinstance(x, Tuple[int, str]):
        out.append("pair")
    if torch.jit.isinstance(x, List[Tuple[int, str]]):
        out.append("pairs")
    if isinstance(x, Tensor):
        out.append("tensor")
    if isinstance(x, Optional[int]):
        out.append("optional")
    return out
#> f(1)
#> f(1.5)
#> f([1])
#> f({"a": 1})
#> f((1, "a"))
#> f([(1, "a")])
#> f(torch.ones(1))
#> f(None)
#> f("s")
#--- any_refined
def f(x: Any) -> int:
    if isinstance(x, int):
        return x + 1
    if isinstance(x, List[int]):
        return x[0]
    if torch.jit.isinstance(x, Dict[str, Tensor]):
        return len(x)
    return -1
#> f(1)
#> f([5])
#> f({"a": torch.ones(1)})
#> f("a")
#--- static_isinstance
def f(x: int, y: List[int], z):
    out: List[bool] = []
    out.append(isinstance(x, int))
    out.append(isinstance(x, float))
    out.append(isinstance(x, (float, int)))
    out.append(isinstance(y, list))
    out.append(isinstance(y, tuple))
    out.append(isinstance(y, List[int]))
    out.append(isinstance(y, List[float]))
    out.append(isinstance(z, Tensor))
    out.append(isinstance((1, 2), tuple))
    if isinstance(x, str):
        x.nothing()
    return out
#> f(1, [1], torch.ones(1))
#--- isinstance_ternary
def f(x: Union[int, str]):
    return x + 1 if isinstance(x, int) else len(x)
#> f(1)
#> f("abc")
#--- bool_and_int
def f(x: Union[bool, int, float]):
    if isinstance(x, bool):
        return "bool"
    if isinstance(x, int):
        return "int"
    return "float"
#> f(True)
#> f(1)
#> f(1.0)
#--- union_lists
def f(x: List[Union[int, str]]):
    total = 0
    for v in x:
        if isinstance(v, int):
            total += v
        else:
            total += len(v)
    return total
#> f([1, "abc", 2])
#--- union_as_dict_value
def f(d: Dict[str, Union[int, float]]):
    out: List[str] = []
    for k, v in d.items():
        if isinstance(v, int):
            out.append(k + "i")
        else:
            out.append(k + str(v + 0.5))
    return out
#> f({"a": 1, "b": 2.5})
#--- union_unrefined_error
def f(x: Union[int, str]):
    return x + 1
#--- union_wrong_assignment
def f(x: Union[int, str]):
    x = 1.5
    return x
#--- none_comparisons
def f(x: Optional[int], y: int):
    return x is None, x is not None, None is x, y is None, y is not None, None is None
#> f(None, 1)
#> f(1, 1)
#--- nested_optionals_in_containers
def f(d: Dict[str, Optional[List[int]]], k: str):
    v = d[k]
    if v is not None:
        v.append(1)
        return len(v)
    return -1
#> f({"a": [1], "b": None}, "a")
#> f({"a": [1], "b": None}, "b")
#--- refinement_survives_and_dies
def f(x: Optional[int]):
    if x is not None:
        y = x + 1
        x = None
        z = x is None
        return y, z
    return 0, False
#> f(1)
#> f(None)
