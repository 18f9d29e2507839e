def cross_entropy_loss(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int, label_smoothing: float) -> Tensor:
    dim = 1
    if self.dim() == 1:
        dim = 0
    classes = self.size(dim)
    if self.size() == target.size():
        if not target.is_floating_point():
            raise RuntimeError('Expected floating point type for target with class probabilities, got ' + torch.ops.prim.dtype_name(target.dtype))
        if ignore_index >= 0:
            raise RuntimeError('ignore_index is not supported for floating point target')
        if weight is not None and (weight.dim() != 1 or weight.numel() != classes):
            raise RuntimeError('cross_entropy: weight tensor should be defined either for all ' + str(classes) + ' classes or no classes but got weight tensor of shape: ' + str(weight.size()))
        logs = torch.log_softmax(self, dim)
        if label_smoothing > 0.0:
            target = target * (1.0 - label_smoothing) + label_smoothing / float(classes)
        if weight is not None:
            shape = [1] * self.dim()
            shape[dim] = classes
            logs = logs * weight.reshape(shape)
        loss = -torch.sum(logs * target, [dim])
        if reduction == 1:
            if self.dim() == 1:
                return torch.sum(loss)
            return torch.sum(loss) / float(loss.numel())
        if reduction == 2:
            return torch.sum(loss)
        return loss
    if label_smoothing < 0.0 or label_smoothing > 1.0:
        raise RuntimeError('label_smoothing must be between 0.0 and 1.0. Got: ' + str(label_smoothing))
    logs = torch.log_softmax(self, dim)
    sharp = torch.nll_loss_nd(logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0.0:
        return sharp
    if weight is not None:
        shape = [1] * self.dim()
        shape[dim] = classes
        logs = logs * weight.reshape(shape)
    ignored = target == ignore_index
    smooth = (-torch.sum(logs, [dim])).masked_fill(ignored, 0.0)
    if reduction == 1:
        if weight is not None:
            kept = torch.masked_select(target, torch.logical_not(ignored))
            smooth = torch.sum(smooth) / torch.sum(torch.index_select(weight, 0, kept))
        else:
            smooth = torch.sum(smooth) / torch.sum(torch.logical_not(ignored))
    elif reduction == 2:
        smooth = torch.sum(smooth)
    return sharp * (1.0 - label_smoothing) + smooth * (label_smoothing / float(classes))
