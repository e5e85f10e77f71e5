"""Partitions of an internal topic in memory, whose leadership and followers a test controls."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from immutables import Map
from tests.support.controller_under_test import RegisteredBroker, started_cluster
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage.topic_logs import flush, managed

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.isr_changes import IsrChanges
from kvorum.broker.partition_leader.leader import IsrProposal
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.records import RecordBatch, read_batches

ME: Final = 1
FOLLOWER: Final = 2
DIRECTORY: Final = b"d" * 16
LAG_MAX_MS: Final = 30_000


class LedPartitions:
    """Broker 1 leads the partitions of the topic; broker 2 follows, and never fetches."""

    def __init__(self, topic: str, topic_id: bytes, partition_count: int) -> None:
        files = FaultyFiles()
        files.make_directory(Path("/d"))
        self.topic = topic
        self.topic_id = topic_id
        self.image = MetadataImage()
        self.logs = managed([LogDirectory(Path("/d"), DIRECTORY, files, was_clean=True)])
        self.proposals: list[IsrProposal] = []
        self.broker = RegisteredBroker(started_cluster(), ME)
        self.partitions = [self._partition(index) for index in range(partition_count)]
        self.registration = PartitionRegistration(
            (ME, FOLLOWER), (DIRECTORY, DIRECTORY), (ME,), leader=ME
        )

    def _partition(self, index: int) -> Partition:
        where = TopicPartition(self.topic, index)
        return Partition(
            where,
            self.topic_id,
            self.logs.get_or_create_log(where, self.topic_id, directory_id=None, now_ms=0),
            self.broker,
            flush_log=flush,
            lag_max_ms=LAG_MAX_MS,
            topic_stats=BrokerTopicStats(),
            isr_changes=IsrChanges(self.proposals.append),
        )

    def partition(self, topic_id: bytes, index: int) -> Partition | None:
        """Find a partition, as the replica manager does."""
        assert topic_id == self.topic_id
        return self.partitions[index]

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        """Follow a change that `publish` makes."""
        raise NotImplementedError

    @property
    def log(self) -> UnifiedLog:
        return self.partitions[0].log

    def register(self, **changes: Any) -> None:
        """Change leader, epochs or ISR of all partitions, and publish that."""
        epoch = self.registration.partition_epoch + 1
        self.registration = self.registration._replace(partition_epoch=epoch, **changes)
        for partition in self.partitions:
            if self.registration.leader == ME:
                partition.make_leader(self.registration, min_insync_replicas=1, now_ms=0)
            else:
                partition.make_follower(self.registration)
        registrations = Partitions((self.registration,) * len(self.partitions))
        self.publish(TopicImage(self.topic, self.topic_id, registrations))

    def publish(self, *added: TopicImage, without: str | None = None) -> None:
        """Publish an image with topics added or replaced, or without one."""
        before = self.image
        topics = {**before.topics.by_id, **{topic.id: topic for topic in added}}
        kept = {topic_id: topic for topic_id, topic in topics.items() if topic.name != without}
        names = {topic.name: topic.id for topic in kept.values()}
        self.image = replace(before, topics=TopicsImage(Map(kept), Map(names)))
        self.on_image(before, self.image)

    def hold(self) -> None:
        """Let the high watermark wait for the follower from here on."""
        self.register(isr=(ME, FOLLOWER))

    def release(self) -> None:
        """Let the high watermark move to the end."""
        self.register(isr=(ME,))

    def lose(self, leader_epoch: int = 1) -> None:
        self.register(leader=FOLLOWER, leader_epoch=leader_epoch)

    def batches(self) -> list[RecordBatch]:
        found: list[RecordBatch] = []
        log = self.log.local_log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            found += read_batches(log.read(offset, 1 << 20, end_offset=log.log_end_offset))
            offset = found[-1].next_offset
        return found
