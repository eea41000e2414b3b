"""The command `icl doctor`."""

import json
from typing import Literal


def doctor(format: Literal["table", "json"] = "table") -> None:
    """Say what this installation runs on: versions, BLAS, cores, memory, optional parts.

    Args:
        format: Text for people, or JSON.
    """
    from icltheory.provenance import environment_threads, optional_parts, record
    from icltheory.resources import gigabytes

    facts = record()
    if format == "json":
        print(json.dumps(facts, indent=2))
        return
    lines = {
        "icltheory": facts["icltheory"] + (f" (commit {facts['commit']})" if facts["commit"] else ""),
        "python": f"{facts['python']} on {facts['platform']}",
        "processor": f"{facts['processor']}, {facts['cores']} cores usable",
        "memory": f"{gigabytes(facts['memory_available_bytes'])} available of {gigabytes(facts['memory_bytes'])}",
    }
    for pool in facts["blas"]:
        kernel = f", kernels for {pool['architecture']}" if pool["architecture"] else ""
        lines[f"{pool['internal_api']} {pool['version'] or ''}".strip()] = f"{pool['num_threads']} threads{kernel}"
    for name, value in environment_threads().items():
        lines[name] = value
    for name, version in facts["packages"].items():
        lines[name] = version or "MISSING"
    for name, purpose in optional_parts().items():
        lines[f"{name} (optional)"] = facts["optional"][name] or f"not installed; for {purpose}"
    width = max(map(len, lines))
    for name, text in lines.items():
        print(f"{name:<{width}}  {text}")
