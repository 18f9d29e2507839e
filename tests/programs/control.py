#--- early_returns
def f(x: int, y: int) -> int:
    for i in range(x):
        if i == 3:
            continue
        for j in range(y):
            if i * j == 12:
                return i * 100 + j
            if j > i:
                break
        else_value = i
    while x > 0:
        x -= 2
        if x == 1:
            return -1
    return x
#> f(2, 2)
#> f(10, 10)
#> f(5, 1)
#> f(0, 0)
#--- while_breaks
def f(n: int):
    out: List[int] = []
    i = 0
    while True:
        i += 1
        if i % 2 == 0:
            continue
        if i > n:
            break
        out.append(i)
    return out, i
#> f(0)
#> f(7)
#--- nested_continue
def f(n: int):
    hits: List[Tuple[int, int]] = []
    for i in range(n):
        for j in range(n):
            if j == i:
                continue
            if i + j > n:
                break
            hits.append((i, j))
        if len(hits) > 5:
            break
    return hits
#> f(3)
#> f(5)
#--- return_in_while_in_for
def find(xs: List[List[int]], wanted: int) -> Tuple[int, int]:
    i = 0
    for row in xs:
        j = 0
        while j < len(row):
            if row[j] == wanted:
                return i, j
            j += 1
        i += 1
    return -1, -1
#> find([[1, 2], [3, 4]], 3)
#> find([[1, 2], [], [3, 4]], 4)
#> find([[1]], 9)
#--- all_arms_return
def f(x: int):
    if x > 10:
        return "big"
    elif x > 5:
        y = x * 2
        if y > 15:
            return "middle"
        return "low " + str(y)
    else:
        while x < 3:
            x += 1
            if x == 2:
                return "two"
        return "small " + str(x)
#> f(11)
#> f(9)
#> f(6)
#> f(4)
#> f(0)
#> f(2)
#--- variable_after_exit
def f(x: int):
    if x > 3:
        y = 1
    elif x > 1:
        return 7
    else:
        raise ValueError("small")
    z = y + x
    return z
#> f(5)
#> f(2)
#> f(0)
#--- loop_carried_types
def f(n: int):
    a, b = 0, 1.5
    s = ""
    t = (0, "x")
    for i in range(n):
        a, b = a + i, b * 2
        s += str(i)
        t = (t[0] + 1, t[1] + "y")
    return a, b, s, t
#> f(0)
#> f(3)
#--- loop_over_changing_list
def f():
    xs = [1, 2, 3]
    n = 0
    for x in xs:
        if x == 2:
            xs.append(10)
        n += x
    return n, xs
#> f()
#--- range_forms
def f(a: int, b: int, c: int):
    out: List[int] = []
    for i in range(b):
        out.append(i)
    for i in range(a, b):
        out.append(i)
    for i in range(a, b, c):
        out.append(i)
    i = 100
    for i in range(0):
        i = 3
    out.append(i)
    return out
#> f(1, 4, 2)
#> f(5, 0, -2)
#> f(0, 0, 1)
#--- zip_enumerate
def f(xs: List[int], ys: List[str], t):
    out: List[str] = []
    for x, y in zip(xs, ys):
        out.append(y * 1 if False else y + str(x))
    for i, (x, y) in enumerate(zip(xs, ys)):
        out.append(str(i) + y + str(x))
    for i, x in enumerate(xs, 5):
        out.append(str(i * x))
    n = 0
    for row, x in zip(t, xs):
        n += int(row.sum()) * x
    return out, n
#--- zip_enumerate_ok
def f(xs: List[int], ys: List[str], t):
    out: List[str] = []
    for x, y in zip(xs, ys):
        out.append(y + str(x))
    for i, (x, y) in enumerate(zip(xs, ys)):
        out.append(str(i) + y + str(x))
    for i, x in enumerate(xs, 5):
        out.append(str(i * x))
    n = 0
    for row, x in zip(t, xs):
        n += int(row.sum()) * x
    return out, n
#> f([1, 2, 3], ["a", "b"], torch.ones(2, 2))
#> f([], [], torch.ones(0, 2))
#--- tuple_loops
def f(t: Tuple[int, str, float]):
    out: List[str] = []
    for x in t:
        out.append(str(x))
    for pair in ((1, "p"), (2, "q")):
        out.append(pair[1] + str(pair[0]))
    return out
#> f((1, "s", 2.5))
#--- return_in_unrolled_loop
def f(t: Tuple[int, int, int], k: int):
    for x in t:
        if x > k:
            return x
    return -1
#> f((1, 5, 9), 4)
#> f((1, 5, 9), 9)
#--- condition_kinds
def f(n: int, x: float, s: str, xs: List[int], d: Dict[str, int], t):
    out: List[int] = []
    if n:
        out.append(1)
    if x:
        out.append(2)
    if s:
        out.append(3)
    if xs:
        out.append(4)
    if d:
        out.append(5)
    if t:
        out.append(6)
    if not s or not xs:
        out.append(7)
    while xs:
        xs.pop()
        out.append(8)
    return out
#> f(1, 0.5, "a", [1, 2], {"a": 1}, torch.tensor(1))
#> f(0, 0.0, "", [], {}, torch.tensor(0))
#--- chained_logic
def side(xs: List[int], v: int, r: bool) -> bool:
    xs.append(v)
    return r

def f(a: bool, b: bool):
    xs: List[int] = []
    r = [side(xs, 1, a) and side(xs, 2, b), side(xs, 3, a) or side(xs, 4, b), not a and b or a, (a or b) and not (a and b)]
    return xs, r
