#--- list_methods
def f(xs: List[int]):
    out: List[List[int]] = []
    xs.append(5)
    xs.extend([7, 6])
    xs.insert(1, 9)
    out.append(xs.copy())
    xs.reverse()
    out.append(list(xs))
    xs.sort()
    out.append(xs[:])
    xs.sort(reverse=True)
    n = xs.pop()
    m = xs.pop(0)
    xs.remove(5)
    k = xs.count(7), xs.index(7)
    xs.clear()
    return out, n, m, k, xs
#> f([3, 1, 2])
#--- list_arithmetic
def f(a: List[int], b: List[int]):
    c = a + b
    c += [1]
    d = a * 2
    e = 2 * b
    return c, d, e, a == b, a != b, a < b, a <= b, a > b, a >= b, len(c)
#> f([1, 2], [1, 3])
#> f([], [])
#--- list_slices
def f(xs: List[int]):
    return xs[1:3], xs[:-1], xs[::2], xs[-2:], xs[5:1], xs[10:], xs[1:100:3], xs[:], xs[-100:2]
#> f([0, 1, 2, 3, 4, 5])
#--- list_slice_negative_step
def f(xs: List[int]):
    return xs[::-1]
#> f([0, 1, 2])
#--- list_index_errors
def f(xs: List[int], i: int):
    return xs[i]
#> f([1, 2], -2)
#> f([1, 2], 2)
#> f([1, 2], -3)
#--- list_in
def f(xs: List[str], ys: List[float], zs: List[bool]):
    return "a" in xs, 1.0 in ys, True in [b for b in [1, 0]]
#--- list_in_ok
def f(xs: List[str], ys: List[float]):
    return "a" in xs, "a" not in xs, 1.0 in ys, 2 in [1, 2]
#> f(["a"], [1.0])
#> f([], [])
#--- list_of_lists
def f(n: int):
    m: List[List[int]] = []
    for i in range(n):
        row: List[int] = []
        for j in range(i):
            row.append(i * j)
        m.append(row)
    m[0].append(99)
    alias = m[1]
    alias.append(98)
    return m, [len(r) for r in m]
#> f(3)
#--- list_augmented
def f(xs: List[int], ss: List[str]):
    xs[0] += 5
    xs[-1] *= 2
    xs[1] -= 1
    ss[0] += "x"
    return xs, ss
#> f([1, 2, 3], ["a"])
#--- list_del
def f(xs: List[int], d: Dict[str, int]):
    del xs[0]
    del xs[-1]
    del d["a"]
    return xs, d
#> f([1, 2, 3], {"a": 1, "b": 2})
#--- sorted_and_friends
def f(xs: List[int], ys: List[float], zs: List[str]):
    return sorted(xs), sorted(ys), sorted(zs), min(xs), max(xs), sum(xs), min(ys), max(ys), sum(ys), any(xs), all(xs)
#> f([3, 1, 2], [2.5, -1.0], ["b", "a"])
#--- min_max_forms
def f(a: int, b: float):
    return min(a, 3), max(a, 3), min(b, 1.5), max(a, b), min([a, 2], [a, 3]), abs(-a), abs(-b)
#> f(2, 2.5)
#--- list_from_things
def f(s: str, t: Tuple[int, int], d: Dict[str, int]):
    return list(s), list(t), list(d), list(d.keys()), list(range(3)), list([1, 2]), list(enumerate(s)), list(zip(t, t))
#--- list_from_things_ok
def f(s: str, d: Dict[str, int]):
    return list(s), list(d), list(d.keys()), list(d.values()), list(d.items()), list(range(3)), list(enumerate(s)), list(zip([1, 2], ["a", "b"]))
#> f("abc", {"x": 1, "y": 2})
#--- comprehensions
def f(xs: List[int], d: Dict[str, int]):
    a = [x * 2 for x in xs]
    b = [[x * y for x in xs] for y in xs]
    c = [k + "!" for k in d]
    e = [str(v) for v in d.values()]
    g = {k: v + 1 for k, v in d.items()}
    h = {x: x * x for x in xs}
    i = [float(x) for x in range(3)]
    return a, b, c, e, g, h, i
