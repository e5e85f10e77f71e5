"""The figures of a described reassignment."""

from __future__ import annotations

import urllib.request

from tests.support.waiting import PATIENCE_S


def figures(port: int) -> dict[str, float]:
    """Return the figures about a reassignment, by the end of their names."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as page:
        lines = page.read().decode().splitlines()
    prefix = "kvorum_quorum_reassignment_"
    found = (line.split() for line in lines if line.startswith(prefix))
    return {name.removeprefix(prefix): float(value) for name, value in found}
