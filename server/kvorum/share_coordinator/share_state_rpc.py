"""The five requests of a share coordinator (KIP-932), all of one form (Kafka's RPCType).

A request has partitions of topics, for one group; its response has a result with a code for each.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.api import RequestError
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
from kvorum.wire.primitives import Message


class _Part(Protocol):
    """A partition, in a request or in a response."""

    partition: int


class _Result(_Part, Protocol):
    """The result for a partition."""

    error_code: int
    error_message: str | None


PartT = TypeVar("PartT", bound=_Part)
PartT_co = TypeVar("PartT_co", bound=_Part, covariant=True)
ResultT = TypeVar("ResultT", bound=_Result)
ResponseT = TypeVar("ResponseT", bound=Message)


class TopicParts(Protocol[PartT_co]):
    """The partitions of one topic."""

    @property
    def topic_id(self) -> bytes:
        """The topic's id."""
        ...

    @property
    def partitions(self) -> Sequence[PartT_co]:
        """The partitions, or the results for them."""
        ...


class ShareStateRequest(Protocol[PartT_co]):
    """A request for partitions of one group."""

    @property
    def group_id(self) -> str:
        """The group."""
        ...

    @property
    def topics(self) -> Sequence[TopicParts[PartT_co]]:
        """The partitions by topic."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStateRpc(Generic[PartT, ResultT, ResponseT]):
    """One of the requests: how it, its response and their parts are made.

    `verb` and `noun` name it in texts.
    """

    verb: str
    noun: str
    new_request: Callable[[str, list[Any]], Message]
    new_topic: Callable[[bytes, list[PartT]], TopicParts[PartT]]
    response_type: type[ResponseT]
    new_response: Callable[[list[Any]], ResponseT]
    new_topic_result: Callable[[bytes, list[ResultT]], TopicParts[ResultT]]
    new_result: Callable[[int, int, str | None], ResultT]

    def parts(self, request: ShareStateRequest[PartT]) -> Iterator[tuple[SharePartitionKey, PartT]]:
        """Yield the share partitions of a request, and what it has for each."""
        for topic in request.topics:
            for part in topic.partitions:
                yield SharePartitionKey(request.group_id, topic.topic_id, part.partition), part

    def request(self, parts: dict[SharePartitionKey, PartT]) -> Message:
        """Return a request for share partitions of one group, at least one."""
        topics: dict[bytes, list[PartT]] = {}
        for key, part in parts.items():
            topics.setdefault(key.topic_id, []).append(part)
        group_id = next(iter(parts)).group_id
        return self.new_request(group_id, [self.new_topic(*each) for each in topics.items()])

    def response(self, results: dict[SharePartitionKey, ResultT]) -> ResponseT:
        """Return the response with the results for share partitions of one group."""
        topics: dict[bytes, list[ResultT]] = {}
        for key, result in results.items():
            topics.setdefault(key.topic_id, []).append(result)
        return self.new_response([self.new_topic_result(*each) for each in topics.items()])

    def results(
        self, group_id: str, response: ResponseT
    ) -> Iterator[tuple[SharePartitionKey, ResultT]]:
        """Yield the share partitions of a response for a group, and their results."""
        # No base of the generated messages has the field.
        topics: Sequence[TopicParts[ResultT]] = cast("Any", response).results
        for topic in topics:
            for result in topic.partitions:
                yield SharePartitionKey(group_id, topic.topic_id, result.partition), result

    def refuse(
        self, request: ShareStateRequest[PartT], error: RequestError, _version: int = 0
    ) -> ResponseT:
        """Return the response that refuses every partition, in the words of the code."""
        text = error.code.default_message
        results = {
            key: self.new_result(key.partition, error.code, text) for key, _ in self.parts(request)
        }
        return self.response(results)


INITIALIZE: Final = ShareStateRpc(
    verb="initialize",
    noun="state",
    new_request=InitializeShareGroupStateRequest,
    new_topic=InitializeShareGroupStateRequest.InitializeStateData,
    response_type=InitializeShareGroupStateResponse,
    new_response=InitializeShareGroupStateResponse,
    new_topic_result=InitializeShareGroupStateResponse.InitializeStateResult,
    new_result=InitializeShareGroupStateResponse.PartitionResult,
)
READ: Final = ShareStateRpc(
    verb="read",
    noun="state",
    new_request=ReadShareGroupStateRequest,
    new_topic=ReadShareGroupStateRequest.ReadStateData,
    response_type=ReadShareGroupStateResponse,
    new_response=ReadShareGroupStateResponse,
    new_topic_result=ReadShareGroupStateResponse.ReadStateResult,
    new_result=ReadShareGroupStateResponse.PartitionResult,
)
WRITE: Final = ShareStateRpc(
    verb="write",
    noun="state",
    new_request=WriteShareGroupStateRequest,
    new_topic=WriteShareGroupStateRequest.WriteStateData,
    response_type=WriteShareGroupStateResponse,
    new_response=WriteShareGroupStateResponse,
    new_topic_result=WriteShareGroupStateResponse.WriteStateResult,
    new_result=WriteShareGroupStateResponse.PartitionResult,
)
DELETE: Final = ShareStateRpc(
    verb="delete",
    noun="state",
    new_request=DeleteShareGroupStateRequest,
    new_topic=DeleteShareGroupStateRequest.DeleteStateData,
    response_type=DeleteShareGroupStateResponse,
    new_response=DeleteShareGroupStateResponse,
    new_topic_result=DeleteShareGroupStateResponse.DeleteStateResult,
    new_result=DeleteShareGroupStateResponse.PartitionResult,
)
READ_SUMMARY: Final = ShareStateRpc(
    verb="read",
    noun="state summary",
    new_request=ReadShareGroupStateSummaryRequest,
    new_topic=ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
    response_type=ReadShareGroupStateSummaryResponse,
    new_response=ReadShareGroupStateSummaryResponse,
    new_topic_result=ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
    new_result=ReadShareGroupStateSummaryResponse.PartitionResult,
)