#--- comprehensions_ok
def f(xs: List[int], d: Dict[str, int]):
    a = [x * 2 for x in xs]
    b = [[x * y for x in xs] for y in xs]
    c = [k + "!" for k in d]
    e = [str(v) for v in d.values()]
    h = {x: x * x for x in xs}
    i = [float(x) for x in range(3)]
    j = [x if x > 1 else -x for x in xs]
    return a, b, c, e, h, i, j
#> f([1, 2], {"a": 1, "b": 2})
#> f([], {})
#--- dict_methods
def f(d: Dict[str, int]):
    out: List[int] = []
    d["z"] = 26
    out.append(d["z"])
    out.append(d.get("a", -1))
    out.append(d.get("nope", -1))
    x = d.get("nope")
    out.append(-5 if x is None else x)
    out.append(d.setdefault("b", 7))
    out.append(d.setdefault("b", 8))
    out.append(d.pop("z"))
    out.append(d.pop("q", 3))
    out.append(len(d))
    d.update({"u": 1, "a": 100})
    return out, list(d.keys()), list(d.values()), list(d.items()), "u" in d, "v" not in d, d.copy()
#> f({"a": 1})
#> f({})
#--- dict_keys_of_kinds
def f():
    a = {1: "a", 2: "b"}
    b = {1.5: 1, 2.5: 2}
    c = {True: 1, False: 0}
    a[3] = "c"
    b[1.5] += 10
    c[True] = 5
    return a, b, c
#> f()
#--- dict_order
def f():
    d: Dict[str, int] = {}
    for k in ["q", "a", "z"]:
        d[k] = len(d)
    d.pop("a")
    d["a"] = 9
    k, v = d.popitem()
    return d, k, v, [x for x in d]
#> f()
#--- dict_errors
def f(d: Dict[str, int], k: str):
    return d[k]
#> f({"a": 1}, "a")
#> f({"a": 1}, "b")
#--- dict_clear_and_alias
def f(d: Dict[str, List[int]]):
    e = d
    e["x"] = [1]
    d["x"].append(2)
    n = len(d["x"])
    d.clear()
    return n, len(e)
#> f({})
#--- dict_constructors
def f():
    a = dict()
    b: Dict[int, str] = dict()
    b[1] = "x"
    c = dict(p=1, q=2)
    e = dict([("p", 1), ("q", 2)])
    g = dict({"p": 1}, q=5)
    h = {"p": 1, "p": 2}
    return len(a), b, c, e, g, h
#> f()
#--- dict_nested
def f(words: List[str]):
    d: Dict[str, Dict[str, int]] = {}
    for w in words:
        k = w[0]
        if k not in d:
            d[k] = {}
        inner = d[k]
        inner[w] = inner.get(w, 0) + 1
    return d
#> f(["apple", "ant", "bee", "ant"])
#--- tuples
def f(t: Tuple[int, str, float]):
    a, b, c = t
    u = t + (1, "x")
    return t[0], t[-1], t[1:], t[:2], u, len(t), (a, (b, c)), t[::2], (1,), ()
#> f((1, "b", 2.5))
#--- tuple_compare
def f(a: Tuple[int, int], b: Tuple[int, int]):
    return a == b, a != b
#> f((1, 2), (1, 2))
#> f((1, 2), (1, 3))
#--- tuple_dynamic_index
def f(t: Tuple[int, int, int], i: int):
    return t[i]
#> f((1, 2, 3), 1)
#> f((1, 2, 3), -1)
#> f((1, 2, 3), 3)
#--- starred
def f(t: Tuple[int, int, int, int], xs: List[int]):
    a, *b, c = t
    *d, e = t
    g, *h = t
    x, y = xs
    return a, b, c, d, e, g, h, x, y
#> f((1, 2, 3, 4), [5, 6])
#> f((1, 2, 3, 4), [5, 6, 7])
#--- starred_call
def g(a: int, b: int, c: int):
    return a * 100 + b * 10 + c

def f(t: Tuple[int, int]):
    return g(1, *t), g(*t, 3), g(*t, c=9)
#> f((4, 5))
#--- unpack_errors
def f(t: Tuple[int, int]):
    a, b, c = t
