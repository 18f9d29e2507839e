# RUN: flambeau opt %s --passes inline,dce | FileCheck %s
# RUN: flambeau opt %s | flambeau opt --passes inline,dce | FileCheck %s
# ALLOW_UNSEEN: --opt-limit=dce what is dead is not looked at

# Calls become the graphs that they call, also through several levels.
def half(x):
    return x * 0.5

def twice(x):
    return half(x) + half(x)

# CHECK-LABEL: graph @f(
# CHECK-NOT: prim::CallFunction
# CHECK: aten::mul
# CHECK: aten::mul
# CHECK: aten::add
# CHECK: return
def f(x):
    return twice(x)
