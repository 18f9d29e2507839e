#--- int_arithmetic
def f(a: int, b: int):
    return a + b, a - b, a * b, a / b, a // b, a % b, a ** 2, -a, a & b, a | b, a ^ b, a << 2, a >> 1
#> f(7, 3)
#> f(-7, 3)
#> f(7, -3)
#--- float_arithmetic
def f(a: float, b: float):
    return a + b, a - b, a * b, a / b, a // b, a % b, a ** b, -a, abs(a)
#> f(7.5, 2.0)
#> f(-7.5, 2.0)
#--- mixed
def f(a: int, b: float):
    return a + b, b - a, a * b, a / b, b // a, a % b, a ** b, b ** a, a < b, a == b, min(a, 3), max(b, 2.0)
#> f(2, 3.5)
#> f(3, 3.0)
#--- casts
def f(a: float, b: int, c: bool):
    return int(a), float(b), bool(b), int(c), float(c), bool(a), complex(a, b), int("5"), str(c)
#> f(2.7, 3, True)
#> f(-2.7, 0, False)
#--- rounding
def f(a: float):
    return round(a), math.floor(a), math.ceil(a), int(a), math.trunc(a) if False else 0
#--- rounding_ok
def f(a: float):
    return round(a), math.floor(a), math.ceil(a), int(a), round(a, 1)
#--- rounding_ok2
def f(a: float):
    return round(a), math.floor(a), math.ceil(a), int(a)
#> f(2.5)
#> f(-2.5)
#> f(3.5)
#--- math_functions
def f(a: float, n: int):
    return [math.sqrt(a), math.exp(a), math.log(a), math.log10(a), math.sin(a), math.cos(a), math.tan(a), math.atan2(a, 2.0), math.pow(a, 2.0), math.fabs(-a), math.degrees(a), math.radians(a), math.erf(a), math.gamma(a), math.lgamma(a), math.copysign(a, -1.0), math.fmod(a, 0.3), math.ldexp(a, 3)], math.factorial(n), math.gcd(n, 6), math.isnan(a), math.isinf(a), math.modf(a), math.frexp(a)
#> f(1.25, 4)
#--- constants
def f():
    return math.pi, math.e, math.inf, math.nan, math.tau, float("inf"), float("nan")
#> f()
#--- int_limits
def f():
    return 9223372036854775807, -9223372036854775808, 0x10, 1e10, 1.5e-3, 0xff
#> f()
#--- too_large
def f():
    return 9223372036854775808
#--- complex_numbers
def f(z: complex, a: float):
    return z + 1, z * 2j, z - a, z / (1+1j), z == 1j, z != z, abs(z), complex(1, 2), -z
#> f(1+2j, 0.5)
#--- augmented
def f(a: int, b: float):
    a += 1
    a -= 3
    a *= 4
    a %= 7 if False else 5
    return a, b
#--- augmented_ok
def f(a: int, b: float):
    a += 1
    a -= 3
    a *= 4
    a |= 8
    a &= 13
    a ^= 3
    a <<= 2
    a >>= 1
    b /= 2
    b **= 2
    b -= 1
    return a, b
#> f(5, 3.0)
#--- bool_arithmetic
def f(a: bool, b: bool):
    return a and b, a or b, not a, a == b, int(a) + int(b), a & b, a | b, a ^ b
#> f(True, False)
#> f(True, True)
#--- division_by_zero
def f(a: int, b: int):
    return a // b
#> f(5, 0)
#> f(5, 2)
#--- true_division_by_zero
def f(a: float):
    return a / 0.0
#> f(1.0)
#--- wrap_around
def f(a: int):
    return a + 1, a * 2
#> f(9223372036854775807)
#--- divmod_pow
def f(a: int, b: int):
    return divmod(a, b), pow(a, 2), pow(2.0, b), divmod(7.5, 2.0)
#> f(17, 5)
#> f(-17, 5)
#--- int_to_float_refused
def g(x: float):
    return x

def f(n: int):
    return g(n)
#--- unary_plus
def f(n: int):
    return +n
#--- invert
def f(n: int):
    return ~n
#--- floor_division_assign
def f(n: int):
    n //= 2
    return n
#--- float_mod_signs
def f(a: float, b: float):
    return a % b, math.fmod(a, b), a // b
#> f(-5.5, 2.0)
#> f(5.5, -2.0)
#--- fibonacci
def f(n: int):
    a, b = 0, 1
    for i in range(n):
        a, b = b, a + b
    return a
#> f(10)
#> f(90)
#> f(100)
#--- collatz
def f(n: int):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps > 500:
            break
    return steps
#> f(27)
#> f(1)
#--- primes
def f(n: int):
    sieve = [True for i in range(n)]
    out: List[int] = []
    for i in range(2, n):
        if not sieve[i]:
            continue
        out.append(i)
        j = i * i
        while j < n:
            sieve[j] = False
            j += i
    return out
#> f(30)
#--- floats_are_tensors_of_32_bits_first
def floats_are_tensors_of_32_bits_first():
    x = torch.zeros([2], dtype=torch.float64)
    x[0] = 0.1
    return (torch.tensor(0.1, dtype=torch.float64) == 0.1, torch.tensor([0.1, 1e39], dtype=torch.float64), torch.tensor(0.1 + 0.2j, dtype=torch.complex128),
            torch.tensor(16777217, dtype=torch.float64), torch.tensor([16777217.0], dtype=torch.float64), torch.as_tensor(0.1, dtype=torch.float64), x,
            torch.scalar_tensor(0.1, dtype=torch.float64), torch.full([1], 0.1, dtype=torch.float64), torch.tensor([300.0, -1.0], dtype=torch.uint8), torch.tensor(-1.5, dtype=torch.uint8))

#> floats_are_tensors_of_32_bits_first()
#--- floats_beyond_32_bits
def floats_beyond_32_bits(x: float):
    return torch.tensor(x, dtype=torch.float64)

#> floats_beyond_32_bits(1e39)
#> floats_beyond_32_bits(float("inf"))
#--- squares_of_wide_unsigned
def f(x: Tensor):
    y = x.to(torch.uint32)
    return y ** 2
#> f(torch.tensor([1, 2]))
