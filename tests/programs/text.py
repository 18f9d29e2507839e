#--- methods
def f(s: str):
    return s.upper(), s.lower(), s.strip(), s.lstrip(), s.rstrip(), s.capitalize(), s.title(), s.swapcase(), s.split(), s.replace("a", "b"), s.find("b"), s.count("a"), s.startswith("a"), s.endswith(" "), s.isdigit(), s.isalpha(), s.isalnum(), s.isspace(), s.islower(), s.isupper()
#> f("aBc def ")
#> f("  x ")
#> f("123")
#> f("")
#--- split_join
def f(s: str):
    return s.split(","), s.split(",", 1), s.rsplit(",", 1), ", ".join(s.split(",")), s.splitlines(), s.partition(","), s.rpartition(",")
#> f("a,b,c")
#> f("abc")
#> f("x\ny,z\n")
#--- pad
def f(s: str):
    return s.center(9), s.ljust(5), s.rjust(5), s.zfill(6), s.center(8, "*"), s.expandtabs()
#> f("ab")
#> f("-12")
#--- index_slice
def f(s: str):
    return s[0], s[-1], s[1:3], s[:-1], s[::2], s[2:], len(s)
#> f("hello")
#--- formatting
def f(a: int, b: float, c: str, d: bool, e: List[int]):
    return "{} {} {} {} {}".format(a, b, c, d, e), "%d %s %f" % (a, c, b), "%s" % c, "%i%%" % a, "{}".format((a, c))
#> f(1, 2.5, "x", True, [1, 2])
#> f(-7, 0.1, "", False, [])
#--- str_of
def f(a: int, b: float, c: complex, d: Optional[int], e: Tuple[int, str], g: Dict[str, int], h: List[float]):
    return str(a), str(b), str(c), str(d), str(e), str(g), str(h), str(True), str(None)
#> f(1, 1.0, 1+2j, None, (1, "a"), {"k": 1}, [0.5, 1e20])
#> f(-1, 1e-7, -0.5j, 3, (0, ""), {}, [])
#--- concat_compare
def f(a: str, b: str):
    c = a + b
    c += "!"
    return c, a == b, a != b, a < b, a > b, a <= b, a >= b, a in c, "zz" in c, "zz" not in c
#> f("ab", "ac")
#> f("", "")
#--- escapes
def f():
    return "tab\tquote\"single\'back\\slash\nnewline", 'single "double"', """triple
line""", "a" "b", "\101\x41" if False else "ok"
#--- escapes_ok
def f():
    return "tab\tquote\"single\'back\\slash\nnewline", 'single "double"', """triple
line""", "a" "b", "\101"
#> f()
#--- int_float_parse
def f(s: str, t: str):
    return int(s), float(t)
#> f("12", "1.5")
#> f(" -7 ", "1e3")
#> f("x", "1.5")
#--- iteration
def f(s: str):
    out = ""
    for c in s:
        out = c + out
    d = [c for c in s]
    n: Dict[str, int] = {}
    for c in s:
        n[c] = n.get(c, 0) + 1
    return out, d, n
#> f("abca")
#> f("")
#--- chr_ord_hex
def f(i: int):
    return chr(i), ord(chr(i)), hex(i), oct(i), bin(i), hex(-i)
#> f(65)
#> f(97)
#--- printing
def f(a: int, b: float, c: str, x):
    print(a, b, c)
    print()
    print("list", [1, 2], (1, "a"), {"k": 1.5}, None, True)
    print(x.size(0), x.shape)
    return a
#> f(1, 2.0, "s", torch.ones(2))
#--- index_error
def f(s: str):
    return s.index("q")
#> f("q")
#> f("abc")
#--- text_times
def f(s: str):
    return s * 2
#--- text_plus_number
def f(s: str):
    return s + 1
#--- unknown_method
def f(s: str):
    return s.casefold()
#--- bad_format
def f(s: str):
    return "{} {}".format(s)
#> f("a")
#--- multiline_call
def f(a: int,
      b: int):
    return (a +
            b * 2 -
            1)
#> f(1, 2)
#--- floats_out_of_range
def floats_out_of_range(s: str):
    return float(s)

#> floats_out_of_range("1e400")
#> floats_out_of_range("-1e999")
#> floats_out_of_range("1e-310")
#> floats_out_of_range("nan(x_12)")
#> floats_out_of_range("0e-400")
#> floats_out_of_range("2.2250738585072014e-308")
