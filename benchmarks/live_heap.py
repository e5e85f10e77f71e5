"""The live heap of a Java process."""

from __future__ import annotations

import subprocess


def live_heap_bytes(process_id: int) -> int:
    """Run a garbage collection in the process, and return the bytes of all objects left."""
    done = subprocess.run(
        ["jcmd", str(process_id), "GC.class_histogram"], check=True, capture_output=True, text=True
    )
    total = next(line for line in done.stdout.splitlines() if line.startswith("Total"))
    return int(total.split()[2])
