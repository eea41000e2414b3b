"""The command `icl train` as a new user types it, and `icl probe` of what it leaves behind."""

import csv
import json
import math
import subprocess
import sys
from dataclasses import MISSING, fields

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import icltheory as icl  # noqa: E402
from icltheory.cli import main, training  # noqa: E402
from icltheory.probing.verdict import plus_minus  # noqa: E402
from icltheory.train import Data, Model, Optimization, Training, compare_closed_form, loop  # noqa: E402
from icltheory.train.config import from_plain  # noqa: E402

pytestmark = pytest.mark.usefixtures("torch")  # on one thread

POINT = ["--d", "3", "--alpha", "2", "--tau", "8", "--kappa", "2", "--rho", "0.1"]
SMALL = [*POINT, "--steps", "50", "--evaluate-every", "10", "--test", "200", "--learning-rate", "0.01", "--seed", "4"]
WANTED = Training(
    data=Data(d=3, alpha=2.0, tau=8.0, kappa=2.0, rho=0.1),
    optimization=Optimization(steps=50, evaluate_every=10, learning_rate=0.01),
    test=200,
    seed=4,
)


def rows(text):
    """The table by the titles of its rows, whose cells are two spaces apart."""
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "stopped"))]
    return {cells[0]: cells[1:] for cells in ([c.strip() for c in line.split("  ") if c.strip()] for line in lines[1:])}


def test_it_prints_the_training_beside_the_theory(capsys):
    main(["train", *SMALL, "--name", "linear"])
    captured = capsys.readouterr()
    twin = loop.train(WANTED)
    at = {"alpha": 2.0, "rho": 0.1}
    law = icl.theory.linear_attention(**at, tau=8.0, kappa=2.0)
    closed = compare_closed_form(twin)
    floor = f"{float(icl.theory.bayes_ridge(**at)):.4g}"
    assert rows(captured.out) == {
        "training error": [
            f"{twin.train:.4g}",
            f"{closed.train:.4g}",
            f"{closed.gap_train:+.2g}",
            f"{float(law.train):.4g}",
            "-",
        ],
        "fresh tasks (ICL)": [
            *(plus_minus(*each.query) for each in (twin.icl, closed.icl, closed.gap_icl)),
            f"{float(law.icl):.4g}",
            floor,
        ],
        "pretraining tasks (IDG)": [
            *(plus_minus(*each.query) for each in (twin.idg, closed.idg, closed.gap_idg)),
            f"{float(law.idg):.4g}",
            floor,
        ],
    }
    notes = [line for line in captured.out.splitlines() if line.startswith("#")]
    assert notes[0] == (
        "# linear, d = 3, 6 examples (alpha = 2), 72 sequences (tau = 8), 6 pretraining tasks (kappa = 2), rho = 0.1, "
        "sphere tasks"
    )
    assert notes[1].startswith("# 200 prompts of each test, ± standard error; convention: x ~ N(0, I/d)")
    assert "closed form: the reduced model" in notes[2]
    assert "linear attention: theory for d -> infinity" in notes[3]
    assert captured.out.splitlines()[-1].startswith("stopped after 50 steps: all that were asked for; ")
    assert captured.out.endswith(" tokens/s\n")
    told = captured.err.splitlines()
    assert [line.split("  ")[0] for line in told] == [f"step {step}/50" for step in (10, 20, 30, 40, 50)]
    for line, record in zip(told, twin.history, strict=True):
        assert f"learning rate {record.learning_rate:.2e}  loss {record.loss:#.4g}  " in line
        assert line.endswith(f"validation {plus_minus(record.validation, record.validation_se)}")


