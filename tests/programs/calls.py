#--- where_as_method
def f(x, y):
    return x.where(x > 0.0, y)
#> f(torch.tensor([1.0, -2.0]), torch.tensor([5.0, 6.0]))
#--- tensor_getitem
def f(x):
    return x.__getitem__(torch.tensor([0, 2]))
#> f(torch.arange(3.0))
#--- tensor_getitem_empty
def f(x):
    return x.__getitem__()
#--- method_too_many_arguments
def f(s: str):
    return s.upper(1)
#--- method_of_number
def f(n: int):
    return n.add(1)
#--- method_of_nested_list
def f(xs: List[List[int]]):
    return xs.count([1])
#--- nothing_is_an_empty_tuple
def f(xs: List[int]):
    r = xs.reverse()
    return r, xs
#> f([1, 2])
#--- list_of_tensors_hint
def g(n: int):
    return n
def f(xs: List[Tensor]):
    return g(xs)
#--- optional_for_union
def g(x: Union[int, str]):
    return 1
def f(x: Optional[int]):
    return g(x)
#--- unwrap_none
def f() -> int:
    return torch.jit._unwrap_optional(None)
#--- slice_keyword
def f(xs: List[int]):
    return xs[slice(1, stop=2)]
#--- slice_without_arguments
def f(xs: List[int]):
    return xs[slice()]
#--- bool_of_a_tuple
def f(x: Tuple[int, int]):
    return bool(x)
#--- dict_forms
def f(pairs: List[Tuple[str, int]], known: Dict[str, int]):
    a = dict(pairs)
    b = dict(known, x=1, y=2)
    c = dict([("p", 1)], q=2)
    d: Dict[str, Optional[int]] = dict(zip(["u"], [3]))
    return a, b, c, d, dict(k=4), dict({1: 2.5})
#> f([("a", 1), ("b", 2)], {"z": 26})
#--- dict_of_numbers
def f():
    return dict([1, 2])
#--- dict_of_triples
def f():
    return dict([(1, 2, 3)])
#--- dict_mixed_keys
def f():
    return dict([("a", 1), (2, 2)])
#--- dict_wrong_annotation
def f():
    x: Dict[int, str] = dict([("a", 1)])
    return x
#--- dict_keyword_of_other_type
def f():
    return dict({1: 2}, a=3)
#--- dict_list_with_keywords
def f(pairs: List[Tuple[str, int]]):
    return dict(pairs, a=3)
#--- dict_two_candidates
def f():
    x: Union[Dict[str, int], Dict[int, int]] = dict()
    return x
#--- comprehension_over_mixed_tuple
def f():
    return [x for x in (1, "a")]
#--- dict_comprehension_over_mixed_tuple
def f():
    return {x: 1 for x in (1, "a")}
#--- enumerate_from_float
def f(xs: List[int]):
    for i, x in enumerate(xs, 1.5):
        print(i, x)
#--- iterate_print
def f():
    for i in print:
        pass
#--- inner_function_with_break
def f():
    for i in range(3):
        def g():
            break
    return 1
#--- inner_function_returns
def f():
    def g(x: int):
        if x > 0:
            return 1
        return 1.5
    return g
#--- computed_defaults
def g(s: str = "a" + "b", t: Tensor = torch.ones(2), x: float = float("inf"), n: int = 1 + 2):
    return s, t, x, n
def f():
    return g()
#> f()
#--- tuple_literal_in_annotation
def f(x: Tuple[(int, str)]):
    return x
#--- bare_list_annotation
def f():
    x: list = [1]
    return x
#--- none_as_tensor
def f(x: Tensor):
    return 1
#> f(None)
#--- arguments_from_outside
def f(x: Tuple[int, int], y: List[str], z: Dict[str, int]):
    return x, y, z
#> f(torch.tensor([1, 2]), {"a": 1}, [("b", 2)])
#> f((1, 2), 3, {})
#> f((1, 2), ["a"], [1])
#> f((1, 2), ["a"], "a")
#--- none_from_outside
def f(x: None):
    return x
#> f("ab")
#--- shift_in_place
def f(x):
    y = x
    y <<= 2
    y >>= 1
    return x
#> f(torch.tensor([3, 5]))
#--- floordiv_of_tensors_raises
def f(x):
    y = x + 1
    return y // 0
#> f(torch.tensor([1]))
#--- difference_of_masks_raises
def f(x):
    return 1 - x
#> f(torch.tensor([True]))
#--- tensor_of_words
def f():
    return torch.tensor(["a", "b"])
#> f()
