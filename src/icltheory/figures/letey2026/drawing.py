"""Correlated prompts (Letey et al. 2026): colours and words that all four figures share."""

COLOURS = ("#d1622b", "#0b6e99", "#5b8c2a", "#6a3d9a")
QUERY_COLOURS = {"independent": COLOURS[0], "next": COLOURS[1]}
QUERY_LABELS = {"independent": "independent query", "next": "query continues the context"}
XI = r"correlation length, $\xi$ (tokens)"