def test_fresh_sequences_and_correlated_tokens_have_the_theories_that_are_known(capsys):
    brief = ["--d", "3", "--context-length", "6", "--rho", "0.1", "--steps", "20", "--test", "50", "--validation", "0"]
    main(["train", *brief, "--model", "gpt2", "--layout", "interleaved", "--loss", "all", "--n-tasks", "inf"])
    captured = capsys.readouterr()
    floor = f"{float(icl.theory.bayes_ridge(alpha=2.0, rho=0.1)):.4g}"
    assert rows(captured.out)["training loss"][1:] == ["-"]
    assert rows(captured.out)["fresh tasks (ICL)"][1:] == [floor]
    assert "fresh sequences, a fresh task for every sequence (kappa = inf)" in captured.out
    assert "nan" not in captured.out + captured.err
    assert "validation" not in captured.err

    main(["train", *brief, "--tau", "4", "--xi", "0.5", "--query", "next"])
    captured = capsys.readouterr()
    assert "tokens correlated like exp(-distance/0.5), query next" in captured.out
    kernel = icl.Kernel.exponential(0.5, 6)
    law = icl.theory.linear_attention(d=3, tau=4.0, kappa=math.inf, rho=0.1, kernel=kernel, query="next")
    shown = {f"{float(law.icl):.4g}"}
    for less in ({"kernel": kernel}, {"context_length": 6}):  # an independent query, and independent tokens
        risk = icl.theory.linear_attention(d=3, tau=4.0, kappa=math.inf, rho=0.1, **less)
        shown.add(f"{float(risk.icl):.4g}")
    assert len(shown) == 3
    assert rows(captured.out)["fresh tasks (ICL)"][3:] == [f"{float(law.icl):.4g}"]  # no floor: it is another one


def test_every_field_is_a_flag_with_its_default(capsys, monkeypatch):
    """What is typed reaches the loop, and nothing else; every flag says what it is."""
    seen = []

    class Enough(Exception):
        pass

    def stand_in(wanted, **given):
        seen.append((wanted, given))
        raise Enough

    monkeypatch.setattr(loop, "train", stand_in)
    with pytest.raises(Enough):
        main(["train", "--d", "3", "--alpha", "2", "--rho", "0.1"])
    assert seen[0][0] == Training(data=Data(d=3, alpha=2.0, rho=0.1))
    assert seen[0][1]["folder"] is None
    other = {
        "d": 4, "context_length": 9, "n_sequences": 40, "n_tasks": 7.0, "rho": 0.2, "tasks": "gaussian",
        "assignment": "balanced", "gamma": 1.5, "query": "next", "layout": "interleaved", "loss": "all",
        "convention": "unscaled", "name": "gpt2", "width": 8, "layers": 2, "heads": 4, "mlp_ratio": 3.0,
        "init_scale": 0.5, "steps": 7, "batch_size": 5, "optimizer": "sgd", "learning_rate": 0.1, "schedule": "cosine",
        "warmup": 2, "momentum": 0.5, "weight_decay": 0.1, "clip": 2.0, "evaluate_every": 3, "validation": 11,
        "patience": 6, "select": "best", "stop_at": 0.3, "checkpoint_every": 2, "test": 13, "dtype": "float64",
        "seed": 5, "init_seed": 6,
    }  # fmt: skip
    parts = {part: {f.name: f for f in fields(part)} for part in (Data, Model, Optimization, Training)}
    flags = set().union(*parts.values()) - {"data", "model", "optimization"}
    assert set(other) == flags - {"alpha", "tau", "kappa", "xi"}  # which other flags exclude
    with pytest.raises(Enough):
        main(
            ["train", *(word for name, value in other.items() for word in (f"--{name.replace('_', '-')}", str(value)))]
        )
    built = {part: {n: other[n] for n in parts[part] if n in other} for part in (Data, Model, Optimization, Training)}
    assert seen[1][0] == Training(
        data=Data(**built[Data]),
        model=Model(**built[Model]),
        optimization=Optimization(**built[Optimization]),
        **built[Training],
    )
    for each in (f for part in parts.values() for f in part.values() if f.name in other):
        assert each.default is MISSING or other[each.name] != each.default, each.name
    with pytest.raises(Enough):
        main(["train", "--d", "3", "--alpha", "2", "--rho", "0.1", "--kappa", "2", "--tau", "2", "--xi", "0.4"])
    assert seen[2][0].data == Data(d=3, alpha=2.0, rho=0.1, kappa=2.0, tau=2.0, xi=0.4)
    for flag in ("--name", "--model"):
        with pytest.raises(Enough):
            main(["train", "--d", "3", "--alpha", "2", "--rho", "0.1", flag, "softmax"])
        assert seen[-1][0].model.name == "softmax"


