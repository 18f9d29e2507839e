# RUN: not flambeau opt %s 2>&1 | FileCheck %s

def f(x):
    return x + offset
# CHECK: error: undefined value offset
# CHECK: undefined_name.py:4:16