#--- heterogeneous
def f():
    xs = [1, "a", None]
    d = {"a": 1, "b": "c"}
    n = 0
    for x in xs:
        if isinstance(x, int):
            n += x
        elif isinstance(x, str):
            n += 10
        else:
            n += 100
    return xs, d, n
#> f()
#--- list_of_dicts
def f(xs: List[Dict[str, int]]):
    total = 0
    for d in xs:
        for k, v in d.items():
            if k != "skip":
                total += v
    return total
#> f([{"a": 1, "skip": 5}, {"b": 2}])
#--- string_list_sort
def f(xs: List[str]):
    xs.sort()
    ys = sorted(xs, reverse=True)
    return xs
#--- empty_literals
def f(x):
    xs = []
    xs.append(x)
    d = {}
    d["a"] = x
    return xs, d
#> f(torch.ones(1))
#--- empty_list_wrong
def f():
    xs = []
    xs.append(1)
    return xs
#--- annotated_empties
def f():
    a: List[int] = []
    b: Dict[str, List[int]] = {}
    c = torch.jit.annotate(List[str], [])
    d: List[Optional[int]] = [None, 1]
    e: Tuple[List[int], Dict[str, int]] = (torch.jit.annotate(List[int], []), torch.jit.annotate(Dict[str, int], {}))
    a.append(1)
    b["x"] = a
    c.append("s")
    return a, b, c, d, e
#> f()
#--- list_equality_nested
def f(a: List[List[int]], b: List[List[int]]):
    return a == b
#--- tensor_lists
def f(x):
    xs = [x, x + 1]
    ys = [x]
    xs.extend(ys)
    s = torch.stack(xs)
    return s.sum(), len(xs), [t + 1 for t in xs]
#> f(torch.ones(2))
#--- wrong_element
def f(xs: List[int]):
    xs.append("a")
#--- wrong_dict_value
def f(d: Dict[str, int]):
    d["a"] = "b"
#--- range_value
def f(n: int):
    r = range(n)
    return r
#--- tuple_of_list
def f(xs: List[int]):
    return tuple(xs)
#--- set_literal
def f():
    return {1, 2}
#--- aliasing
def f(xs: List[int]):
    ys = xs
    zs = xs[:]
    ys.append(1)
    zs.append(2)
    (ps, qs) = (xs, ys)
    ps.append(3)
    return xs, ys, zs, qs
#> f([0])
#--- function_mutates_argument
def g(xs: List[int]):
    xs.append(len(xs))

def f(xs: List[int]):
    g(xs)
    g(xs)
    return xs
#> f([])
#--- looked_up_where_made
def f(x: Tensor, k: str):
    d = {"a": x, "b": x * 2, "a": x + 1}
    e = {1: "one", 2: "two"}
    r = {0.0: 1, 1.5: 2}
    return d["a"], d.get("c", x), len(d), "b" in d, k in d, e[2], e.get(3), r[-0.0], 1.5 in r
#> f(torch.ones(2), "b")
#--- set_behind_a_lookup
def f(x: Tensor, c: bool):
    d = {"a": x}
    first = d["a"]
    if c:
        d["a"] = x + 1
        d["b"] = x
    n = len(d)
    for i in range(2):
        d["a"] = d["a"] * 2
        if "a" in d:
            n += i
    return first, d["a"], n, "b" in d, d.get("b")
#> f(torch.ones(2), True)
#> f(torch.ones(2), False)
#--- missing_where_made
def f(x: Tensor):
    d = {"a": x}
    return d["b"]
#> f(torch.ones(2))
#--- kept_and_taken_out
def g(d: Dict[str, Tensor]):
    d["a"] = torch.zeros(1)
    return d

def f(x: Tensor):
    d = {"a": x, "b": x}
    e = {"a": x}
    g(e)
    del d["a"]
    p = d.pop("b")
    return p, len(d), "a" in d, e["a"], e
#> f(torch.ones(2))
#--- lookups_share_the_object
def f(x: Tensor):
    d = {"a": x}
    d["a"].add_(1)
    y = d["a"]
    y.mul_(3)
    return d["a"], x, y is x
#> f(torch.ones(2))
#--- types_of_items_through_another_name
def f(x, c: bool):
    a = [x]
    b = a
    if c:
        b = [x.sum(0, keepdim=True)]
    b.append(x.double())
    y = a[-1]
    return y.exp() + 1, len(a), torch.cat(b)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), True)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), False)
