def sieve(n: int) -> List[int]:
    composite = [False] * (n + 1)
    found: List[int] = []
    for i in range(2, n + 1):
        if not composite[i]:
            found.append(i)
            j = i * i
            while j <= n:
                composite[j] = True
                j += i
    return found


def grow(n: int) -> int:
    xs: List[float] = []
    for i in range(n):
        xs.append(float(i) * 0.5)
    return len(xs)


def outside(n: int) -> int:
    xs = [1, 2, 3, 4, 5]
    s = 0
    for i in range(n):
        s += xs[i + 3]
    return s


def raises(n: int) -> int:
    s = 0
    for i in range(n):
        if i == 5:
            raise ValueError("too large: {}".format(i))
        s += i
    return s


def same(n: int) -> int:
    xs = [1, 2, 3, 4]
    zs: List[List[int]] = []
    for i in range(2):
        zs.append(xs)
    a, b = zs[0], zs[1]
    s = 0
    for i in range(n):
        a[i] = 3
        s += b[i]
    return s
