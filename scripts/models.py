"""Models of other families beside their peers: timm, transformers and segmentation models, batch 1, float32, random weights.

    [THREADS=1] python scripts/models.py FLAMBEAU [--only NAME,...] [--classifiers | --script] [--scratch FOLDER]

Traces each model (with `--classifiers` seven of torchvision instead; with `--script`, scripts classifiers of torchvision, and times Flambeau's traced form of them too), times torch.jit, frozen torch.jit, ONNX Runtime, OpenVINO and `flambeau bench` in turn, twice, on the first
THREADS cores, and prints the minimum of milliseconds a call, one JSON line a model; `ratio` is Flambeau's time divided by the
best peer's, and the last line has the geometric mean. Needs torch, timm, transformers, segmentation-models-pytorch, torchvision,
onnx, onnxscript, onnxruntime and openvino. A peer that cannot take a model is named and left out.
"""
import argparse
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")
THREADS = int(os.environ.get("THREADS", "1"))
os.environ["OMP_NUM_THREADS"] = str(THREADS)
os.environ["HF_HUB_OFFLINE"] = "1"
os.sched_setaffinity(0, set(range(THREADS)))
import torch

torch.set_num_threads(THREADS)
torch.backends.mha.set_fastpath_enabled(False)  # its fused op has no ONNX form
IMAGE = (1, 3, 224, 224)
TIMM = ["regnety_008", "mobilenetv3_large_100", "deit_tiny_patch16_224", "mixer_s32_224", "convnextv2_atto", "ghostnet_100",
        "levit_128", "repvgg_a0", "poolformer_s12", "mobilevit_s", "hrnet_w18_small", "resnetv2_50", "edgenext_small",
        "tf_efficientnetv2_b0", "xcit_nano_12_p16_224"]
TRANSFORMERS = {
    "bert": ("BertModel", "BertConfig", 128, dict(num_hidden_layers=4)),
    "distilbert": ("DistilBertModel", "DistilBertConfig", 128, dict(n_layers=3)),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", 16000, dict(num_hidden_layers=4)),
    "vit": ("ViTModel", "ViTConfig", 224, dict(num_hidden_layers=4)),
    "segformer": ("SegformerModel", "SegformerConfig", 224, {}),
}
SEGMENTATION = {"unet": ("Unet", "resnet18"), "fpn": ("FPN", "mobilenet_v2"), "deeplabv3plus": ("DeepLabV3Plus", "efficientnet-b0")}
TRACED = ["resnet18", "mobilenet_v2", "efficientnet_b0", "densenet121", "convnext_tiny", "swin_t", "vit_b_16"]
CLASSIFIERS = ["resnet18", "mobilenet_v2", "efficientnet_b0", "densenet121", "googlenet", "convnext_tiny", "swin_t"]
TORCHVISION = ["lraspp_mobilenet_v3_large", "fcn_resnet50"]


