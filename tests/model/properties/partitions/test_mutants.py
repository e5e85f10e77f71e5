# pyright: reportPrivateUsage=false
# (a guard is what a class does inside)
"""Each invariant's guard broken once: the exploration must notice it, and say what is broken."""

from dataclasses import replace

import pytest
from tests.model.properties.partitions.folding import differing_folds
from tests.support.partitions.explore import explore
from tests.support.partitions.space import Space

from kvorum.controller import broker_changes, cluster_rules
from kvorum.controller import partition_change_builder as partition_change
from kvorum.controller import partition_reassignment as reassignment
from kvorum.controller.apis import alter_partition, broker_registration
from kvorum.controller.partition_change_builder import (
    Candidates,
    Elected,
    Election,
    PartitionChangeBuilder,
    elect_leader,
)
from kvorum.metadata import image_records, replay, topics_image
from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration, merge_partition_change
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.replay import FOLDS, ImageEditor
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from kvorum.wire.primitives import Message

PLAIN = Space(name="plain", brokers=3, replicas=3)
NO_ELR = replace(PLAIN, name="no ELR", is_elr_enabled=False)
OLD = replace(NO_ELR, name="old", version=MetadataVersion.V3_5_IV2)
MOVING = Space(name="moving", brokers=3, replicas=2, factor_max=2)
MOVING_NO_ELR = replace(MOVING, name="moving, no ELR", is_elr_enabled=False)
DIRECTORIES = Space(name="directories", brokers=2, replicas=2, has_failing_directories=True)
LEAVING = Space(name="leaving", brokers=2, replicas=2, has_unregistering=True)


def always(*_: object, **__: object) -> bool:
    return True


def never(*_: object, **__: object) -> bool:
    return False


def nothing(*_: object, **__: object) -> list[object]:
    return []


def is_registered(cluster: ClusterImage, broker_id: int) -> bool:
    return broker_id in cluster.brokers


def is_unfenced(cluster: ClusterImage, broker_id: int) -> bool:
    broker = cluster.brokers.get(broker_id)
    return broker is not None and not broker.is_fenced


def elected_uncleanly(candidates: Candidates, _: Election) -> Elected:
    return elect_leader(candidates, Election.UNCLEAN)


def completed_at_once(
    moving: reassignment.Reassignment, isr: tuple[int, ...]
) -> reassignment.CompletedReassignment | None:
    if not moving.removing and not moving.adding:
        return None
    left = tuple(one for one in moving.replicas if one not in moving.removing)
    return reassignment.CompletedReassignment(left, isr)


def take_isr_as_elr(builder: PartitionChangeBuilder) -> None:
    builder._elr = tuple(sorted({*builder._partition.elr, *builder._partition.isr}))


find_eligible_leaders = PartitionChangeBuilder._find_eligible_leaders


def find_never_less(builder: PartitionChangeBuilder) -> None:
    find_eligible_leaders(builder)
    kept = {*builder._elr, *builder._partition.elr} - set(builder.isr)
    builder._elr = tuple(sorted(kept - set(builder.unclean_shutdown_replicas)))


def set_whatever_isr(builder: PartitionChangeBuilder) -> None:
    if builder._record.isr is None and builder.isr != builder._partition.isr:
        builder._record.isr = list(builder.isr)


def merged_but_partition_epoch(
    partition: PartitionRegistration, record: PartitionChangeRecord
) -> PartitionRegistration:
    new = merge_partition_change(partition, record)
    return new._replace(partition_epoch=partition.partition_epoch)


def merged_but_leader_epoch(
    partition: PartitionRegistration, record: PartitionChangeRecord
) -> PartitionRegistration:
    return merge_partition_change(partition, record)._replace(leader_epoch=partition.leader_epoch)


elect = PartitionChangeBuilder._elect


def elect_without_recovery(builder: PartitionChangeBuilder) -> None:
    elect(builder)
    builder._record.leader_recovery_state = -1


def only_set_last_known_leader(builder: PartitionChangeBuilder) -> None:
    if builder._record.leader == NO_LEADER and not builder._partition.last_known_elr:
        builder._record.last_known_elr = [builder._partition.leader]


def only_forget(
    _: cluster_rules.ClusterRules, broker: BrokerRegistration
) -> list[RecordAndVersion]:
    return [(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch), 0)]


partition_record = image_records.partition_record


def without_elr(partition: PartitionRegistration, **rest: object) -> object:
    return partition_record(partition._replace(elr=()), **rest)  # type: ignore[arg-type]  # passed on


def fold_against_the_base(editor: ImageEditor, record: Message, _: int) -> None:
    assert isinstance(record, PartitionChangeRecord)
    topics = editor.topics
    partition = topics._image.by_id[record.topic_id].partitions[record.partition_id]
    changed = merge_partition_change(partition, record)
    topics._counts.remove(partition)
    topics._put(topics._partitions_of(record.topic_id), record.partition_id, changed)


rebase = ImageEditor.rebase


def rebase_unless_aborted(editor: ImageEditor, base: object) -> None:
    if not hasattr(editor, "topics") or editor.transaction is None:
        rebase(editor, base)  # type: ignore[arg-type]  # passed on


