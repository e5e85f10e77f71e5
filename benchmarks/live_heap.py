"""How much of a Java process's heap is in use by what can still be reached."""

from __future__ import annotations

import subprocess


def live_heap_bytes(process_id: int) -> int:
    """Have the process collect its garbage, and return what all objects left over take."""
    done = subprocess.run(
        ["jcmd", str(process_id), "GC.class_histogram"], check=True, capture_output=True, text=True
    )
    total = next(line for line in done.stdout.splitlines() if line.startswith("Total"))
    return int(total.split()[2])
