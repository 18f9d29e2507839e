#--- no_colon
def f(x: int)
    return x
#--- bad_indent
def f(x: int):
  y = x
    return y
#--- unclosed
def f(x: int):
    return (x
#--- stray_else
def f(x: int):
    else:
        return x
#--- fstring
def f(x: int):
    return f"{x}"
#--- semicolon
def f(x: int):
    y = x; return y
#--- one_line_if
def f(x: int):
    if x: return 1
    return 2
#--- comment_lines
# a comment
def f(x: int):
    # another
    y = x  # trailing

    # deeper
    if y > 0:
        # inside
        y = 2
    return y
#> f(1)
#--- backslash
def f(x: int):
    y = x + \
        1
    return y
#> f(1)
#--- docstring
def f(x: int):
    """Does nothing."""
    return x
#> f(1)
#--- pass_statements
def f(x: int):
    if x > 1:
        pass
    else:
        pass
    for i in range(2):
        pass
    return x
#> f(1)
#--- global_statement
def f(x: int):
    global y
    return x
#--- expression_statements
def f(x: int):
    x
    "text"
    [x]
    x + 1
    return x
#> f(1)
#--- del_variable
def f(x: int):
    y = x
    del y
    return x
#> f(1)
#--- del_then_use
def f(x: int):
    y = x
    del y
    return y
#--- ellipsis_value
def f(x: int):
    return ...
#--- set_comp
def f(x: int):
    return {i for i in range(x)}
#--- dict_trailing_comma
def f(x: int):
    return {1: 2,}
#--- list_trailing_comma
def f(x: int):
    return [1, 2,], (x,)
#> f(1)
#--- wrong_target
def f(x: int):
    1 = x
#--- call_target
def f(x: int):
    f(x) = 1
#--- augmented_tuple
def f(x: int):
    x, y += 1
#--- annotated_without_value
def f(x: int):
    y: int
    return x
#--- python_builtins
def f(x: int):
    return repr(x)
#--- python_map
def f(xs: List[int]):
    return map(str, xs)
#--- python_reversed
def f(xs: List[int]):
    return reversed(xs)
#--- python_set
def f(xs: List[int]):
    return set(xs)
#--- python_type
def f(xs: List[int]):
    return type(xs)
#--- attribute_of_function
def g(x: int):
    return x

def f(x: int):
    return g.name
#--- attribute_of_int
def f(x: int):
    return x.real
#--- set_attribute_of_int
def f(x: int):
    x.y = 1
#--- subscript_int
def f(x: int):
    return x[0]
#--- subscript_optional
def f(x: Optional[List[int]]):
    return x[0]
#--- iterate_int
def f(x: int):
    for i in x:
        print(i)
#--- len_of_int
def f(x: int):
    return len(x)
#> f(1)
#--- bool_of_optional
def f(x: Optional[int]):
    if x:
        return 1
    return 2
#--- not_of_list
def f(x: List[int]):
    return not x
#> f([])
#> f([1])
#--- with_non_class
def f(x: int):
    with x:
        return x
#--- raise_text
def f(x: int):
    raise "text"
#--- raise_class
def f(x: int):
    raise ValueError
#> f(1)
#--- assert_message_expression
def f(x: int):
    assert x > 0, "x is " + str(x)
    return x
#> f(1)
#> f(-1)
#--- matrix_operator_on_ints
def f(x: int):
    return x @ x
#--- in_tensor
def f(x):
    return 1 in x
#--- is_with_text
def f(x: str):
    return x is "a"
#--- complex_literal
def f():
    return 1j, 2.5j, 1 + 2j
#> f()
#--- octal_literal
def f():
    return 010, 0x1F
#--- underscore_literal
def f():
    return 1_000