LEADER_EPOCHS_RISE = "a new leader, or a replica less, makes a new leader epoch"
UNCLEAN_ONLY_IF_ALLOWED = "nobody out of sync comes to lead where that is not allowed"
MUTANTS: dict[str, tuple[object, str, object, Space, str]] = {
    "fencing is ignored": (
        ClusterImage,
        "is_broker_active",
        is_registered,
        PLAIN,
        "a fenced broker never leads",
    ),
    "shutdown is ignored": (
        ClusterImage,
        "is_broker_active",
        is_unfenced,
        PLAIN,
        "a broker that shuts down never leads",
    ),
    "every election may be unclean": (
        partition_change,
        "elect_leader",
        elected_uncleanly,
        PLAIN,
        UNCLEAN_ONLY_IF_ALLOWED,
    ),
    "the setting of unclean elections is ignored": (
        cluster_rules.ClusterRules,
        "is_unclean_election_enabled",
        always,
        NO_ELR,
        UNCLEAN_ONLY_IF_ALLOWED,
    ),
    "a reassignment waits for nobody": (
        partition_change,
        "complete_reassignment",
        completed_at_once,
        MOVING_NO_ELR,
        "the ISR is among the replicas",
    ),
    "the leader keeps its epoch when replicas go": (
        PartitionChangeBuilder,
        "_bump_leader_epoch_for_removed_replicas",
        nothing,
        MOVING,
        LEADER_EPOCHS_RISE,
    ),
    "the leader keeps its epoch when the ISR shrinks at an old level": (
        PartitionChangeBuilder,
        "_bump_leader_epoch_for_isr_shrink",
        nothing,
        OLD,
        "before 3.6 an ISR that shrinks makes a new leader epoch",
    ),
    "the ISR is eligible too": (
        PartitionChangeBuilder,
        "_find_eligible_leaders",
        take_isr_as_elr,
        replace(PLAIN, has_incarnations=False),
        "nobody is eligible and in sync",
    ),
    "the ELR outlives its need": (
        PartitionChangeBuilder,
        "_find_eligible_leaders",
        find_never_less,
        PLAIN,
        "nobody is eligible while enough are in sync",
    ),
    "the last one leaves": (
        PartitionChangeBuilder,
        "_set_isr",
        set_whatever_isr,
        NO_ELR,
        "without ELR the ISR is never empty",
    ),
    "empty records are written": (
        partition_change,
        "is_without_effect",
        never,
        PLAIN,
        "no record changes nothing",
    ),
    "the partition epoch stays": (
        topics_image,
        "merge_partition_change",
        merged_but_partition_epoch,
        PLAIN,
        "every change raises the partition epoch by one",
    ),
    "the leader epoch stays": (
        topics_image,
        "merge_partition_change",
        merged_but_leader_epoch,
        PLAIN,
        LEADER_EPOCHS_RISE,
    ),
    "anyone joins the ISR": (
        alter_partition,
        "_is_eligible",
        always,
        PLAIN,
        "only active brokers join the ISR",
    ),
    "any ISR is taken": (
        alter_partition,
        "_is_possible_isr",
        always,
        MOVING,
        "the leader is in the ISR",
    ),
    "a lost log is not noticed": (
        broker_registration,
        "_was_shutdown_clean",
        always,
        PLAIN,
        "a broker that lost its log is neither eligible nor in sync",
    ),
    "nobody recovers": (
        PartitionChangeBuilder,
        "_elect",
        elect_without_recovery,
        PLAIN,
        "who comes to lead out of sync has to recover",
    ),
    "the last leader is remembered for ever": (
        PartitionChangeBuilder,
        "_set_last_known_leader",
        only_set_last_known_leader,
        PLAIN,
        "the last leader is only known while there is none",
    ),
    "who is fenced keeps its partitions": (
        broker_changes,
        "partitions_with_isr_member",
        nothing,
        PLAIN,
        "a fenced broker never leads",
    ),
    "who is forgotten keeps its partitions": (
        broker_changes,
        "unregister_broker",
        only_forget,
        LEAVING,
        "an unregistered broker never leads",
    ),
    "directories are trusted": (
        BrokerRegistration,
        "has_online_directory",
        always,
        DIRECTORIES,
        "nobody leads from a directory that is offline",
    ),
}
"""By their names: what is replaced by what, in which space that shows, and what is broken then."""

MUTANTS_OF_FOLDS: dict[str, tuple[object, str, object, Space, str]] = {
    "snapshots forget the ELR": (
        image_records,
        "partition_record",
        without_elr,
        PLAIN,
        "a snapshot is the image",
    ),
    "changes in one batch do not see each other": (
        replay,
        "FOLDS",
        {**FOLDS, PartitionChangeRecord.API_KEY: fold_against_the_base},
        DIRECTORIES,
        "records in one batch are the records one by one",
    ),
    "an aborted transaction stays": (
        ImageEditor,
        "rebase",
        rebase_unless_aborted,
        PLAIN,
        "an aborted transaction changes nothing",
    ),
}
"""Those that only a comparison of folds shows."""


@pytest.mark.parametrize("mutant", [*MUTANTS, *MUTANTS_OF_FOLDS])
def test_a_broken_guard_is_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, defect, space, claim = (MUTANTS | MUTANTS_OF_FOLDS)[mutant]
    monkeypatch.setattr(owner, name, defect)
    visit = differing_folds if mutant in MUTANTS_OF_FOLDS else None
    broken = explore(space, states_max=1_000, visit=visit).broken
    assert broken is not None
    assert broken.claim == claim
