"""The programs of tools/ as modules: `tool("name")` loads one, whether its file ends in .py or not."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"
sys.path.append(str(TOOLS))  # they import one another


@pytest.fixture(scope="session")
def tool():
    def load(name):
        file = TOOLS / name if (TOOLS / name).is_file() else TOOLS / f"{name}.py"
        spec = spec_from_loader(f"tool_{name}", SourceFileLoader(f"tool_{name}", str(file)))
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
