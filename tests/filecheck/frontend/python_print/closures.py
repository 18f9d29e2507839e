# RUN: flambeau translate --to python %s | FileCheck %s
# CHECK-LABEL: def f(
# CHECK:         def __forked_function():
# CHECK-NEXT:      return g(x, x, )
# CHECK-NEXT:    a = fork(__forked_function)
# CHECK-NEXT:    return torch.wait(a)
def g(x, y):
    return x + y
def f(x):
    a = torch.jit.fork(g, x, x)
    return torch.jit.wait(a)
