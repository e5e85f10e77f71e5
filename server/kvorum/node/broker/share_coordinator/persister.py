"""The keeper of the state of share partitions, as its users see it (Kafka's Persister)."""

from typing import Protocol

from kvorum.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kvorum.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from kvorum.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)


class Persister(Protocol):
    """Keeps the state of share partitions with their coordinators, wherever these are.

    A request names partitions of one group. The response has each of them with a code of its own,
    which is the last one after all tries; no method raises for a coordinator that cannot be had.
    """

    async def initialize_state(
        self, request: InitializeShareGroupStateRequest, /
    ) -> InitializeShareGroupStateResponse:
        """Begin the state of partitions, or begin it again with a later state epoch."""
        ...

    async def read_state(
        self, request: ReadShareGroupStateRequest, /
    ) -> ReadShareGroupStateResponse:
        """Read the state of partitions for their new leaders, whose epochs are kept."""
        ...

    async def write_state(
        self, request: WriteShareGroupStateRequest, /
    ) -> WriteShareGroupStateResponse:
        """Keep what has changed in partitions."""
        ...

    async def delete_state(
        self, request: DeleteShareGroupStateRequest, /
    ) -> DeleteShareGroupStateResponse:
        """Forget the state of partitions; what is not known is forgotten already."""
        ...

    async def read_state_summary(
        self, request: ReadShareGroupStateSummaryRequest, /
    ) -> ReadShareGroupStateSummaryResponse:
        """Read the start offsets of partitions, without changing anything."""
        ...
