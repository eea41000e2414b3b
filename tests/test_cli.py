"""The commands as a new user types them."""

import csv
import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import icltheory as icl
import icltheory.figures
from icltheory.cli import main, parse_values
from icltheory.figures.lu2025 import double_descent

from .test_figures import TINY


def test_curve_prints_the_theory(capsys):
    main(["curve", "--tau", "0.5,2", "--alpha", "1", "--kappa", "0.5,inf", "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["tau"], row["kappa"]) for row in rows] == [
        ("0.5", "0.5"),
        ("0.5", "inf"),
        ("2.0", "0.5"),
        ("2.0", "inf"),
    ]
    for row in rows:
        law = icl.theory.linear_attention(tau=float(row["tau"]), alpha=1, kappa=float(row["kappa"]), rho=0.01)
        assert float(row["icl"]) == pytest.approx(float(law.icl), rel=1e-14)
        assert row["converged"] == "True"


def test_curve_table_and_json(capsys):
    main(["curve"])
    text = capsys.readouterr().out
    assert text.startswith(
        "# theory, d -> infinity; penalty (n/d) ridge |Gamma|^2; convention: x ~ N(0, I/d), |w|² ≈ d"
    )
    assert len(text.splitlines()) == 14
    main(["curve", "--tau", "1", "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[0]["icl"] == "inf"
    assert float(rows[0]["icl"]) == float("inf")


def test_curve_at_a_dimension(capsys):
    main(["curve", "--d", "20", "--tau", "1.5", "--kappa", "0.52", "--ridge", "0.01", "--format", "json"])
    output = json.loads(capsys.readouterr().out)
    (row,) = output["rows"]
    assert output["note"].startswith("theory, d = 20, realised ratios")
    assert row["kappa"] == 0.5
    law = icl.theory.finite_size(d=20, tau=1.5, alpha=1, kappa=0.5, rho=0.01, ridge=0.01)
    assert row["icl"] == float(law.icl)


@pytest.mark.parametrize("alpha", ["1", "1,10"])
def test_curve_writes_files(tmp_path, capsys, alpha):
    plot, out = tmp_path / "new folder" / "c.png", tmp_path / "c.csv"
    main(["curve", "--tau", "0.2:2:5", "--alpha", alpha, "--plot", str(plot), "--out", str(out), "--format", "csv"])
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert out.read_text().startswith("tau,alpha")
    assert f"wrote {plot}" in capsys.readouterr().err


def test_simulate(capsys):
    arguments = ["simulate", "--d", "12", "--tau", "0.5,2", "--seeds", "3", "--format", "json", "--workers", "1"]
    main(arguments)
    first = json.loads(capsys.readouterr().out)
    assert [row["n"] for row in first["rows"]] == [72, 288]
    row = first["rows"][1]
    at = {"tau": 2, "alpha": 1, "kappa": 0.5, "rho": 0.01, "ridge": 1e-6}
    for risk in ("icl", "idg", "train"):
        assert row[f"{risk}_limit"] == pytest.approx(float(getattr(icl.theory.linear_attention(**at), risk)))
        assert row[f"{risk}_theory"] == float(getattr(icl.theory.finite_size(d=12, **at), risk))
    assert abs(row["icl"] - row["icl_theory"]) < 4 * row["icl_se"] + row["icl_theory"] / 12
    assert row["residual"] < 1e-8
    main(arguments)
    assert json.loads(capsys.readouterr().out) == first
    main(["simulate", "--d", "6", "--seeds", "1", "--kappa", "inf"])
    assert " inf " in capsys.readouterr().out


def test_simulate_structured_tasks_and_longer_tests(capsys):
    point = ["simulate", "--d", "12", "--tau", "2", "--seeds", "2", "--format", "json", "--workers", "1"]
    main([*point, "--tasks", "gaussian", "--task-power", "1", "--test-context-length", "24"])
    output = json.loads(capsys.readouterr().out)
    (row,) = output["rows"]
    spectrum = icl.prompts.covariance.power_law(12, 1.0)
    job = icl.simulate.batch.Job(
        point=icl.Point.of(d=12, tau=2.0, alpha=1.0, kappa=0.5, rho=0.01, ridge=1e-6),
        tasks="gaussian",
        task_covariance=tuple(spectrum.tolist()),
        test_context_length=24,
    )
    runs = [replace(job, repetition=i).run() for i in range(2)]
    assert row["icl"] == pytest.approx((runs[0].icl + runs[1].icl) / 2)
    law = icl.theory.task_covariance(tau=2, alpha=1, kappa=0.5, rho=0.01, ridge=1e-6, train=spectrum, test_alpha=2.0)
    for risk in ("icl", "idg", "train"):
        assert row[f"{risk}_limit"] == pytest.approx(float(getattr(law, risk)))
        assert f"{risk}_theory" not in row  # there is none at finite d for these tasks
    assert "gaussian tasks of covariance i^-1, 24 examples in a test prompt" in output["note"]
    main([*point, "--test-context-length", "24"])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    main(point)
    (plain,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["train"] == plain["train"]
    assert row["icl"] < 0.95 * plain["icl"]
    assert row["icl_theory"] < 0.95 * plain["icl_theory"]
    assert row["icl_limit"] < 0.95 * plain["icl_limit"]


PROBE = ["--d", "6", "--alpha", "2", "--rho", "0.1", "--n-prompts", "300"]


def test_probe(capsys):
    main(["probe", "dmmse", *PROBE, "--kappa", "1.5", "--seed", "3"])
    text = capsys.readouterr().out
    found = icl.probe(
        icl.probing.predictors.dmmse(icl.prompts.pretraining.pretraining_tasks(d=6, n_tasks=9, rng=3), 0.1),
        d=6, alpha=2.0, kappa=1.5, rho=0.1, n_prompts=300, rng=3,
    )  # fmt: skip
    assert text == str(found)
    assert text.splitlines()[-1].startswith("memorises: 0 ± 0")
    main(["probe", "dmmse", *PROBE, "--kappa", "1.5", "--seed", "3", "--format", "json"])
    output = json.loads(capsys.readouterr().out)
    assert len(output["rows"]) == 2 * 13
    assert output["rows"][12]["error"] == found.icl.error.value[-1]
    assert output["note"].startswith("d = 6, 12 examples (alpha = 2), 9 pretraining tasks (kappa = 1.5), rho = 0.1")
    assert output["note"] == f"{found.sizes}; {found.verdict}; {found.conventions}"


def test_probe_of_a_saved_gamma_on_the_tasks_of_its_seed(tmp_path, capsys):
    at = {"d": 6, "alpha": 2.0, "rho": 0.1, "tasks": "gaussian"}
    sim = icl.simulate.linear_attention(**at, kappa=0.5, tau=9.0, ridge=1e-3, rng=4)
    np.save(tmp_path / "gamma.npy", sim.gamma)
    rows = {}
    for seed in ("4", "5"):
        arguments = ["--tasks", "gaussian", "--kappa", "0.5", "--seed", seed, "--format", "csv"]
        main(["probe", str(tmp_path / "gamma.npy"), *PROBE[:-1], "2000", *arguments])
        rows[seed] = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    for row, exact in zip(rows["4"], (sim.icl, sim.idg), strict=True):
        assert abs(float(row["error"]) - exact) < 4 * float(row["error_se"])
    assert float(rows["5"][1]["error"]) > sim.idg + 8 * float(rows["5"][1]["error_se"])


def test_probe_with_tasks_from_a_file_in_the_other_convention(tmp_path, capsys, monkeypatch):
    """The reference of either convention is found where it is; a picture and a table are written."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    tasks = np.random.default_rng(0).standard_normal((9, 6))
    np.save(tmp_path / "tasks.npy", tasks)
    (tmp_path / "their.py").write_text(
        "import icltheory as icl, numpy as np\n"
        f"w = np.load({str(tmp_path / 'tasks.npy')!r})\n"
        "def model(x, y, query):\n    assert 0.8 < x.std() < 1.2\n"
        "    return icl.bayes.discrete(x, y, query, w, 0.6)\n"
    )
    given = ["--tasks-file", str(tmp_path / "tasks.npy"), "--convention", "unscaled"]
    plot, out = tmp_path / "new" / "p.png", tmp_path / "p.txt"
    main(["probe", f"{tmp_path / 'their.py'}:model", *PROBE, *given, "--plot", str(plot), "--out", str(out)])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"wrote {plot}" in captured.err
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "(the predictor was asked in: x ~ N(0, I)" in out.read_text()
    assert out.read_text().splitlines()[-1].startswith("memorises: 0 ± 0")
    for name, word in (("ridge", "generalises: 1 ± 0"), ("dmmse", "memorises: 0 ± 0")):
        main(["probe", name, *PROBE, *given])
        assert capsys.readouterr().out.splitlines()[-1].startswith(word)


@pytest.fixture
def tiny_figure(monkeypatch):
    figure = replace(double_descent, scales=dict.fromkeys(icltheory.figures.SCALES, TINY))
    monkeypatch.setitem(icltheory.figures.FIGURES, figure.name, figure)
    return figure


def test_reproduce(tiny_figure, tmp_path, capsys):
    main(["reproduce", tiny_figure.name, "--scale", "smoke", "--seed", "3", "--out", str(tmp_path), "--workers", "1"])
    text = capsys.readouterr().out
    assert text.count("[holds]") == 5
    assert text.count("[not tested]") == 1
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert made == {"report.html", *(f"lu2025/double-descent.{end}" for end in ("png", "pdf", "csv", "json"))}
    provenance = json.loads((tmp_path / "lu2025/double-descent.json").read_text())["provenance"]
    assert provenance["icltheory"] == icl.__version__
    assert provenance["packages"]["numpy"]


def test_a_failed_claim_is_the_exit_status(tiny_figure, tmp_path, capsys, monkeypatch):
    def fail(parameters, rows):
        return [replace(claim, holds=False) for claim in double_descent.claims(parameters, rows)]

    monkeypatch.setitem(icltheory.figures.FIGURES, tiny_figure.name, replace(tiny_figure, claims=fail))
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", tiny_figure.name, "--out", str(tmp_path), "--workers", "1"])
    assert stop.value.code == 1
    assert "[fails]" in capsys.readouterr().out
    assert 'class="verdict fails"' in (tmp_path / "report.html").read_text()


def test_doctor(capsys):
    main(["doctor"])
    text = capsys.readouterr().out
    for word in ("icltheory", "python", "processor", "memory", "numpy", "torch (optional)"):
        assert word in text
    main(["doctor", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["cores"] >= 1


def test_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"icltheory {icl.__version__}\n"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", (1.0,)),
        ("0.5,inf", (0.5, float("inf"))),
        ("0.1:0.4:4", (0.1, 0.2, 0.3, 0.4)),
        ("0.01:1:3:log,7", (0.01, 0.1, 1.0, 7.0)),
    ],
)
def test_values(text, values):
    assert parse_values(text) == values


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["curve", "--tau", "-1"], "tau must be > 0, got -1"),
        (["curve", "--tau", "1:2"], "cannot read '1:2'"),
        (["curve", "--tau", "1:2:0"], "cannot read"),
        (["curve", "--alpha", "0:2:3:log"], "cannot read"),
        (["curve", "--alpha", "inf"], "alpha must be > 0 and finite"),
        (["curve", "--kappa", "many"], "cannot read 'many'"),
        (["curve", "--rho", "-0.1"], "rho must be >= 0"),
        (["curve", "--rho", ""], "cannot read ''"),
        (["curve", "--ridge", "nan"], "ridge must be >= 0"),
        (["curve", "--format", "xml"], "xml"),
        (["curve", "--plot", "c.xyz", "--tau", "1,2"], "xyz"),
        (["curve", "--bogus", "1"], "bogus"),
        (["simulate", "--d", "0"], "d must be an integer >= 1, got 0"),
        (["simulate", "--d", "2.5"], "2.5"),
        (["simulate", "--seeds", "0"], "seeds must be at least 1, got 0"),
        (["simulate", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["reproduce", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["simulate", "--workers", "0"], "workers must be at least 1, got 0"),
        (["simulate", "--tasks", "cube"], "cube"),
        (["simulate", "--task-power", "1"], "--task-power needs --tasks gaussian, got --tasks sphere"),
        (["simulate", "--tasks", "gaussian", "--task-power", "-1"], "exponent must be >= 0 and finite, got -1"),
        (["simulate", "--test-context-length", "0"], "test_context_length must be an integer >= 1, got 0"),
        (["simulate", "--tau", "inf"], "tau must be finite in a simulation"),
        (["simulate", "--d", "3", "--tau", "0.001"], "tau must be large enough that n_sequences"),
        (["simulate", "--d", "30000", "--seeds", "1"], "are available; reduce d, tau or kappa"),
        (["reproduce", "lu2025/double-decent"], "no figure is called 'lu2025/double-decent'"),
        (["reproduce", "--scale", "huge"], "huge"),
        (["reproduce", "--out", "/dev/null/x"], "/dev/null/x"),
        (["curve", "--out", "/dev/null/x", "--tau", "2"], "/dev/null"),
        (["explode"], "explode"),
        (["probe", "ridge", "--d", "3"], "rho"),
        (["probe", "ridge", *PROBE], "missing kappa"),
        (["probe", "dmmse", *PROBE, "--kappa", "inf"], "kappa must be finite, got inf"),
        (["probe", "model.pt", *PROBE, "--kappa", "1"], "a .pt file may contain a pickle"),
        (["probe", "gone.npy", *PROBE, "--kappa", "1"], "gone.npy"),
        (["probe", "gone.py:f", *PROBE, "--kappa", "1"], "there is no file gone.py"),
        (["probe", "gone:f", *PROBE, "--kappa", "1"], "cannot import 'gone'"),
        (["probe", "numpy:mean", *PROBE, "--kappa", "1"], "the predictor failed on x (256, 12, 6)"),
        (["probe", "ridge", *PROBE, "--tasks-file", "t.npy"], "t.npy"),
        (["probe", "ridge", *PROBE, "--tasks-file", "/dev/null"], "/dev/null must be an .npy file"),
        (["probe", "ridge", *PROBE, "--kappa", "1", "--n-tasks", "3"], "give kappa or n_tasks, not both"),
        (["probe", "ridge", *PROBE, "--kappa", "1", "--seed", "-2"], "seed must be at least 0, got -2"),
        (["probe", "ridge", *PROBE, "--kappa", "1", "--n-prompts", "0"], "n_prompts must be at least 1, got 0"),
        (["probe", "ridge", *PROBE, "--kappa", "1", "--convention", "raw"], "raw"),
        ([], "curve"),
    ],
)
def test_wrong_input_gets_a_message_and_status_2(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    captured = capsys.readouterr()
    assert words in (captured.err + captured.out).replace("│", " ")
    assert "Traceback" not in captured.err


def test_progress_on_and_off_a_terminal(capsys, monkeypatch):
    import sys

    import icltheory.progress as progress

    monkeypatch.setattr(progress, "_EVERY", 1e-3)
    with progress.progress("work", 3) as advance:
        for _ in range(3):
            advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "work: 3/3, 0 s"

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.progress("work", 3) as advance:
        for _ in range(3):
            advance()
    assert "3/3" in sys.stderr.getvalue()