#> f(True, False)
#> f(False, True)
#> f(True, True)
#> f(False, False)
#--- comparisons_do_not_chain
def f(a: int, b: int, c: int):
    return a < b, (a < b) == True, a < b and b < c
#> f(1, 2, 3)
#> f(3, 2, 1)
#--- ternaries
def f(x: int, y: Optional[str]):
    a = 1 if x > 0 else -1
    b = "none" if y is None else y
    c = x if x > 3 else a if x > 1 else 0
    d = None if x > 2 else x
    return a, b, c, d
#> f(5, "s")
#> f(2, None)
#> f(-1, "")
#--- metacompiled_arms
def f(x: int):
    if True:
        y = x
    else:
        y = undefined_name
    if False:
        y = also_undefined
    if torch.jit.is_scripting():
        y += 1
    else:
        y = nothing
    if not torch.jit.is_scripting():
        y = nothing2
    z = y if True else undefined3
    return z
#> f(1)
#--- exceptions_in_arms
def f(x: int):
    if x == 0:
        raise ValueError("zero")
    if x == 1:
        raise RuntimeError("one: {}".format(x))
    if x == 2:
        raise Exception
    if x == 3:
        raise KeyError(x)
    if x == 4:
        assert x != 4
    assert x != 5, "five"
    assert x != 6, x
    return x
#> f(0)
#> f(1)
#> f(2)
#> f(3)
#> f(4)
#> f(5)
#> f(6)
#> f(7)
#--- assigned_in_one_arm
def f(x: int):
    if x > 1:
        y = 1
    return y
#--- different_types_in_arms
def f(x: int):
    if x > 1:
        y = 1
    else:
        y = "a"
    return y
#--- different_types_unused
def f(x: int):
    if x > 1:
        y = 1
    else:
        y = "a"
    return x
#> f(1)
#--- type_change_top_level
def f(x: int):
    y = 1
    y = "a"
    y = [1.5]
    return y
#> f(1)
#--- type_change_in_loop
def f(x: int):
    y = 1
    for i in range(x):
        y = 2.5
    return y
#--- missing_return
def f(x: int) -> int:
    if x > 1:
        return 1
#--- mixed_returns
def f(x: int):
    if x > 1:
        return 1
    return "a"
#--- none_or_value
def f(x: int):
    if x > 1:
        return 1
    return None
#> f(2)
#> f(0)
#--- implicit_none
def f(x: int):
    x + 1
#> f(2)
#--- break_outside
def f(x: int):
    break
#--- continue_outside
def f(x: int):
    if x > 1:
        continue
    return x
#--- break_in_tuple_loop
def f(x: int):
    for i in (1, 2):
        break
    return x
#--- deep_nesting
def f(n: int):
    total = 0
    for a in range(n):
        if a % 2 == 0:
            for b in range(a):
                while b > 0:
                    b -= 1
                    if b == 2:
                        continue
                    for c in range(b):
                        if c == 3:
                            break
                        if total > 40:
                            return total, a, b, c
                        total += c
                    else_ = b
        elif a > 7:
            break
    return total, -1, -1, -1
#> f(3)
#> f(7)
#> f(12)
#--- while_condition_with_call
def step(xs: List[int]) -> bool:
    xs[0] -= 1
    return xs[0] > 0

def f(n: int):
    xs = [n]
    turns = 0
    while step(xs) and turns < 5:
        turns += 1
    return xs, turns
#> f(3)
#> f(100)
#> f(0)
#--- loop_variable_after
def f(xs: List[int]):
    last = -1
    for x in xs:
        last = x
    return last
#> f([1, 2])
#> f([])
#--- swap
def f(a: int, b: int):
    a, b = b, a
    (a, b), c = (b, a), a + b
    xs = [a, b]
    xs[0], xs[1] = xs[1], xs[0]
    return a, b, c, xs
#> f(1, 2)
#--- list_comprehensions_in_conditions
def f(xs: List[int], w: int) -> int:
    while sum([q + 1 for q in xs]) > w and not any([w == x for x in xs]):
        w += 2
        if w == 6:
            continue
    return w
#> f([1, 2, 3], 0)
#> f([1, 2, 7], 1)
#> f([], 3)
#--- loops_within_conditions
def h(n: int) -> int:
    k = 0
    while len([[a * k for a in range(b)] for b in list(range(n - k))]) > 2:
        k += 1
        while sum([i for i in range(k)]) < 3:
            k += 1
    return k
#> h(9)
#> h(1)
#--- what_changes_reaches_others_late
def f(x: Tensor, n: int):
    # The first changes in each turn, the last of them in the eighth.
    a, b, c, d, e, g, h = x, x, x, x, x, x, x
    sizes: List[int] = []
    for i in range(n):
        h = g
        g = e
        e = d
        d = c
        c = b
        b = a
        a = torch.cat([a, x])
        sizes.append(h.size(0))
        h = h * 2 + h.size(0)
    return h, sizes, g.size(0), h.numel()
#> f(torch.ones(2), 9)
#> f(torch.ones(2), 9)
#> f(torch.ones(3), 1)
#--- set_in_a_branch_of_a_loop
def f(x: int):
    for i in range(3):
        if i == 1:
            y = i
    return y
#> f(1)
#--- set_with_two_types_in_a_loop
def f(x: int):
    while x > 0:
        if x == 1:
            y = x
        else:
            y = 'a'
        x -= 1
    return y
#> f(1)
#--- deleted_and_set_in_one_branch
def f(x: int):
    if x > 0:
        y = 1
    del y
    return x
#> f(1)
