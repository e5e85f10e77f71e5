"""The end of a transaction that a coordinator finds prepared in its log."""

from errno import EMFILE
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.node.led_partitions import LedPartitions
from tests.unit.node.prepared_transaction import ID, LISTENER, ME, PREPARED, TOPIC, led_by
from tests.unit.storage.topic_logs import batch_of

from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topic_names import TRANSACTION_STATE_TOPIC
from kvorum.node.broker.ended_transactions import EndedTransactions
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.broker.producer_id_manager import ProducerIdManager
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.transaction_coordinator.transaction_coordinator_service import (
    COMPLETION_BACKOFF_MS,
    TransactionCoordinatorService,
)
from kvorum.node.config import NodeConfig
from kvorum.node.outbound.broker_connections import BrokerConnections
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import HandlerResponse
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.storage.errors import TooManyOpenFilesError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.transactions.settings import TransactionCoordinatorSettings
from kvorum.transactions.transaction_log import transaction_record
from kvorum.transactions.transaction_state import TransactionState
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import RecordData

STATES_ID = b"transaction-state"[:16]
SETTINGS = SimpleNamespace(
    node_id=ME,
    listeners=SimpleNamespace(inter_broker_name=LISTENER),
    network=SimpleNamespace(request_timeout_ms=1_000),
    transactions=SimpleNamespace(
        coordinator=TransactionCoordinatorSettings(), topic=SimpleNamespace(partition_count=1)
    ),
)
SOME_TIME_MS = 10
"""Enough for all that does not wait for time."""


class PreparedTransactions(LedPartitions):
    """A coordinator that finds a prepared transaction in its log; `epochs` are its markers'.

    A marker with a coordinator epoch below `fenced_below` is refused.
    """

    def __init__(self) -> None:
        super().__init__(TRANSACTION_STATE_TOPIC, STATES_ID, 1)
        self.image = led_by(ME)
        self.epochs: list[int] = []
        self.fenced_below = 0
        self._events = Events()
        clock = NodeClock(self._events)
        runtime = SimulatedRuntime(self._events, clock, Random(1), turn=lambda callback: callback())
        versions: dict[int, tuple[int, int]] = {
            ApiKey.WRITE_TXN_MARKERS: (1, WriteTxnMarkersRequest.MAX_VERSION)
        }
        self.service = TransactionCoordinatorService(
            cast("NodeConfig", SETTINGS),
            cast("ReplicaManager", self),
            cast("ProducerIdManager", SimpleNamespace(take_producer_id=None)),
            connections=BrokerConnections(
                "markers", LISTENER, lambda: self.image, Outgoing(), request_timeout_ms=1_000
            ),
            own=OwnBroker(ME, LISTENER, versions, handle=self._mark, runtime=runtime),
            ended=EndedTransactions(runtime),
            image=lambda: self.image,
            runtime=runtime,
        )
        record = transaction_record(PREPARED, 0)
        batch = batch_of(RecordData(record.value_bytes(), record.key_bytes(), 0))
        self.log.append_as_leader(batch, leader_epoch=0, now_ms=0, origin=AppendOrigin.COORDINATOR)

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        self.service.on_image(before, after)

    async def _mark(self, request: IncomingRequest[Message]) -> HandlerResponse:
        body = request.body
        assert isinstance(body, WriteTxnMarkersRequest)
        (marker,) = body.markers
        self.epochs.append(marker.coordinator_epoch)
        is_fenced = marker.coordinator_epoch < self.fenced_below
        code = ErrorCode.TRANSACTION_COORDINATOR_FENCED if is_fenced else ErrorCode.NONE
        result = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(0, code)
        topic = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(TOPIC, [result])
        written = WriteTxnMarkersResponse.WritableTxnMarkerResult(marker.producer_id, [topic])
        return WriteTxnMarkersResponse([written])

    def lead(self, leader_epoch: int) -> None:
        """Lead in an epoch, and load what the log has."""
        self.register(leader_epoch=leader_epoch)
        self.run_for(SOME_TIME_MS)

    def run_for(self, duration_ms: float) -> None:
        end_ms = self._events.now_ms + duration_ms
        while (callback := self._events.take_next(end_ms)) is not None:
            callback()

    def state(self) -> TransactionState:
        """Return the committed state of the id."""
        context = self.service.runtime.context_for(ID)
        metadata = context.read(lambda shard: shard.ids.committed(ID))
        assert metadata is not None
        return metadata.state


def test_markers_that_another_coordinator_has_fenced_are_written_in_the_next_epoch() -> None:
    """The leadership went away and came back between two images."""
    transactions = PreparedTransactions()
    transactions.fenced_below = 1
    transactions.lead(0)
    assert (transactions.epochs, transactions.state()) == ([0], TransactionState.PREPARE_COMMIT)
    transactions.lead(2)
    assert transactions.epochs == [0, 2]
    assert transactions.state() is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize(
    "refusal",
    [
        TooManyOpenFilesError("no descriptor is left", errno=EMFILE, file=Path("/d")),
        LeaderRefusesError(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        LeaderRefusesError(ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
    ids=["no descriptor", "no leader", "no replicas"],
)
def test_the_last_record_is_written_again_while_the_transaction_is_coordinated_here(
    refusal: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise refusal

    transactions = PreparedTransactions()
    with monkeypatch.context() as refusing:
        refusing.setattr(Partition, "append_records_to_leader", refuse)
        transactions.lead(0)
    assert transactions.state() is TransactionState.PREPARE_COMMIT
    transactions.run_for(COMPLETION_BACKOFF_MS)
    assert transactions.state() is TransactionState.COMPLETE_COMMIT
    assert transactions.epochs == [0], "markers are written once"


def test_the_last_record_is_not_written_where_the_coordinator_has_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise LeaderRefusesError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    transactions = PreparedTransactions()
    monkeypatch.setattr(Partition, "append_records_to_leader", refuse)
    transactions.lead(0)
    assert transactions.service.late_completion_count == 1
    transactions.lose()
    assert transactions.service.late_completion_count == 0
