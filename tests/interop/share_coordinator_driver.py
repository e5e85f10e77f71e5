"""Our share coordinator's shard, driven and shown as ShareCoordinatorOracle.java does Kafka's."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.coordinator.result import CoordinatorResult
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import decode_record
from kvorum.share_coordinator.persister_state_batch import PersisterStateBatch
from kvorum.share_coordinator.settings import ShareCoordinatorSettings
from kvorum.share_coordinator.shard import ShareCoordinatorShard
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
from kvorum.wire.uuid_text import uuid_from_text


class Logged(NamedTuple):
    """A record as it stands in the log."""

    key: bytes
    value: bytes | None


class Driver:
    """A shard with its log; every write is appended at once, or refused by the log."""

    def __init__(self, settings: ShareCoordinatorSettings) -> None:
        self._settings = settings
        self.now = 0
        self.log: list[Logged] = []
        self._image = MetadataImage()
        self.shard = self._new_shard()

    def answer(self, line: str) -> str:
        end = len(self.log)
        try:
            result = self._step(line.split(" "))
        except RequestError as error:
            self._revert(end)
            result = f"error {int(error.code)} | "
        return f"{result} | {self.described()}"

    def _new_shard(self) -> ShareCoordinatorShard:
        return ShareCoordinatorShard(self._settings, lambda: self._image)

    def _revert(self, end: int) -> None:
        self.shard.timeline.revert(end)
        del self.log[end:]

    def _step(self, parts: list[str]) -> str:
        match parts[0]:
            case "time":
                self.now = int(parts[1])
            case "image":
                decoded = (decode_record(bytes.fromhex(one)) for one in parts[2:])
                offset = int(parts[1])
                self._image = self._image.apply_all((*one, offset) for one in decoded)
            case "commit":
                self.shard.timeline.commit(len(self.log))
            case "raw":
                value = None if parts[2] == "~" else bytes.fromhex(parts[2])
                self.log.append(Logged(bytes.fromhex(parts[1]), value))
                self._load(len(self.log) - 1)
                self.shard.timeline.written_offset = len(self.log)
            case "load":
                self.shard = self._new_shard()
                for offset in range(len(self.log)):
                    self._load(offset)
                self.shard.timeline.written_offset = len(self.log)
                self.shard.timeline.commit(len(self.log))
            case "cold":
                return self._written(self.shard.snapshot_cold_partitions(self.now), int(parts[1]))
            case "topics":
                deleted = self.shard.on_topics_deleted([*map(uuid_from_text, parts[2:])])
                return self._written(deleted, int(parts[1]))
            case _:
                return self._request(parts[0], int(parts[1]), bytes.fromhex(parts[2]))
        return "ok | "

    def _load(self, offset: int) -> None:
        logged = self.log[offset]
        self.shard.load_record(offset, -1, logged.key, logged.value, self.now)

    def _request(self, name: str, failure: int, body: bytes) -> str:
        """Have the shard answer for the first partition, as Kafka's does."""
        match name:
            case "initialize":
                initialize = InitializeShareGroupStateRequest.decode(body, 0)
                topic, one = initialize.topics[0], initialize.topics[0].partitions[0]
                key = SharePartitionKey(initialize.group_id, topic.topic_id, one.partition)
                initialized = self.shard.initialize_state(key, one, self.now)
                begun = InitializeShareGroupStateResponse.InitializeStateResult(key.topic_id)
                begun.partitions.append(_response(initialized))
                response = InitializeShareGroupStateResponse([begun]).encode(0)
                return self._written(initialized, failure, response)
            case "write":
                write = WriteShareGroupStateRequest.decode(body, 1)
                wanted = write.topics[0].partitions[0]
                key = SharePartitionKey(write.group_id, write.topics[0].topic_id, wanted.partition)
                written = self.shard.write_state(key, wanted, self.now)
                kept = WriteShareGroupStateResponse.WriteStateResult(key.topic_id)
                kept.partitions.append(_response(written))
                return self._written(
                    written, failure, WriteShareGroupStateResponse([kept]).encode(1)
                )
            case "read":
                read = ReadShareGroupStateRequest.decode(body, 0)
                asked = read.topics[0].partitions[0]
                key = SharePartitionKey(read.group_id, read.topics[0].topic_id, asked.partition)
                found = self.shard.read_state(key, asked.leader_epoch, self.now)
                shown = ReadShareGroupStateResponse.ReadStateResult(key.topic_id)
                shown.partitions.append(_response(found))
                return self._written(found, failure, ReadShareGroupStateResponse([shown]).encode(0))
            case "summary":
                summary = ReadShareGroupStateSummaryRequest.decode(body, 1)
                index = summary.topics[0].partitions[0].partition
                key = SharePartitionKey(summary.group_id, summary.topics[0].topic_id, index)
                summed = self.shard.read_state_summary(key)
                start = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult(key.topic_id)
                start.partitions.append(_response(summed))
                response = ReadShareGroupStateSummaryResponse([start]).encode(1)
                return self._written(summed, failure, response)
            case _:
                delete = DeleteShareGroupStateRequest.decode(body, 0)
                index = delete.topics[0].partitions[0].partition
                key = SharePartitionKey(delete.group_id, delete.topics[0].topic_id, index)
                deleted = self.shard.delete_state(key)
                gone = DeleteShareGroupStateResponse.DeleteStateResult(key.topic_id)
                gone.partitions.append(_response(deleted))
                response = DeleteShareGroupStateResponse([gone]).encode(0)
                return self._written(deleted, failure, response)

    def _written(self, result: CoordinatorResult[Any], failure: int, response: bytes = b"") -> str:
        end = len(self.log)
        texts: list[str] = []
        # Kafka's order is that of a hash table.
        for record in sorted(result.records, key=CoordinatorRecord.key_bytes):
            logged = Logged(record.key_bytes(), record.value_bytes())
            self.shard.replay(len(self.log), -1, record, self.now)
            self.log.append(logged)
            value = "~" if logged.value is None else logged.value.hex()
            texts.append(f"{logged.key.hex()}:{value}")
        if texts and failure:
            self._revert(end)
        else:
            self.shard.timeline.written_offset = len(self.log)
        return f"{response.hex()} | {' '.join(texts)}"

    def described(self) -> str:
        texts: list[str] = []
        for key, kept in self.shard.states.items():
            state = kept.state
            facts = (
                *(state.snapshot_epoch, state.state_epoch, state.leader_epoch, state.start_offset),
                state.delivery_complete_count,
                *(state.create_timestamp_ms, state.write_timestamp_ms),
            )
            texts.append(
                f"{key.coordinator_key}={','.join(map(str, facts))};"
                f"{batches_text(state.state_batches)};"
                f"{kept.leader_epoch_max},{kept.state_epoch_max},{kept.update_count}"
            )
        offset = self.shard.last_redundant_offset().response
        return f"{'~' if offset is None else offset} {' '.join(sorted(texts))}"


def _response(result: CoordinatorResult[Any]) -> Any:
    assert result.response is not None
    return result.response


def batches_text(batches: Iterable[PersisterStateBatch]) -> str:
    """Return batches as the oracle writes and reads them."""
    return ",".join(":".join(map(str, one)) for one in batches) or "~"
