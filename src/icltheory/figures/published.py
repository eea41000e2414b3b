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

# Figure 4: mean gap e_ICL - e_IDG at d = 64, alpha = tau = 10, rho = 0.01, in the numbers behind it (the authors' code,
# which takes floor(kappa d) tasks). Linear attention has tasks on the sphere and 20 runs; dMMSE has Gaussian tasks, and
# its number of prompts is not printed.
LU2025_FIG4_D = 64
LU2025_FIG4_RUNS = 20
LU2025_FIG4_ALPHA = 10.0
LU2025_FIG4_TAU = 10.0
LU2025_FIG4_KAPPA = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6, 2.0, 4.0, 8.0, 16.0, 32.0)
LU2025_FIG4_LINEAR = (
    *(0.9259, 0.6823, 0.4730, 0.2974, 0.1757, 0.1102),
    *(0.0527, 0.0317, 0.00942, 0.00378, 0.00173, 0.00082),
)
# standard deviation over those runs
LU2025_FIG4_SPREAD = (
    *(0.016, 0.0087, 0.0066, 0.0063, 0.0066, 0.0047),
    *(0.0024, 0.0017, 0.00068, 0.00048, 0.0005, 0.00048),
)
LU2025_FIG4_DMMSE = (1.53, 1.48, 1.53, 1.49, 1.32, 1.32, 1.36, 1.24, 1.30, 1.20, 1.11, 1.09)

RAVENTOS2023 = "Raventós, Paul, Chen, Ganguli, NeurIPS 2023 (arXiv:2306.15063)"
LETEY2026 = (
    "Letey, Lu, Pehlevan, Zavatone-Veth, Sequential Correlations Change In-Context Learning: Effective Context Length "
    "and Architectural Mismatch, HiLD at ICML 2026"
)

# Reduced linear attention, ridgeless: tau = alpha = 4, kappa = 10, rho = 0.01, d = 32, exponential correlations of
# length xi. Simulated ICL errors for an independent query, the next token, and independent tokens at the effective
# context length. The number of runs is not printed.
LETEY2026_D = 32
LETEY2026_TAU, LETEY2026_ALPHA, LETEY2026_KAPPA, LETEY2026_RHO = 4.0, 4.0, 10.0, 0.01
LETEY2026_XI = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0)
LETEY2026_ICL: dict[str, tuple[float, ...]] = {
    "independent": (0.3088, 0.3761, 0.5237, 0.6461, 0.8180, 0.9735, 1.0426),
    "next": (0.3091, 0.3634, 0.4673, 0.5400, 0.6229, 0.6802, 0.7028),
    "at the effective length": (0.3088, 0.3744, 0.5249, 0.6474, 0.8144, 0.9552, 1.0195),
}
# The same at l = 128, d = 64, tau = 2, kappa = 0.5, rho = 0.01. We find them to be values of the theory, d -> infinity.
LETEY2026_LIMIT_D = 64
LETEY2026_LIMIT_TAU, LETEY2026_LIMIT_ALPHA, LETEY2026_LIMIT_KAPPA = 2.0, 2.0, 0.5
LETEY2026_LIMIT_XI = (0.0, 1.0, 2.0, 5.0, 10.0)
LETEY2026_LIMIT_ICL: dict[str, tuple[float, ...]] = {
    "independent": (1.06604, 1.12487, 1.25262, 1.50159, 1.68553),
    "next": (1.06604, 1.07966, 1.09165, 1.08578, 1.06699),
}
