//! Losses that are arithmetic of other ops. Those over class labels stand in `label_loss`.

use crate::dialects::{Fact, OpDef, composite};

/// The end of a loss: none, mean or sum by `reduction`.
macro_rules! reduced {
    ($($text:expr),*) => {
        concat!($($text),*, "
    if reduction == 1:
        return torch.mean(loss)
    if reduction == 2:
        return torch.sum(loss)
    return loss
")
    };
}

/// The rows.
pub static OPS: &[OpDef] = &[
    composite(
        "aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        reduced!("def mse_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    dtype = torch.result_type(self, target)
    difference = self.to(dtype).sub(target.to(dtype)) if dtype != torch.bool else self.logical_xor(target)
    if not difference.is_floating_point():
        raise NotImplementedError('\"mse_cpu\" not implemented for \\'' + torch.ops.prim.dtype_name(dtype) + '\\'')
    loss = difference * difference"),
    )
    .out("out"),
    composite(
        "aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        reduced!("def l1_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    loss = torch.abs(self - target)"),
    ),
    composite(
        "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
        reduced!("def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    if beta < 0.0:
        raise RuntimeError('smooth_l1_loss does not support negative values for beta.')
    # PyTorch's kernel takes bfloat16 as float32.
    narrow = torch.result_type(self, target)
    dtype = torch.float32 if narrow == torch.bfloat16 or narrow == torch.bool else narrow
    difference = self.to(dtype) - target.to(dtype)
    if not difference.is_floating_point() or narrow == torch.bool:
        raise NotImplementedError('\"smooth_l1_cpu\" not implemented for \\'' + torch.ops.prim.dtype_name(narrow) + '\\'')
    loss = torch.abs(difference)
    if beta != 0.0:
        loss = torch.where(loss < beta, loss * 0.5 * loss / beta, loss - 0.5 * beta)
    loss = loss.to(narrow)"),
    )
    .out("out"),
    composite(
        "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
        reduced!("def huber_loss(self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    if delta <= 0.0:
        raise RuntimeError('huber_loss does not support non-positive values for delta.')
    # PyTorch's kernel takes float16 as float32, and rounds after each step in bfloat16. The result has the dtype of the
    # first argument.
    narrow = torch.result_type(self, target)
    dtype = torch.float32 if narrow == torch.float16 or narrow == torch.bool else narrow
    difference = self.to(dtype) - target.to(dtype)
    if not torch.can_cast(narrow, self.dtype):
        raise RuntimeError('result type ' + torch.ops.prim.dtype_name(narrow) + \" can't be cast to the desired output type \" + torch.ops.prim.dtype_name(self.dtype))
    if not difference.is_floating_point() or narrow == torch.bool:
        raise NotImplementedError('\"huber_cpu\" not implemented for \\'' + torch.ops.prim.dtype_name(narrow) + '\\'')
    wide = torch.abs(difference)
    bound = torch.full([], delta, dtype=dtype)
    loss = torch.where(wide < delta, wide * 0.5 * wide, (wide - 0.5 * bound) * bound).to(narrow).to(self.dtype)"),
    )
    .out("out"),
    composite(
        "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
        reduced!("def binary_cross_entropy(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int) -> Tensor:
    # Whether sizes fit comes before dtypes.
    if self.dtype != target.dtype and torch.broadcast_tensors([self, target])[0].dim() >= 0:
        raise RuntimeError('Found dtype ' + torch.ops.prim.dtype_name(target.dtype) + ' but expected ' + torch.ops.prim.dtype_name(self.dtype))
    if not self.is_floating_point():
        raise NotImplementedError('\"binary_cross_entropy\" not implemented for \\'' + torch.ops.prim.dtype_name(self.dtype) + '\\'')
    if not bool(torch.all((self >= 0.0).logical_and(self <= 1.0))):
        raise RuntimeError('all elements of input should be between 0 and 1')
    if not bool(torch.all((target >= 0.0).logical_and(target <= 1.0))):
        raise RuntimeError('all elements of target should be between 0 and 1')
    loss = torch.clamp_min(torch.log1p(-self), -100.0) * (target - 1.0) - target * torch.clamp_min(torch.log(self), -100.0)
    if weight is not None:
        loss = loss.mul_(weight)"),
    )
    .out_found("out"),
    composite(
        "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
        reduced!("def binary_cross_entropy_with_logits(self: Tensor, target: Tensor, weight: Optional[Tensor], pos_weight: Optional[Tensor], reduction: int) -> Tensor:
    log_weight = torch.log_sigmoid(self)
    if pos_weight is not None:
        log_weight = log_weight.mul_((pos_weight - 1) * target + 1)
    loss = (torch.full_like(target, 1) - target).mul_(self).sub_(log_weight)
    if weight is not None:
        loss = loss.mul_(weight)"),
    )
    .out_exact("out"),
    composite(
        "aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
        reduced!("def kl_div(self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    if self.is_complex() or target.is_complex():
        raise RuntimeError('kl_div: Complex inputs not supported.')
    if not self.is_floating_point() or not target.is_floating_point():
        raise RuntimeError('kl_div: Integral inputs not supported.')
    if log_target:
        loss = torch.exp(target) * (target - self)
    else:
        loss = torch.xlogy(target, target) - target * self"),
    ),
    composite(
        "aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
        reduced!("def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    zeros = torch.zeros_like(self)
    if self.is_complex():
        raise NotImplementedError('clamp is not supported for complex types')
    far = torch.clamp_min(torch.full_like(self, margin) - self, 0)
    loss = torch.where(target == 1, zeros, far) + torch.where(target == -1, zeros, self)"),
    ),
    composite(
        "aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
        reduced!("def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    if target.dim() > 1:
        raise RuntimeError('0D or 1D target tensor expected, multi-target not supported')
    if target.dim() == 1 and (input1.dim() != 2 or input2.dim() != 2):
        raise RuntimeError('1D target tensor expects 2D input tensors, but found inputs with sizes ' + str(input1.size()) + ' and ' + str(input2.size()) + '.')
    if target.dim() == 0 and (input1.dim() != 1 or input2.dim() != 1):
        raise RuntimeError('0D target tensor expects 1D input tensors, but found inputs with sizes ' + str(input1.size()) + ' and ' + str(input2.size()) + '.')
    dim = target.dim()
    product = torch.sum(input1 * input2, dim)
    size1 = torch.sum(input1 * input1, dim) + 1e-12
    size2 = torch.sum(input2 * input2, dim) + 1e-12
    cosine = product / torch.sqrt(size1 * size2)
    zeros = torch.zeros_like(cosine)
    near = torch.where(target == 1, torch.rsub(cosine, 1.0), zeros)
    loss = near + torch.where(target == -1, torch.clamp_min(cosine - margin, 0.0), zeros)"),
    ),
    composite(
        "aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
        reduced!("def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    gap = -target * (input1 - input2) + margin
    if gap.is_complex():
        raise NotImplementedError('clamp is not supported for complex types')
    loss = torch.clamp_min(gap, 0)"),
    ),
    composite(
        "aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        reduced!("def soft_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    # In place as in PyTorch, which refuses what does not fit into the first argument.
    loss = torch.log1p((-self).mul_(target).exp_())"),
    )
    .out_found("out"),
    composite(
        "aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
        reduced!("def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    if log_input:
        loss = torch.exp(input) - target * input
    else:
        loss = input - target * torch.log(input + eps)
    if full:
        stirling = target * torch.log(target) - target + torch.log(target * 6.283185307179586) * 0.5
        loss = loss.add_(stirling.masked_fill(target <= 1, 0.0))"),
    ),
    composite(
        "aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
        reduced!("def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool, reduction: int) -> Tensor:
    if anchor.dim() != positive.dim() or positive.dim() != negative.dim():
        raise RuntimeError('The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor ' + str(anchor.dim()) + 'D, positive ' + str(positive.dim()) + 'D, and negative ' + str(negative.dim()) + 'D inputs')
    near = torch.pairwise_distance(anchor, positive, p, eps)
    far = torch.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = torch.minimum(far, torch.pairwise_distance(positive, negative, p, eps))
    loss = torch.clamp_min(near - far + margin, 0.0)"),
    ),
    composite(
        "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
        include_str!("composites/cosine_similarity.py"),
    )
    .facts(&[Fact::Layers]),
    composite(
        "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor",
        include_str!("composites/cross_entropy_loss.py"),
    ),
    composite(
        "aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
        "def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    factor = 2.0
    if reduction == 1:
        factor = 2.0 / float(self.numel())
    return (self - target) * grad_output * factor
",
    ),
];
