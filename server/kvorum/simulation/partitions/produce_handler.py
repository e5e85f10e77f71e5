"""Writes of producers as a simulated broker answers them, by the real partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kvorum.broker.partition import ALL_IN_SYNC, Partition
from kvorum.broker.partition_leader.errors import LeaderRefusesError
from kvorum.broker.produced_batch import produced_batch
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.settings import TOPIC_ID
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.storage.errors import StorageError
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.topic_log.log_validator import RecordValidationError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)

VERSION: Final = 12


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
        answer = ProduceResponsePartitionProduceResponse(index=data.index, base_offset=-1)
        response = ProduceResponse(
            responses=[
                ProduceResponseTopicProduceResponse(topic_id=TOPIC_ID, partition_responses=[answer])
            ]
        )
        partition = self._replicas.partition(TOPIC_ID, data.index)
        if partition is None:
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            reply(response)
            return
        end = self._append(partition, data, request.acks, answer)
        if request.acks == ALL_IN_SYNC and end is not None:
            self._wait(partition, end, request.timeout_ms, lambda: reply(response), answer)
        elif request.acks:
            reply(response)

    def _append(
        self,
        partition: Partition,
        data: ProduceRequestPartitionProduceData,
        acks: int,
        answer: ProduceResponsePartitionProduceResponse,
    ) -> int | None:
        """Append a batch; return the offset behind it, None where it is refused."""
        before_end = partition.log.local_log.log_end_offset
        try:
            info = partition.append_records_to_leader(
                produced_batch(memoryview(data.records or b""), VERSION),
                required_acks=acks,
                wall_ms=self._around.wall_ms(),
                now_ms=self._around.now_ms,
            )
        except (RecordValidationError, ProducerError, LeaderRefusesError) as error:
            answer.error_code = error.code
            return None
        except StorageError:
            answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            return None
        answer.base_offset = info.first_offset
        self._note(partition, before_end)
        return info.last_offset + 1

    def _note(self, partition: Partition, before_end: int) -> None:
        is_written = partition.log.local_log.log_end_offset > before_end
        self._around.ledger.counts["written batches" if is_written else "duplicates answered"] += 1

    def _wait(
        self,
        partition: Partition,
        end: int,
        timeout_ms: int,
        done: Callable[[], None],
        answer: ProduceResponsePartitionProduceResponse,
    ) -> None:
        """Answer once the replicas in sync have what is below `end`, or time is up."""
        is_over = False

        def look(*, is_last: bool = False) -> None:
            nonlocal is_over
            code = partition.check_enough_replicas_reach_offset(end)
            if is_over or (code is None and not is_last):
                return
            is_over = True
            partition.unwatch(look)
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT if code is None else code
            done()

        partition.watch(look)
        self._around.events.after(timeout_ms, self._guard(lambda: look(is_last=True)))
        look()
