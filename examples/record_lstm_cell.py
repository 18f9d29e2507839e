"""Records examples/lstm_cell.pt with PyTorch's answer in examples/lstm_cell.json.

Needs PyTorch 2.15.0; run from the repository's root: python examples/record_lstm_cell.py
The model is a real scripted LSTM cell with its weights; the JSON holds one case in the format of `flambeau check`.
"""
import base64
import json
import linecache
import torch

SOURCE = '''
import torch


class LSTMCell(torch.nn.Module):
    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.w_ih = torch.nn.Parameter(torch.randn(4 * hidden, inputs) * 0.2)
        self.w_hh = torch.nn.Parameter(torch.randn(4 * hidden, hidden) * 0.2)
        self.b_ih = torch.nn.Parameter(torch.randn(4 * hidden) * 0.1)
        self.b_hh = torch.nn.Parameter(torch.randn(4 * hidden) * 0.1)

    def forward(self, x: torch.Tensor, hx: torch.Tensor, cx: torch.Tensor):
        gates = torch.mm(x, self.w_ih.t()) + torch.mm(hx, self.w_hh.t()) + self.b_ih + self.b_hh
        ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
        ingate = torch.sigmoid(ingate)
        forgetgate = torch.sigmoid(forgetgate)
        cellgate = torch.tanh(cellgate)
        outgate = torch.sigmoid(outgate)
        cy = (forgetgate * cx) + (ingate * cellgate)
        hy = outgate * torch.tanh(cy)
        return hy, cy
'''

# The archive names the file that the code comes from; a file that does not exist reveals no one's folders.
NAME = "lstm_cell.py"
linecache.cache[NAME] = (len(SOURCE), None, SOURCE.splitlines(True), NAME)
space = {"__name__": "lstm_cell"}
exec(compile(SOURCE, NAME, "exec"), space)
module = type(torch)("lstm_cell")
module.__dict__.update(space)
module.__file__ = NAME
__import__("sys").modules["lstm_cell"] = module
LSTMCell = space["LSTMCell"]


def encode(value):
    if isinstance(value, tuple):
        return {"tuple": [encode(v) for v in value]}
    data = base64.b64encode(value.detach().contiguous().numpy().tobytes()).decode()
    return {"tensor": {"dtype": "float32", "shape": list(value.shape), "data": data}}


torch.manual_seed(0)
model = torch.jit.script(LSTMCell(12, 16).eval())
arguments = (torch.randn(3, 12), torch.randn(3, 16), torch.randn(3, 16))
answer = model(*arguments)
torch.jit.save(model, "examples/lstm_cell.pt")
case = {"name": "lstm_cell", "entry": "forward", "args": [encode(a) for a in arguments], "returns": encode(answer),
        "recorded_with": torch.__version__}
with open("examples/lstm_cell.json", "w") as out:
    out.write(json.dumps(case) + "\n")
