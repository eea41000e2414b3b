"""The Bayes estimators: dMMSE on 2^20 tasks in bounded memory, and the risk of ridge at d = 100.

Run: python benchmarks/bayes.py [prompts]   (4096 take about ten minutes of one core)
"""

import resource
import sys
import time

import numpy as np

import icltheory as icl


def peak_megabytes() -> float:
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def many_tasks(prompts: int) -> None:
    d, examples, k, rho = 8, 16, 2**20, 0.25 / 8
    rng = np.random.default_rng(0)
    tasks = rng.standard_normal((k, d))
    x, query = (rng.standard_normal(shape) / np.sqrt(d) for shape in ((prompts, examples, d), (prompts, d)))
    y = (x @ tasks[:prompts, :, None])[:, :, 0] + np.sqrt(rho) * rng.standard_normal((prompts, examples))
    target = np.sum(query * tasks[:prompts], axis=1)
    print(f"dMMSE: {k} tasks x {examples} examples x {prompts} prompts, d = {d}; before: {peak_megabytes():.0f} MB")
    for at in ("query", "prefixes"):
        start = time.process_time()
        found = icl.bayes.discrete(x, y, query, tasks, rho, at=at)
        seconds = time.process_time() - start
        error = float(np.mean(((found if at == "query" else found[:, -1]) - target) ** 2)) + rho
        print(
            f"  at={at}: {seconds:.0f} CPU s, peak {peak_megabytes():.0f} MB in all, IDG error {error:.4f}", flush=True
        )


def ridge_risk(d: int = 100, contexts: int = 2) -> None:
    """Ask the estimator for its whole linear map M from labels to weights: that gives its risk, given X, exactly.

    E|w - M y|^2 = |M X - 1|^2 + rho |M|^2, squared Frobenius norms.
    """
    print(f"ridge at d = {d}: risk of the estimator, exact given each of {contexts} contexts, and the limit")
    rng = np.random.default_rng(0)
    for alpha, rho in ((0.5, 0.01), (1.0, 0.1), (2.0, 0.25)):
        length, risks = round(alpha * d), []
        for _ in range(contexts):
            x = rng.standard_normal((length, d)) / np.sqrt(d)
            # all pairs of a unit label and a unit query
            tokens = np.broadcast_to(x, (d, length, length, d))
            labels = np.broadcast_to(np.eye(length), (d, length, length))
            queries = np.broadcast_to(np.eye(d)[:, None, :], (d, length, d))
            m = icl.bayes.ridge(tokens, labels, queries, rho)
            risks.append(rho + (np.sum((m @ x - np.eye(d)) ** 2) + rho * np.sum(m**2)) / d)
        limit = float(icl.theory.bayes_ridge(alpha=alpha, rho=rho))
        off = ", ".join(f"{risk / limit - 1:+.2%}" for risk in risks)
        mean = np.mean(risks) / limit - 1
        print(f"  alpha = {alpha:g}, rho = {rho:g}: limit {limit:.5f}, risk off by {off}; their mean by {mean:+.2%}")


if __name__ == "__main__":
    many_tasks(int(sys.argv[1]) if len(sys.argv) > 1 else 4096)
    ridge_risk()
