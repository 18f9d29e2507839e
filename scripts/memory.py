"""Memory of one call of the seven models beside ONNX Runtime: activations at their peak against what a session's memory grows by.

    python scripts/memory.py FLAMBEAU [SCRATCH] [--only NAME,...]

Prints one JSON line a model: `peak`, the most bytes of results that live at one time in Flambeau's plan (`explain --json`), and
`onnxruntime`, the peak of a process of ONNX Runtime in its first answer less its memory when the session was ready (the least of
three). Batch 1, 3 x 224 x 224, one thread. Needs torch, torchvision, onnx and onnxruntime.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
import torch
import torchvision

torch.set_num_threads(1)
torch.backends.mha.set_fastpath_enabled(False)  # its fused op has no ONNX form
MODELS = ["resnet18", "mobilenet_v2", "efficientnet_b0", "densenet121", "convnext_tiny", "swin_t", "vit_b_16"]

# In a process of its own: what a session has freed goes back to the system before the first answer is measured.
GROWTH = """
import ctypes, gc, sys
import numpy, onnxruntime
def status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) * 1024
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
image = numpy.random.default_rng(0).standard_normal((1, 3, 224, 224), numpy.float32)
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS:")
session.run(None, {session.get_inputs()[0].name: image})
print(status("VmHWM:") - before)
"""


def save(name, folder):
    """The traced model and its ONNX form."""
    torch.manual_seed(0)
    model, image = getattr(torchvision.models, name)(weights=None).eval(), torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(model, (image,), check_trace=False), f"{folder}/model.pt")
        torch.onnx.export(model, (image,), f"{folder}/model.onnx", dynamo=False)


def models(about):
    """The binary, and name and folder of each wanted model, as the command line says; models are made where they are not there."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flambeau", help="the binary")
    parser.add_argument("scratch", nargs="?", help="a folder for models")
    parser.add_argument("--only", help="names, with commas")
    options = parser.parse_args()
    scratch = options.scratch or tempfile.mkdtemp()
    wanted = options.only.split(",") if options.only else MODELS
    folders = [(name, os.path.join(scratch, name)) for name in MODELS if name in wanted]
    for name, folder in folders:
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(f"{folder}/model.onnx"):
            save(name, folder)
    return os.path.abspath(options.flambeau), folders


def main():
    binary, folders = models(__doc__)
    for name, folder in folders:
        child = [sys.executable, "-c", GROWTH, f"{folder}/model.onnx"]
        growth = min(int(subprocess.check_output(child)) for _ in range(3))
        command = [binary, "explain", f"{folder}/model.pt", "--input", "x=float32[1,3,224,224]", "--threads", "1", "--json"]
        explained = json.loads(subprocess.check_output(command, stderr=subprocess.DEVNULL))
        peak = explained["plans"][0]["memory"]["peak"]
        print(json.dumps({"model": name, "peak": peak, "onnxruntime": growth, "ratio": round(peak / growth, 2)}), flush=True)


if __name__ == "__main__":
    main()
