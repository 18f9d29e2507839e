# RUN: not flambeau opt %s 2>&1 | FileCheck %s

# Source is not a Python file: what its imports would bring is known already.
# CHECK: error: expected def but found 'import' here
# CHECK: help: only functions are allowed at the top level; what torch, math and typing name is known without an import

import torch


def f(x):
    return torch.relu(x)
