"""Everything that can happen to a partition, through the controller's own functions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

from tests.support.controller_under_test import CLUSTER_ID
from tests.support.partitions.space import TOPIC, Space, World

from kvorum.controller import broker_changes
from kvorum.controller.api import at_once, records_of
from kvorum.controller.periodic_tasks import (
    maybe_balance_partition_leaders,
    maybe_elect_unclean_leaders,
)
from kvorum.controller.requests import handle
from kvorum.metadata.cluster_image import BrokerRegistration
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.features import ELR_VERSION_FEATURE
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.messages.alter_partition import AlterPartitionRequest
from kvorum.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kvorum.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from kvorum.wire.messages.broker_registration import BrokerRegistrationRequest
from kvorum.wire.messages.elect_leaders import ElectLeadersRequest
from kvorum.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kvorum.wire.messages.update_features import UpdateFeaturesRequest
from kvorum.wire.primitives import Message

PREFERRED, UNCLEAN = 0, 1
MIN_INSYNC, UNCLEAN_ELECTION = "min.insync.replicas", "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class Step:
    """An event, its records, and what it allowed the controller to do.

    `in_sync` are replicas that count as in sync by this step's own word; `lost` is the broker
    that may have lost its log; `is_cancelling` tells of a reassignment that is given up.
    """

    told: str
    records: tuple[RecordAndVersion, ...]
    may_be_unclean: bool = False
    in_sync: tuple[int, ...] = ()
    lost: int = -1
    is_cancelling: bool = False


def steps(space: Space, world: World) -> Iterator[Step]:
    """Yield every step that writes something."""
    for step in _all_steps(space, world):
        if step.records:
            yield step


def _all_steps(space: Space, world: World) -> Iterator[Step]:
    for broker_id in range(1, space.brokers + 1):
        broker = world.image.cluster.brokers.get(broker_id)
        if broker is not None:
            yield from _broker_steps(space, world, broker)
        if space.has_incarnations:
            yield from _registrations(space, world, broker_id, broker)
    yield from _isr_changes(world)
    yield from _elections(world)
    if space.factor_max:
        yield from _reassignments(space, world)
    if space.has_changing_configs:
        yield from _config_changes(space, world)
    if space.has_changing_features:
        yield _feature_change(world)


def ask(world: World, request: Message) -> tuple[RecordAndVersion, ...]:
    return handle(world.image, request, world.context(type(request).MAX_VERSION)).records


def _broker_steps(space: Space, world: World, broker: BrokerRegistration) -> Iterator[Step]:
    rules, name = world.rules, broker.id
    if not broker.is_fenced:
        yield Step(
            f"{name} is fenced",
            tuple(records_of(broker_changes.handle_broker_fenced(rules, broker))),
        )
        if space.has_shutdowns:
            shutdown = tuple(records_of(broker_changes.shutting_down(rules, broker)))
            yield Step(f"{name} is to shut down", shutdown)
    elif not broker.is_in_controlled_shutdown:
        # An incarnation that has to shut down never asks to be unfenced.
        yield Step(
            f"{name} is unfenced",
            tuple(records_of(broker_changes.handle_broker_unfenced(rules, broker))),
        )
    if space.has_unregistering:
        unregistered = tuple(records_of(broker_changes.unregister_broker(rules, broker)))
        yield Step(f"{name} is unregistered", unregistered)
    if space.has_failing_directories:
        yield from _directory_steps(world, broker)


def _directory_steps(world: World, broker: BrokerRegistration) -> Iterator[Step]:
    for directory in broker.directories:
        if len(broker.directories) > 1:
            # A broker whose last directory fails stops instead of telling of it.
            failed = broker_changes.handle_directories_offline(world.rules, broker, [directory])
            yield Step(f"{broker.id} lost directory {directory[0]:x}", tuple(records_of(failed)))
    if broker.id not in world.partition.replicas:
        return
    for directory in (bytes([0xD0 + number, *bytes(14), broker.id]) for number in range(2)):
        if directory not in broker.directories and not world.partition.has_leader:
            # Kafka looks at the directory the replica was in, and elects it into the lost one.
            continue
        partitions = [AssignReplicasToDirsRequest.PartitionData(0)]
        topics = [AssignReplicasToDirsRequest.TopicData(world.topic.id, partitions)]
        request = AssignReplicasToDirsRequest(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            directories=[AssignReplicasToDirsRequest.DirectoryData(directory, topics)],
        )
        yield Step(f"{broker.id} puts it into {directory[0]:x}", ask(world, request))


def _registrations(
    space: Space, world: World, broker_id: int, broker: BrokerRegistration | None
) -> Iterator[Step]:
    # A broker with its last epoch shut down cleanly; one without an epoch cannot show that.
    for is_clean in (False,) if broker is None else (True, False):
        known = -1 if broker is None else broker.epoch
        directories = 2 if space.has_failing_directories else 1
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=world.next_offset.to_bytes(16, "big"),
            listeners=[BrokerRegistrationRequest.Listener("PLAIN", "h", 9)],
            features=[
                BrokerRegistrationRequest.Feature(name, 0, 40)
                for name in ("metadata.version", *_FEATURES)
            ],
            log_dirs=[bytes([0xD0 + one, *bytes(14), broker_id]) for one in range(directories)],
            previous_broker_epoch=known if is_clean else 10**9,
        )
        yield Step(
            f"{broker_id} registers anew, {'' if is_clean else 'un'}clean",
            ask(world, request),
            lost=-1 if is_clean else broker_id,
        )


_FEATURES = (
    "eligible.leader.replicas.version",
    "group.version",
    "transaction.version",
    "share.version",
    "streams.version",
    "kraft.version",
)


def _isr_changes(world: World) -> Iterator[Step]:
    partition = world.partition
    leader = world.image.cluster.brokers.get(partition.leader)
    if leader is None:
        return
    strangers = [
        one for one in sorted(world.image.cluster.brokers) if one not in partition.replicas
    ]
    for isr in (*_subsets(partition.replicas), *((partition.leader, one) for one in strangers)):
        for recovery_state in (0, 1) if partition.leader_recovery_state else (0,):
            data = AlterPartitionRequest.PartitionData(
                partition_index=0,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                leader_recovery_state=recovery_state,
                new_isr_with_epochs=[
                    AlterPartitionRequest.BrokerState(member, _epoch(world, member))
                    for member in isr
                ],
            )
            topic = AlterPartitionRequest.TopicData(world.topic.id, [data])
            request = AlterPartitionRequest(leader.id, leader.epoch, [topic])
            yield Step(f"{leader.id} wants ISR {isr}", ask(world, request), in_sync=isr)


def _epoch(world: World, broker_id: int) -> int:
    broker = world.image.cluster.brokers.get(broker_id)
    return -1 if broker is None else broker.epoch


def _subsets(replicas: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    for size in range(len(replicas) + 1):
        yield from combinations(replicas, size)


def _elections(world: World) -> Iterator[Step]:
    wanted = [ElectLeadersRequest.TopicPartitions(TOPIC, [0])]
    yield Step("preferred election", ask(world, ElectLeadersRequest(PREFERRED, wanted)))
    unclean = ask(world, ElectLeadersRequest(UNCLEAN, wanted))
    yield Step("unclean election", unclean, may_be_unclean=True)
    context = world.context(0)
    balanced = at_once(maybe_balance_partition_leaders(world.image, context))
    yield Step("leaders are balanced", balanced.records)
    # No leave is given here: it must look at the topic's own setting.
    elected = at_once(maybe_elect_unclean_leaders(world.image, context))
    yield Step("periodic unclean election", elected.records)


def _reassignments(space: Space, world: World) -> Iterator[Step]:
    targets: list[list[int] | None] = [None]
    for size in range(1, space.factor_max + 1):
        targets += [list(one) for one in permutations(range(1, space.brokers + 1), size)]
    for target in targets:
        partition = AlterPartitionReassignmentsRequest.ReassignablePartition(0, target)
        request = AlterPartitionReassignmentsRequest(
            topics=[AlterPartitionReassignmentsRequest.ReassignableTopic(TOPIC, [partition])]
        )
        # A step back may leave the replicas in sync behind.
        is_cancelling = target is None
        configs = world.image.configs.of_topic(TOPIC)
        yield Step(
            f"replicas are to be {target}",
            ask(world, request),
            may_be_unclean=is_cancelling and configs.get(UNCLEAN_ELECTION) == "true",
            is_cancelling=is_cancelling,
        )


def _config_changes(space: Space, world: World) -> Iterator[Step]:
    current = world.image.configs.of_topic(TOPIC)
    values = [(MIN_INSYNC, str(one)) for one in range(1, space.replicas + 1)]
    values += [(UNCLEAN_ELECTION, "true"), (UNCLEAN_ELECTION, "false")]
    for name, value in values:
        if current.get(name) != value:
            change = IncrementalAlterConfigsRequest.AlterableConfig(name, 0, value)
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
                int(ResourceType.TOPIC), TOPIC, [change]
            )
            request = IncrementalAlterConfigsRequest(resources=[resource])
            yield Step(f"{name} is set to {value}", ask(world, request))


def _feature_change(world: World) -> Step:
    level = int(not world.image.features.is_elr_enabled)
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=ELR_VERSION_FEATURE, max_version_level=level, upgrade_type=1 if level else 2
    )
    request = UpdateFeaturesRequest(feature_updates=[update])
    return Step(f"ELR is {'on' if level else 'off'}", ask(world, request))
