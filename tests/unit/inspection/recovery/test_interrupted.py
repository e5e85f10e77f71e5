"""The process ends, or the power is cut, before each call to the disk; then it runs again."""

from pathlib import Path
from random import Random

import pytest
from tests.support.lost_quorum import (
    OPERATOR,
    Story,
    copied,
    directory_of,
    read,
    static_voters,
    uncommitted_tail,
)

from kvorum.inspection.recovery.plan import RecoveryOptions, plan_recovery
from kvorum.inspection.recovery.record import find_records
from kvorum.inspection.recovery.survivor import Survivor, read_survivor
from kvorum.inspection.recovery.writing import complete, lasting_recovery, recover
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.disk_faults import CrashedError
from kvorum.simulation.options import QuorumKind
from kvorum.storage.metadata_log.flushed_offset import FLUSHED_OFFSET_FILE

CALLS_MAX = 2_000


class Power:
    """Ends the process before one of its calls."""

    def __init__(self, calls: int) -> None:
        self.calls_left = calls

    def before_call(self, operation: str, path: Path) -> None:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise CrashedError(f"before {operation} {path.name}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [QuorumKind.STATIC, QuorumKind.DYNAMIC])
@pytest.mark.parametrize("is_power_cut", [False, True])
@pytest.mark.parametrize("is_ours", [False, True], ids=["of Kafka", "ours"])
def test_a_crash_leaves_the_old_quorum_or_the_new_one(
    kind: QuorumKind, *, is_power_cut: bool, is_ours: bool
) -> None:
    story = uncommitted_tail(kind, 3)
    node = story.voters[0]
    first = copied(node)
    if not is_ours:
        first.inspect().remove(node.settings.directory / FLUSHED_OFFSET_FILE)
        first.inspect().sync_directory(node.settings.directory)
    states: list[str] = []
    for calls in range(CALLS_MAX):
        disk = first.copy(Random(calls))
        power = Power(calls)
        disk.before_call = power.before_call
        try:
            run(story, disk)
        except CrashedError:
            disk.crash(is_power_cut=is_power_cut)
        else:
            break
        disk.before_call = Power(10 * CALLS_MAX).before_call
        states.append(state_of(story, disk, first))
        run(story, disk)
        check_recovered(story, disk, is_ours=is_ours)
    assert len(states) > 15
    assert set(states) == {"before", "after"}
    if not is_power_cut:
        assert states == sorted(states, reverse=True), "after the new quorum the old one again"


def run(story: Story, disk: SimulatedDisk) -> None:
    """Do what the command does with --execute."""
    files = disk.mount()
    survivor = survivor_on(story, disk)
    record = lasting_recovery(survivor, files)
    if record is None:
        recover(plan_recovery([survivor], RecoveryOptions()), OPERATOR, files, now_ms=1)
    elif not record.is_done:
        complete(survivor, record, files)


def survivor_on(story: Story, disk: SimulatedDisk) -> Survivor:
    return read_survivor(
        directory_of(story.voters[0]), disk.inspect(), static_voters=static_voters(story.world)
    )


def state_of(story: Story, disk: SimulatedDisk, first: SimulatedDisk) -> str:
    """Return which quorum a node would start with now."""
    old, now = survivor_on(story, first), survivor_on(story, disk)
    assert now.committed.end >= old.committed.end
    if now.voters == old.voters:
        assert now.end == old.end
        assert now.election == old.election
        return "before"
    assert now.voters.ids == (story.voters[0].node_id,)
    return "after"


def check_recovered(story: Story, disk: SimulatedDisk, *, is_ours: bool) -> None:
    (record,) = find_records(directory_of(story.voters[0]), disk.inspect())
    assert record.is_done
    survivor = survivor_on(story, disk)
    assert survivor.voters == VoterSet.of(survivor.voters.voters[:1])
    assert survivor.epoch == record.epoch
    assert survivor.election is not None
    assert survivor.election.leader_epoch == record.epoch
    assert survivor.has_flushed_offset is is_ours
    assert read(story.world, story.voters[:1])[0].end.offset <= survivor.end.offset
