"""Checks of a wheel that is installed in the environment that runs this: `python check_wheel.py WHEEL MODEL`."""

import importlib.metadata
import pathlib
import subprocess
import sys
import sysconfig

MAX_BYTES = 35 * 1024 * 1024


def check(holds: bool, what: str) -> None:
    print(("ok    " if holds else "FAILED ") + what)
    if not holds:
        raise SystemExit(1)


def exported(extension: pathlib.Path) -> list[str]:
    """The symbols that an extension defines for others."""
    out = subprocess.run(["nm", "-D", "--defined-only", str(extension)], capture_output=True, text=True, check=True).stdout
    return [line.split()[-1] for line in out.splitlines() if line.strip()]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    scripts = pathlib.Path(sysconfig.get_path("scripts"))
    return subprocess.run([str(scripts / words[0]), *words[1:]], capture_output=True, text=True, timeout=120)


def main(wheel: str, model: str) -> None:
    size = pathlib.Path(wheel).stat().st_size
    check(size <= MAX_BYTES, f"the wheel has {size / 1024 / 1024:.1f} MiB, at most 35")
    import flambeau
    import numpy

    package = pathlib.Path(flambeau.__file__).parent
    check("site-packages" in package.parts, "the package is the installed one")
    check((package / "py.typed").exists() and (package / "_flambeau.pyi").exists(), "types come with it")
    check((package / "nn" / "functional.py").exists(), "packages inside come with it")
    (extension,) = [file for file in package.glob("_flambeau*") if file.suffix in (".so", ".pyd", ".dylib")]
    symbols = exported(extension)
    check(symbols == ["PyInit__flambeau"], f"one symbol is exported: {symbols[:5]}")
    shown = run("flambeau", "inspect", model)
    check(shown.returncode == 0 and shown.stdout.startswith("model"), f"flambeau inspect runs: {shown.stderr[:200]}")
    for command in ("FileCheck", "lit"):
        help_text = run(command, "--help")
        check(help_text.returncode == 0 and help_text.stdout != "", f"{command} --help runs: {help_text.stderr[:200]}")
    points = importlib.metadata.entry_points(group="torch_dynamo_backends")
    check([p.value for p in points if p.name == "flambeau"] == ["flambeau._torch:backend"], "torch.compile finds the backend")
    loaded = flambeau.load(model)
    arguments = [argument.name for argument in loaded.schema.arguments]
    check(arguments[:1] == ["self"], f"the model loads: {arguments}")
    double = flambeau.script("def double(x):\n    return x * 2\n")
    check(bool((double(numpy.ones(3)) == 2).all()), "a function compiles and runs on an array")


if __name__ == "__main__":
    main(*sys.argv[1:3])
