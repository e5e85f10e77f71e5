"""The command that recovers a quorum: its forecast, its refusals, and runs that are cut off.

Random worlds know what is committed: they watch every node. The tool knows the survivors' disks
only.
"""

import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from tests.support.lost_quorum import (
    OPERATOR,
    Story,
    copied,
    directory_of,
    export,
    keeps,
    kill_all,
    name_directories,
    read,
    static_voters,
    stopped_world,
    subsets,
    uncommitted_tail,
)
from tests.unit.storage.local_logs import content

from kvorum.cli import main
from kvorum.inspection.recovery.plan import Loss, RecoveryOptions, RecoveryPlan, plan_recovery
from kvorum.inspection.recovery.survivor import RecoveryRefusedError, Survivor, read_survivor
from kvorum.inspection.recovery.writing import complete, find_records, lasting_recovery, recover
from kvorum.raft import ReplicaKey
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.disk_faults import CrashedError
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.options import QuorumKind
from kvorum.simulation.world import World
from kvorum.storage.files import RealFileSystem
from kvorum.storage.metadata_log.flushed_offset import FLUSHED_OFFSET_FILE
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.directory_lock import lock_directory
from kvorum.storage.small_files.java_properties import load_java_properties
from kvorum.wire.records import read_batches

FIXED_SEEDS = range(1, 13)
FRESH_SEEDS = 3
NODES_MAX = 5
EXECUTED_SHARE = 0.3
OPTIONS = RecoveryOptions(address=("host", 9093), allows_observer=True)
CALLS_MAX = 2_000


@pytest.mark.slow
def test_what_is_lost_is_what_was_forecast() -> None:
    """The worlds show every kind of forecast; otherwise this would show little."""
    seen: Counter[str] = Counter()
    for seed in FIXED_SEEDS:
        seen += check_world(seed)
    wanted = [
        Loss.NONE.name,
        Loss.NONE_UNLESS_VOTERS_CHANGED.name,
        Loss.POSSIBLE.name,
        "No recovery is needed",
        "unproven",
        "lost something",
    ]
    assert [kind for kind in wanted if not seen[kind]] == [], seen


@pytest.mark.parametrize("number", range(FRESH_SEEDS))
def test_what_is_lost_in_a_new_world_is_what_was_forecast(number: int) -> None:
    seed = secrets.randbelow(2**40)
    try:
        check_world(seed)
    except AssertionError as error:
        raise AssertionError(f"the world of seed {seed}") from error


def check_world(seed: int) -> Counter[str]:
    """Stop a world somewhere in its faulty phase, and recover from every subset of its nodes."""
    random = Random(seed)
    world = stopped_world(seed, random.uniform(2_000, 20_000))
    kill_all(world, random=random)
    name_directories(world)
    seen: Counter[str] = Counter()
    readable = [node for node in world.quorum.nodes.values() if is_readable(world, node)]
    for nodes in subsets(readable[:NODES_MAX]):
        survivors = read(world, nodes)
        try:
            plan = plan_recovery(survivors, OPTIONS)
        except RecoveryRefusedError as error:
            seen[str(error).split(":")[0][:30]] += 1
            continue
        check_forecast(world, plan)
        seen[plan.forecast.loss.name] += 1
        seen["unproven"] += plan.forecast.unproven_count > 0
        seen["lost something"] += any(
            not keeps(plan.forecast, batch.base_offset, batch.epoch)
            for batch in world.around.properties.shared.committed
        )
        if random.random() < EXECUTED_SHARE:
            check_execution(world, plan, nodes)
    return seen


def is_readable(world: World, node: SimulatedNode) -> bool:
    """Return whether a disk can be read; only damaged and empty ones may be refused."""
    if node.is_barred or not node.disk.inspect().exists(node.settings.directory):
        return False
    try:
        survivors = read(world, [node])
    except RecoveryRefusedError:
        assert node.is_damaged or node.disk.damaged_kinds
        return False
    return not node.is_damaged and bool(survivors[0].voters.voters)


def check_forecast(world: World, plan: RecoveryPlan) -> None:
    """Compare a forecast with everything that any node has ever known to be committed."""
    forecast = plan.forecast
    shared = world.around.properties.shared
    assert forecast.committed.end.offset <= shared.committed_end
    lost = 0
    held = batches_of(world.quorum.nodes[plan.chosen.key.id])
    start = min(held, default=plan.chosen.end.offset)
    for batch in shared.committed:
        is_held = batch.last_offset < max(
            start, 0 if plan.chosen.snapshot is None else plan.chosen.snapshot.offset
        ) or held.get(batch.base_offset) == (batch.epoch, batch.crc)
        assert keeps(forecast, batch.base_offset, batch.epoch) == is_held, batch
        assert keeps(forecast, batch.last_offset, batch.epoch) == is_held, batch
        lost += not is_held
    if lost:
        assert forecast.loss is not Loss.NONE
    if forecast.loss is Loss.CERTAIN:
        assert lost


def batches_of(node: SimulatedNode) -> dict[int, tuple[int, int]]:
    """Return epoch and checksum of each batch that a node's log would start with, by offset."""
    files = copied(node).mount()
    log = MetadataLog.open(node.settings.directory, files=files, config=node.settings.log, now_ms=0)
    return {
        batch.base_offset: (batch.partition_leader_epoch, batch.crc)
        for batch in read_batches(b"".join(content(log.local_log)))
    }


