"""Runs one image generation through the real optimum-habana, on a machine without a Gaudi. Not a test by itself.

`tests/test_gaudi_contract.py` starts it with the interpreter of the Gaudi set of libraries. Only `habana_frameworks` is
made up: a package in which every name is a mock, a device that says it is a Gaudi2, attention by torch itself. Tensors
that are to go to "hpu" stay on the CPU, and no HPU graph is captured. So it checks what our code asks of optimum-habana
and what it makes of the answers, never an HPU's arithmetic or speed.

Called with a folder for runs and the specification as JSON; prints one JSON document as its last line.
"""

import functools
import importlib
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

GIB = 2**30


class Loader(importlib.abc.Loader):
    """Makes packages in which every name is a mock."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = _mock  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class Finder(importlib.abc.MetaPathFinder):
    """Finds `habana_frameworks` and everything below it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] == "habana_frameworks":
            return importlib.machinery.ModuleSpec(name, Loader(), is_package=True)
        return None


def _mock(name: str) -> MagicMock:
    if name.startswith("__"):
        raise AttributeError(name)
    return MagicMock(name=name)


def pretend_gaudi() -> None:
    """Before anything of optimum-habana is imported: it asks the first `pip` on PATH for the Gaudi plug-in."""
    folder = Path(tempfile.mkdtemp())
    pip = folder / "pip"
    pip.write_text("#!/bin/sh\necho habana-torch-plugin 1.24.0.999\n", encoding="ascii")
    pip.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    sys.meta_path.insert(0, Finder())

    import torch

    # Not `from … import`: that takes a mock from the package before it looks for a module.
    hpu = importlib.import_module("habana_frameworks.torch.hpu")
    kernels = importlib.import_module("habana_frameworks.torch.hpex.kernels")
    hpu.is_available = lambda: True
    hpu.synchronize = lambda *_: None
    hpu.get_device_name = lambda *_: "GAUDI2"
    hpu.memory_stats = lambda *_: {"Limit": 96 * GIB, "InUse": GIB, "MaxInUse": 2 * GIB}
    hpu.reset_peak_memory_stats = lambda *_: None

    class FusedSDPA:
        @staticmethod
        def apply(query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool, *_more: Any) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, dropout, causal)

    kernels.FusedSDPA = FusedSDPA


def keep_on_cpu() -> Any:
    """A mode of torch in which "hpu" means the CPU."""
    import torch
    from torch.overrides import TorchFunctionMode

    def here(value: Any) -> Any:
        if isinstance(value, str) and value.split(":")[0] == "hpu":
            return "cpu"
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == "hpu" else value

    class OnCpu(TorchFunctionMode):
        def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*map(here, args), **{name: here(value) for name, value in (kwargs or {}).items()})

    return OnCpu()


def watch_pipeline() -> dict[str, Any]:
    """What the real pipeline is made and called with; graphs, which need a device, are left out of it."""
    from optimum.habana.diffusers import GaudiStableDiffusionPipeline
    from optimum.habana.diffusers.pipelines.pipeline_utils import GaudiDiffusionPipeline

    seen: dict[str, Any] = {"made": [], "called": []}
    GaudiDiffusionPipeline.to = lambda self, *_given, **_more: self
    make, call = GaudiStableDiffusionPipeline.__init__, GaudiStableDiffusionPipeline.__call__

    @functools.wraps(make)
    def making(self: Any, *given: Any, **more: Any) -> None:
        seen["made"].append({name: more.get(name) for name in ("use_habana", "use_hpu_graphs")})
        make(self, *given, **{**more, "use_hpu_graphs": False})

    @functools.wraps(call)
    def calling(self: Any, *given: Any, **more: Any) -> Any:
        answer = call(self, *given, **more)
        plain = {name: value for name, value in more.items() if isinstance(value, int | float | str | None)}
        unknown = sorted(set(more) - set(inspect.signature(call).parameters))
        seen["called"].append({**plain, "unknown": unknown, "throughput": getattr(answer, "throughput", None)})
        return answer

    GaudiStableDiffusionPipeline.__init__ = making
    GaudiStableDiffusionPipeline.__call__ = calling
    return seen


def main(runs_dir: str, fields: str) -> None:
    """Carries the run out and prints the record with what was seen."""
    pretend_gaudi()
    seen = watch_pipeline()
    from runners.execute import execute
    from runners.records import record_to_json
    from runners.rundir import create_run

    run_dir = create_run(Path(runs_dir), "text-to-image", json.loads(fields))
    with keep_on_cpu():
        record = execute(run_dir)
    document = {"record": record_to_json(record), "folder": str(run_dir.path), **seen}
    sys.stdout.write("\n" + json.dumps(document, default=str) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
