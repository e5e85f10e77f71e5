"""The poison of a log: after the first failure every later use is refused with its reason."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kvorum.storage.errors import PoisonedError, StorageError

_ADVICE = "Stop the node, look at the disk, and start it again"


class Poison:
    """The usability of a log, with the reason if it is unusable."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._reason: StorageError | None = None
        self._is_closed = False

    @property
    def is_there(self) -> bool:
        """Whether a failure, or `close`, made the log unusable."""
        return self._reason is not None

    def demand_sound(self) -> None:
        """Raise PoisonedError if a failure, or `close`, made the log unusable."""
        if self._reason is not None:
            raise PoisonedError(
                f"the log cannot be used any more: {self._reason.problem}",
                file=self._directory,
                advice="" if self._is_closed else _ADVICE,
            ) from self._reason

    def take(self, error: StorageError) -> None:
        """Make every later use fail because of `error`; the first reason stays."""
        if self._reason is None:
            self._reason = error

    def close(self) -> None:
        """Make every later use fail because the log is closed."""
        self._is_closed = True
        self.take(PoisonedError("the log is closed", file=self._directory))

    @contextmanager
    def on_failure(self, *, spares: type[StorageError] | tuple[()] = ()) -> Generator[None]:
        """Poison the log if the block fails: half a change may be on disk.

        An error of the class `spares` leaves a block that can be repeated.
        """
        try:
            yield
        except StorageError as error:
            if not isinstance(error, spares):
                self.take(error)
            raise
