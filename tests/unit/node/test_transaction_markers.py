"""The markers of one transaction, written by this broker to itself, or held up without a leader."""

from dataclasses import replace
from random import Random

from tests.unit.node.prepared_transaction import ID, LISTENER, ME, NOBODY, PREPARED, TOPIC, led_by

from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.broker.transaction_coordinator.transaction_marker_channel_manager import (
    RETRY_BACKOFF_MS,
    TransactionMarkerChannelManager,
)
from kvorum.node.coroutines import Promise
from kvorum.node.outbound.broker_connections import BrokerConnections
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import HandlerResponse
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.transactions.transaction_metadata import TransactionMetadata
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kvorum.wire.primitives import Message

OTHER = replace(PREPARED, transactional_id="refunds", producer_id=8)
REQUEST_TIMEOUT_MS = 1_000


class Markers:
    """A coordinator's markers; notes the producers of those written, and of ended transactions."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.written: list[int] = []
        self.completed: list[int] = []
        self.stuck: set[int] = set()
        """The producers whose markers are not written for now."""
        self._events = Events()
        clock = NodeClock(self._events)
        versions: dict[int, tuple[int, int]] = {
            ApiKey.WRITE_TXN_MARKERS: (1, WriteTxnMarkersRequest.MAX_VERSION)
        }
        self._runtime = runtime = SimulatedRuntime(
            self._events, clock, Random(1), turn=lambda callback: callback()
        )
        self.manager = TransactionMarkerChannelManager(
            BrokerConnections(
                "markers",
                LISTENER,
                lambda: self.image,
                Outgoing(),
                request_timeout_ms=REQUEST_TIMEOUT_MS,
            ),
            OwnBroker(ME, LISTENER, versions, handle=self._write, runtime=runtime),
            LISTENER,
            image=lambda: self.image,
            runtime=runtime,
            complete=self._complete,
        )

    async def _write(self, request: IncomingRequest[Message]) -> HandlerResponse:
        body = request.body
        assert isinstance(body, WriteTxnMarkersRequest)
        (marker,) = body.markers
        if marker.producer_id in self.stuck:
            await Promise[None](self._runtime).result()
        self.written.append(marker.producer_id)
        result = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(0, ErrorCode.NONE)
        topic = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(TOPIC, [result])
        written = WriteTxnMarkersResponse.WritableTxnMarkerResult(marker.producer_id, [topic])
        return WriteTxnMarkersResponse([written])

    async def _complete(self, prepared: TransactionMetadata) -> None:
        self.completed.append(prepared.producer_id)

    def run_for(self, duration_ms: float) -> None:
        end_ms = self._events.now_ms + duration_ms
        while (callback := self._events.take_next(end_ms)) is not None:
            callback()


def test_a_broker_writes_the_markers_of_its_own_partitions_without_a_connection() -> None:
    markers = Markers(led_by(ME))
    markers.manager.add(PREPARED, coordinator_epoch=0)
    markers.run_for(1)
    assert (markers.written, markers.completed) == ([7], [7])


def test_a_request_of_a_broker_to_itself_that_is_stuck_holds_up_no_others_for_long() -> None:
    markers = Markers(led_by(ME))
    markers.stuck.add(PREPARED.producer_id)
    markers.manager.add(PREPARED, coordinator_epoch=0)
    markers.run_for(1)
    markers.manager.add(OTHER, coordinator_epoch=0)
    markers.run_for(REQUEST_TIMEOUT_MS / 2)
    assert markers.completed == []
    markers.stuck.clear()
    markers.run_for(REQUEST_TIMEOUT_MS)
    assert sorted(markers.completed) == [PREPARED.producer_id, OTHER.producer_id]


def test_a_transaction_is_counted_while_one_of_its_partitions_has_no_leader() -> None:
    markers = Markers(led_by(NOBODY))
    markers.manager.add(PREPARED, coordinator_epoch=0)
    markers.run_for(3 * RETRY_BACKOFF_MS)
    assert (markers.manager.leaderless_count, markers.completed) == (1, [])
    markers.image = led_by(ME)
    markers.run_for(2 * RETRY_BACKOFF_MS)
    assert (markers.manager.leaderless_count, markers.completed) == (0, [7])


def test_a_transaction_that_is_coordinated_elsewhere_is_counted_no_more() -> None:
    markers = Markers(led_by(NOBODY))
    markers.manager.add(PREPARED, coordinator_epoch=0)
    markers.run_for(RETRY_BACKOFF_MS)
    markers.manager.remove(ID)
    assert markers.manager.leaderless_count == 0