def test_the_help_is_legible(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as stop:
        main(["train", "--help"])
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    about, example, text = text.partition(
        "Example: icl train --d 10 --alpha 1 --tau 3 --rho 0.01 --name linear --steps"
    )
    assert example
    assert "PyTorch" in about
    for part in (Data, Model, Optimization, Training):
        for name in {f.name for f in fields(part)} - {"data", "model", "optimization"}:
            flag = f"--{name.replace('_', '-')} "
            assert flag in text
            _, _, said = text.partition(flag)
            said = said.partition(" --")[0].partition(" (default")[0].partition(" (required")[0].split()
            assert len(said) >= 3, f"{flag}: {said}"  # what it takes, and what it is
    for mark in (":math:", "\\", "`", " : ", "{None}", '"own"'):
        assert mark not in text, mark


@pytest.fixture
def folder(tmp_path, capsys):
    out = tmp_path / "new" / "run"
    main(["train", *SMALL, "--out", str(out)])
    capsys.readouterr()
    return out


def test_a_folder_holds_the_training_and_its_record(folder):
    assert {path.name for path in folder.iterdir()} == {"checkpoint.pt", "history.csv", "training.json"}
    trained = loop.load(folder)
    assert trained.training == WANTED
    record = json.loads((folder / "training.json").read_text())
    assert record["training"]["data"]["context_length"] == 6
    assert record["key"] == WANTED.key()
    assert record["result"]["icl"] == trained.icl.value
    assert record["result"]["icl_se"] == trained.icl.se
    assert record["result"]["idg"] == trained.idg.value
    assert record["result"]["stopped"] == "steps"
    closed = compare_closed_form(trained)
    assert record["closed_form"]["icl"] == closed.icl.value
    assert record["closed_form"]["gap_icl_se"] == closed.gap_icl.se
    assert record["provenance"]["icltheory"] == icl.__version__
    with (folder / "history.csv").open() as file:
        history = list(csv.DictReader(file))
    assert [int(row["step"]) for row in history] == [10, 20, 30, 40, 50]
    assert [float(row["validation"]) for row in history] == [each.validation for each in trained.history]


def test_a_record_without_end_is_json(tmp_path, capsys):
    """An infinite number of tasks is a string there, which float() reads: JSON has no infinity."""
    brief = ["--d", "3", "--alpha", "2", "--rho", "0.1", "--steps", "2", "--test", "20", "--validation", "0"]
    main(["train", *brief, "--out", str(tmp_path)])

    def refuse(word):
        raise AssertionError(word)

    record = json.loads((tmp_path / "training.json").read_text(), parse_constant=refuse)
    assert from_plain(record["training"]) == loop.load(tmp_path).training
    assert float(record["training"]["data"]["n_tasks"]) == math.inf


def test_a_whole_training_is_not_trained_again(folder, capsys, monkeypatch):
    main(["train", *SMALL])
    afresh = capsys.readouterr().out
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(loop._Run, "go", lambda self: pytest.fail("it trains"))
    main(["train", *SMALL, "--out", str(folder)])
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:-1] == afresh.splitlines()[:-1]  # the last line has the seconds
    assert captured.err == f"{folder} holds all of this training: nothing is trained\n"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / "training.json").unlink()  # as when it was killed before the record was written
    main(["train", *SMALL, "--out", str(folder)])
    assert json.loads((folder / "training.json").read_text())["key"] == WANTED.key()


