"""The effects of a call, with JoinGroup answered as its version has it."""

from dataclasses import dataclass
from typing import Final

from kvorum.coordinator.effects import Outbox
from kvorum.groups.promises import JoinPromise
from kvorum.wire.messages.join_group import JoinGroupResponse

FIRST_VERSION_WITH_NULL_PROTOCOL_NAME: Final = 7


@dataclass(slots=True)
class GroupOutbox(Outbox):
    """Gathers the effects of one call on groups."""

    def answer_join(self, promise: JoinPromise, response: JoinGroupResponse) -> None:
        """Keep a promise, unless it has been kept."""
        # Version 7 made the name nullable; an empty one is not sent from then on.
        has_null_name = promise.version >= FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
        response.protocol_name = response.protocol_name or (None if has_null_name else "")
        self.answer(promise, response)
