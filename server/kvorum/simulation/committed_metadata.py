"""The metadata that the quorum of a world has committed, folded once for all who look at it."""

from collections.abc import Callable

from kvorum.metadata.record_frame import decode_record
from kvorum.simulation.application import FIRST_IMAGE
from kvorum.wire.primitives import Message


class CommittedMetadata:
    """The image of all committed records, each of which is folded when the first node applies it.

    `listeners` are called with each record after that, in order.
    """

    def __init__(self) -> None:
        self.image = FIRST_IMAGE
        self.listeners: list[Callable[[Message], None]] = []
        self._end_offset = 0

    def on_record(self, offset: int, value: bytes) -> None:
        """Fold a record that a node applies, unless another node was first."""
        if offset < self._end_offset:
            return
        self._end_offset = offset + 1
        message, version = decode_record(value)
        self.image = self.image.apply(message, version, offset)
        for listener in self.listeners:
            listener(message)
