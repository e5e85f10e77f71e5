"""Rounds of faults, and quorums of every size that lose leaders: nothing is lost or doubled."""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random, SystemRandom

import pytest
from tests.process.quorum.unharmed_quorum import (
    assert_kafka_reads_the_same,
    assert_same_batches,
    wait_until_it_is_a_voter,
)
from tests.support.fixtures import Report
from tests.support.kafka.java import ToolRunner
from tests.support.node import Node
from tests.support.node_process import RUNS
from tests.support.played_broker import register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.quorum.topic_writers import Writers

DELAY_S_MAX = 0.15
LEADER_SHARE = 0.6
# A test that waited for this would still do so when the writers lose their patience.
SLOW_FETCHES = {"controller.quorum.fetch.timeout.ms": "600000"}


class Chaos:
    """Faults one after the other; `story` tells which."""

    def __init__(self, quorum: ProxiedQuorum, writers: Writers, *, random: Random) -> None:
        self.story: list[str] = []
        self._quorum = quorum
        self._writers = writers
        self._random = random

    def kill(self, victims: Sequence[Node]) -> None:
        """End them as a power cut does, and start them again."""
        for victim in victims:
            self._quorum.kill(victim.node_id)
        self._writers.wait_for_progress()
        for victim in victims:
            self._quorum.start(victim.node_id)

    def stop(self, victims: Sequence[Node]) -> None:
        """End them in order, and start them again."""
        for victim in victims:
            ended = self._quorum.stop(victim.node_id)
            # One that was started a moment ago may not have come to handling signals.
            allowed = {0} if any(RUNS in line for line in ended.lines) else {0, -signal.SIGTERM}
            assert ended.exit_code in allowed, "\n".join(ended.lines)
        self._writers.wait_for_progress()
        for victim in victims:
            self._quorum.start(victim.node_id)

    def lose_disk(self, victims: Sequence[Node]) -> None:
        """Take the disk of one of them; it comes back with another and joins by itself."""
        victim = victims[0]
        self._quorum.kill(victim.node_id)
        self._writers.wait_for_progress()
        self._quorum.wipe(victim.node_id)
        self._quorum.start(victim.node_id)
        # No other replica may lose what this one has not got back.
        wait_until_it_is_a_voter(self._quorum, victim, self._writers)

    def pause(self, victims: Sequence[Node]) -> None:
        for victim in victims:
            self._quorum.pause(victim.node_id)
        self._writers.wait_for_progress()
        for victim in victims:
            self._quorum.resume(victim.node_id)

    def isolate(self, victims: Sequence[Node]) -> None:
        self._cut((victim, other) for victim in victims for other in self._others(victim))
        self.deafen(victims)

    def mute(self, victims: Sequence[Node]) -> None:
        self._cut((victim, other) for victim in victims for other in self._others(victim))
        self._endure()

    def deafen(self, victims: Sequence[Node]) -> None:
        self._cut((other, victim) for victim in victims for other in self._others(victim))
        self._endure()

    def cut_one_way(self, victims: Sequence[Node]) -> None:
        """Somebody does not hear each of them any more, or is not heard by it."""
        for victim in victims:
            pair = [victim, self._random.choice(self._others(victim))]
            self._random.shuffle(pair)
            self._cut([(pair[0], pair[1])])
        self._endure()

    def slow(self, victims: Sequence[Node]) -> None:
        for victim in victims:
            for other in self._others(victim):
                for pair in ((victim, other), (other, victim)):
                    source, destination = (member.node_id for member in pair)
                    delay_s = self._random.uniform(0, DELAY_S_MAX)
                    self._quorum.network.slow(source, destination, delay_s=delay_s)
        self._endure()

    @contextmanager
    def told_of(self, seed: int) -> Generator[None, None, None]:
        """Tell, with whatever goes wrong, how to have it again."""
        try:
            yield
        except BaseException as error:
            error.add_note(f"KVORUM_SEED={seed}\n" + "\n".join(self.story))
            raise

    def round(self, names: Sequence[str]) -> None:
        """Draw one of the faults with these names and its victims, and live through it."""
        name = self._random.choice(names)
        victims = self._victims()
        ids = sorted(victim.node_id for victim in victims)
        line = f"{name} {ids}, the leader was at {self._writers.last_leader}"
        self.story.append(line)
        started = time.monotonic()
        fault: Callable[[Sequence[Node]], None] = getattr(self, name)
        fault(victims)
        self._writers.wait_for_progress()
        self.story[-1] = f"{line}: {time.monotonic() - started:.2f} s"

    def _victims(self) -> list[Node]:
        """Draw as many as the quorum can spare at most, more often than not the leader too."""
        members = list(self._quorum.members.values())
        count = self._random.randint(1, len(members) - self._quorum.majority)
        chosen = self._random.sample(members, count)
        leading = [one for one in members if one.address == self._writers.last_leader]
        if leading and leading[0] not in chosen and self._random.random() < LEADER_SHARE:
            chosen[0] = leading[0]
        return chosen

    def _others(self, victim: Node) -> list[Node]:
        return [one for one in self._quorum.members.values() if one is not victim]

    def _cut(self, ways: Iterable[tuple[Node, Node]]) -> None:
        for source, destination in ways:
            self._quorum.network.cut(source.node_id, destination.node_id)

    def _endure(self) -> None:
        self._writers.wait_for_progress()
        self._quorum.network.heal()


