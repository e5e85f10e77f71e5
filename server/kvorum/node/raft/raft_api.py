"""All facts of one API that the replica of the metadata log answers, in one value.

The value is at the end of the API's module in `kvorum.node.raft.translation`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from kvorum.metadata.api import Api, Refuse
from kvorum.metadata.image import MetadataImage
from kvorum.wire.primitives import Message

if TYPE_CHECKING:
    from kvorum.controller.quorum_reassignment.plan import ReassignmentDescription

Request_co = TypeVar("Request_co", bound=Message, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftApi(Api[Request_co], Generic[Request_co]):
    """One API of the replica.

    - `admit`: the check of a request against the metadata, before the replica gets it; a response
      from it is final.
    - `complete`: adds a reassignment of the quorum that is wanted to the replica's response; the
      active controller alone knows of one.
    - `refuse`: returns the response that refuses the whole request, in a version.
    """

    refuse: Refuse[Message]
    admit: Callable[[MetadataImage, Message], Message | None] | None = None
    complete: Callable[[Message, ReassignmentDescription], None] | None = None
