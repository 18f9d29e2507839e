# Errors in several functions are reported in one run; a caller does not repeat what its callee says.
# RUN: not flambeau opt %s 2>&1 | FileCheck %s
def first(x):
    return torch.reluu(x)

def second(x: int):
    return x + "a"

def third(x):
    return first(x)

def fourth(x: Optional[int]):
    return missing

# CHECK: error: object has no attribute reluu
# CHECK: another error: Arguments for call are not valid.{{.*}}:7:12
# CHECK-NEXT: another error: undefined value missing{{.*}}:13:12
# CHECK-NOT: another error
