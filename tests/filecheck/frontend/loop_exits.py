# RUN: flambeau opt %s --no-locations | FileCheck %s

# An early return inside of a loop becomes a carried flag; no exit op is left.
# CHECK-LABEL: graph(%n
# CHECK-NOT: prim::ReturnStmt
# CHECK-NOT: prim::LoopContinuation
# CHECK: prim::Loop
# CHECK: return
def f(n: int) -> int:
    i = 0
    while i < n:
        if i > 20:
            return -i
        i += 2
    return i
