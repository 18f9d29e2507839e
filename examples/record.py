"""Records what real PyTorch answers, as a case folder for `flambeau check FOLDER`.

    python record.py model.pt case --input x=float32[1,3,224,224]
    python record.py torchvision.models:resnet18 case --trace --input float32[1,3,224,224] --ops

MODEL is an archive of torch.jit.save, or MODULE:NAME, a function that gives a model, a module class without arguments, or a
model. The folder gets model.pt and case.json, and with --ops the value of each op of the model's graph (calls inlined).
Inputs are written as for `flambeau run --input`: [NAME=]float32[2,3] (random numbers), int64[2,16]{0..30000}, @file.npy,
and JSON. Without any, a traced archive is called with inputs of the recorded sizes. Needs PyTorch 2.x and nothing else; .npy
files need NumPy.
"""
import argparse
import base64
import ctypes
import importlib
import io
import json
import math
import os
import re
import struct
import sys
import warnings

import torch

warnings.simplefilter("ignore")
SHORT = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16",
         "i32": "int32", "i64": "int64", "u8": "uint8"}
TENSOR = re.compile(r"(?:torch\.)?([a-z]+\d*)\[([\d,\s]*)\](?:\{([^}]*)\.\.([^}]*)\})?$")


def random(dtype, sizes, low, high):
    """Random numbers of a dtype: normal ones, or from low to below high."""
    if dtype.is_complex or dtype.is_floating_point and low is None:
        return torch.randn(sizes, dtype=torch.float32 if dtype.itemsize < 4 else dtype).to(dtype)
    if dtype.is_floating_point:
        return (torch.rand(sizes, dtype=torch.float64) * (high - low) + low).to(dtype)
    low, high = (0, 2 if dtype == torch.bool else 10) if low is None else (int(low), int(high))
    return torch.randint(low, high, sizes).to(dtype)


def split(text):
    """Items of a text between brackets, cut at commas outside of inner brackets."""
    items, depth, start = [], 0, 0
    for n, letter in enumerate(text):
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            items.append(text[start:n])
            start = n + 1
    return [item for item in [*items, text[start:]] if item.strip()]


def value(text):
    """The value of an input."""
    text = text.strip()
    if text.startswith("@"):
        if text.endswith(".npy"):
            import numpy
            return torch.from_numpy(numpy.load(text[1:]))
        return torch.load(text[1:])
    found = TENSOR.match(text)
    if found:
        dtype = getattr(torch, SHORT.get(found[1], found[1]))
        low, high = (float(x) if x else None for x in found.group(3, 4))
        return random(dtype, [int(n) for n in found[2].split(",") if n.strip()], low, high)
    constants = {"True": True, "False": False, "None": None, "nan": math.nan, "inf": math.inf}
    if text in constants:
        return constants[text]
    try:
        return json.loads(text)
    except ValueError:
        pass
    if text[:1] + text[-1:] in ("[]", "()"):
        items = [value(item) for item in split(text[1:-1])]
        return items if text[0] == "[" else tuple(items)
    sys.exit(f"record.py: '{text}' is not an input: they are float32[1,3,224,224], 5, @mask.npy or JSON")


def encode(x):
    """A value as case files hold it."""
    def number(f):
        return f if math.isfinite(f) else "nan" if math.isnan(f) else "inf" if f > 0 else "-inf"
    if x is None:
        return {"none": None}
    if isinstance(x, bool):
        return {"bool": x}
    if isinstance(x, (int, str)):
        return {type(x).__name__: x}
    if isinstance(x, float):
        return {"float": number(x)}
    if isinstance(x, complex):
        return {"complex": [number(x.real), number(x.imag)]}
    if isinstance(x, torch.Tensor):
        name = str(x.dtype).removeprefix("torch.")
        return {"tensor": {"dtype": name, "shape": list(x.shape), "data": base64.b64encode(raw(x)).decode()}}
    if isinstance(x, tuple):
        return {"tuple": [encode(item) for item in x]}
    if isinstance(x, list):
        return {"list": [encode(item) for item in x]}
    if isinstance(x, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in x.items()]}
    sys.exit(f"record.py: a {type(x).__name__} cannot be recorded")


def raw(x):
    """The bytes of a tensor, little-endian, row by row."""
    x = x.detach().cpu().contiguous()
    return ctypes.string_at(x.data_ptr(), x.nbytes) if x.numel() else b""


def load(name, inputs, trace):
    """The model as TorchScript."""
    if ":" not in name or os.path.exists(name):
        return torch.jit.load(name, map_location="cpu").eval()
    module, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())
    model = getattr(importlib.import_module(module), attribute)
    if not isinstance(model, torch.nn.Module):
        model = model()
    model = model.eval()
    if isinstance(model, torch.jit.ScriptModule):
        return model
    if trace:
        return torch.jit.trace(model, tuple(inputs))
    try:
        return torch.jit.script(model)
    except Exception as error:
        sys.exit(f"record.py: the model cannot be scripted, try --trace\n{error}")


