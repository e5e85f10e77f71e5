"""How much memory a process takes, as Linux tells."""

from pathlib import Path


class Memory:
    """The memory of one process."""

    def __init__(self, pid: int) -> None:
        self._folder = Path("/proc") / str(pid)
        self._status = self._folder / "status"

    def resident_bytes(self) -> int:
        """Return what it takes now."""
        return self._field("VmRSS")

    def peak_bytes(self) -> int:
        """Return the most that it ever took."""
        return self._field("VmHWM")

    def forget_peak(self) -> None:
        """Let `peak_bytes` be the most from now on."""
        (self._folder / "clear_refs").write_text("5")

    def _field(self, name: str) -> int:
        for line in self._status.read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"there is no {name} in {self._status}")
