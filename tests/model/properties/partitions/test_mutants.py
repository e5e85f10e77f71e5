# pyright: reportPrivateUsage=false
# (a guard is what a class does inside)
"""Each invariant's guard broken once: the exploration must notice it, and say what is broken.

Each mutant breaks one function for the time of a test. `claim` is what the exploration must say
is broken, in `space`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from tests.model.properties.partitions.folding import differing_folds
from tests.support.partitions.explore import explore
from tests.support.partitions.space import Space

from kvorum.controller import broker_changes, cluster_rules, election
from kvorum.controller import partition_change_builder as partition_change
from kvorum.controller import partition_reassignment as reassignment
from kvorum.controller.apis import alter_partition, broker_registration
from kvorum.controller.election import Candidates, Elected, Election
from kvorum.controller.partition_change_builder import PartitionChangeBuilder
from kvorum.metadata import image_records, replay, topics_image
from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration, merge_partition_change
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.metadata.replay import ImageEditor
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


@dataclass(frozen=True)
class Mutant:
    """A guard that is gone; `is_of_folds` tells that only comparing folds shows it."""

    name: str
    claim: str
    break_it: Callable[[pytest.MonkeyPatch], None]
    space: Space = PLAIN
    is_of_folds: bool = False


def _ignore_fencing(patch: pytest.MonkeyPatch) -> None:
    def is_registered(self: ClusterImage, broker_id: int) -> bool:
        return broker_id in self.brokers

    patch.setattr(ClusterImage, "is_broker_active", is_registered)


def _ignore_shutdown(patch: pytest.MonkeyPatch) -> None:
    def is_unfenced(self: ClusterImage, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    patch.setattr(ClusterImage, "is_broker_active", is_unfenced)


def _elect_unclean(patch: pytest.MonkeyPatch) -> None:
    elect = election.elect_leader

    def always_unclean(candidates: Candidates, _: Election) -> Elected:
        return elect(candidates, Election.UNCLEAN)

    patch.setattr(partition_change, "elect_leader", always_unclean)


def _allow_unclean(patch: pytest.MonkeyPatch) -> None:
    def always(self: cluster_rules.ClusterRules, _: str) -> bool:
        return True

    patch.setattr(cluster_rules.ClusterRules, "is_unclean_election_enabled", always)


def _complete_early(patch: pytest.MonkeyPatch) -> None:
    def at_once(
        moving: reassignment.Reassignment, isr: tuple[int, ...]
    ) -> reassignment.CompletedReassignment | None:
        if not moving.removing and not moving.adding:
            return None
        left = tuple(one for one in moving.replicas if one not in moving.removing)
        return reassignment.CompletedReassignment(left, isr)

    patch.setattr(partition_change, "complete_reassignment", at_once)


def _nothing(self: PartitionChangeBuilder) -> None:
    """Leave a step of the change out."""


def _leave_out(step: str) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(PartitionChangeBuilder, step, _nothing)


def _take_isr_as_elr(patch: pytest.MonkeyPatch) -> None:
    def with_isr(self: PartitionChangeBuilder) -> None:
        self._elr = tuple(sorted({*self._partition.elr, *self._partition.isr}))

    patch.setattr(PartitionChangeBuilder, "_find_eligible_leaders", with_isr)


def _keep_elr(patch: pytest.MonkeyPatch) -> None:
    find = PartitionChangeBuilder._find_eligible_leaders

    def never_less(self: PartitionChangeBuilder) -> None:
        find(self)
        kept = {*self._elr, *self._partition.elr} - set(self.isr)
        self._elr = tuple(sorted(kept - set(self.unclean_shutdown_replicas)))

    patch.setattr(PartitionChangeBuilder, "_find_eligible_leaders", never_less)


def _empty_isr(patch: pytest.MonkeyPatch) -> None:
    def whatever(self: PartitionChangeBuilder) -> None:
        if self._record.isr is None and self.isr != self._partition.isr:
            self._record.isr = list(self.isr)

    patch.setattr(PartitionChangeBuilder, "_set_isr", whatever)


def _write_nothing(patch: pytest.MonkeyPatch) -> None:
    def never(_: PartitionChangeRecord) -> bool:
        return False

    patch.setattr(partition_change, "is_without_effect", never)


def _keep_partition_epoch(patch: pytest.MonkeyPatch) -> None:
    def merged(
        partition: PartitionRegistration, record: PartitionChangeRecord
    ) -> PartitionRegistration:
        new = merge_partition_change(partition, record)
        return new._replace(partition_epoch=partition.partition_epoch)

    patch.setattr(topics_image, "merge_partition_change", merged)


def _keep_leader_epoch(patch: pytest.MonkeyPatch) -> None:
    def merged(
        partition: PartitionRegistration, record: PartitionChangeRecord
    ) -> PartitionRegistration:
        new = merge_partition_change(partition, record)
        return new._replace(leader_epoch=partition.leader_epoch)

    patch.setattr(topics_image, "merge_partition_change", merged)


def _admit_anyone(patch: pytest.MonkeyPatch) -> None:
    def anyone(cluster: ClusterImage, broker_id: int, epoch: int) -> bool:
        return True

    patch.setattr(alter_partition, "_is_eligible", anyone)


def _take_any_isr(patch: pytest.MonkeyPatch) -> None:
    def anything(*_: object) -> bool:
        return True

    patch.setattr(alter_partition, "_is_possible_isr", anything)


def _believe_everyone(patch: pytest.MonkeyPatch) -> None:
    def always(*_: object) -> bool:
        return True

    patch.setattr(broker_registration, "_was_shutdown_clean", always)


def _recover_none(patch: pytest.MonkeyPatch) -> None:
    elect = PartitionChangeBuilder._elect

    def without_recovery(self: PartitionChangeBuilder) -> None:
        elect(self)
        self._record.leader_recovery_state = -1

    patch.setattr(PartitionChangeBuilder, "_elect", without_recovery)


def _keep_last_known(patch: pytest.MonkeyPatch) -> None:
    def only_set(self: PartitionChangeBuilder) -> None:
        if self._record.leader == NO_LEADER and not self._partition.last_known_elr:
            self._record.last_known_elr = [self._partition.leader]

    patch.setattr(PartitionChangeBuilder, "_set_last_known_leader", only_set)


def _only_mark(patch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> list[object]:
        return []

    patch.setattr(broker_changes, "partitions_with_isr_member", nobody)


def _only_forget(patch: pytest.MonkeyPatch) -> None:
    def only_record(
        _: cluster_rules.ClusterRules, broker: BrokerRegistration
    ) -> list[RecordAndVersion]:
        return [(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch), 0)]

    patch.setattr(broker_changes, "unregister_broker", only_record)


def _trust_directories(patch: pytest.MonkeyPatch) -> None:
    def always(self: BrokerRegistration, _: bytes) -> bool:
        return True

    patch.setattr(BrokerRegistration, "has_online_directory", always)


def _forget_elr_in_snapshots(patch: pytest.MonkeyPatch) -> None:
    write = image_records.partition_record

    def without(partition: PartitionRegistration, **rest: object) -> object:
        return write(partition._replace(elr=()), **rest)  # type: ignore[arg-type]  # passed on

    patch.setattr(image_records, "partition_record", without)


def _fold_against_the_base(patch: pytest.MonkeyPatch) -> None:
    def first_only(editor: ImageEditor, record: Message, _: int) -> None:
        assert isinstance(record, PartitionChangeRecord)
        topics = editor.topics
        partition = topics._image.by_id[record.topic_id].partitions[record.partition_id]
        changed = merge_partition_change(partition, record)
        topics._counts.remove(partition)
        topics._put(topics._partitions_of(record.topic_id), record.partition_id, changed)

    key = PartitionChangeRecord.API_KEY
    patch.setattr(replay, "FOLDS", {**replay.FOLDS, key: first_only})


def _abort_nothing(patch: pytest.MonkeyPatch) -> None:
    rebase = ImageEditor.rebase

    def keep(self: ImageEditor, base: object) -> None:
        if not hasattr(self, "topics") or self.transaction is None:
            rebase(self, base)  # type: ignore[arg-type]  # passed on

    patch.setattr(ImageEditor, "rebase", keep)


MUTANTS = [
    Mutant("fencing is ignored", "a fenced broker never leads", _ignore_fencing),
    Mutant("shutdown is ignored", "a broker that shuts down never leads", _ignore_shutdown),
    Mutant(
        "every election may be unclean",
        "nobody out of sync comes to lead where that is not allowed",
        _elect_unclean,
    ),
    Mutant(
        "the setting of unclean elections is ignored",
        "nobody out of sync comes to lead where that is not allowed",
        _allow_unclean,
        NO_ELR,
    ),
    Mutant(
        "a reassignment waits for nobody",
        "the ISR is among the replicas",
        _complete_early,
        MOVING_NO_ELR,
    ),
    Mutant(
        "the leader keeps its epoch when replicas go",
        "a new leader, or a replica less, makes a new leader epoch",
        _leave_out("_bump_leader_epoch_for_removed_replicas"),
        MOVING,
    ),
    Mutant(
        "the leader keeps its epoch when the ISR shrinks at an old level",
        "before 3.6 an ISR that shrinks makes a new leader epoch",
        _leave_out("_bump_leader_epoch_for_isr_shrink"),
        OLD,
    ),
    Mutant(
        "the ISR is eligible too",
        "nobody is eligible and in sync",
        _take_isr_as_elr,
        replace(PLAIN, has_incarnations=False),
    ),
    Mutant("the ELR outlives its need", "nobody is eligible while enough are in sync", _keep_elr),
    Mutant("the last one leaves", "without ELR the ISR is never empty", _empty_isr, NO_ELR),
    Mutant("empty records are written", "no record changes nothing", _write_nothing),
    Mutant(
        "the partition epoch stays",
        "every change raises the partition epoch by one",
        _keep_partition_epoch,
    ),
    Mutant(
        "the leader epoch stays",
        "a new leader, or a replica less, makes a new leader epoch",
        _keep_leader_epoch,
    ),
    Mutant("anyone joins the ISR", "only active brokers join the ISR", _admit_anyone),
    Mutant("any ISR is taken", "the leader is in the ISR", _take_any_isr, MOVING),
    Mutant(
        "a lost log is not noticed",
        "a broker that lost its log is neither eligible nor in sync",
        _believe_everyone,
    ),
    Mutant("nobody recovers", "who comes to lead out of sync has to recover", _recover_none),
    Mutant(
        "the last leader is remembered for ever",
        "the last leader is only known while there is none",
        _keep_last_known,
    ),
    Mutant("who is fenced keeps its partitions", "a fenced broker never leads", _only_mark),
    Mutant(
        "who is forgotten keeps its partitions",
        "an unregistered broker never leads",
        _only_forget,
        LEAVING,
    ),
    Mutant(
        "directories are trusted",
        "nobody leads from a directory that is offline",
        _trust_directories,
        DIRECTORIES,
    ),
    Mutant(
        "snapshots forget the ELR",
        "a snapshot is the image",
        _forget_elr_in_snapshots,
        is_of_folds=True,
    ),
    Mutant(
        "changes in one batch do not see each other",
        "records in one batch are the records one by one",
        _fold_against_the_base,
        DIRECTORIES,
        is_of_folds=True,
    ),
    Mutant(
        "an aborted transaction stays",
        "an aborted transaction changes nothing",
        _abort_nothing,
        is_of_folds=True,
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_guard_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.break_it(monkeypatch)
    visit = differing_folds if mutant.is_of_folds else None
    broken = explore(mutant.space, states_max=1_000, visit=visit).broken
    assert broken is not None
    assert broken.claim == mutant.claim
