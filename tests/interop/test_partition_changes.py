# pyright: reportPrivateUsage=false
# (the spaces are explored from outside, and the input of a change is looked up inside of it)
"""Changes of partitions, judged by the class of Kafka's that decides them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import pytest
from tests.support.kafka.java import Java
from tests.support.partitions.explore import explore
from tests.support.partitions.space import Space

from kvorum.controller.partition_change_builder import (
    Election,
    PartitionChangeBuilder,
    PartitionRules,
)
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import RECOVERED, RECOVERING, PartitionRegistration
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.json_form import to_json

pytestmark = pytest.mark.sample


CASES = 20_000
BROKERS = range(6)
TOPIC_ID = bytes([0] * 7 + [1] + [0] * 7 + [1])
Brokers = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A partition, the state of the cluster, and what the partition should become.

    `assigned` are brokers and the numbers of directories they put their replica into, in turns.
    """

    version: MetadataVersion
    min_insync_replicas: int
    is_elr_enabled: bool
    partition: PartitionRegistration
    alive: Brokers
    isr: Brokers
    replicas: Brokers
    removing: Brokers
    adding: Brokers
    election: Election
    recovery_state: int
    unclean: Brokers
    assigned: Brokers = ()

    def line(self) -> str:
        """The case as the Java side reads it."""
        p = self.partition
        words: list[int | str | Brokers] = [
            int(self.version),
            self.min_insync_replicas,
            int(self.is_elr_enabled),
            p.replicas,
            tuple(one[-1] for one in p.directories),
            p.isr,
            p.removing_replicas,
            p.adding_replicas,
            p.leader,
            p.leader_recovery_state,
            p.elr,
            p.last_known_elr,
            self.alive,
            self.isr,
            self.replicas,
            self.removing,
            self.adding,
            self.election.name,
            self.recovery_state,
            self.unclean,
            self.assigned,
        ]
        return " ".join(
            (",".join(map(str, word)) or "-") if isinstance(word, tuple) else str(word)
            for word in words
        )

    def answer(self) -> str:
        """The result of our side, in the form of the Java side."""
        change = PartitionChangeBuilder(
            self.partition,
            topic_id=TOPIC_ID,
            index=0,
            rules=PartitionRules(
                version=self.version,
                is_elr_enabled=self.is_elr_enabled,
                min_insync_replicas=self.min_insync_replicas,
                is_acceptable_leader=lambda replica: replica in self.alive,
                default_directory=lambda broker: directory(10 + broker),
            ),
        )
        change.isr, change.replicas = self.isr, self.replicas
        change.removing, change.adding = self.removing, self.adding
        change.election, change.recovery_state = self.election, self.recovery_state
        change.unclean_shutdown_replicas = self.unclean
        for broker, number in batched(self.assigned):
            change.directories[broker] = directory(number)
        made = change.record()
        if made is None:
            return "-"
        return f"{made[1]} {json.dumps(to_json(*made), sort_keys=True)}"


def batched(numbers: Brokers) -> Iterator[tuple[int, int]]:
    return zip(numbers[::2], numbers[1::2], strict=True)


def directory(number: int) -> bytes:
    """The id of a directory; the lowest numbers stand for something else than a directory."""
    return bytes([0] * 7 + [0 if number < 3 else 2] + [0] * 7 + [number])


def some(random: Random, of: Brokers | range, *, at_least: int = 0) -> Brokers:
    return tuple(random.sample(of, random.randint(at_least, len(of))))


def random_case(random: Random) -> Case:
    version = random.choice(list(MetadataVersion)[:-1])
    is_elr_enabled = version.supports_elr and random.random() < 0.6
    replicas = some(random, BROKERS, at_least=1)[:4]
    isr = some(random, replicas)
    is_moving = random.random() < 0.4
    adding = some(random, replicas)[:2] if is_moving else ()
    removing = tuple(r for r in some(random, replicas)[:2] if r not in adding) if is_moving else ()
    out_of_sync = tuple(replica for replica in replicas if replica not in isr)
    partition = PartitionRegistration(
        replicas=replicas,
        directories=random_directories(random, replicas),
        isr=isr,
        removing_replicas=removing,
        adding_replicas=adding,
        leader=random.choice((-1, *isr)),
        leader_recovery_state=random.choice([RECOVERED, RECOVERED, RECOVERING]),
        leader_epoch=5,
        partition_epoch=7,
        elr=tuple(sorted(some(random, out_of_sync))) if is_elr_enabled else (),
        last_known_elr=some(random, replicas)[:1] if is_elr_enabled else (),
    )
    stays = random.random() < 0.6
    return Case(
        version=version,
        min_insync_replicas=random.randint(1, 3),
        is_elr_enabled=is_elr_enabled,
        partition=partition,
        alive=some(random, BROKERS),
        isr=some(random, replicas) if random.random() < 0.8 else isr,
        replicas=replicas if stays else some(random, BROKERS, at_least=1)[:4],
        removing=removing if stays else some(random, replicas)[:2],
        adding=adding if stays else some(random, BROKERS)[:2],
        election=random.choice(list(Election)),
        recovery_state=random.choice([partition.leader_recovery_state, RECOVERED]),
        unclean=random.choice([(), some(random, replicas)[:1]]) if is_elr_enabled else (),
        assigned=(random.choice(replicas), random.randint(20, 30)) if random.random() < 0.2 else (),
    )


