"""Numbers printed by others, cited where they are compared with ours; never an input to a result of ours."""

LU2025 = "Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751)"

# Figure 1, panels A and B: mean test error of 10 runs at d = 100, kappa = 0.5, rho = 0.01, lambda = 1e-8.
LU2025_FIG1_D = 100
LU2025_FIG1_RUNS = 10
LU2025_FIG1_TAU = (0.2, 0.5, 0.85, 1.15, 1.5, 2.0)
LU2025_FIG1: dict[tuple[str, float], tuple[float, ...]] = {
    ("icl", 1.0): (1.0466, 1.3050, 3.2742, 4.1674, 1.7698, 1.2785),
    ("idg", 1.0): (0.8064, 0.8293, 2.1637, 2.6290, 0.9585, 0.6250),
    ("icl", 10.0): (0.8669, 0.8321, 2.2005, 3.1066, 1.2996, 0.9438),
    ("idg", 10.0): (0.5531, 0.2524, 0.4190, 0.4677, 0.1735, 0.1148),
    ("icl", 100.0): (0.8194, 0.7067, 3.9598, 6.4043, 2.1976, 1.3507),
    ("idg", 100.0): (0.4999, 0.1224, 0.1162, 0.1268, 0.0466, 0.0306),
}
# standard deviation over those runs, where printed
LU2025_FIG1_SPREAD: dict[tuple[str, float], tuple[float, ...]] = {
    ("icl", 1.0): (0.004, 0.0085, 0.071, 0.12, 0.023, 0.012),
}

# Figure 2, ICL panel: mean test error at d = 100, tau = 0.5, rho = 0.1; alpha -> values at each kappa. How many runs
# they average is taken to be as in Figure 1.
LU2025_FIG2_D = 100
LU2025_FIG2_RUNS = 10
LU2025_FIG2_KAPPA = (0.2, 0.4, 0.6, 1.5)
LU2025_FIG2: dict[float, tuple[float, ...]] = {
    2.35: (1.4090, 1.3446, 1.2952, 1.2302),
    5.5: (1.5082, 1.2834, 1.1528, 1.0193),
    22.7: (2.4093, 1.5205, 1.0749, 0.8338),
    100.0: (6.7706, 2.9707, 1.1227, 0.7762),
    1000.0: (57.404, 19.686, 1.2037, 0.7592),
}
