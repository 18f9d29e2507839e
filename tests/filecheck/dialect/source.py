# RUN: flambeau opt --dialect %S/../../../examples/quant.dialect %s | FileCheck %s --check-prefixes=CHECK,CALL
# RUN: flambeau opt --dialect %S/../../../examples/quant.dialect %s --passes inline-meanings | FileCheck %s --check-prefixes=CHECK,INLINE
def f(x: Tensor) -> Tensor:
    return torch.ops.quant.snap(x, 0.5)
# CHECK-LABEL: graph @
# CALL:   quant::snap
# INLINE-NOT: quant::snap
# INLINE: aten::div
# INLINE: aten::round
# INLINE: aten::mul
