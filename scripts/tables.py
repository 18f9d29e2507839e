"""README's performance tables, from one command: runs what each is made from and prints it as Markdown, with the best peer of each row.

    python scripts/tables.py FLAMBEAU [--peers PYTHON] [--shared FOLDER] [--tables NAME,...] [--only ROW,...] [--log FILE]

FLAMBEAU is a release build. PYTHON has the peers: torch, torchvision, timm, transformers, segmentation-models-pytorch, onnx, onnxscript,
onnxruntime, openvino and jax. FOLDER is that of the shared data, without which the tables `kernels` and `training` are left out and named.
All of it takes hours on a quiet machine; `--tables models --only resnet18` makes one row. `--log` keeps each measured line, so that what was
measured can be read again. A row that could not be measured is an error at the end; the others are printed.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
PEERS = {"jit": "torch.jit", "frozen": "frozen torch.jit", "onnxruntime": "ONNX Runtime", "ort": "ONNX Runtime", "openvino": "OpenVINO",
         "inductor": "torch.compile", "compile": "torch.compile", "jax": "JAX", "eager": "eager"}
# Workloads that are not kernels: loops over numbers.
NOT_KERNELS = ("collatz",)


def shown(ms):
    """A time of milliseconds with three digits, in the unit that suits it."""
    value, unit = (ms * 1e3, "us") if ms < 0.1 else (ms, "ms")
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{digits}f} {unit}"


def best(times):
    """The name and the time of the best peer among times by name."""
    return min(((PEERS[name], time) for name, time in times.items() if name in PEERS), key=lambda peer: peer[1])


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(header, rows):
    """A table in Markdown; its last row has geometric means of the columns whose cells are numbers, which are ratios."""
    if not rows:
        return ""
    columns = [[row[n] for row in rows] for n in range(len(header))]
    means = [f"{mean(column):.2f}" if all(isinstance(cell, float) for cell in column) else "" for column in columns]
    means[0] = "geometric mean"
    text = lambda cell: f"{cell:.2f}" if isinstance(cell, float) else cell
    lines = [header, ["---"] * len(header), *([text(cell) for cell in row] for row in rows), means]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Bench:
    """Runs commands whose output is a JSON object a line."""

    def __init__(self, options):
        self.options, self.failed = options, []
        self.only = options.only.split(",") if options.only else None
        self.log = open(options.log, "a") if options.log else None
        self.shared = pathlib.Path(options.shared) / "bench" if options.shared else None

    def wants(self, row):
        return self.only is None or row in self.only

    def lines(self, command, threads=1, **variables):
        """The objects that a command prints; what fails is remembered."""
        command = [str(word) for word in command]
        print(f"running {' '.join(command)}", file=sys.stderr)
        environment = {**os.environ, "THREADS": str(threads), **variables}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
        if done.returncode:
            self.failed.append(f"exit status {done.returncode}: {' '.join(command)}")
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for line in found:
            if self.log:
                print(json.dumps({"command": command, "threads": threads, **line}), file=self.log, flush=True)
        return found

    def script(self, name, *words, threads=1):
        return self.lines([self.options.peers, HERE / name, self.options.flambeau, *words], threads)

    def flambeau(self, file):
        """Milliseconds of each case of a file, on the first core."""
        lines = self.lines(["taskset", "-c", "0", self.options.flambeau, "bench", file, "--threads", "1", "--json"])
        for line in lines:
            if "error" in line:
                self.failed.append(f"{line['name']}: {line['error']}")
        return {line["name"]: line["min_us"] / 1e3 for line in lines if "min_us" in line}

    def rows_of_models(self, *words, threads=1):
        only = ["--only", ",".join(self.only)] if self.only else []
        return [line for line in self.script("models.py", *words, *only, threads=threads) if "model" in line]


def kernels(bench):
    words = ["--peers", "inductor,jax,ort"] + (["--only", ",".join(bench.only)] if bench.only else [])
    ours, times = bench.flambeau(bench.shared / "cases.jsonl"), {}
    for line in bench.lines(["taskset", "-c", "0", bench.options.peers, bench.shared / "peers.py", *words]):
        if "min_us" in line:
            times.setdefault(line["work"], {})[line["peer"]] = line["min_us"] / 1e3
    rows = []
    for name, time in ours.items():
        if not bench.wants(name) or name.startswith(NOT_KERNELS):
            continue
        if name not in times:
            bench.failed.append(f"{name}: no peer was timed")
            continue
        which, peer = best(times[name])
        rows.append([name, shown(time), shown(peer), which, time / peer])
    return table(["workload", "flambeau", "best peer", "which", "ratio"], rows)


def model_cells(line):
    """A model's own time and torch.jit's, the best peer, the ratio to that."""
    which, peer = best(line)
    return [shown(line["flambeau"]), shown(line["jit"]), f"{shown(peer)} ({which})", line["flambeau"] / peer]


def models(bench):
    one = {line["model"]: line for line in bench.rows_of_models("--classifiers")}
    two = {line["model"]: line for line in bench.rows_of_models("--classifiers", threads=2)} if (os.cpu_count() or 1) > 1 else {}
    rows = []
    for name, line in one.items():
        row = [name, *model_cells(line)]
        if two:
            if name not in two:
                bench.failed.append(f"{name}: not measured on two cores")
                continue
            ours, _, peer, ratio = model_cells(two[name])
            row += [ours, peer, ratio]
        rows.append(row)
    more = ["two cores", "best peer", "ratio"] if two else []
    return table(["model", "flambeau", "torch.jit", "best peer", "ratio", *more], rows)


def families(bench):
    rows = [[line["model"], *model_cells(line)] for line in bench.rows_of_models()]
    return table(["model", "flambeau", "torch.jit", "best peer", "ratio"], rows)


def scripted(bench):
    rows = []
    for line in bench.rows_of_models("--script"):
        ours, jit, peer, ratio = model_cells(line)
        rows.append([line["model"], ours, shown(line["traced"]), jit, peer, ratio])
    return table(["model, scripted", "flambeau", "traced", "torch.jit", "best peer", "ratio"], rows)


def memory(bench):
    rows = []
    for line in bench.script("memory.py", *(["--only", ",".join(bench.only)] if bench.only else [])):
        peak, growth = line["peak"] / 1e6, line["onnxruntime"] / 1e6
        rows.append([line["model"], f"{peak:.1f} MB", f"{growth:.1f} MB", peak / growth])
    return table(["activations", "flambeau", "ONNX Runtime", "ratio"], rows)


def first(bench):
    rows = []
    for line in bench.script("first_answer.py", *(["--only", ",".join(bench.only)] if bench.only else [])):
        which, peer = best(line)
        rows.append([line["model"], shown(line["flambeau"]), shown(line["jit"]), f"{shown(peer)} ({which})", line["flambeau"] / peer])
    return table(["first answer", "flambeau", "torch.jit", "best peer", "ratio"], rows)


def varying(bench):
    rows = []
    for line in bench.script("varying_sizes.py", *(["--only", ",".join(bench.only)] if bench.only else [])):
        if "model" in line:
            mean, median = line["mean"], line["median"]
            which, peer = best(mean)
            rows.append([line["model"], shown(mean["flambeau"]), shown(mean["jit"]), f"{shown(peer)} ({which})", mean["flambeau"] / peer,
                         median["flambeau"] / best(median)[1]])
    return table(["mean of a call", "flambeau", "torch.jit", "best peer", "ratio", "of medians"], rows)


def training(bench):
    ours, times = bench.flambeau(bench.shared / "training.jsonl"), {}
    names = ",".join(name.removeprefix("train_") for name in ours)
    commands = [["training_torch.py", names, "eager,jit,compile"], ["training_jax.py", names]]
    for script, *words in commands:
        for line in bench.lines(["taskset", "-c", "0", bench.options.peers, bench.shared / script, *words], SEC="4"):
            times.setdefault(line["w"], {})[line["mode"]] = line["best_ms"]
    rows = []
    for name, time in ours.items():
        found = times.get(name.removeprefix("train_"))
        if not bench.wants(name):
            continue
        if not found or "eager" not in found:
            bench.failed.append(f"{name}: no peer was timed")
            continue
        which, peer = best(found)
        rows.append([name, shown(time), shown(found["eager"]), shown(peer), which, time / peer])
    return table(["step", "flambeau", "eager", "best peer", "which", "ratio"], rows)


TABLES = {"kernels": kernels, "models": models, "families": families, "scripted": scripted, "memory": memory, "first": first, "varying": varying, "training": training}
OF_SHARED = ("kernels", "training")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flambeau", help="the binary, of a release build")
    parser.add_argument("--peers", default=sys.executable, help="a Python that has the peers")
    parser.add_argument("--shared", help="the folder of the shared data")
    parser.add_argument("--tables", default=",".join(TABLES), help="some of " + ", ".join(TABLES))
    parser.add_argument("--only", help="rows by name, with commas")
    parser.add_argument("--log", help="a file to which each measured line is added")
    options = parser.parse_args()
    options.flambeau = os.path.abspath(options.flambeau)
    chosen = options.tables.split(",")
    unknown = [name for name in chosen if name not in TABLES]
    if unknown:
        parser.error(f"there is no table {', '.join(unknown)}; there are {', '.join(TABLES)}")
    bench = Bench(options)
    for name in chosen:
        if name in OF_SHARED and bench.shared is None:
            bench.failed.append(f"{name}: left out, it needs --shared")
            continue
        print(f"\n{name}\n\n{TABLES[name](bench) or 'nothing was measured'}", flush=True)
    for failure in bench.failed:
        print(f"error: {failure}", file=sys.stderr)
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
