# RUN: flambeau translate --to python %s | FileCheck %s --strict-whitespace
# CHECK:      def f(x: Tensor,
# CHECK-NEXT:     n: int=2) -> Tensor:
# CHECK-NEXT:   y = x
# CHECK-NEXT:   for i in range(n):
# CHECK-NEXT:     if torch.gt(i, 1):
# CHECK-NEXT:       y0 = torch.add(y, x, alpha=2)
# CHECK-NEXT:     else:
# CHECK-NEXT:       y0 = torch.tanh(torch.mul(y, x))
# CHECK-NEXT:     y = y0
# CHECK-NEXT:   return y
def f(x, n: int = 2):
    y = x
    for i in range(n):
        if i > 1:
            y = torch.add(y, x, alpha=2)
        else:
            y = torch.tanh(y * x)
    return y