def test_control_c_says_what_is_kept_and_the_same_command_goes_on(tmp_path, capsys, monkeypatch):
    main(["train", *SMALL])
    whole = capsys.readouterr()
    tell = training._tell

    def interrupt(record, wanted):
        if record.step == 30:
            raise KeyboardInterrupt
        tell(record, wanted)

    for given, said in (
        ([], "icl: interrupted; nothing is kept (give --out FOLDER to go on another time)"),
        (["--out", str(tmp_path)], f"icl: interrupted; the checkpoint of step 20 is kept in {tmp_path}: the same"),
        (["--out", str(tmp_path / "b"), "--evaluate-every", "30"], f"icl: interrupted; {tmp_path / 'b'} has no check"),
    ):
        monkeypatch.setattr(training, "_tell", interrupt)
        with pytest.raises(SystemExit) as stop:
            main(["train", *SMALL, *given])
        assert stop.value.code == 130
        assert capsys.readouterr().err.splitlines()[-1].startswith(said)
    monkeypatch.setattr(training, "_tell", tell)
    main(["train", *SMALL, "--out", str(tmp_path)])
    captured = capsys.readouterr()
    told = captured.err.splitlines()
    assert told[0] == f"{tmp_path} holds this training up to step 20: it goes on"
    assert told[1:4] == whole.err.splitlines()[2:]
    assert rows(captured.out) == rows(whole.out)


def test_why_it_stopped(capsys):
    main(["train", *SMALL, "--stop-at", "5"])
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1].startswith("stopped after 10 steps: the training error is below 5.0; ")
    assert "  training error " in captured.err
    main(["train", *SMALL, "--steps", "500", "--patience", "2", "--select", "best", "--learning-rate", "0.5"])
    words = capsys.readouterr().out.splitlines()[-1]
    step = int(words.removeprefix("stopped after ").split()[0])
    assert f"no new least validation error in 2 evaluations; the weights are those of step {step - 20}; " in words


def test_a_folder_is_probed(folder, capsys):
    at = {"d": 3, "alpha": 2.0, "rho": 0.1, "kappa": 2.0, "n_prompts": 300}
    main(["probe", str(folder), "--d", "3", "--alpha", "2", "--rho", "0.1", "--kappa", "2", "--n-prompts", "300",
          "--seed", "4"])  # fmt: skip
    assert capsys.readouterr().out == str(icl.probe(loop.load(folder).model, **at, rng=4))
    main(["probe", "ridge", "--d", "3", "--alpha", "2", "--rho", "0.1", "--kappa", "2", "--n-prompts", "300"])
    assert capsys.readouterr().out != str(icl.probe(loop.load(folder).model, **at, rng=4))


