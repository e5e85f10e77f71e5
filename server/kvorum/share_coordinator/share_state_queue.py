"""The questions that wait for one share coordinator, and the requests that ask them; pure.

Share partitions of one group that wait for the same request are asked about together, as Kafka's
PersisterStateManager does.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.share_coordinator.share_state_rpc import PartT, ResponseT, ResultT, ShareStateRpc
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message


class _Waiting(NamedTuple, Generic[PartT, ResultT]):
    """The part of a request for one share partition, and what takes the result."""

    part: PartT
    take: Callable[[ResultT], None]


class ShareStateCall(Generic[PartT, ResultT, ResponseT]):
    """One request for share partitions of a group; each of them is answered once."""

    def __init__(self, rpc: ShareStateRpc[PartT, ResultT, ResponseT], group_id: str) -> None:
        self.rpc = rpc
        self.group_id = group_id
        self._waiting: dict[SharePartitionKey, _Waiting[PartT, ResultT]] = {}

    @property
    def request(self) -> Message:
        """The request."""
        return self.rpc.request({key: one.part for key, one in self._waiting.items()})

    def add(self, key: SharePartitionKey, part: PartT, take: Callable[[ResultT], None]) -> bool:
        """Ask about one more share partition; return False if it is asked about already."""
        if key in self._waiting:
            return False
        self._waiting[key] = _Waiting(part, take)
        return True

    def on_response(self, response: ResponseT) -> None:
        """Hand each share partition its result; one that is left out has UNKNOWN_SERVER_ERROR."""
        for key, result in self.rpc.results(self.group_id, response):
            waiting = self._waiting.pop(key, None)
            if waiting is not None:
                waiting.take(result)
        self.fail(ErrorCode.UNKNOWN_SERVER_ERROR)

    def fail(self, code: ErrorCode) -> None:
        """Refuse what has no result yet."""
        waiting, self._waiting = self._waiting, {}
        for key, one in waiting.items():
            one.take(self.rpc.new_result(key.partition, code, code.default_message))


class ShareStateBatch(NamedTuple):
    """Requests that are sent together, in this order."""

    calls: tuple[ShareStateCall[Any, Any, Any], ...]

    def fail(self, code: ErrorCode) -> None:
        """Refuse what has no result yet."""
        for call in self.calls:
            call.fail(code)


class ShareStateQueue:
    """Requests that wait until those before them are answered."""

    def __init__(self) -> None:
        self._calls: list[ShareStateCall[Any, Any, Any]] = []

    def add(
        self,
        rpc: ShareStateRpc[PartT, ResultT, ResponseT],
        key: SharePartitionKey,
        part: PartT,
        take: Callable[[ResultT], None],
    ) -> None:
        """Have a share partition be asked about, after what it waits for already."""
        for call in self._calls:
            if call.rpc is rpc and call.group_id == key.group_id and call.add(key, part, take):
                return
        call = ShareStateCall(rpc, key.group_id)
        call.add(key, part, take)
        self._calls.append(call)

    def take(self) -> ShareStateBatch | None:
        """Return all that waits, which waits no longer; None for nothing."""
        calls, self._calls = self._calls, []
        return ShareStateBatch(tuple(calls)) if calls else None
