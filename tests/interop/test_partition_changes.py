"""Changes of partitions, judged by the class of Kafka's that decides them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from tests.interop.kafka.java import Java

from kvorum.controller.election import Election
from kvorum.controller.partition_change import PartitionChange, PartitionRules
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import RECOVERED, RECOVERING, PartitionRegistration
from kvorum.wire.json_form import to_json

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "java" / "PartitionChanges.java"
CASES = 20_000
BROKERS = range(6)
TOPIC_ID = bytes([0] * 7 + [1] + [0] * 7 + [1])
Brokers = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A partition, the state of the cluster, and what the partition should become."""

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

    def line(self) -> str:
        """The case as the Java side reads it."""
        p = self.partition
        words: list[int | str | Brokers] = [
            int(self.version),
            self.min_insync_replicas,
            int(self.is_elr_enabled),
            p.replicas,
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
        ]
        return " ".join(
            (",".join(map(str, word)) or "-") if isinstance(word, tuple) else str(word)
            for word in words
        )

    def answer(self) -> str:
        """What our side makes of it, in the form of the Java side."""
        change = PartitionChange(
            self.partition,
            topic_id=TOPIC_ID,
            index=0,
            rules=PartitionRules(
                version=self.version,
                is_elr_enabled=self.is_elr_enabled,
                min_insync_replicas=self.min_insync_replicas,
                is_acceptable_leader=lambda replica: replica in self.alive,
                default_directory=directory,
            ),
        )
        change.isr, change.replicas = self.isr, self.replicas
        change.removing, change.adding = self.removing, self.adding
        change.election, change.recovery_state = self.election, self.recovery_state
        change.unclean_shutdown_replicas = self.unclean
        made = change.record()
        if made is None:
            return "-"
        return f"{made[1]} {json.dumps(to_json(*made), sort_keys=True)}"


def directory(broker: int) -> bytes:
    return bytes([0] * 7 + [2] + [0] * 7 + [broker])


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
        directories=tuple(directory(replica) for replica in replicas),
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
    )


def kafkas_answers(java: Java, cases: list[Case]) -> Iterator[str]:
    command = java.command("PartitionChanges", classes=java.compile(SOURCE), log_level="OFF")
    text = "".join(case.line() + "\n" for case in cases)
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=120, check=True
    )
    for line in done.stdout.splitlines():
        version, _, record = line.partition(" ")
        yield f"{version} {json.dumps(json.loads(record), sort_keys=True)}" if record else line


def test_every_change_is_written_as_kafka_writes_it(java: Java) -> None:
    random = Random(966)
    cases = [random_case(random) for _ in range(CASES)]
    theirs = list(kafkas_answers(java, cases))
    assert len(theirs) == len(cases)
    differing = [
        (case.line(), case.answer(), answer)
        for case, answer in zip(cases, theirs, strict=True)
        if case.answer() != answer
    ]
    assert differing[:3] == []
    assert sum(answer == "-" for answer in theirs) < CASES / 2


def test_the_cases_differ() -> None:
    random = Random(966)
    lines = [random_case(random).line() for _ in range(100)]
    assert all(first != second for first, second in pairwise(lines))
