"""`icl effective-length` and `icl simulate --xi` as typed: kernels, files of sequences, pictures, what is wrong."""

import csv
import io

import numpy as np
import pytest

import icltheory as icl
from icltheory.cli import main
from icltheory.prompts.sequence_files import read_sequences
from icltheory.prompts.token_chains import token_colouring


def run(capsys, *words):
    main(["effective-length", *map(str, words), "--format", "csv"])
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def fails(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(["effective-length", *map(str, words)])
    assert stopped.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def sequences():
    rng = np.random.default_rng(0)
    colour = token_colouring(icl.Kernel.exponential(3.0, 41), "independent")
    return colour(rng.standard_normal((200, 41, 10)), rng.standard_normal((200, 10)))[0]


def test_kernels_and_the_theory_of_each(capsys):
    rows = run(capsys, "--xi", "0,2,300", "--gamma", "0.9", "--context-length", 128, "--d", 32)
    assert [row["kernel"] for row in rows] == ["xi = 0", "xi = 2", "xi = 300", "gamma = 0.9"]
    assert [row["regime"] for row in rows] == ["weak", "weak", "strong", "borderline"]
    at = {"d": 32, "tau": 4.0, "kappa": 10.0, "rho": 0.01}
    chain = icl.Kernel.exponential(2.0, 128)
    for name, query in (("icl", "independent"), ("icl_next", "next")):
        assert float(rows[1][name]) == pytest.approx(icl.theory.linear_attention(**at, kernel=chain, query=query).icl)
    assert float(rows[1]["icl_iid"]) == pytest.approx(icl.theory.linear_attention(**at, context_length=128).icl)
    assert float(rows[1]["effective_length"]) == pytest.approx(59.9, abs=0.05)
    assert float(rows[0]["effective_length"]) == pytest.approx(128)


def test_a_file_of_sequences_with_error_bars(capsys, sequences, tmp_path):
    np.save(tmp_path / "tokens.npy", sequences)
    with (tmp_path / "tokens.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["sequence", *(f"x{i}" for i in range(10))])
        for i, tokens in enumerate(sequences):
            table.writerows([f"s{i}", *token] for token in tokens)
    np.testing.assert_array_equal(read_sequences(tmp_path / "tokens.csv"), sequences)
    (of_array,), (of_table,) = (run(capsys, tmp_path / f"tokens.{ending}") for ending in ("npy", "csv"))
    assert {**of_array, "kernel": ""} == {**of_table, "kernel": ""}
    exact = icl.Kernel.exponential(3.0, 40)
    assert abs(float(of_array["k2"]) - exact.k2) < 4 * float(of_array["k2_se"]) < 0.2 * exact.k2
    worth, error = float(of_array["effective_length"]), float(of_array["effective_length_se"])
    assert abs(worth - exact.effective_length(0.01)) < 4 * error < 0.2 * worth
    # d and the context length are the file's: all tokens but the last, which is the next one
    at = {"tau": 4.0, "alpha": 4.0, "kappa": 10.0, "rho": 0.01}
    assert float(of_array["icl_iid"]) == pytest.approx(icl.theory.linear_attention(**at).icl)
    (whole,) = run(capsys, tmp_path / "tokens.npy", "--context-length", 41)
    assert whole["icl_next"] == whole["k0"] == "nan"


def test_the_picture(capsys, sequences, tmp_path):
    np.save(tmp_path / "tokens.npy", sequences)
    run(capsys, tmp_path / "tokens.npy", "--xi", "3", "--plot", tmp_path / "new" / "worth.png")
    assert (tmp_path / "new" / "worth.png").stat().st_size > 10_000


def test_what_is_wrong_is_said(capsys, tmp_path):
    assert "give a FILE of token sequences, --xi or --gamma" in fails(capsys)
    assert "must be in an .npy or a .csv file, got" in fails(capsys, tmp_path / "tokens.txt")
    assert "No such file" in fails(capsys, tmp_path / "tokens.npy")
    np.save(tmp_path / "flat.npy", np.zeros((4, 5)))
    assert "n sequences of m tokens in d dimensions, got float64 of shape (4, 5)" in fails(
        capsys, tmp_path / "flat.npy"
    )
    (tmp_path / "broken.npy").write_bytes(b"no array")
    assert "must be an .npy file with an array of shape (n, m, d)" in fails(capsys, tmp_path / "broken.npy")
    for text, message in (
        ("a,1,2\na,3,4\nb,1,2\n", "got 2 sequences of [1, 2] tokens of [2] coordinates"),
        ("a,1,2\na,3\n", "got 1 sequences of [2] tokens of [1, 2] coordinates"),
        ("a,1,2\na,x,4\n", "must have numbers after the first column, got ['x', '4'] in row 2"),
        ("", "got 0 sequences of [] tokens"),
        ("a\nb\n", "got 2 sequences of [1] tokens of [0] coordinates"),
    ):
        (tmp_path / "table.csv").write_text(text)
        assert message in fails(capsys, tmp_path / "table.csv")
    assert "xi must be >= 0, got -1" in fails(capsys, "--xi", "-1")


def test_simulate_with_correlated_tokens(capsys):
    words = ["simulate", "--d", "12", "--tau", "3", "--alpha", "4", "--ridge", "0.1", "--seeds", "2", "--workers", "1"]
    main([*words, "--xi", "2", "--query", "next", "--format", "csv"])
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    kernel = icl.Kernel.exponential(2.0, 48)
    point = {"d": 12, "tau": 3.0, "kappa": 0.5, "rho": 0.01, "ridge": 0.1}
    assert float(row["icl_limit"]) == pytest.approx(
        icl.theory.linear_attention(**point, kernel=kernel, query="next").icl
    )
    assert abs(float(row["icl"]) / float(row["icl_limit"]) - 1) < 0.5
    with pytest.raises(SystemExit):
        main([*words, "--xi", "2", "--gamma", "1"])
    assert "give --xi or --gamma, not both" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(capsys):
    main(["simulate", "--d", "6", "--ridge", "0.1", "--seeds", "1", "--workers", "1", "--xi", "50"])
    assert "icl: warning: correlations are not weak but strong" in capsys.readouterr().err