def traced_inputs(path):
    """What a traced archive records of the inputs of `forward`: tensors by their sizes."""
    import pickle
    import zipfile
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("/traced_inputs.pkl")]
        if not names:
            return None

        class Sizes(pickle.Unpickler):
            def persistent_load(self, saved):
                return saved[1]

            def find_class(self, module, name):
                if name.startswith("_rebuild_tensor"):
                    def sizes(storage, offset, size, *rest):
                        return random(getattr(storage, "dtype", torch.float32), list(size), None, None)
                    return sizes
                if module == "torch" and name.endswith("Storage"):
                    return getattr(torch, name)
                if module == "torch.jit._pickle":
                    return lambda x, *tag: x
                if module == "collections" and name == "OrderedDict":
                    return dict
                raise pickle.UnpicklingError(f"{module}.{name}")
        return Sizes(io.BytesIO(archive.read(names[0]))).load().get("forward")


def record_ops(model, entry, arguments, folder):
    """Writes the value of each op of the graph: kinds to ops.json, tensors to ops.safetensors."""
    graph = model._c._get_method(entry).graph.copy()
    torch._C._jit_pass_inline(graph)
    nodes = [node for node in graph.nodes() if node.kind() not in ("prim::Constant", "prim::GetAttr")]
    # An operator of our own, since some results are undefined, which aten::clone refuses.
    library = torch.library.Library("flambeau_record", "DEF")
    library.define("copies(Tensor? x) -> Tensor[]")
    library.impl("copies", lambda x: [] if x is None else [x.detach().clone()], "CompositeExplicitAutograd")
    ops, copies = [], []
    for node in nodes:
        results, last = [], node
        for output in node.outputs():
            if output.type().kind() != "TensorType":
                results.append(None)
                continue
            # A copy at once: ops further down may write to the tensor.
            copy = graph.create("flambeau_record::copies", [output], 1)
            copy.output().setType(torch._C.ListType.ofTensors())
            copy.insertAfter(last)
            last = copy
            results.append(str(len(copies)))
            copies.append(copy.output())
        ops.append({"kind": node.kind(), "results": results, "scope": node.scopeName()})
    for n in reversed(range(len(list(graph.outputs())))):
        graph.eraseOutput(n)
    everything = graph.create("prim::TupleConstruct", copies, 1)
    everything.insertBefore(graph.return_node())
    everything.output().setType(torch._C.TupleType([torch._C.ListType.ofTensors()] * len(copies)))
    graph.registerOutput(everything.output())
    values = torch._C._create_function_from_graph(entry, graph)(model._c, *arguments)
    names = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
             torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
    header, data, at = {}, [], 0
    for n, held in enumerate(values):
        if not held or held[0].dtype not in names:
            continue
        tensor = held[0]
        data.append(raw(tensor))
        header[str(n)] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(data[-1])]}
        at += len(data[-1])
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(os.path.join(folder, "ops.json"), "w") as out:
        json.dump(ops, out, indent=0)
    with open(os.path.join(folder, "ops.safetensors"), "wb") as out:
        out.write(struct.pack("<Q", len(head)) + head + b"".join(data))
    return len(ops)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="an archive, or MODULE:NAME")
    parser.add_argument("folder", help="the folder to write")
    parser.add_argument("--input", action="append", default=[], metavar="[NAME=]VALUE", help="an input, in order or by name")
    parser.add_argument("--entry", default="forward", help="the method to call")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs and of the call")
    parser.add_argument("--trace", action="store_true", help="trace a Python model instead of scripting it")
    parser.add_argument("--ops", action="store_true", help="record the value of each op too")
    parser.add_argument("--tolerance", type=float, help="relative and absolute tolerance in place of the usual ones")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    positional, named = [], {}
    for word in options.input:
        name = re.match(r"([A-Za-z_]\w*)=", word)
        if name:
            named[name[1]] = value(word[name.end():])
        else:
            positional.append(value(word))
    model = load(options.model, [*positional, *named.values()], options.trace)
    method = getattr(model, options.entry)
    arguments = [argument.name for argument in method.schema.arguments[1:]]
    if not options.input and ":" not in options.model:
        positional = list(traced_inputs(options.model) or [])
    given = dict(zip(arguments, positional)) | named
    last = max((arguments.index(name) + 1 for name in given), default=0)
    defaults = {argument.name: argument.default_value for argument in method.schema.arguments if argument.has_default_value()}
    missing = [name for name in arguments[:last] if name not in given and name not in defaults]
    if missing or not set(given) <= set(arguments):
        sys.exit(f"record.py: the inputs are {method.schema}; missing: {', '.join(missing) or 'none'}")
    values = [given.get(name, defaults.get(name)) for name in arguments[:last]]
    os.makedirs(options.folder, exist_ok=True)
    torch.jit.save(model, os.path.join(options.folder, "model.pt"))
    case = {"entry": options.entry, "args": [encode(v) for v in values], "recorded_with": torch.__version__}
    with torch.no_grad():
        if options.ops:
            count = record_ops(model, options.entry, [copied(v) for v in values], options.folder)
        torch.manual_seed(0)
        case["returns"] = encode(method(*[copied(v) for v in values]))
    if options.tolerance is not None:
        case["tol"] = options.tolerance
    with open(os.path.join(options.folder, "case.json"), "w") as out:
        json.dump(case, out)
    print(f"{options.folder}: recorded with PyTorch {torch.__version__}" + (f", {count} ops" if options.ops else ""))


def copied(x):
    """The same value in tensors of its own: models may write to their arguments."""
    if isinstance(x, torch.Tensor):
        return x.clone()
    if isinstance(x, (list, tuple)):
        return type(x)(copied(item) for item in x)
    return {key: copied(item) for key, item in x.items()} if isinstance(x, dict) else x


main()
