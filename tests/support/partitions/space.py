"""Small worlds of one partition: what they are made of, and when two of them are alike."""

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from tests.support.controller_under_test import SETTINGS, ControllerUnderTest, directory_of

from kvorum.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.features import ELR_VERSION_FEATURE
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord

TOPIC = "t"
BASE_VERSION = MetadataVersion.V4_3_IV0


@dataclass(frozen=True, kw_only=True)
class Space:
    """The bounds of an exploration, and which kinds of action it takes beside fencing and ISRs.

    `factor_max` bounds the target of a reassignment, 0 is for none.
    """

    name: str
    brokers: int
    replicas: int
    is_elr_enabled: bool = True
    is_unclean_enabled: bool = False
    min_insync: int = 2
    version: MetadataVersion = BASE_VERSION
    factor_max: int = 0
    has_shutdowns: bool = True
    has_incarnations: bool = True
    has_unregistering: bool = False
    has_failing_directories: bool = False
    has_changing_configs: bool = False
    has_changing_features: bool = False


class World(NamedTuple):
    """The metadata up to an offset."""

    image: MetadataImage
    next_offset: int

    @property
    def topic(self) -> TopicImage:
        topic = self.image.topics.by_name(TOPIC)
        assert topic is not None
        return topic

    @property
    def partition(self) -> PartitionRegistration:
        return self.topic.partitions[0]

    @property
    def rules(self) -> ClusterRules:
        return ClusterRules(self.image, SETTINGS)

    def context(self, api_version: int) -> ControllerRequestContext:
        """The answer to a request; no broker was heard of, so that any may register again."""
        return ControllerRequestContext(
            settings=SETTINGS,
            sessions=BrokerHeartbeatManager(SETTINGS.session_timeout_ms),
            random=Random(0),
            now_ms=0.0,
            next_offset=self.next_offset,
            access=UNRESTRICTED,
            principal=ANONYMOUS,
            api_version=api_version,
        )


def first_world(space: Space) -> World:
    """A new topic on the first brokers of a cluster in which all are well."""
    controller = ControllerUnderTest()
    controller.activate(space.version)
    level = int(space.is_elr_enabled)
    if controller.image.features.level(ELR_VERSION_FEATURE) != level:
        controller.commit(((FeatureLevelRecord(name=ELR_VERSION_FEATURE, feature_level=level), 0),))
    for broker_id in range(1, space.brokers + 1):
        registration = controller.registration(broker_id)
        if space.has_failing_directories:
            registration.log_dirs = [directory_of(broker_id), directory_of(broker_id, 1)]
        controller.ask(registration)
        assert not controller.heartbeat(broker_id).is_fenced
    controller.create_topic(TOPIC, assignments=[range(1, space.replicas + 1)])
    for name, value in (
        ("min.insync.replicas", str(space.min_insync)),
        ("unclean.leader.election.enable", str(space.is_unclean_enabled).lower()),
    ):
        controller.commit(((ConfigRecord(ResourceType.TOPIC, TOPIC, name, value), 0),))
    return World(controller.image, controller.next_offset)


def canonical(world: World) -> tuple[object, ...]:
    """Return the same for worlds that differ only in epochs and in the names of brokers.

    A broker's name is its place among the replicas; those that are no replicas have none, and
    count by their state.
    """
    partition, brokers = world.partition, world.image.cluster.brokers
    place = {replica: index for index, replica in enumerate(partition.replicas)}

    def places(replicas: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(place.get(replica, -1) for replica in replicas))

    def state(broker_id: int) -> tuple[object, ...]:
        broker = brokers.get(broker_id)
        is_last_known = broker_id in partition.last_known_elr
        if broker is None:
            return ("unknown", is_last_known)
        directory = -1
        if broker_id in place:
            found = partition.directories[place[broker_id]]
            directory = found[0] if found in broker.directories else -found[-1] - 2
        online = tuple(one[0] for one in broker.directories)
        return (
            "known",
            is_last_known,
            broker.is_fenced,
            broker.is_in_controlled_shutdown,
            *(() if len(online) == 1 and directory in online else (online, directory)),
        )

    ids = {*brokers, *partition.replicas, *partition.last_known_elr}
    return (
        place.get(partition.leader, -1),
        places(partition.isr),
        places(partition.elr),
        places(partition.adding_replicas),
        places(partition.removing_replicas),
        partition.leader_recovery_state,
        tuple(state(replica) for replica in partition.replicas),
        tuple(sorted(map(repr, (state(one) for one in ids if one not in place)))),
        world.image.features.is_elr_enabled,
        tuple(sorted(world.image.configs.of_topic(TOPIC).items())),
    )
