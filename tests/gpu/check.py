"""Run the array-library checks on CUDA, and time one fit against the CPU: python -m tests.gpu.check"""

import time

import numpy as np

from tests import array_checks


def main() -> None:
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device: nothing was checked")
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    for check in array_checks.ALL:
        check(lambda a: torch.from_numpy(np.array(a)).cuda(), lambda t: t.cpu().numpy())
        print(f"passed {check.__name__}")
    from icltheory.simulate import linear_attention, linear_attention_path, ridge_regression

    point = {"d": 60, "tau": 2.0, "alpha": 1.0, "kappa": 0.5, "rho": 0.01, "rng": 0, "tol": 1e-11}
    here = [linear_attention(**point, ridge=1e-3), *linear_attention_path(**point, ridges=[1.0, 1e-3])]
    there = [
        linear_attention(**point, ridge=1e-3, device="cuda"),
        *linear_attention_path(**point, ridges=[1.0, 1e-3], device="cuda"),
    ]
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(other.gamma, one.gamma, rtol=0, atol=1e-9 * np.abs(one.gamma).max())
        np.testing.assert_allclose([other.icl, other.idg, other.train], [one.icl, one.idg, one.train], rtol=1e-8)
    print('passed device="cuda"')
    data = [torch.from_numpy(part).cuda() for part in array_checks.draw(200, 60_000)]
    for _ in range(2):  # the first run also loads kernels
        torch.cuda.synchronize()
        started = time.perf_counter()
        _, report = ridge_regression(*data, 300 * 1e-6)
        torch.cuda.synchronize()
    print(f"d = 200, tau = 1.5: {time.perf_counter() - started:.2f} s, {report}")


if __name__ == "__main__":
    main()
