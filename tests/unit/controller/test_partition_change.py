"""Changes of partitions: elections, ISR, ELR, reassignments and epochs, case by case."""

from dataclasses import dataclass, field
from itertools import chain, combinations, permutations, product
from typing import Any

import pytest

from kvorum.controller.partition_change_builder import (
    Candidates,
    Elected,
    Election,
    PartitionChangeBuilder,
    PartitionRules,
    elect_leader,
)
from kvorum.controller.partition_reassignment import (
    CompletedReassignment,
    Reassignment,
    complete_reassignment,
    plan_reassignment,
    revert_reassignment,
)
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import (
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
    merge_partition_change,
)
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord

TOPIC_ID = b"t" * 16
DIRECTORY = {broker: bytes([100 + broker] * 16) for broker in range(10)}


def partition(
    replicas: tuple[int, ...] = (1, 2, 3), isr: tuple[int, ...] = (1, 2, 3), **fields: Any
) -> PartitionRegistration:
    directories = tuple(DIRECTORY[broker] for broker in replicas)
    return PartitionRegistration(replicas, directories, isr, leader=1)._replace(**fields)


@dataclass
class Case:
    """A partition, what should become of it, and the fields of the record that say so."""

    before: PartitionRegistration
    expected: dict[str, Any] | None
    wanted: dict[str, object] = field(default_factory=dict[str, object])
    alive: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    version: MetadataVersion = MetadataVersion.V4_3_IV0
    is_elr_enabled: bool = True
    min_insync_replicas: int = 1


def record_of(case: Case) -> PartitionChangeRecord | None:
    change = PartitionChangeBuilder(
        case.before,
        topic_id=TOPIC_ID,
        index=0,
        rules=PartitionRules(
            version=case.version,
            is_elr_enabled=case.is_elr_enabled,
            min_insync_replicas=case.min_insync_replicas,
            is_acceptable_leader=lambda replica: replica in case.alive,
            default_directory=lambda replica: DIRECTORY[replica],
        ),
    )
    for name, value in case.wanted.items():
        setattr(change, name, value)
    made = change.record()
    if made is None:
        return None
    record, version = made
    assert isinstance(record, PartitionChangeRecord)
    assert version == case.version.partition_record_version
    record.encode(version)
    return record