#--- types_of_items_in_a_tuple
def f(x, n: int):
    inner = [x]
    pair = (inner, n)
    for i in range(n):
        inside, m = pair
        inside.append(x.to(torch.int64))
    y = inner[-1]
    return y + 1, y.div(2), torch.stack([t.float() for t in inner]).sum(0)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 2)
#--- types_of_items_in_a_list_of_lists
def f(x, n: int):
    rows = [[x], [x + 1]]
    first = rows[0]
    for i in range(n):
        rows[i % 2].append(x[:1].mul(i).to(torch.int32))
    y = first[-1]
    return y + 1, torch.cat([t.double() for t in first]), len(rows[1])
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 3)
#--- types_of_items_of_dictionaries_of_lists
def f(x, n: int):
    groups = {"a": [x]}
    mine = groups["a"]
    for i in range(n):
        if "b" not in groups:
            groups["b"] = [x.t()]
        groups["a"].append(x.t().bool())
    y = mine[-1]
    return y.sum(), y, groups["b"][0] @ x
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 3)
#--- types_of_items_of_an_attribute
class Holder(object):
    def __init__(self, x):
        self.items = [x]

    def add(self, x):
        self.items.append(x)

def f(x, n: int):
    holder = Holder(x)
    own = holder.items
    for i in range(n):
        holder.add(x.long())
    y = own[-1]
    return y / 2, y + 1, len(own)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 2)
#--- types_of_items_swapped_between_lists
def f(x, n: int):
    a = [x]
    b = [x.half()]
    for i in range(n):
        a, b = b, a
        a.append(x.double().sum(1))
    return a[-1] + 1, b[-1] * 2, len(a), len(b)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 0)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 1)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 4)
#--- types_of_items_taken_out
def f(x, n: int):
    a = [x, x.long()]
    total = x.sum()
    for i in range(n):
        y = a.pop(0)
        a.append((y + 1).double())
        a.insert(1, y.sum().reshape(1))
        total = total + y.sum()
    a.reverse()
    return a[0], a[-1] + 1, total
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 3)
#--- types_of_items_extended_by_themselves
def f(x, n: int):
    a = [x]
    for i in range(n):
        a.extend(a)
        a += [a[0].long()]
        a = a + a[1:]
    y = a[-1]
    return y + 1, y.div(2), len(a)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 2)
#--- types_of_an_empty_list_in_a_loop
def f(x, n: int):
    states: List[Tensor] = []
    h = x
    for i in range(n):
        if len(states) > 0:
            h = states[-1].tanh() + x
        states.append(h.double())
    return h, len(states)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 0)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), 3)
#--- types_of_numbers_in_lists
def f(x, n: int):
    sizes = [2]
    for i in range(n):
        sizes.append(x.size(0) * sizes[-1] // 4)
    sizes[0] = 4
    y = x.reshape(sizes[0], -1)
    j = 0
    z = y
    for i in range(n):
        t = torch.tensor(j)
        z = z + y.narrow(1, int(t) + 1, 2).sum()
        j = j + 1
    return y, z, torch.zeros(sizes)
#> f(torch.linspace(-1.5, 2.5, 24).reshape(4, 6), 3)
#--- types_of_lists_behind_branches
def f(x, c: bool, n: int):
    parts = [x]
    if c:
        parts = parts[:1] + [x + 1]
    else:
        parts = [x.sum(1, keepdim=True).expand(2, 3)]
    parts.append(x.flip(0))
    for i in range(n):
        parts = parts[1:] + [parts[0] * 2]
        parts.append(x)
        if i > 0:
            break
        parts = parts + [x.cos()]
    y = torch.stack(parts)
    y[0] = 1.0
    return y, y.sum(0), len(parts)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), True, 1)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), False, 2)
#--- types_of_items_taken_out_or_not
def f(x, key: str):
    d = {"a": x}
    y = d.pop(key, x.long())
    d["b"] = x + 1
    z = d.setdefault("c", x.sum(1))
    return y / 2, y + 1, z * 2, len(d)
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), "a")
#> f(torch.linspace(-1.5, 2.5, 6).reshape(2, 3), "z")