def check_execution(world: World, plan: RecoveryPlan, nodes: Sequence[SimulatedNode]) -> None:
    """Recover on a copy of the disk: the log is kept to the byte, and the node is alone."""
    node = next(each for each in nodes if each.node_id == plan.chosen.key.id)
    disk = copied(node)
    before = MetadataLog.open(
        node.settings.directory, files=copied(node).mount(), config=node.settings.log, now_ms=0
    )
    recover(plan, OPERATOR, disk.mount(), now_ms=1)
    disk.crash(is_power_cut=True)
    again = read_survivor(directory_of(node), disk.inspect(), static_voters=static_voters(world))
    record = lasting_recovery(again, disk.inspect())
    assert record is not None
    assert record.is_done
    assert again.election is not None
    assert again.election.leader_epoch == plan.epoch
    after = MetadataLog.open(
        node.settings.directory, files=disk.mount(), config=node.settings.log, now_ms=0
    )
    if plan.is_dynamic:
        assert again.voters.is_only_voter(ReplicaKey(node.node_id, node.directory_id))
        assert again.end.epoch == plan.epoch
        assert after.log_start_offset == before.log_start_offset
        assert after.log_end_offset == plan.chosen.end.offset + 3
        assert b"".join(content(after.local_log)).startswith(b"".join(content(before.local_log)))
    else:
        assert b"".join(content(after.local_log)) == b"".join(content(before.local_log))
        assert again.election.voters == (node.node_id,)


@pytest.fixture(scope="module")
def story() -> Story:
    return uncommitted_tail(QuorumKind.DYNAMIC, 5)


@pytest.fixture
def folders(story: Story, tmp_path: Path) -> list[Path]:
    """The directories of the voters; the shortest log first."""
    return [export(node, tmp_path) for node in story.voters]


Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """The command, which must fail; what is returned is its complaint."""

    def run(*words: object, code: int = 1) -> str:
        assert main(["quorum", "recover", *map(str, words)]) == code
        return capsys.readouterr().err

    return run


def by_length(folders: list[Path], capsys: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """Return a directory with a shorter log and one with a longer one."""
    for one, other in permutations(folders, 2):
        words = ["quorum", "recover", "--directories", f"{one},{other}"]
        assert main(words) == 0
        chosen = capsys.readouterr().out
        if main([*words, "--voters", f"{node_id(one)}@h:1"]) == 1:
            assert f"Recovered from: node {node_id(other)}," in chosen
            return one, other
    raise AssertionError("all logs are of one length")


def node_id(folder: Path) -> int:
    return int(load_java_properties((folder / "meta.properties").read_bytes())["node.id"])


def test_a_majority_needs_no_recovery(folders: list[Path], refused: Refused) -> None:
    words = ",".join(map(str, folders[:4]))
    assert "No recovery is needed" in refused("--directories", words, "--execute")


def test_a_shorter_log_has_to_be_allowed(
    folders: list[Path], refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    shorter, longer = by_length(folders, capsys)
    words = ("--directories", f"{shorter},{longer}", "--voters", f"{node_id(shorter)}@host:9093")
    text = refused(*words, "--execute")
    assert f"({longer}) is longer" in text
    assert "--allow-shorter-log" in text
    assert main(["quorum", "recover", *words, "--allow-shorter-log"]) == 0


def test_a_directory_in_use_is_refused(folders: list[Path], refused: Refused) -> None:
    held = lock_directory(folders[0], RealFileSystem())
    try:
        text = refused("--directories", folders[0], "--execute")
    finally:
        held.release()
    assert f"{folders[0]} is in use" in text


def test_a_damaged_log_is_refused_with_its_place(folders: list[Path], refused: Refused) -> None:
    (log,) = sorted((folders[0] / METADATA_LOG_DIRECTORY).glob("*.log"))[:1]
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    text = refused("--directories", folders[0], "--execute")
    assert f"{log}: " in text
    assert "(at byte 0)" in text
    assert "Leave the directory out" in text
    assert log.read_bytes() == content
    assert not list(folders[0].glob("kvorum-*"))


def test_directories_of_two_clusters_and_twice_the_same_node_are_refused(
    folders: list[Path], tmp_path: Path, refused: Refused
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folders[0], copy)
    assert "both belong to node" in refused("--directories", f"{folders[0]},{copy}")
    properties = copy / "meta.properties"
    cluster = load_java_properties(properties.read_bytes())["cluster.id"]
    properties.write_text(properties.read_text().replace(cluster, "another"))
    assert "name directories of one cluster" in refused("--directories", f"{folders[0]},{copy}")


def test_an_observer_has_to_be_allowed_and_to_be_given_an_address(
    folders: list[Path], refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = folders[0] / "meta.properties"
    old = f"node.id={node_id(folders[0])}\n"
    properties.write_text(properties.read_text().replace(old, "node.id=101\n"))
    words = ("--directories", folders[0])
    assert "--allow-observer" in refused(*words, "--execute")
    assert "--voters 101@HOST:PORT" in refused(*words, "--allow-observer", "--execute")
    allowed = (*words, "--allow-observer", "--voters", "101@host:9093", "--execute")
    assert main(["quorum", "recover", *map(str, allowed)]) == 0
    assert "101@host:9093" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--directories", ","],
        ["--directories", "a", "--config", "b"],
        ["--directories", "a", "--voters", "1"],
        ["--directories", "a", "--voters", "1@a:1,2@b:2"],
    ],
)
def test_wrong_usage_is_2(words: list[str], refused: Refused) -> None:
    assert "usage: kvorum quorum recover" in refused(*words, code=2)


def test_anything_that_is_not_a_directory_of_a_node_is_refused(
    tmp_path: Path, refused: Refused
) -> None:
    assert "is not a directory" in refused("--directories", tmp_path / "none")
    assert "has no meta.properties" in refused("--directories", tmp_path)


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
        disk.before_call = Power(calls).before_call
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
