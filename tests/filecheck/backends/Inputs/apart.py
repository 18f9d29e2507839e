def f(x: Tensor, w: Tensor):
    y = torch.mm(x, w).relu() * 2
    z = torch.sort(y)[0] + 1
    return torch.addmm(w, z, w)
