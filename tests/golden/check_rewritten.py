"""Lets PyTorch judge rewritten archives: loads each pair and compares code, attributes and answers.

    mkdir DIR && FLAMBEAU_REWRITTEN=DIR cargo test --no-default-features --lib rewrite
    python tests/golden/check_rewritten.py DIR

With FLAMBEAU_CONFORMANCE set for the tests as well (and `--lib archive`), the conformance models are there too.
"""

import pathlib
import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def bits(tensor):
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous().flatten()
    return plain.view(torch.uint8) if plain.numel() else plain


def same(a, b):
    if isinstance(a, torch.Tensor):
        alike = [a.dtype, a.shape, a.stride(), a.requires_grad] == [b.dtype, b.shape, b.stride(), b.requires_grad]
        return alike and torch.equal(bits(a), bits(b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return repr(a) == repr(b)


def sharing(model):
    """Which tensors of a model share a storage, as the index of the first one."""
    places = [tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()]
    return [places.index(place) for place in places]


def arguments(model):
    """Small arguments for `forward` by its schema; None where a type has no obvious value."""
    out = []
    for argument in model.forward.schema.arguments[1:]:
        kind = str(argument.type)
        value = {"Tensor": torch.arange(9.0).view(3, 3), "int": 2, "float": 1.5, "bool": True, "str": "ab"}.get(kind)
        if value is None:
            return None
        out.append(value)
    return out


def main(folder):
    loaded = ran = 0
    for path in sorted(pathlib.Path(folder).glob("*.original.pt")):
        other = path.with_name(path.name.replace(".original.", ".rewritten."))
        a, b = torch.jit.load(str(path)), torch.jit.load(str(other))
        reader = torch._C.PyTorchFileReader(str(other))
        for name in reader.get_all_records():
            assert reader.get_record_offset(name) % 64 == 0 or reader.get_record_size(name) == 0, (other, name)
        assert a.code == b.code if hasattr(a, "forward") else True, path
        assert same(a.state_dict(), b.state_dict()), path
        assert sharing(a) == sharing(b), path
        loaded += 1
        if not hasattr(a, "forward") or arguments(a) is None:
            continue
        answers = []
        for model in (a, b):
            torch.manual_seed(0)
            try:
                answers.append(model(*arguments(model)))  # fresh ones: a model may change them
            except Exception as error:  # both must fail alike
                answers.append(type(error).__name__)
        assert same(*answers), path
        ran += not isinstance(answers[0], str)
    print(f"{loaded} pairs loaded alike, {ran} of them ran alike")


main(sys.argv[1])
