"""What importing the package costs, and what it offers."""

import json
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import icltheory as icl

ROOT = Path(__file__).parents[1]


def test_import_loads_numpy_and_scipy_only():
    code = (
        "import sys, json; before = set(sys.modules); import icltheory; "
        "print(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before})))"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout)) - set(sys.stdlib_module_names)
    third_party = {name for name in loaded if not re.search("cython|sysconfigdata|^_", name)}
    assert third_party <= {"icltheory", "numpy", "scipy"}


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == icl.__version__
    assert f"version: {icl.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_public_names_exist_and_are_documented():
    for module in (icl, icl.bayes, icl.probing, icl.theory, icl.simulate, icl.prompts, icl.figures):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type | types.FunctionType):
                assert value.__doc__, f"{module.__name__}.{name}"


def test_readme_is_short_and_ci_runs_its_test_command():
    readme = (ROOT / "README.md").read_text()
    assert readme.count("\n") < 100
    assert "pip install -e . && icl reproduce" in readme
    assert "<!-- test command -->" in readme
    assert "<!-- test command -->" in (ROOT / ".ci/run").read_text()
