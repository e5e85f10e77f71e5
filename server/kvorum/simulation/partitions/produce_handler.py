"""Writes of producers as a simulated broker answers them, by the real partitions."""

from collections.abc import Callable
from typing import Final

from kvorum.broker.partition import ALL_IN_SYNC, Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.produced_batch import produced_batch
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.settings import TOPIC_ID
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.storage.errors import StorageError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.topic_log.log_validator import RecordValidationError
from kvorum.storage.topic_log.unified_log import LogAppendInfo
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse

VERSION: Final = 12
MARKER_TIMEOUT_MS: Final = 200


class ProduceHandler:
    """Appends batches, and answers once `acks` is fulfilled or the request's time is up."""

    def __init__(
        self,
        replicas: ReplicaManager,
        around: Surroundings,
        guard: Callable[[Callable[[], None]], Callable[[], None]],
    ) -> None:
        self._replicas = replicas
        self._around = around
        self._guard = guard

    def handle(self, request: ProduceRequest, reply: Reply) -> None:
        """Append the one batch of a request."""
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        answer = ProduceResponse.PartitionProduceResponse(index=data.index, base_offset=-1)
        response = ProduceResponse(
            responses=[
                ProduceResponse.TopicProduceResponse(
                    topic_id=TOPIC_ID, partition_responses=[answer]
                )
            ]
        )

        def done(code: ErrorCode) -> None:
            answer.error_code = code
            if request.acks:
                reply(response)

        def append(partition: Partition) -> LogAppendInfo:
            before_end = partition.log.local_log.log_end_offset
            info = partition.append_records_to_leader(
                produced_batch(memoryview(data.records or b""), VERSION),
                required_acks=request.acks,
                wall_ms=self._around.wall_ms(),
                now_ms=self._around.now_ms,
            )
            answer.base_offset = info.first_offset
            is_written = partition.log.local_log.log_end_offset > before_end
            name = "written batches" if is_written else "duplicates answered"
            self._around.ledger.counts[name] += 1
            return info

        is_waiting = request.acks == ALL_IN_SYNC
        self._append(data.index, append, request.timeout_ms if is_waiting else None, done)

    def mark(
        self, index: int, marker: TransactionMarker, done: Callable[[ErrorCode], None]
    ) -> None:
        """Append the marker that ends a transaction."""

        def append(partition: Partition) -> LogAppendInfo:
            wall_ms = self._around.wall_ms()
            return partition.append_records_to_leader(
                marker.batch(wall_ms),
                required_acks=ALL_IN_SYNC,
                wall_ms=wall_ms,
                now_ms=self._around.now_ms,
                origin=AppendOrigin.COORDINATOR,
                transaction=marker.append,
            )

        self._append(index, append, MARKER_TIMEOUT_MS, done)

    def _append(
        self,
        index: int,
        append: Callable[[Partition], LogAppendInfo],
        timeout_ms: int | None,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Append to a partition, and call `done` with the code.

        That is at once, or with a `timeout_ms` when the replicas in sync have what was appended.
        """
        partition = self._replicas.partition(TOPIC_ID, index)
        if partition is None:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        try:
            info = append(partition)
        except (RecordValidationError, ProducerError, LeaderRefusesError) as error:
            done(error.code)
            return
        except StorageError:
            done(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        if timeout_ms is None:
            done(ErrorCode.NONE)
        else:
            self._wait(partition, info.last_offset + 1, timeout_ms, done)

    def _wait(
        self, partition: Partition, end: int, timeout_ms: int, done: Callable[[ErrorCode], None]
    ) -> None:
        """Call back once the replicas in sync have what is below `end`, or time is up."""
        is_over = False

        def look(*, is_last: bool = False) -> None:
            nonlocal is_over
            code = partition.check_enough_replicas_reach_offset(end)
            if is_over or (code is None and not is_last):
                return
            is_over = True
            partition.unwatch(look)
            done(ErrorCode.REQUEST_TIMED_OUT if code is None else code)

        partition.watch(look)
        self._around.events.after(timeout_ms, self._guard(lambda: look(is_last=True)))
        look()