WRITERS = 3


ENDS = ("kill", "kill", "stop")


CUTS = ("pause", "isolate", "mute", "deafen", "cut_one_way", "slow")


SETTINGS = {
    # Some of the faults shall meet a snapshot being written, or the end of a segment.
    "metadata.log.max.record.bytes.between.snapshots": "50000",
    "internal.metadata.log.segment.bytes": "70000",
    "controller.quorum.auto.join.enable": "true",
}


@pytest.fixture
def seed() -> int:
    """The seed of a test's rounds: a new one each time, or the one to be tried again."""
    return int(os.environ.get("KVORUM_SEED", SystemRandom().randrange(2**32)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "is_dynamic", "names", "rounds"),
    [
        pytest.param(3, True, ENDS, 30, id="three-end"),
        pytest.param(3, False, CUTS, 25, id="three-cut"),
        pytest.param(5, False, ENDS, 20, id="five-end"),
        pytest.param(5, True, (*ENDS, *CUTS, "lose_disk"), 28, id="five-everything"),
    ],
)
def test_no_fault_costs_an_acknowledged_change(
    tmp_path: Path,
    kafka_tools: ToolRunner,
    report: Report,
    seed: int,
    count: int,
    *,
    is_dynamic: bool,
    names: Sequence[str],
    rounds: int,
) -> None:
    started = time.monotonic()
    with ProxiedQuorum(tmp_path, count, is_dynamic=is_dynamic, settings=SETTINGS) as quorum:
        members = list(quorum.members.values())
        writers = Writers([member.address for member in members], count=WRITERS, seed=seed)
        chaos = Chaos(quorum, writers, random=Random(seed))
        with chaos.told_of(seed):
            register_broker(quorum)
            with writers:
                writers.wait_for_progress()
                for _ in range(rounds):
                    chaos.round(names)
            end_offset = quorum.wait_until_settled()
            quorum.kill_all_at_once()
            assert_same_batches(members, end_offset=end_offset)
            assert_kafka_reads_the_same(kafka_tools, members, writers, end_offset=end_offset)
    report(
        f"{rounds} rounds over {count} controllers in {time.monotonic() - started:.1f} s: "
        f"{len(writers.acknowledged)} topics acknowledged, {writers.retries_that_exist} by a "
        f"second try, {len(writers.wished) - len(writers.acknowledged)} unknown, "
        f"log end {end_offset}"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("count", "is_dynamic"), [(1, True), (3, False), (5, True), (7, True)])
def test_a_quorum_forms_and_leaders_that_are_killed_are_replaced_at_once(
    tmp_path: Path, count: int, *, is_dynamic: bool
) -> None:
    with ProxiedQuorum(tmp_path, count, is_dynamic=is_dynamic, settings=SLOW_FETCHES) as quorum:
        register_broker(quorum)
        addresses = [member.address for member in quorum.members.values()]
        with Writers(addresses, count=2, seed=count) as writers:
            writers.wait_for_progress()
            for victim in [_kill_leader(quorum, writers) for _ in range(count - quorum.majority)]:
                quorum.start(victim)
            writers.wait_for_progress()
        end_offset = quorum.wait_until_settled()
        quorum.kill_all_at_once()
    assert_same_batches(list(quorum.members.values()), end_offset=end_offset)


def _kill_leader(quorum: ProxiedQuorum, writers: Writers) -> int:
    leader = quorum.leader()
    quorum.kill(leader.node_id)
    writers.wait_for_progress()
    return leader.node_id
