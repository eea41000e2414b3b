"""Alignment of pretraining and test tasks governs the ICL error: the comparisons of Letey et al. 2025."""

from icltheory.figures.figure import Figure
from icltheory.figures.letey2025.alignment_claims import LETEY2025, claims
from icltheory.figures.letey2025.alignment_data import rows
from icltheory.figures.letey2025.alignment_plot import plot
from icltheory.figures.letey2025.alignment_trials import ALPHA, EXPONENT, RHO, TAU, Alignment, jobs

alignment = Figure(
    name="letey2025/alignment",
    title="Alignment of pretraining and test tasks",
    source=f"{LETEY2025}, after Figs. 1, 2 and 4, with more measures and test covariances",
    about=f"ICL error of ridgeless linear attention (tau = {TAU:g}, alpha = {ALPHA:g}, rho = {RHO:g}) on fresh tasks "
    f"whose covariance B differs from C, that of pretraining, a power law of exponent {EXPONENT:g} in A to I. All have "
    "signal variance 1; the test covariances follow power laws in the same order of directions, reversed, shuffled or "
    "rotated, or lie in leading, trailing or single directions or at both ends. Lines: theory as d goes to infinity. "
    "Points: our simulation, mean and standard error over seeds; in A also extrapolated from d/2 and d to infinity "
    "(open, as in B). trd BK is the part of the error in which the two covariances meet; the error is affine in it. "
    "trd BF and trd B/C are simpler. Rank correlations with the error are signed so that 1 is a perfect "
    "order; their bars, from resampled seeds, are for the distance from that of trd BK.",
    scales={
        "smoke": Alignment(d=32, seeds=16, half_seeds=24, diversity_seeds=40),
        "default": Alignment(d=64, seeds=16, half_seeds=60, diversity_seeds=16),
        "paper": Alignment(d=120, seeds=16, half_seeds=60, diversity_seeds=16),
    },
    jobs=jobs,
    rows=rows,
    plot=plot,
    claims=claims,
)
