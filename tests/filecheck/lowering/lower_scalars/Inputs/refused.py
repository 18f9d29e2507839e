def prints(n: int) -> int:
    s = 0
    for i in range(n):
        print(i)
        s += i
    return s


def inner(n: int) -> Tensor:
    x = torch.zeros([])
    for i in range(n):
        k = 0
        for j in range(n):
            k += j
        x = x + k
    return x


def makes_lists(n: int) -> int:
    s = 0
    for i in range(n):
        xs = [i, i]
        s += xs[0]
    return s


def gives_nothing(n: int) -> int:
    for i in range(n):
        if i > 3 and n > 5:
            raise ValueError("far")
    return n
