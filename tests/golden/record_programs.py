"""Records what PyTorch answers for the programs in tests/programs, in the format of `flambeau check`.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_programs.py [--archives tests/golden/modules.jsonl] [FILE...] > tests/golden/programs.jsonl

A file holds programs separated by lines `#--- name`. A line `#> f(1, [2])` behind a program asks for that call;
a program without one is only compiled. A program that says `#! module` is ordinary Python, whose object
`model` (a module or a function) is scripted and saved; such cases carry an archive and are written only with
--archives, as archives are large.
"""

import argparse
import base64
import contextlib
import copy
import io
import json
import linecache
import os
import pathlib
import re
import sys
import tempfile
import warnings

import torch

warnings.filterwarnings("ignore")


def encode(value):
    if value is None:
        return {"none": None}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, float):
        names = {float("inf"): "inf", float("-inf"): "-inf"}
        return {"float": "nan" if value != value else names.get(value, value)}
    if isinstance(value, complex):
        return {"complex": [encode(part)["float"] for part in (value.real, value.imag)]}
    if isinstance(value, str):
        return {"str": value}
    if isinstance(value, torch.Tensor):
        flat = value.detach().contiguous().cpu()
        data = bytes(flat.flatten().view(torch.uint8).tolist()) if flat.numel() else b""
        return {
            "tensor": {
                "dtype": str(value.dtype).removeprefix("torch."),
                "shape": list(value.shape),
                "data": base64.b64encode(data).decode(),
            }
        }
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, list):
        return {"list": [encode(item) for item in value]}
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(k), encode(v)] for k, v in value.items()]}
    raise TypeError(f"no case encoding for {type(value)}")


def raised(when, error):
    name = type(error).__name__
    return {"when": when, "class": "torch.jit.Error" if name == "Error" else name, "message": str(error)}


def call(case, function, args):
    """Runs a call and notes the answer, what it printed and what it did to its arguments."""
    case["args"] = [encode(arg) for arg in args]
    printed = io.StringIO()
    given = copy.deepcopy(args)
    try:
        with contextlib.redirect_stdout(printed):
            case["returns"] = encode(function(*given))
    except Exception as error:
        case["raises"] = raised("run", error)
    if printed.getvalue():
        case["stdout"] = printed.getvalue()
    after = [encode(arg) for arg in given]
    if after != case["args"]:
        case["args_after"] = after


def parts(text):
    """The calls asked for, and the program without them."""
    calls = re.findall(r"^#> *(\w+)\((.*)\)$", text, flags=re.M)
    return calls, re.sub(r"^#[>!].*\n", "", text, flags=re.M)


def arguments(text):
    return list(eval(f"({text},)" if text.strip() else "()", {"torch": torch, "inf": float("inf")}))


def compile_source(source):
    # A frame without variables of its own: PyTorch looks up the names of a program where it is compiled.
    from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union  # noqa: F401
    import cmath  # noqa: F401
    import math  # noqa: F401
    import torch.nn.functional as F  # noqa: F401
    from torch import Tensor  # noqa: F401

    return torch.jit.CompilationUnit(source)


def record_source(name, text):
    calls, source = parts(text)
    base = {"name": name, "source": source, "how": "source"}
    try:
        unit = compile_source(source)
    except Exception as error:
        entry = calls[0][0] if calls else re.search(r"def (\w+)", source).group(1)
        yield {**base, "entry": entry, "raises": raised("compile", error)}
        return
    for n, (entry, args) in enumerate(calls):
        case = {**base, "name": f"{name}.{n}" if len(calls) > 1 else name, "entry": entry}
        call(case, getattr(unit, entry), arguments(args))
        yield case


def record_module(case_name, text, folder):
    name = case_name.replace(".", "_")
    calls, source = parts(text)
    # A relative name: it is shown in recorded errors.
    os.chdir(folder)
    path = f"{name}.py"
    pathlib.Path(path).write_text(source)
    linecache.checkcache()
    base = {"name": case_name, "source": source, "how": "script"}
    space = {"__name__": name, "__file__": path}
    module = type(sys)(name)
    module.__dict__.update(space)
    sys.modules[name] = module
    try:
        exec(compile(source, path, "exec"), module.__dict__)
        model = module.model
        scripted = model if isinstance(model, torch.jit.ScriptModule) else torch.jit.script(model)
    except Exception as error:
        yield {**base, "entry": "forward", "raises": raised("compile", error)}
        return
    try:
        buffer = io.BytesIO()
        torch.jit.save(scripted, buffer)
        base["pt"] = base64.b64encode(buffer.getvalue()).decode()
    except Exception as error:
        print(f"{name} cannot be saved: {str(error)[:300]}", file=sys.stderr)
        return
    for n, (entry, args) in enumerate(calls):
        case = {**base, "name": f"{case_name}.{n}" if len(calls) > 1 else case_name, "entry": entry}
        buffer.seek(0)
        loaded = torch.jit.load(buffer)
        call(case, getattr(loaded, entry), arguments(args))
        yield case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--archives")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    here = pathlib.Path(__file__).parent
    files = options.files or sorted((here.parent / "programs").glob("*.py"))
    archives = open(options.archives, "w") if options.archives else None
    for file in map(pathlib.Path, files):
        chunks = re.split(r"^#--- *(\S+).*\n", file.read_text(), flags=re.M)
        for name, text in zip(chunks[1::2], chunks[2::2]):
            name = f"{file.stem}.{name}"
            read, write = os.pipe()
            # Some programs end PyTorch's process.
            child = os.fork()
            if child == 0:
                os.close(read)
                with os.fdopen(write, "w") as out, tempfile.TemporaryDirectory() as folder:
                    is_module = re.search(r"^#! *module", text, flags=re.M)
                    cases = record_module(name, text, folder) if is_module else record_source(name, text)
                    for case in cases:
                        print(json.dumps(case), file=out)
                    out.flush()
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as result:
                for line in result:
                    target = archives if '"how": "script"' in line else sys.stdout
                    if target:
                        target.write(line)
            _, status = os.waitpid(child, 0)
            if status:
                print(f"{name}: the process ended with status {status}", file=sys.stderr)


if __name__ == "__main__":
    main()
