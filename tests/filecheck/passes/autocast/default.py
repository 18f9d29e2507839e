# RUN: flambeau opt %s --passes default | FileCheck %s
# ALLOW_UNSEEN: --opt-limit=constant-pooling it prepares the graph for the pass that is tested
# ALLOW_UNSEEN: --opt-limit=constant-propagation-immutable-types it prepares the graph for the pass that is tested

# A product within a context is another one than the same product outside: the default passes cast before they merge. What
# is called is part of the context.
# CHECK: graph @f(
# CHECK: %[[A:.*]] : Tensor = aten::mm(%x, %x)
# CHECK: prim::Enter
# CHECK: %[[X:.*]] : Tensor = aten::_autocast_to_reduced_precision(%x,
# CHECK: %[[B:.*]] : Tensor = aten::mm(%[[X]], %[[X]])
# CHECK: prim::Exit
# CHECK: %[[C:.*]] : Tensor = aten::mm(%x, %x)
# CHECK: prim::TupleConstruct(%[[A]], %[[B]], %[[C]])
def product(x: Tensor):
    return torch.mm(x, x)


def f(x: Tensor):
    before = torch.mm(x, x)
    with torch.autocast("cpu"):
        within = product(x)
    return before, within, torch.mm(x, x)
