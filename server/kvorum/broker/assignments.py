"""The log directories of this broker's replicas, on their way to the controller (KIP-858).

Pure: `due` returns the request to send now, `on_response` or `on_disconnected` handles its outcome,
and `next_due_ms` says when to call `due`. One request is in flight at a time; what the controller
refuses is sent again until it is accepted or the replica is gone.
"""

from typing import Final, TypeAlias

from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

PartitionKey: TypeAlias = tuple[bytes, int]
"""A topic id and a partition's number."""
ASSIGNMENTS_MAX: Final = 2250
"""Kafka's MAX_ASSIGNMENTS_PER_REQUEST."""
BACKOFF_MS: Final = 100
"""The time for which assignments wait for others, and the first pause after a failure."""
BACKOFF_MS_MAX: Final = 10_000


class Assignments:
    """The directories of replicas that the controller has yet to accept."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._ready: dict[PartitionKey, bytes] = {}
        self._in_flight: dict[PartitionKey, bytes] = {}
        self._failures = 0
        self._next_due_ms = 0.0

    def next_due_ms(self) -> float | None:
        """Return when the next request is due; None while there is nothing to send."""
        return self._next_due_ms if self._ready and not self._in_flight else None

    def on_assignment(self, key: PartitionKey, directory_id: bytes, now_ms: float) -> None:
        """Report the directory of a replica's log."""
        if not self._ready:
            self._next_due_ms = max(self._next_due_ms, now_ms + BACKOFF_MS)
        self._ready[key] = directory_id

    def due(self, topics: TopicsImage, *, broker_epoch: int) -> AssignReplicasToDirsRequest | None:
        """Return the request to send now; None if no replica is left of what was reported."""
        for key in tuple(self._ready)[:ASSIGNMENTS_MAX]:
            directory_id = self._ready.pop(key)
            registration = topics.partition(*key)
            if registration is not None and self._broker_id in registration.replicas:
                self._in_flight[key] = directory_id
        if not self._in_flight:
            return None
        return AssignReplicasToDirsRequest(
            broker_id=self._broker_id,
            broker_epoch=broker_epoch,
            directories=_by_directory(self._in_flight),
        )

    def on_response(
        self, response: AssignReplicasToDirsResponse, now_ms: float
    ) -> list[tuple[PartitionKey, bytes]]:
        """Return what was accepted; keep the rest for the next request."""
        accepted: list[tuple[PartitionKey, bytes]] = []
        if response.error_code != ErrorCode.NONE:
            self.on_disconnected(now_ms)
            return accepted
        self._failures = 0
        for directory in response.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    key = topic.topic_id, partition.partition_index
                    if partition.error_code == ErrorCode.NONE and key in self._in_flight:
                        accepted.append((key, self._in_flight.pop(key)))
        self._send_again(now_ms + BACKOFF_MS)
        return accepted

    def on_disconnected(self, now_ms: float) -> None:
        """Send everything again, later and later as long as no controller takes it."""
        pause_ms = min(BACKOFF_MS * 2**self._failures, BACKOFF_MS_MAX)
        self._failures = min(self._failures + 1, BACKOFF_MS_MAX.bit_length())
        self._send_again(now_ms + pause_ms)

    def _send_again(self, at_ms: float) -> None:
        # Later reports are newer.
        self._ready = {**self._in_flight, **self._ready}
        self._in_flight = {}
        self._next_due_ms = at_ms


def _by_directory(
    assignments: dict[PartitionKey, bytes],
) -> list[AssignReplicasToDirsRequest.DirectoryData]:
    places: dict[bytes, dict[bytes, list[int]]] = {}
    for (topic_id, index), directory_id in assignments.items():
        places.setdefault(directory_id, {}).setdefault(topic_id, []).append(index)
    return [
        AssignReplicasToDirsRequest.DirectoryData(
            id=directory_id,
            topics=[
                AssignReplicasToDirsRequest.TopicData(
                    topic_id=topic_id,
                    partitions=[
                        AssignReplicasToDirsRequest.PartitionData(partition_index=index)
                        for index in indexes
                    ],
                )
                for topic_id, indexes in topics.items()
            ],
        )
        for directory_id, topics in places.items()
    ]
