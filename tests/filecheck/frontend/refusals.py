# Functions of torch.nn.functional refuse what the ops after them would take, in PyTorch's wording.
# RUN: not flambeau run %s --entry hardtanh 2>&1 | FileCheck %s --check-prefix=HARDTANH
# RUN: not flambeau run %s --entry triplet 2>&1 | FileCheck %s --check-prefix=TRIPLET
# RUN: not flambeau run %s --entry huber 2>&1 | FileCheck %s --check-prefix=REDUCTION
# RUN: not flambeau run %s --entry kl 2>&1 | FileCheck %s --check-prefix=REDUCTION
# RUN: not flambeau run %s --entry entropy 2>&1 | FileCheck %s --check-prefix=ENTROPY
# RUN: not flambeau run %s --entry logits 2>&1 | FileCheck %s --check-prefix=LOGITS
# RUN: not flambeau run %s --entry batch 2>&1 | FileCheck %s --check-prefix=BATCH
# RUN: not flambeau run %s --entry instance 2>&1 | FileCheck %s --check-prefix=INSTANCE
# RUN: not flambeau run %s --entry scalar 2>&1 | FileCheck %s --check-prefix=SCALAR
# RUN: not flambeau run %s --entry grid 2>&1 | FileCheck %s --check-prefix=GRID

# HARDTANH:  ValueError: min_val cannot be greater than max_val
def hardtanh():
    return torch.nn.functional.hardtanh(torch.ones(2), 2.0, 1.0)

# TRIPLET:   ValueError: margin must be greater than 0, got -1.
def triplet():
    x = torch.ones(2, 2)
    return torch.nn.functional.triplet_margin_loss(x, x, x, margin=-1.0)

# REDUCTION: ValueError: abc is not a valid value for reduction
def huber():
    return torch.nn.functional.huber_loss(torch.ones(2), torch.ones(2), reduction="abc")

def kl():
    return torch.nn.functional.kl_div(torch.ones(2), torch.ones(2), reduction="abc")

# ENTROPY:   ValueError: Using a target size ([2]) that is different to the input size ([2, 2]) is deprecated. Please ensure they have the same size.
def entropy():
    return torch.nn.functional.binary_cross_entropy(torch.ones(2, 2), torch.ones(2))

# LOGITS:    ValueError: Target size ([2]) must be the same as input size ([2, 2])
def logits():
    return torch.nn.functional.binary_cross_entropy_with_logits(torch.ones(2, 2), torch.ones(2))

# BATCH:     ValueError: Expected more than 1 value per channel when training, got input size [1, 3]
def batch():
    return torch.nn.functional.batch_norm(torch.ones(1, 3), None, None, training=True)

# INSTANCE:  ValueError: Expected more than 1 spatial element when training, got input size [2, 3, 1]
def instance():
    return torch.nn.functional.instance_norm(torch.ones(2, 3, 1))

# SCALAR:    RuntimeError: glu does not support scalars because halving size must be even
def scalar():
    return torch.nn.functional.glu(torch.tensor(1.0))

# GRID:      ValueError: Expected non-zero, positive output size. Got [1, 1, 0, 2]
def grid():
    return torch.nn.functional.affine_grid(torch.ones(1, 2, 3), [1, 1, 0, 2])
