"""Models that are called with another size each time, beside their peers: sentences, sounds and images, batch 1, float32, random weights.

    [THREADS=1] python scripts/varying_sizes.py FLAMBEAU [--only NAME,...] [--scratch FOLDER]

Calls each model with 60 sizes in turn, at least three times over, on the first THREADS cores, from a cold start: the model is loaded, and
nothing was called yet. Times `flambeau bench`, torch.jit (the same file), ONNX Runtime and OpenVINO (an ONNX file that leaves the sizes
open), each in a process of its own and with just as many calls, in turn, twice. Prints one JSON line a model: milliseconds a call, the
least of both times. `mean` has all that new sizes cost, the first call too, `median` hardly any of it. `ratio_mean` and `ratio_median` are
Flambeau's divided by the best peer's, and the last line has their geometric means. Of Flambeau's best run there are the longest call and the
plans too. It begins with no kernels on disk each time; FLAMBEAU_CACHE names a folder of them instead.

Needs torch, torchvision, transformers, onnx, onnxscript, onnxruntime and openvino. Answers of peers are compared with those of PyTorch at
other sizes than the one that was exported; a peer that cannot take a model is named and left out.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy

warnings.filterwarnings("ignore")
THREADS = int(os.environ.get("THREADS", "1"))
os.environ["OMP_NUM_THREADS"] = str(THREADS)
os.environ["HF_HUB_OFFLINE"] = "1"
ROUNDS = 2
LENGTHS = random.Random(0).sample(range(16, 129), 60)  # no two are the same
CALLS = 3 * len(LENGTHS)
MOST_CALLS = 4 * len(LENGTHS)
EXPORTED = 64
CHECKED = [23, 100]
PEERS = ["jit", "onnxruntime", "openvino"]
# What the sizes of the input are for a length, and which of them differ.
SIZES = {
    "bert": (lambda length: (1, length), [1]),
    "encoder": (lambda length: (1, length, 256), [1]),
    "wav2vec2": (lambda length: (1, 200 * length), [1]),
    "resnet18": (lambda length: (1, 3, 64 + 2 * length, 96 + length), [2, 3]),
    "mobilenet_v2": (lambda length: (1, 3, 64 + 2 * length, 96 + length), [2, 3]),
}
WORDS = {"bert"}  # models whose inputs are numbers of words


def sample(name, length):
    """An input of a length."""
    numbers, sizes = numpy.random.default_rng(length), SIZES[name][0](length)
    return numbers.integers(3, 1000, sizes) if name in WORDS else numbers.standard_normal(sizes, numpy.float32)


def module(name):
    """The model, which gives one tensor, and what TorchScript makes of it."""
    import torch

    class First(torch.nn.Module):
        """A model that gives its first output."""

        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x)[0]

    torch.manual_seed(0)
    if name == "encoder":
        layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
        model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval()
        return model, torch.jit.script(model)
    if name in ("bert", "wav2vec2"):
        import transformers
        transformers.logging.set_verbosity_error()
        of, settings = {"bert": (transformers.BertModel, transformers.BertConfig),
                        "wav2vec2": (transformers.Wav2Vec2Model, transformers.Wav2Vec2Config)}[name]
        model = First(of(settings(num_hidden_layers=4, return_dict=False))).eval()
    else:
        import torchvision
        model = getattr(torchvision.models, name)(weights=None).eval()
    return model, torch.jit.trace(model, (torch.from_numpy(sample(name, EXPORTED)),), check_trace=False, strict=False)


def export(name, model, path):
    """Writes the ONNX form, of the first exporter whose sizes stay open."""
    import torch
    x, differing = torch.from_numpy(sample(name, EXPORTED)), SIZES[name][1]
    exporters = {
        "dynamo=False": lambda: torch.onnx.export(
            model, (x,), path, dynamo=False, input_names=["x"], dynamic_axes={"x": {at: f"size{at}" for at in differing}}),
        "dynamo=True": lambda: torch.onnx.export(
            model, (x,), path, dynamo=True, external_data=False, verbose=False,
            dynamic_shapes=({at: torch.export.Dim.DYNAMIC for at in differing},)),
    }
    for exporter, write in exporters.items():
        try:
            write()
            check(name, onnxruntime_of(path), os.path.dirname(path))
            return
        except Exception as error:
            print(f"{name}: torch.onnx.export with {exporter}: {first_line(error)}", file=sys.stderr)
            if os.path.exists(path):
                os.remove(path)


def first_line(error):
    return (str(error).strip().splitlines() or [repr(error)])[0][:200]


def make(name, folder):
    """Writes a model, answers of it and its ONNX form."""
    import torch
    torch.backends.mha.set_fastpath_enabled(False)  # its fused op has no ONNX form
    os.makedirs(folder, exist_ok=True)
    with torch.no_grad():
        model, script = module(name)
        torch.jit.save(script, f"{folder}/model.pt")
        answers = {str(length): model(torch.from_numpy(sample(name, length))).numpy() for length in CHECKED}
        numpy.savez(f"{folder}/answers.npz", **answers)
        export(name, model, f"{folder}/model.onnx")


def check(name, call, folder):
    """Fails where answers are not those of PyTorch."""
    answers = numpy.load(f"{folder}/answers.npz")
    for length in CHECKED:
        given, wanted = call(sample(name, length)), answers[str(length)]
        if given.shape != wanted.shape:
            raise ValueError(f"sizes of the answer at length {length} are {given.shape} instead of {wanted.shape}")
        largest = abs(wanted).max()  # that of random weights may be tiny
        if not numpy.allclose(given, wanted, rtol=1e-3, atol=1e-3 * largest):
            raise ValueError(f"the answer at length {length} is off by {abs(given - wanted).max():.2g} of {largest:.2g}")


def jit_of(path):
    import torch
    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    model = torch.jit.load(path)
    return lambda x: model(torch.from_numpy(x)).numpy()


def onnxruntime_of(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 4  # what fails is raised
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0]


def openvino_of(path):
    import openvino
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"})
    request = core.compile_model(path, "CPU").create_infer_request()
    return lambda x: request.infer([x])[0]


def as_peer(peer, name, folder, calls):
    """In a process of its own: milliseconds of each call, as JSON."""
    load, file = {"jit": (jit_of, "model.pt"), "onnxruntime": (onnxruntime_of, "model.onnx"),
                  "openvino": (openvino_of, "model.onnx")}[peer]
    inputs = [sample(name, length) for length in LENGTHS]
    call, times = load(f"{folder}/{file}"), []
    for at in range(calls):
        start = time.perf_counter()
        answer = call(inputs[at % len(inputs)])
        times.append((time.perf_counter() - start) * 1e3)
        del answer  # given back outside of the measured time, as `flambeau bench` does
    check(name, call, folder)
    print(json.dumps(times))


def theirs(peer, name, folder, calls):
    """Mean and median of a peer, or None where it cannot take the model."""
    command = [sys.executable, __file__, "--peer", peer, "--only", name, "--scratch", os.path.dirname(folder), "--calls", str(calls)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{name}: without {peer}: {(done.stderr.strip().splitlines() or [done.returncode])[-1]}", file=sys.stderr)
        return None
    times = json.loads(done.stdout.splitlines()[-1])
    return {"mean": statistics.fmean(times), "median": statistics.median(times)}


def bench(binary, name, folder, seconds):
    """What `flambeau bench` says."""
    words = [f"{'int64' if name in WORDS else 'float32'}[{','.join(map(str, SIZES[name][0](length)))}]" for length in LENGTHS]
    first, *others = [word + "{3..1000}" if name in WORDS else word for word in words]
    command = [binary, "bench", f"{folder}/model.pt", "--threads", str(THREADS), "--warmup", "0", "--json", "--seconds", f"{seconds:.3f}",
               "--input", first] + [word for other in others for word in ("--also", other)]
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(command, capture_output=True, text=True, env={"FLAMBEAU_CACHE": cache, **os.environ})
    said = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {"error": done.stderr.strip()}
    if done.returncode or "error" in said:
        sys.exit(f"{name}: flambeau bench: {said.get('error', done.stderr.strip())}")
    return said


def ours(binary, name, folder, seconds):
    """Mean and median of Flambeau; and the seconds in which it makes as many calls as are wanted, to begin with at the next time."""
    for _ in range(12):
        said = bench(binary, name, folder, seconds)
        calls = said["calls"] + 1
        if CALLS <= calls <= MOST_CALLS:
            break
        # New sizes cost more than the calls that are too many or too few.
        seconds = max(seconds + ((CALLS + MOST_CALLS) / 2 - calls) * said["median_us"] / 1e6, 0.01)
    else:
        sys.exit(f"{name}: flambeau bench makes {calls} calls in {seconds:.3f} s")
    # The first call is not among the timed ones.
    mean = (said["first_us"] + said["calls"] / said["calls_per_second"] * 1e6) / calls
    longest = max(said["first_us"], said["max_us"])
    return {"mean": mean / 1e3, "median": said["median_us"] / 1e3, "longest": longest / 1e3, "calls": calls,
            "plans": {key: said["plans"].get(key) for key in ("built", "open", "unplanned_calls")}}, seconds


def measure(binary, name, folder):
    """Prints the line of a model; gives its ratios, or None where no peer can take it."""
    runs, seconds, peers = {"flambeau": []}, 1.0, list(PEERS)
    for _ in range(ROUNDS):
        run, seconds = ours(binary, name, folder, seconds)
        runs["flambeau"].append(run)
        for peer in list(peers):
            found = theirs(peer, name, folder, run["calls"])
            if found is None:
                peers.remove(peer)
                runs.pop(peer, None)
            else:
                runs.setdefault(peer, []).append(found)
    best = min(runs["flambeau"], key=lambda run: run["mean"])
    line, ratios = {"model": name, "threads": THREADS, "calls": best["calls"]}, []
    for what in ["mean", "median"]:
        least = {runner: min(run[what] for run in found) for runner, found in runs.items()}
        line[what] = {runner: round(time, 2) for runner, time in least.items()}
        if peers:
            ratios.append(least["flambeau"] / min(least[peer] for peer in peers))
            line[f"ratio_{what}"] = round(ratios[-1], 2)
    print(json.dumps({**line, "longest": round(best["longest"], 1), "plans": best["plans"]}), flush=True)
    return ratios or None


def geometric_mean(numbers):
    return round(math.exp(sum(map(math.log, numbers)) / len(numbers)), 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flambeau", nargs="?", help="the binary")
    parser.add_argument("--only", help="names, with commas")
    parser.add_argument("--scratch", help="a folder for models")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        as_peer(options.peer, options.only, os.path.join(options.scratch, options.only), options.calls)
        return
    if not options.flambeau:
        parser.error("the binary is missing")
    wanted = options.only.split(",") if options.only else list(SIZES)
    if unknown := set(wanted) - set(SIZES):
        parser.error(f"there are no models {', '.join(sorted(unknown))}; there are {', '.join(SIZES)}")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    binary, scratch, ratios = os.path.abspath(options.flambeau), os.path.abspath(options.scratch or tempfile.mkdtemp()), []
    for name in wanted:
        folder = os.path.join(scratch, name)
        if not os.path.exists(f"{folder}/model.onnx"):
            make(name, folder)
        ratios.append(measure(binary, name, folder))
    means = list(zip(*filter(None, ratios)))
    if means:
        print(json.dumps({"models": len(means[0]), "ratio_mean": geometric_mean(means[0]), "ratio_median": geometric_mean(means[1])}))


if __name__ == "__main__":
    main()
