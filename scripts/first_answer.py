"""From the file of a model to its first answer, in a process of its own: reading the file, whatever is prepared or compiled, one call.

    python scripts/first_answer.py FLAMBEAU [SCRATCH] [--only NAME,...]

Prints one JSON line a model: milliseconds of Flambeau (`run --time`: loaded and called), torch.jit, ONNX Runtime and OpenVINO, each the least
of five processes, imports of Python not counted, and Flambeau's divided by the least of the peers. Batch 1, 3 x 224 x 224, one core; files
are in the system's cache. Needs torch, torchvision, onnx, onnxruntime and openvino.
"""
import json
import os
import re
import subprocess
import sys

from memory import models

RUNS = 5
PEER = """
import sys, time
import numpy
image = numpy.random.default_rng(0).standard_normal((1, 3, 224, 224), numpy.float32)
name, folder = sys.argv[1:]
if name == "jit":
    import torch
    torch.set_num_threads(1)
    image = torch.from_numpy(image)
    def first():
        with torch.no_grad():
            torch.jit.load(folder + "/model.pt")(image)
elif name == "onnxruntime":
    import onnxruntime
    def first():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(folder + "/model.onnx", options, providers=["CPUExecutionProvider"])
        session.run(None, {session.get_inputs()[0].name: image})
else:
    import openvino
    def first():
        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"})
        core.compile_model(folder + "/model.onnx", "CPU").create_infer_request().infer([image])
begin = time.perf_counter()
first()
print((time.perf_counter() - begin) * 1e3)
"""


def ours(binary, folder):
    """Milliseconds of reading a model and calling it."""
    command = [binary, "run", f"{folder}/model.pt", "--input", "x=float32[1,3,224,224]", "--threads", "1", "--time"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded, called = re.search(r"loaded in ([\d.]+) ms, called in ([\d.]+) ms", done.stdout + done.stderr).groups()
    return float(loaded) + float(called)


def peer(name, folder):
    return float(subprocess.check_output([sys.executable, "-c", PEER, name, folder], stderr=subprocess.DEVNULL))


def main():
    binary, folders = models(__doc__)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name, folder in folders:
        times = {"flambeau": min(ours(binary, folder) for _ in range(RUNS))}
        for runner in ["jit", "onnxruntime", "openvino"]:
            times[runner] = min(peer(runner, folder) for _ in range(RUNS))
        least = min(time for runner, time in times.items() if runner != "flambeau")
        rounded = {runner: round(time, 1) for runner, time in times.items()}
        print(json.dumps({"model": name, **rounded, "ratio": round(times["flambeau"] / least, 2)}), flush=True)


if __name__ == "__main__":
    main()