OLD = MetadataVersion.V3_5_IV2
CASES = {
    "nothing changes": Case(partition(), None),
    "a follower leaves the ISR": Case(partition(), {"isr": [1, 2]}, {"isr": (1, 2)}),
    "an old level raises the leader epoch when the ISR shrinks": Case(
        partition(),
        {"isr": [1, 2], "leader": 1},
        {"isr": (1, 2)},
        version=OLD,
        is_elr_enabled=False,
    ),
    "an old level leaves the leader epoch when the ISR grows": Case(
        partition(isr=(1, 2)),
        {"isr": [1, 2, 3]},
        {"isr": (1, 2, 3)},
        version=OLD,
        is_elr_enabled=False,
    ),
    "the leader is gone": Case(
        partition(), {"isr": [2, 3], "leader": 2}, {"isr": (2, 3)}, alive=(2, 3)
    ),
    "the next leader follows the order of the replicas": Case(
        partition(replicas=(3, 1, 2), isr=(1, 2, 3), leader=1),
        {"isr": [2, 3], "leader": 3},
        {"isr": (2, 3)},
        alive=(2, 3),
    ),
    "the last one stays in the ISR without ELR": Case(
        partition(isr=(1,)), {"leader": NO_LEADER}, {"isr": ()}, alive=(2, 3), is_elr_enabled=False
    ),
    "the last one becomes eligible with ELR": Case(
        partition(isr=(1,)),
        {"leader": NO_LEADER, "isr": [], "eligible_leader_replicas": [1], "last_known_elr": [1]},
        {"isr": ()},
        alive=(2, 3),
    ),
    "an eligible one comes back and leads": Case(
        partition(isr=(), elr=(1, 2), leader=NO_LEADER, last_known_elr=(1,)),
        {"leader": 2, "isr": [2], "eligible_leader_replicas": [1], "last_known_elr": []},
        {},
        alive=(2,),
        min_insync_replicas=2,
    ),
    "who leaves below the minimum stays eligible": Case(
        partition(),
        {"isr": [1], "eligible_leader_replicas": [2, 3]},
        {"isr": (1,)},
        min_insync_replicas=2,
    ),
    "an unclean shutdown costs eligibility": Case(
        partition(isr=(1,), elr=(2, 3)),
        {"eligible_leader_replicas": [3]},
        {"unclean_shutdown_replicas": (2,)},
        min_insync_replicas=2,
    ),
    "an ISR at the minimum makes the ELR pointless": Case(
        partition(isr=(1,), elr=(2,)),
        {"isr": [1, 2], "eligible_leader_replicas": []},
        {"isr": (1, 2)},
        min_insync_replicas=2,
    ),
    "an ELR left over from before ELR was switched off goes": Case(
        partition(isr=(1, 2), elr=(3,)),
        {"isr": [1], "eligible_leader_replicas": []},
        {"isr": (1,)},
        is_elr_enabled=False,
    ),
    "the last known leader is taken when nothing else is left": Case(
        partition(isr=(), elr=(), leader=NO_LEADER, last_known_elr=(1,)),
        {"leader": 1, "isr": [1], "leader_recovery_state": RECOVERING, "last_known_elr": []},
    ),
    "the last known leader is not taken while its broker is fenced": Case(
        partition(isr=(), elr=(), leader=NO_LEADER, last_known_elr=(1,)), None, alive=(2, 3)
    ),
    "an unclean election where it is allowed": Case(
        partition(isr=(1,), leader=1),
        {"leader": 3, "isr": [3], "leader_recovery_state": RECOVERING},
        {"election": Election.UNCLEAN},
        alive=(3,),
        is_elr_enabled=False,
    ),
    "no unclean election where it is not": Case(
        partition(isr=(1,), leader=1), {"leader": NO_LEADER}, alive=(3,), is_elr_enabled=False
    ),
    "the preferred leader gets its place back": Case(
        partition(leader=2), {"leader": 1}, {"election": Election.PREFERRED}
    ),
    "the preferred leader is not in sync": Case(
        partition(leader=2, isr=(2, 3)), None, {"election": Election.PREFERRED}
    ),
    "recovery is over": Case(
        partition(isr=(1,), leader_recovery_state=RECOVERING),
        {"leader_recovery_state": RECOVERED},
        {"recovery_state": RECOVERED},
    ),
    "a reassignment begins": Case(
        partition(),
        {
            "replicas": [4, 5, 1, 2, 3],
            "adding_replicas": [4, 5],
            "removing_replicas": [1, 2, 3],
            "directories": [DIRECTORY[broker] for broker in (4, 5, 1, 2, 3)],
        },
        {"replicas": (4, 5, 1, 2, 3), "adding": (4, 5), "removing": (1, 2, 3)},
    ),
    "a reassignment ends and the leader goes": Case(
        partition(replicas=(4, 5, 1), isr=(1, 4), adding_replicas=(4, 5), removing_replicas=(1,)),
        {
            "replicas": [4, 5],
            "isr": [4, 5],
            "leader": 4,
            "adding_replicas": [],
            "removing_replicas": [],
            "directories": [DIRECTORY[4], DIRECTORY[5]],
        },
        {"isr": (1, 4, 5)},
    ),
    "replicas go and the leader that stays gets a new epoch": Case(
        partition(),
        {
            "replicas": [1, 2],
            "isr": [1, 2],
            "leader": 1,
            "directories": [DIRECTORY[1], DIRECTORY[2]],
        },
        {"replicas": (1, 2, 3), "removing": (3,)},
    ),
    "old levels know no directories": Case(
        partition(),
        {"replicas": [1, 2, 3, 4], "adding_replicas": [4]},
        {"replicas": (1, 2, 3, 4), "adding": (4,)},
        version=MetadataVersion.V3_6_IV2,
        is_elr_enabled=False,
    ),
    "a replica is moved to another directory": Case(
        partition(),
        {"directories": [DIRECTORY[9], DIRECTORY[2], DIRECTORY[3]]},
        {"directories": {1: DIRECTORY[9], 2: DIRECTORY[2], 3: DIRECTORY[3]}},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_changes(case: Case) -> None:
    changes = case.expected
    expected = None if changes is None else PartitionChangeRecord(0, TOPIC_ID, **changes)
    assert record_of(case) == expected


SUBSETS = list(chain.from_iterable(combinations((1, 2, 3), size) for size in range(4)))


@pytest.mark.parametrize("is_elr_enabled", [False, True])
@pytest.mark.parametrize("election", list(Election))
def test_every_small_partition_keeps_its_promises(
    election: Election, *, is_elr_enabled: bool
) -> None:
    """All ISRs, leaders and living brokers of three replicas."""
    for isr, target, alive in product(SUBSETS, repeat=3):
        for leader in (NO_LEADER, *isr):
            case = Case(
                partition(isr=isr, leader=leader),
                None,
                {"isr": target, "election": election},
                alive=alive,
                is_elr_enabled=is_elr_enabled,
                min_insync_replicas=2,
            )
            check_promises(case, record_of(case))


def check_promises(case: Case, record: PartitionChangeRecord | None) -> None:
    if record is None:
        return
    before, after = case.before, merge_partition_change(case.before, record)
    assert after.partition_epoch == before.partition_epoch + 1
    assert set(after.isr) <= set(after.replicas)
    assert not set(after.isr) & set(after.elr)
    if after.leader != before.leader and after.has_leader:
        assert after.leader in case.alive
    if after.has_leader and record.leader >= 0:
        assert after.leader in after.isr
    if not case.is_elr_enabled:
        assert after.elr == ()
        assert after.isr or not before.isr
    if record.leader_recovery_state == RECOVERING:
        assert after.isr == (after.leader,)


@pytest.mark.parametrize(
    ("leader", "isr", "alive", "election", "expected"),
    [
        (2, (1, 2), {1, 2}, Election.ONLINE, Elected(2)),
        (2, (1, 2), {1, 2}, Election.PREFERRED, Elected(1)),
        (2, (2, 3), {1, 2, 3}, Election.PREFERRED, Elected(2)),
        (2, (3,), {1, 3}, Election.PREFERRED, Elected(3)),
        (2, (2,), {1, 3}, Election.ONLINE, Elected(NO_LEADER)),
        (2, (2,), {1, 3}, Election.PREFERRED, Elected(NO_LEADER)),
        (2, (2,), {1, 3}, Election.UNCLEAN, Elected(1, is_unclean=True)),
        (2, (2, 3), {1, 3}, Election.UNCLEAN, Elected(3)),
        (NO_LEADER, (), set[int](), Election.UNCLEAN, Elected(NO_LEADER)),
    ],
)
def test_elections(
    leader: int, isr: tuple[int, ...], alive: set[int], election: Election, expected: Elected
) -> None:
    candidates = Candidates(
        leader=leader,
        replicas=(1, 2, 3),
        isr=isr,
        elr=(),
        last_known_leader=None,
        is_acceptable=lambda replica: replica in alive,
    )
    assert elect_leader(candidates, election) == expected


def test_plans_of_every_small_reassignment() -> None:
    for current in permutations((1, 2, 3), 2):
        for target in chain(permutations((1, 2, 3, 4), 2), permutations((1, 2, 3, 4), 1)):
            plan = plan_reassignment(current, target)
            assert set(plan.replicas) == {*current, *target}
            assert plan.replicas[: len(target)] == target
            assert set(plan.adding) == set(target) - set(current)
            assert set(plan.removing) == set(current) - set(target)
            completed = complete_reassignment(plan, (*current, *plan.adding))
            if completed is None:
                assert not plan.adding
                assert not plan.removing
            else:
                assert plan.adding or plan.removing
                assert completed.replicas == target
                assert set(completed.isr) == set(target)


@pytest.mark.parametrize(
    ("reassignment", "isr", "expected"),
    [
        (Reassignment((1, 2), (), ()), (1, 2), None),
        (Reassignment((3, 1, 2), (1, 2), (3,)), (1, 2), None),
        (Reassignment((1, 2, 3), (3,), ()), (3,), None),
        (Reassignment((1, 2, 3), (3,), ()), (1, 3), None),
        (Reassignment((1, 2, 3), (3,), ()), (1, 2), CompletedReassignment((1, 2), (1, 2))),
        (Reassignment((1, 2, 3), (), (3,)), (1, 3), CompletedReassignment((1, 2, 3), (1, 3))),
        (Reassignment((4, 2, 1), (1,), (4,)), (1, 4), CompletedReassignment((4, 2), (4,))),
    ],
)
def test_when_a_reassignment_is_complete(
    reassignment: Reassignment, isr: tuple[int, ...], expected: CompletedReassignment | None
) -> None:
    assert complete_reassignment(reassignment, isr) == expected


def test_going_back() -> None:
    clean = revert_reassignment(partition(replicas=(3, 1, 2), isr=(1, 3), adding_replicas=(3,)))
    assert (clean.replicas, clean.isr, clean.is_unclean) == ((1, 2), (1,), False)
    unclean = revert_reassignment(partition(replicas=(3, 1, 2), isr=(3,), adding_replicas=(3,)))
    assert (unclean.replicas, unclean.isr, unclean.is_unclean) == ((1, 2), (1,), True)
