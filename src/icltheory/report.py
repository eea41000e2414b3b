"""One self-contained HTML page: figures, claims with their verdicts, and where everything comes from."""

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from icltheory.conventions import SCALED
from icltheory.figures.figure import Reproduction


def write_report(results: Sequence[Reproduction], folder: Path, provenance: dict[str, Any]) -> Path:
    """Write report.html into the folder in which the figures were written; return its path.

    The pictures are embedded, so that the page can be sent to someone as one file.
    """
    import jinja2

    template = resources.files("icltheory").joinpath("report.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    claims = [claim for result in results for claim in result.claims]
    page = environment.from_string(template).render(
        results=[
            {
                "figure": result.figure,
                "scale": result.scale,
                "claims": result.claims,
                "simulations": result.simulations,
                "seconds": result.seconds,
                "parameters": ", ".join(f"{name} = {value}" for name, value in asdict(result.parameters).items()),
                "image": base64.b64encode((folder / f"{result.figure.name}.png").read_bytes()).decode(),
                "alt": f"{result.figure.title}; {result.figure.about}",
            }
            for result in results
        ],
        counts={word: sum(claim.verdict == word for claim in claims) for word in ("holds", "fails", "not tested")},
        provenance=provenance,
        convention=SCALED.statement,
        record=json.dumps(provenance, indent=2),
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path