def test_the_error_that_a_probe_finds_is_that_of_the_training(tmp_path, capsys):
    """The tasks are the same at the same seed, in the convention that the model was trained in."""
    main(["train", *SMALL, "--convention", "unscaled", "--steps", "300", "--test", "2000", "--out", str(tmp_path)])
    trained = loop.load(tmp_path)
    capsys.readouterr()
    for convention, same in (("unscaled", True), ("scaled", False)):
        main(["probe", str(tmp_path), "--d", "3", "--alpha", "2", "--rho", "0.1", "--kappa", "2", "--seed", "4",
              "--convention", convention, "--format", "json"])  # fmt: skip
        found = json.loads(capsys.readouterr().out)["rows"]
        for row, error in zip(found, (trained.icl, trained.idg), strict=True):
            close = abs(row["error"] - error.value) < 4 * math.hypot(row["error_se"], error.se)
            assert close is same, (convention, row["error"], error)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--name", "transformer"], "invalid choice 'transformer'"),
        (["--name", "own"], "invalid choice 'own'"),
        (["--alpha", "-1"], "icl: alpha must be > 0 and finite, got -1"),
        (["--context-length", "6"], "icl: give alpha or context_length, not both"),
        (["--n-tasks", "2.5"], "n_tasks"),
        (["--steps", "many"], "many"),
        (["--steps", "0"], "icl: steps must be an integer >= 1"),
        (["--optimizer", "lion"], "invalid choice 'lion'"),
        (["--query", "next"], 'icl: query="next" needs correlated tokens: give xi or gamma'),
        (["--layers", "2"], "icl: linear has one layer, got layers=2"),
        (["--layout", "interleaved"], 'icl: linear needs layout="pairs", got "interleaved"'),
        (["--test", "0"], "icl: test must be an integer >= 1"),
        (["--seed", "-1"], "icl: seed must be an integer of at least 0, got -1"),
        (["--init-seed", "-1"], "icl: init_seed must be an integer of at least 0, got -1"),
        (["--device", "abacus"], "abacus"),
        (["--out", "/dev/null/x"], "/dev/null/x"),
        (["--learning-rate", "1e6", "--clip", "1e9", "--optimizer", "sgd"], "lower the learning rate"),
        (["--bogus", "1"], "bogus"),
    ],
)
def test_wrong_input_gets_a_message_and_status_2(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["train", *SMALL, *arguments])
    assert stop.value.code == 2
    captured = capsys.readouterr()
    assert words in " ".join((captured.err + captured.out).replace("│", " ").split())
    assert "Traceback" not in captured.err
    assert list(tmp_path.iterdir()) == []


def test_wrong_folders(folder, capsys, monkeypatch):
    def fails(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        assert stop.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    probe = ["--d", "3", "--alpha", "2", "--rho", "0.1", "--kappa", "2"]
    kept = (folder / "checkpoint.pt").read_bytes()
    line = fails("train", *SMALL, "--seed", "5", "--out", str(folder))
    assert line == f"icl: {folder} holds another training (seed = 4 there, 5 here); choose another folder, or delete it"
    assert (folder / "checkpoint.pt").read_bytes() == kept
    assert fails("probe", str(folder / "checkpoint.pt"), *probe).endswith("of a training by icl train, give the folder")
    assert "a folder of icl train" in fails("probe", str(folder.parent), *probe)
    assert "the predictor failed on x (256, 8, 4)" in fails("probe", str(folder), "--d", "4", *probe[2:])
    found = torch.load(folder / "checkpoint.pt", weights_only=True)
    torch.save({**found, "result": None}, folder / "checkpoint.pt")
    assert "stopped after 50 of 50 steps" in fails("probe", str(folder), *probe)
    (folder / "checkpoint.pt").write_bytes(b"a program?")
    for arguments in (["train", *SMALL, "--out", str(folder)], ["probe", str(folder), *probe]):
        assert f"{folder / 'checkpoint.pt'} cannot be read" in fails(*arguments)


def test_without_pytorch_one_line_says_what_to_install(tmp_path):
    """The help does without it."""
    (tmp_path / "checkpoint.pt").touch()
    program = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch':\n            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from icltheory.cli import main\n"
        "for words in sys.argv[1].split(';'):\n"
        "    try:\n        main(words.split())\n    except SystemExit as stop:\n        print('status', stop.code)\n"
    )
    commands = ["train --help", f"train {' '.join(SMALL)}", f"probe {tmp_path} --d 3 --alpha 2 --rho 1 --kappa 1"]
    found = subprocess.run(
        [sys.executable, "-c", program, ";".join(commands)], capture_output=True, text=True, check=True
    )
    assert [line for line in found.stdout.splitlines() if line.startswith("status")] == ["status 0", *["status 2"] * 2]
    assert found.stderr.splitlines() == [
        "icl train needs PyTorch: pip install 'icltheory[train]'",
        "icl: icltheory.train.load needs PyTorch: pip install 'icltheory[train]'",
    ]
