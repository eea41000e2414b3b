"""The figure of the finite-size theory: its claims hold on a small version, and each of them can fail."""

from dataclasses import replace

import pytest

from icltheory.figures.extensions import finite_size
from icltheory.figures.extensions.finite_size_data import FiniteSize
from icltheory.figures.reproduce import reproduce, write

TINY = FiniteSize(sizes=(14, 20), seeds=12, context_d=14, context_seeds=20, rate_sizes=(10, 20, 30))


@pytest.fixture(scope="module")
def tiny():
    return reproduce(replace(finite_size, scales={"smoke": TINY}), "smoke", seed=1)


def verdicts(rows):
    return [claim.verdict for claim in finite_size.claims(TINY, rows)]


def shift(rows, factor, panels="ABCD"):
    """Multiply the simulated values, by a function of the dimension."""
    return [
        replace(row, value=row.value * factor(row.d)) if row.kind == "simulation" and row.panel in panels else row
        for row in rows
    ]


def test_claims_hold(tiny):
    assert [claim.verdict for claim in tiny.claims] == ["holds"] * 3


def test_every_claim_can_fail(tiny):
    assert verdicts(shift(tiny.rows, lambda d: 1.5))[0] == "fails"
    assert verdicts(shift(tiny.rows, lambda d: 1 - 1.5 / d))[1] == "fails"
    assert verdicts(shift(tiny.rows, lambda d: 1 + d / 100, "D"))[2] == "fails"
    assert verdicts(shift(tiny.rows, lambda d: 0.5, "D"))[2] == "fails"


def test_picture_and_data(tiny, tmp_path):
    paths = write(tiny, tmp_path, {"commit": None})
    assert all(path.stat().st_size > 1000 for path in paths)
    assert {row.panel for row in tiny.rows} == set("ABCD")
    # theory rows with a dimension are at the sizes realised there
    assert all(row.tau * 14**2 == pytest.approx(round(row.tau * 14**2)) for row in tiny.rows if row.d == 14)
