"""The markers that one broker is asked to write together (WriteTxnMarkers)."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.metadata.known_error_code import known_error_code
from kvorum.transactions.transaction_metadata import TransactionPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

MarkerCodes: TypeAlias = Mapping[TransactionPartition, ErrorCode]


class WaitingMarker(NamedTuple):
    """A marker for some partitions of one broker, and who waits for their codes."""

    marker: TransactionMarker
    partitions: tuple[TransactionPartition, ...]
    complete: Callable[[MarkerCodes], None]

    @property
    def wanted(self) -> WriteTxnMarkersRequest.WritableTxnMarker:
        """The marker as the request has it."""
        topics: dict[str, list[int]] = {}
        for topic, partition in self.partitions:
            topics.setdefault(topic, []).append(partition)
        marker = self.marker
        return WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            transaction_result=marker.is_commit,
            topics=[
                WriteTxnMarkersRequest.WritableTxnMarkerTopic(name, partitions)
                for name, partitions in topics.items()
            ],
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )


class MarkerBatch:
    """Markers that are written together; each who waits is answered once."""

    def __init__(self, waiting: Iterable[WaitingMarker]) -> None:
        self._waiting = list(waiting)

    @property
    def request(self) -> WriteTxnMarkersRequest:
        """The request for all markers."""
        return WriteTxnMarkersRequest(markers=[one.wanted for one in self._waiting])

    def on_response(self, response: WriteTxnMarkersResponse) -> None:
        """Hand out the codes; a partition without one has to be asked for again."""
        codes: dict[tuple[int, TransactionPartition], ErrorCode] = {}
        for result in response.markers:
            for topic in result.topics:
                for partition in topic.partitions:
                    where = TransactionPartition(topic.name, partition.partition_index)
                    codes[result.producer_id, where] = known_error_code(partition.error_code)
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.complete(
                {
                    where: codes.get((one.marker.producer_id, where), ErrorCode.NETWORK_EXCEPTION)
                    for where in one.partitions
                }
            )

    def fail(self, code: ErrorCode) -> None:
        """Answer those with an error that have no answer yet."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.complete(dict.fromkeys(one.partitions, code))
