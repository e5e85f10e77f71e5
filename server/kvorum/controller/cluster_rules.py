"""The configuration and broker state that changes of partitions depend on, read from the image."""

from collections.abc import Callable

from kvorum.controller.partition_change_builder import PartitionChangeBuilder, PartitionRules
from kvorum.controller.settings import ControllerSettings
from kvorum.metadata import directory_ids
from kvorum.metadata.effective_configs import (
    MIN_INSYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION,
    EffectiveConfig,
    broker_layers,
    effective_topic_config,
    whole_number,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.topics_image import TopicImage


class ClusterRules:
    """The rules of one image that a change of a partition must respect."""

    def __init__(self, image: MetadataImage, settings: ControllerSettings) -> None:
        self.image = image
        self._layers = broker_layers(
            image.configs, node_id=settings.node_id, static=settings.static_configs
        )
        self._common_values: dict[str, EffectiveConfig] = {}

    def default_directory(self, broker_id: int) -> bytes:
        """Return the log directory that a new replica on the broker is assigned first."""
        broker = self.image.cluster.brokers.get(broker_id)
        if broker is None:
            return directory_ids.UNASSIGNED
        if not broker.directories:
            return directory_ids.MIGRATING
        return broker.directories[0] if len(broker.directories) == 1 else directory_ids.UNASSIGNED

    def min_insync_replicas(self, topic: TopicImage) -> int:
        """Return min.insync.replicas of the topic, limited to its number of replicas."""
        wanted = whole_number(self._config(MIN_INSYNC_REPLICAS, topic.name))
        return min(wanted, len(topic.partitions[0].replicas))

    def is_unclean_election_enabled(self, topic_name: str) -> bool:
        """Return whether unclean.leader.election.enable is on for the topic."""
        return (self._config(UNCLEAN_LEADER_ELECTION, topic_name).value or "").lower() == "true"

    def _config(self, key: str, topic_name: str) -> EffectiveConfig:
        own = self.image.configs.of_topic(topic_name)
        if own:
            return effective_topic_config(key, own, self._layers)
        # Most topics have no configuration of their own, and fencing a broker looks at all of them.
        if key not in self._common_values:
            self._common_values[key] = effective_topic_config(key, own, self._layers)
        return self._common_values[key]

    def change(
        self,
        topic: TopicImage,
        index: int,
        is_acceptable_leader: Callable[[int], bool] | None = None,
    ) -> PartitionChangeBuilder:
        """Return a builder of one partition's change, with nothing changed yet.

        A replica is acceptable as leader where its directory is online and its broker is active.
        `is_acceptable_leader`, if given, takes the place of the second condition.
        """
        partition = topic.partitions[index]
        is_acceptable = is_acceptable_leader or self.image.cluster.is_broker_active
        return PartitionChangeBuilder(
            partition,
            topic_id=topic.id,
            index=index,
            rules=PartitionRules(
                version=self.image.metadata_version,
                is_elr_enabled=self.image.features.is_elr_enabled,
                min_insync_replicas=self.min_insync_replicas(topic),
                is_acceptable_leader=lambda replica: (
                    is_acceptable(replica) and self._is_online(partition, replica)
                ),
                default_directory=self.default_directory,
            ),
        )

    def _is_online(self, partition: PartitionRegistration, replica: int) -> bool:
        broker = self.image.cluster.brokers.get(replica)
        return (
            broker is not None
            and replica in partition.replicas
            and broker.has_online_directory(partition.directory(replica))
        )