class First(torch.nn.Module):
    """A model that gives its first or only output."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        result = self.model(x)
        if isinstance(result, torch.Tensor):
            return result
        return next(iter(result.values())) if isinstance(result, dict) else result[0]


def of_timm(name):
    import timm
    return timm.create_model(name, pretrained=False), torch.randn(IMAGE)


def of_transformers(model, config, size, options):
    import transformers
    settings = getattr(transformers, config)(**options, return_dict=False)
    built = getattr(transformers, model)(settings)
    inputs = {"input_ids": lambda: torch.randint(3, 1000, (1, size)), "pixel_values": lambda: torch.randn(1, 3, size, size),
              "input_values": lambda: torch.randn(1, size)}
    return built, inputs[built.main_input_name]()


def of_segmentation(model, encoder):
    import segmentation_models_pytorch
    return getattr(segmentation_models_pytorch, model)(encoder, encoder_weights=None, classes=4), torch.randn(IMAGE)


def of_torchvision(name):
    import torchvision
    return getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None), torch.randn(IMAGE)


def of_classifiers(name):
    import torchvision
    return getattr(torchvision.models, name)(weights=None), torch.randn(IMAGE)


def models(script, classifiers):
    """Names, and what makes a model and its input."""
    if script or classifiers:
        for name in CLASSIFIERS if script else TRACED:
            yield name, lambda name=name: of_classifiers(name)
        return
    for name in TIMM:
        yield name, lambda name=name: of_timm(name)
    for name, row in TRANSFORMERS.items():
        yield name, lambda row=row: of_transformers(*row)
    for name, row in SEGMENTATION.items():
        yield name, lambda row=row: of_segmentation(*row)
    for name in TORCHVISION:
        yield name, lambda name=name: of_torchvision(name)


def peers(name, model, traced, x, folder):
    """What each peer calls; a peer that fails is said to."""
    found = {"jit": lambda: traced(x)}
    frozen = torch.jit.optimize_for_inference(torch.jit.freeze(traced))
    found["frozen"] = lambda: frozen(x)
    try:
        import onnxruntime
        import openvino
        onnx = io.BytesIO()
        torch.onnx.export(model, (x,), onnx, dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        session = onnxruntime.InferenceSession(onnx.getvalue(), options, providers=["CPUExecutionProvider"])
        feed = {session.get_inputs()[0].name: x.numpy()}
        found["onnxruntime"] = lambda: session.run(None, feed)
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as out:
            out.write(onnx.getvalue())
        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"})
        request = core.compile_model(path, "CPU").create_infer_request()
        found["openvino"] = lambda: request.infer([x.numpy()])
    except Exception as error:
        print(f"{name}: without ONNX Runtime and OpenVINO: {str(error).splitlines()[-1][:120]}", file=sys.stderr)
    return found


def milliseconds(call, seconds=1.0):
    """The least time of a call."""
    for _ in range(3):
        call()
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def flambeau(binary, folder, x):
    """The least time of a call by `flambeau bench`."""
    sizes = ",".join(map(str, x.shape))
    word = f"float32[{sizes}]" if x.is_floating_point() else f"int64[{sizes}]{{3..1000}}"
    command = ["taskset", "-c", f"0-{THREADS - 1}", binary, "bench", os.path.join(folder, "model.pt"), "--input", word,
               "--threads", str(THREADS), "--seconds", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])["min_us"] / 1e3


def measure(binary, name, make, folder, script):
    torch.manual_seed(0)
    model, x = make()
    model = (model if script else First(model)).eval()
    with torch.no_grad():
        best, traced = {}, torch.jit.trace(model, (x,), check_trace=False, strict=False)
        if script:
            torch.jit.save(traced, os.path.join(folder, "model.pt"))
            best["traced"] = flambeau(binary, folder, x)
            traced = torch.jit.script(model)
        torch.jit.save(traced, os.path.join(folder, "model.pt"))
        runners = peers(name, model, traced, x, folder)
        for _ in range(2):
            for peer, call in runners.items():
                best[peer] = min(best.get(peer, math.inf), milliseconds(call))
            best["flambeau"] = min(best.get("flambeau", math.inf), flambeau(binary, folder, x))
    ratio = best["flambeau"] / min(best[peer] for peer in runners)
    print(json.dumps({"model": name, "threads": THREADS, **{k: round(v, 2) for k, v in best.items()}, "ratio": round(ratio, 2)}),
          flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flambeau", help="the binary")
    parser.add_argument("--only", help="names, with commas")
    parser.add_argument("--script", action="store_true", help="classifiers of torchvision, scripted")
    parser.add_argument("--classifiers", action="store_true", help="seven classifiers of torchvision, traced")
    parser.add_argument("--scratch", help="a folder for models")
    options = parser.parse_args()
    folder = options.scratch or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    wanted = options.only.split(",") if options.only else None
    chosen = [(name, make) for name, make in models(options.script, options.classifiers) if wanted is None or name in wanted]
    ratios = [measure(options.flambeau, name, make, folder, options.script) for name, make in chosen]
    print(json.dumps({"models": len(ratios), "geometric_mean": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3)}))


main()
