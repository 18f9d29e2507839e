"""Records `my_module.pt`, the scripted module of the founding documents' C++ program, and what it answers. Needs torch 2.15.0."""

import torch


class Traced(torch.nn.Module):
    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(n, m))
        self.linear = torch.nn.Linear(n, m)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self.linear(self.weight.mm(input))


class Scripted(torch.nn.Module):
    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.sub_module = torch.jit.trace(Traced(n, m).eval(), (torch.zeros(3, 2),))

    def forward(self, input: torch.Tensor, do_linear: bool) -> torch.Tensor:
        output = self.sub_module(input[:, :2])
        if do_linear:
            output = self.linear(output)
        return output


torch.manual_seed(0)
module = torch.jit.script(Scripted(2, 3).eval())
module.save("my_module.pt")
x = torch.zeros(3, 3)
print(module(x, False))
print(module(torch.arange(9.0).reshape(3, 3), True))