def random_directories(random: Random, replicas: Brokers) -> tuple[bytes, ...]:
    """Directories of all kinds, or MIGRATING for all: a record cannot say anything between."""
    if random.random() < 0.2:
        return (directory(0),) * len(replicas)
    return tuple(directory(random.choice((1, 2, 10 + one, 10 + one))) for one in replicas)


def kafkas_answers(java: Java, cases: list[Case]) -> Iterator[str]:
    for line in java.answers("PartitionChanges", asked=(case.line() for case in cases)):
        version, _, record = line.partition(" ")
        yield f"{version} {json.dumps(json.loads(record), sort_keys=True)}" if record else line


def check_same(cases: list[Case], theirs: list[str]) -> None:
    assert len(theirs) == len(cases)
    ours = [case.answer() for case in cases]
    compared = zip(ours, theirs, [case.line() for case in cases], strict=True)
    assert [each for each in compared if each[0] != each[1]][:3] == []


def test_every_change_is_written_as_kafka_writes_it(java: Java) -> None:
    random = Random(966)
    cases = [random_case(random) for _ in range(CASES)]
    theirs = list(kafkas_answers(java, cases))
    check_same(cases, theirs)
    assert sum(answer == "-" for answer in theirs) < CASES / 2


SPACES = [
    Space(name="moves", brokers=3, replicas=2, factor_max=2),
    Space(name="unclean", brokers=3, replicas=3, is_unclean_enabled=True),
    Space(name="no ELR", brokers=3, replicas=3, is_elr_enabled=False),
    Space(name="directories", brokers=2, replicas=2, has_failing_directories=True),
    Space(
        name="settings",
        brokers=2,
        replicas=2,
        has_unregistering=True,
        has_changing_configs=True,
        has_changing_features=True,
    ),
]
STATES_MAX = 150


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_the_changes_of_whole_spaces_are_those_of_kafka(
    java: Java, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demands of the controller's own functions on a partition."""
    cases = cases_of(space, monkeypatch)
    theirs = list(kafkas_answers(java, cases))
    assert len(cases) > 100
    check_same(cases, theirs)


def cases_of(space: Space, monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Every different change that an exploration of the space makes."""
    found: dict[str, Case] = {}
    record = PartitionChangeBuilder.record

    def noted(self: PartitionChangeBuilder) -> RecordAndVersion | None:
        case = case_of(self)
        found.setdefault(case.line(), case)
        return record(self)

    with monkeypatch.context() as patch:
        patch.setattr(PartitionChangeBuilder, "record", noted)
        assert explore(space, states_max=STATES_MAX).broken is None
    return list(found.values())


def case_of(change: PartitionChangeBuilder) -> Case:
    partition, rules = change._partition, change._rules
    assigned = [
        (broker, short(one))
        for broker, one in change.directories.items()
        if one != partition.directory(broker)
    ]
    return Case(
        version=rules.version,
        min_insync_replicas=rules.min_insync_replicas,
        is_elr_enabled=rules.is_elr_enabled,
        partition=partition._replace(
            directories=tuple(directory(short(one)) for one in partition.directories)
        ),
        alive=tuple(one for one in BROKERS if rules.is_acceptable_leader(one)),
        isr=change.isr,
        replicas=change.replicas,
        removing=change.removing,
        adding=change.adding,
        election=change.election,
        recovery_state=change.recovery_state,
        unclean=change.unclean_shutdown_replicas,
        assigned=tuple(number for pair in assigned for number in pair),
    )


def short(directory_id: bytes) -> int:
    """A number for a directory of the spaces, whose ids begin with its number on its broker."""
    return directory_id[-1] + (directory_id[0] and 10 * (1 + directory_id[0] - 0xD0))


def test_the_cases_differ() -> None:
    random = Random(966)
    lines = [random_case(random).line() for _ in range(100)]
    assert all(first != second for first, second in pairwise(lines))
