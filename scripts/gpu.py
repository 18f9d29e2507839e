"""All that needs a GPU: recorded answers on `--device cuda`, and whole models beside PyTorch's CUDA in one table.

usage: python scripts/gpu.py FLAMBEAU_BINARY [CASES.jsonl ...] [--models NAME,...] [--batch N]
Needs an NVIDIA driver; for the models, PyTorch with CUDA and torchvision. cuBLASLt and cuDNN are taken from PyTorch's packages where
the system has none. Times are the least of a call in milliseconds, answer on the host; the ratio is to the best of PyTorch's.
"""
import argparse, glob, json, os, subprocess, sys, sysconfig, tempfile, time, warnings


def libraries():
    """Folders of cuBLASLt and cuDNN among the packages of this Python."""
    site = sysconfig.get_paths()["purelib"]
    found = [p for n in ("libcublasLt.so*", "libcudnn.so*") for p in glob.glob(f"{site}/nvidia/**/{n}", recursive=True)]
    return sorted({os.path.dirname(p) for p in found})


parser = argparse.ArgumentParser()
parser.add_argument("binary")
parser.add_argument("cases", nargs="*")
parser.add_argument("--models", default="resnet18,mobilenet_v2,efficientnet_b0,densenet121,convnext_tiny,swin_t,vit_b_16")
parser.add_argument("--batch", type=int, default=1)
options = parser.parse_args()
BINARY = os.path.abspath(options.binary)
ENV = dict(os.environ)
ENV["LD_LIBRARY_PATH"] = ":".join(libraries() + [ENV.get("LD_LIBRARY_PATH", "")])


def flambeau(*words):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, env=ENV)


failed = False
for cases in options.cases:
    done = flambeau("check", cases, "--device", "cuda", "--passes", "default")
    lines = done.stdout.strip().splitlines()
    print(f"{cases}: {lines[-1] if lines else done.stderr[-300:]}", flush=True)
    failed |= done.returncode != 0

if options.models:
    warnings.filterwarnings("ignore")
    import torch, torchvision

    torch.backends.mha.set_fastpath_enabled(False)

    def clock(f, seconds=0.5):
        for _ in range(5):
            f()
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 5:
            begin = time.perf_counter()
            f()
            times.append(time.perf_counter() - begin)
        return min(times) * 1e3

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, batch {options.batch}, float32")
    columns = ["eager", "jit", "flambeau", "ratio", "eager tf32", "jit tf32", "tf32", "ratio", "first", "on host"]
    print(f"{'model':16}" + "".join(f"{name:>11}" for name in columns))
scratch = tempfile.mkdtemp()
for name in filter(None, options.models.split(",")):
    torch.manual_seed(0)
    sizes = [options.batch, 3, 224, 224]
    module, x, folder = getattr(torchvision.models, name)(weights=None).eval(), torch.randn(sizes), f"{scratch}/{name}"
    os.makedirs(folder)
    with torch.no_grad():
        torch.jit.trace(module, (x,), check_trace=False).save(folder + "/model.pt")
        args = [{"randn": {"dtype": "float32", "shape": sizes, "seed": 0}}]
        json.dump(dict(name=name, entry="forward", args=args), open(folder + "/case.json", "w"))
        module, x, row = module.cuda(), x.cuda(), []
        traced = torch.jit.freeze(torch.jit.trace(module, (x,), check_trace=False))
        for tf32, device in ((False, "cuda"), (True, "cuda-tf32")):
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
            # The answer is copied to the host, as ours is.
            eager = clock(lambda: module(x).cpu())
            jit = clock(lambda: traced(x).cpu())
            done = flambeau("bench", folder, "--device", device, "--seconds", "0.5", "--json")
            try:
                line = json.loads(done.stdout.splitlines()[-1])
                own = line["min_us"] / 1e3
            except (IndexError, KeyError, ValueError):
                print(name, device, done.stdout[-300:], done.stderr[-300:])
                failed, own = True, float("nan")
            row += [eager, jit, own, own / min(eager, jit)]
            if not tf32:
                first = line.get("first_us", float("nan")) / 1e3
    words = ["--device", "cuda", "--input", f"float32{sizes}".replace(" ", "")]
    same = flambeau("check", folder + "/model.pt", *words)
    failed |= same.returncode != 0
    told = flambeau("run", folder + "/model.pt", *words, "--time").stderr
    home = [line for line in told.splitlines() if "on the host brought" in line]
    row += [first, int(home[0].split(",")[1].split()[0]) if home else -1]
    print(f"{name:16}" + "".join(f"{value:11.3f}" for value in row) + ("" if same.returncode == 0 else "  DIFFERS"), flush=True)
    if same.returncode:
        print(same.stdout[-400:], same.stderr[-400:])
    if os.environ.get("VERBOSE"):
        print("\n".join(line[:160] for line in told.splitlines()[-8:]))
sys.exit(failed)
