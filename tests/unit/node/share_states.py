"""A share coordinator over partitions in memory, at a time that a test moves."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from random import Random
from typing import Any, Final, TypeVar, cast

from immutables import Map
from tests.unit.node.led_partitions import ME, LedPartitions

from kvorum.metadata.features import SHARE_VERSION_FEATURE
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import Partitions
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.share_coordinator.share_coordinator_service import ShareCoordinatorService
from kvorum.node.config import ShareGroupStateTopicSettings, ShareStateSettings
from kvorum.node.coroutines import Task, Wait
from kvorum.share_coordinator.settings import ShareCoordinatorSettings
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kvorum.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from kvorum.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from kvorum.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from kvorum.wire.records import Compression

Request = TypeVar("Request")
Response = TypeVar("Response")
STATE: Final = "__share_group_state"
STATE_ID: Final = b"state-topic-id.."
TOPIC: Final = "t"
TOPIC_ID: Final = b"the-topic-called"
GROUP: Final = "g"
PRUNE_MS: Final = 5000
COLD_MS: Final = 8000
WRITE_TIMEOUT_MS: Final = 300
LOAD_MS: Final = 10
SETTINGS: Final = ShareStateSettings(
    coordinator=ShareCoordinatorSettings(
        update_records_per_snapshot=2, cold_partition_snapshot_interval_ms=COLD_MS
    ),
    write_timeout_ms=WRITE_TIMEOUT_MS,
    append_linger_ms=0,
    prune_interval_ms=PRUNE_MS,
    topic=ShareGroupStateTopicSettings(
        partition_count=1,
        replication_factor=1,
        min_insync_replicas=1,
        segment_bytes=1 << 20,
        compression=Compression.NONE,
    ),
)


class ShareStates(LedPartitions):
    """The state of share partitions of a topic with two partitions."""

    def __init__(self) -> None:
        super().__init__(STATE, STATE_ID, 1)
        self.broker_id = ME
        self.events = Events()
        self.service = ShareCoordinatorService(
            SETTINGS,
            cast("ReplicaManager", self),
            runtime=SimulatedRuntime(
                self.events, NodeClock(self.events), Random(1), turn=lambda callback: callback()
            ),
        )
        self.publish(TopicImage(TOPIC, TOPIC_ID, Partitions((self.registration,) * 2)))

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        self.service.on_image(before, after)

    def finalize_share_version(self, level: int) -> None:
        """Have the cluster's share.version be another one."""
        before = self.image
        levels = Map({SHARE_VERSION_FEATURE: level} if level else {})
        self.image = replace(before, features=replace(before.features, levels=levels))
        self.on_image(before, self.image)

    def run(self, elapsed_ms: float = LOAD_MS) -> None:
        """Let time pass, with what is due in it."""
        end_ms = self.events.now_ms + elapsed_ms
        while (callback := self.events.take_next(end_ms)) is not None:
            callback()

    def lead(self, leader_epoch: int = 0) -> None:
        """Lead, and load the states."""
        self.register(leader=ME, leader_epoch=leader_epoch)
        self.run()

    def asked(
        self,
        method: Callable[[Request], Coroutine[Wait[Any], Any, Response]],
        request: Request,
    ) -> list[Response | Exception]:
        """Ask; return a list that gets the response when it is known."""
        answers: list[Response | Exception] = []
        Task(method(request), answers.append)
        self.run()
        return answers

    def outcome(
        self,
        method: Callable[[Request], Coroutine[Wait[Any], Any, Any]],
        request: Request,
    ) -> Any:
        """Ask; return the result for the one partition of the request."""
        (answer,) = self.asked(method, request)
        assert not isinstance(answer, Exception), answer
        ((result,),) = (topic.partitions for topic in answer.results)
        return result

    def initialize(self, partition: int = 0, start_offset: int = 0, *, state_epoch: int = 0) -> Any:
        part = InitializeShareGroupStateRequest.PartitionData(partition, state_epoch, start_offset)
        topic = InitializeShareGroupStateRequest.InitializeStateData(TOPIC_ID, [part])
        request = InitializeShareGroupStateRequest(GROUP, [topic])
        return self.outcome(self.service.initialize_state, request)

    def read(self, leader_epoch: int) -> Any:
        """Read the first share partition for a leader."""
        part = ReadShareGroupStateRequest.PartitionData(0, leader_epoch)
        topic = ReadShareGroupStateRequest.ReadStateData(TOPIC_ID, [part])
        request = ReadShareGroupStateRequest(GROUP, [topic])
        return self.outcome(self.service.read_state, request)

    def start_offset(self, partition: int = 0) -> int:
        """Return the start offset of a share partition, which is -1 for one that is unknown."""
        part = ReadShareGroupStateSummaryRequest.PartitionData(partition)
        topic = ReadShareGroupStateSummaryRequest.ReadStateSummaryData(TOPIC_ID, [part])
        request = ReadShareGroupStateSummaryRequest(GROUP, [topic])
        found: int = self.outcome(self.service.read_state_summary, request).start_offset
        return found

    def offsets_in_log(self) -> list[int]:
        """Return the offsets of the records that are left."""
        return [one.offset for batch in self.batches() for one in batch.records()]


def write_request(
    start_offset: int, *partitions: int, state_epoch: int = 0, leader_epoch: int = 0
) -> WriteShareGroupStateRequest:
    """Return a request that moves the start of share partitions."""
    parts = [
        WriteShareGroupStateRequest.PartitionData(one, state_epoch, leader_epoch, start_offset)
        for one in partitions
    ]
    topic = WriteShareGroupStateRequest.WriteStateData(TOPIC_ID, parts)
    return WriteShareGroupStateRequest(GROUP, [topic])
