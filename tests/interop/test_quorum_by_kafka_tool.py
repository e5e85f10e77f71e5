"""A quorum grows, shrinks and has a disk replaced: ours and a real one say the same about it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
from tests.interop.quorum_tools import comparable, run_ours, run_real, without_progress
from tests.support.kafka.java import ToolResult, ToolRunner
from tests.support.node import (
    CLUSTER_ID,
    COMBINED,
    LEVELS_OF_OURS,
    NO_VOTERS,
    STANDALONE,
    Key,
    Kind,
)
from tests.support.ports import listens
from tests.support.quorum.quorum import NO_DIRECTORY, MakeQuorum, Quorum

from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.uuid_text import uuid_to_text

Tool = Callable[[Sequence[str]], ToolResult]
_DIRECTORY = re.compile(r"(directoryId=|directory id )[\w-]{22}(?![\w-])")
_NODE_LIST = re.compile(r"\[\d+(?:, \d+)*\]")
_REPLICA_ID = re.compile(r"\b(id|controller|voter) ?=? ?(-?\d+)\b")


@dataclass
class Story:
    """One quorum, the tool that changes it, and what the tool said; the other tool looks on.

    Hidden is what two quorums cannot share: directory ids, ports, times, offsets and lags, epochs,
    and who leads. A replica is called by what it is at the moment: ``leader``, ``voter 1``,
    ``observer 1`` and so on, in the order of node ids; lists are put into that order, because
    neither Kafka nor we promise one. All else stays: every word, who is a voter and who observes,
    whether the endpoints are known and belong to the node, whether a directory is the node's
    present one, and whether a replica has ever fetched.
    """

    quorum: Quorum
    tool: Tool
    other_tool: Tool
    brokers: str = ""
    """The server to ask instead of the controllers."""
    lines: list[str] = field(default_factory=list[str])

    def add(self, node_id: int, *options: str) -> None:
        """Add a controller by its configuration file."""
        file = str(self.quorum.members[node_id].properties)
        self._change("--command-config", file, arguments=("add-controller", *options))

    def remove(self, key: Key, *options: str) -> None:
        """Remove a controller."""
        node_id, directory_id = key
        which = ("--controller-id", str(node_id), "--controller-directory-id", directory_id)
        self._change(arguments=("remove-controller", *which, *options))

    def describe(self, voters: set[Key], observers: set[Key]) -> int:
        """Describe the quorum in every way once it is as it should be; return the leader's id."""
        for form in ("--status", "--replication", "--replication --human-readable"):
            while True:
                before = self.quorum.settled(voters, observers)
                told = without_progress(self._run("describe", *form.split()))
                seen = without_progress(self._run("describe", *form.split(), by=self.other_tool))
                after = self.quorum.settled(voters, observers)
                # Were there an election meanwhile, the two would speak of different leaders.
                if _leadership(before) == _leadership(after) and _cast(before) == _cast(after):
                    break
            assert comparable(told) == comparable(seen)
            assert told.exit_code == 0, told.stderr
            names = _Names(self.quorum, after)
            retell = names.table if "--replication" in form else names.status
            self.lines += [f"$ describe {form}", *retell(told.stdout)]
        return after.leader_id

    def features(self, *arguments: str, tools: ToolRunner) -> None:
        """Have Kafka's own tool for features say or do something."""
        result = comparable(
            tools.run("kafka-features", "--bootstrap-controller", self.quorum.addresses, *arguments)
        )
        text = re.sub(r"(?<=Epoch: )\d+", "N", f"{result.stdout}{result.stderr}")
        text = re.sub(r"(?<=controller )\d+", "N", text)
        words = " ".join(arguments)
        self.lines += [f"$ features {words}", f"-> {result.exit_code}", *text.splitlines()]

    def _change(self, *options: str, arguments: Sequence[str]) -> None:
        result = comparable(self._run(*arguments, options=options))
        words = " ".join(word for word in arguments if word.startswith("--dry"))
        text = "\n".join(filter(None, (result.stdout.strip(), result.stderr)))
        self.lines += [
            f"$ {arguments[0]} {words}".rstrip(),
            f"-> {result.exit_code}",
            *_anonymous(text).splitlines(),
        ]

    def _run(
        self, *arguments: str, options: Sequence[str] = (), by: Tool | None = None
    ) -> ToolResult:
        tool = by or self.tool
        where = ["--bootstrap-controller", self.quorum.addresses]
        if self.brokers:
            where = ["--bootstrap-server", self.brokers]
        return tool([*options, *where, *arguments])


def _leadership(found: DescribeQuorumResponse.PartitionData) -> tuple[int, int]:
    return found.leader_id, found.leader_epoch


def _cast(found: DescribeQuorumResponse.PartitionData) -> list[tuple[int, bytes]]:
    states = (*found.current_voters, *found.observers)
    return sorted((state.replica_id, state.replica_directory_id) for state in states)


def _anonymous(text: str) -> str:
    text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)
    text = _DIRECTORY.sub(r"\1DIRECTORY", text)
    text = _NODE_LIST.sub(lambda found: f"[{len(found[0].split(','))} nodes]", text)
    return _REPLICA_ID.sub(r"\1 N", text)


class _Names:
    """The names of a quorum's replicas at one moment."""

    def __init__(self, quorum: Quorum, found: DescribeQuorumResponse.PartitionData) -> None:
        self._quorum = quorum
        self._leader_id = found.leader_id
        keys = [
            (state.replica_id, uuid_to_text(state.replica_directory_id))
            for state in (*found.current_voters, *found.observers)
        ]
        voters, observers = keys[: len(found.current_voters)], keys[len(found.current_voters) :]
        followers = [key for key in sorted(voters) if key[0] != found.leader_id]
        self._names = {key: "leader" for key in voters if key[0] == found.leader_id}
        self._names |= {key: f"voter {index}" for index, key in enumerate(followers, 1)}
        by_age = sorted(observers, key=lambda key: (key[0], self._is_present(key)))
        self._names |= {key: f"observer {index}" for index, key in enumerate(by_age, 1)}

    def status(self, text: str) -> list[str]:
        """Retell the status."""
        retold: list[str] = []
        for line in text.splitlines():
            name, value = (part.strip() for part in line.split(":", 1))
            match name:
                case "ClusterId":
                    assert value == CLUSTER_ID
                    value = "CLUSTER"
                case "LeaderId":
                    assert value == str(self._leader_id)
                    value = "leader"
                case "LeaderEpoch":
                    value = re.sub(r"^\d+$", "N", value)
                case "CurrentVoters" | "CurrentObservers":
                    value = ", ".join(sorted(map(self._replica, json.loads(value))))
                case _:
                    pass
            retold.append(f"{name}: {value}")
        return retold

    def table(self, text: str) -> list[str]:
        """Retell the table; its rows have been rid of offsets and times."""
        head, *rows = text.splitlines()
        retold: list[str] = []
        for row in rows:
            node_id, directory_id, status, *fetches = row.split()
            key = (int(node_id), directory_id)
            retold.append(f"{self._names[key]} {self._age(key)} {status} {' '.join(fetches)}")
        return [head, *sorted(retold)]

    def _replica(self, replica: dict[str, object]) -> str:
        key = (int(str(replica["id"])), str(replica.get("directoryId", NO_DIRECTORY)))
        at_home = [f"CONTROLLER://{self._quorum.members[key[0]].address}"]
        places = replica.get("endpoints", "endpoints unknown")
        where = "its endpoints" if places == at_home else str(places)
        return f"{self._names[key]}: {self._age(key)}, {where}"

    def _is_present(self, key: Key) -> bool:
        return self._quorum.members[key[0]].key == key

    def _age(self, key: Key) -> str:
        if key[1] == NO_DIRECTORY:
            return "any directory"
        return "present directory" if self._is_present(key) else "former directory"


pytestmark = pytest.mark.slow
KINDS: tuple[Kind, ...] = ("kvorum", "kafka")
WRONG_DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


def grow_to_five(story: Story) -> None:
    """Make both observers voters, one after the other."""
    quorum = story.quorum
    voters, observers = quorum.keys(1, 2, 3), quorum.keys(4, 5)
    story.describe(voters, observers)
    for newcomer in (4, 5):
        story.add(newcomer, "--dry-run")
        story.add(newcomer)
        voters |= quorum.keys(newcomer)
        observers -= quorum.keys(newcomer)
        story.describe(voters, observers)


def ask_for_what_cannot_be(story: Story) -> None:
    """Add a voter again, remove a node that is not one."""
    story.add(5)
    story.remove((4, WRONG_DIRECTORY))
    story.remove((99, WRONG_DIRECTORY))
    story.remove((-1, WRONG_DIRECTORY))
    story.remove((4, "short"))


def shrink_to_three(story: Story) -> set[int]:
    """Remove the leader, then the first of the followers; return the others."""
    everybody = set(story.quorum.members)
    left = set(everybody)
    leader = story.describe(story.quorum.keys(*left), set())
    for options in ((), ("--unregister",)):
        out = leader if left == everybody else min(left - {leader})
        story.remove(story.quorum.members[out].key, "--dry-run", *options)
        story.remove(story.quorum.members[out].key, *options)
        left.remove(out)
        leader = story.describe(story.quorum.keys(*left), story.quorum.keys(*(everybody - left)))
    return left


def replace_a_disk(story: Story, voters: set[int]) -> None:
    """Have a follower come back with an empty disk: it is another replica, and has to be added."""
    quorum = story.quorum
    others = set(quorum.members) - voters
    struck = max(voters - {story.describe(quorum.keys(*voters), quorum.keys(*others))})
    before, former = quorum.keys(*voters), quorum.members[struck].key
    quorum.members[struck].stop()
    quorum.wipe(struck)
    quorum.start(struck)
    story.describe(before, quorum.keys(struck, *others))
    story.add(struck)
    story.remove(former)
    story.describe(before - {former}, quorum.keys(struck, *others))
    story.add(struck)
    story.describe(quorum.keys(*voters), quorum.keys(*others))


def go_back(story: Story, voters: set[int]) -> None:
    """Make the first three the voters again, so that another tool can go through the same story."""
    quorum, wanted = story.quorum, {1, 2, 3}
    for newcomer in wanted - voters:
        story.add(newcomer)
    voters = voters | wanted
    while surplus := voters - wanted:
        leader = quorum.settled(quorum.keys(*voters)).leader_id
        out = min(surplus, key=lambda one: one == leader)
        story.remove(quorum.members[out].key)
        voters.remove(out)
    # A new leader has never heard of directories that are gone.
    leader = quorum.settled(quorum.keys(*voters)).leader_id
    quorum.members[leader].stop()
    quorum.settled(quorum.keys(*voters))
    quorum.start(leader)
    quorum.settled(quorum.keys(*voters), quorum.keys(*quorum.members) - quorum.keys(*voters))


def tell(quorum: Quorum, tool: Tool, other_tool: Tool) -> list[str]:
    """Return what one tool said while the quorum lived through everything."""
    story = Story(quorum, tool, other_tool)
    grow_to_five(story)
    ask_for_what_cannot_be(story)
    voters = shrink_to_three(story)
    replace_a_disk(story, voters)
    go_back(Story(quorum, tool, other_tool), voters)
    return story.lines


@pytest.fixture(scope="module")
def stories(
    make_quorum: MakeQuorum, kafka_tools: ToolRunner
) -> Mapping[tuple[Kind, str], list[str]]:
    """Every story, by the kind of quorum and the tool that told it."""
    real = partial(run_real, tools=kafka_tools)
    told: dict[tuple[Kind, str], list[str]] = {}
    for kind in KINDS:
        with make_quorum(kind, 5) as quorum:
            quorum.form([1, 2, 3])
            quorum.start()
            told[kind, "kafka-metadata-quorum"] = tell(quorum, real, run_ours)
            told[kind, "kvorum quorum"] = tell(quorum, run_ours, real)
    return told


@pytest.mark.parametrize("tool", ["kafka-metadata-quorum", "kvorum quorum"])
def test_our_quorum_is_described_as_a_real_one(
    stories: Mapping[tuple[Kind, str], list[str]], tool: str
) -> None:
    ours, theirs = stories["kvorum", tool], stories["kafka", tool]
    assert ours == theirs
    said = "\n".join(ours)
    for expected in (
        "Added controller N",
        "Removed KRaft controller N",
        "Unregistered KRaft controller N",
        "former directory",
    ):
        assert expected in said
    for refusal in ("DuplicateVoterException", "VoterNotFoundException"):
        assert refusal in said


@pytest.mark.parametrize("kind", KINDS)
def test_both_tools_tell_of_a_quorum_alike(
    stories: Mapping[tuple[Kind, str], list[str]], kind: Kind
) -> None:
    assert stories[kind, "kvorum quorum"] == stories[kind, "kafka-metadata-quorum"]


def tell_of_growing_from_one(quorum: Quorum, tool: Tool, other_tool: Tool) -> list[str]:
    """Return what a tool said while a lone controller got company, and left."""
    story = Story(quorum, tool, other_tool)
    everybody, voters = {1, 2, 3}, {1}
    quorum.start(1)
    story.describe(quorum.keys(1), set())
    story.add(2)
    quorum.start(2, 3)
    story.describe(quorum.keys(1), quorum.keys(2, 3))
    for newcomer in (2, 3):
        story.add(newcomer)
        voters.add(newcomer)
        story.describe(quorum.keys(*voters), quorum.keys(*(everybody - voters)))
    story.remove(quorum.members[1].key)
    story.describe(quorum.keys(2, 3), quorum.keys(1))
    return story.lines


def test_a_quorum_grows_from_one_as_a_real_one(
    make_quorum: MakeQuorum, kafka_tools: ToolRunner
) -> None:
    real = partial(run_real, tools=kafka_tools)
    told: dict[Kind, list[str]] = {}
    for kind in KINDS:
        with make_quorum(kind, 3) as quorum:
            quorum.format(1, *STANDALONE)
            quorum.format(2, *NO_VOTERS)
            quorum.format(3, *NO_VOTERS)
            told[kind] = tell_of_growing_from_one(quorum, real, run_ours)
    assert told["kvorum"] == told["kafka"]


def tell_through_a_broker(quorum: Quorum, real: Tool, broker: str) -> list[str]:
    """Return what both tools said while a broker passed their wishes on."""
    quorum.start()
    quorum.settled(quorum.keys(1), quorum.keys(2))
    quorum.wait_for(lambda: listens(broker), "the broker listens")
    story = Story(quorum, real, run_ours, broker)
    story.describe(quorum.keys(1), quorum.keys(2))
    story.add(2)
    story.describe(quorum.keys(1, 2), set())
    story.add(2)
    story = Story(quorum, run_ours, real, broker, story.lines)
    story.remove(quorum.members[2].key)
    story.describe(quorum.keys(1), quorum.keys(2))
    story.remove(quorum.members[2].key)
    return story.lines


def test_a_broker_passes_on_what_is_to_change(
    make_quorum: MakeQuorum, kafka_tools: ToolRunner
) -> None:
    real = partial(run_real, tools=kafka_tools)
    told: dict[Kind, list[str]] = {}
    for kind in KINDS:
        with make_quorum(kind, 2) as quorum:
            quorum.configure({"process.roles": COMBINED}, 1)
            quorum.format(1, *STANDALONE)
            quorum.format(2, *NO_VOTERS)
            told[kind] = tell_through_a_broker(quorum, real, quorum.members[1].broker)
    assert told["kvorum"] == told["kafka"]


VOTERS = (1, 2, 3)
NEWCOMER = 4
TO_DYNAMIC = ("upgrade", "--feature", "kraft.version=1")
FINALIZED = (
    "Feature: kraft.version SupportedMinVersion: 0 SupportedMaxVersion: 1 "
    "FinalizedVersionLevel: {} Epoch: N"
)


def tell_of_upgrade(quorum: Quorum, tools: ToolRunner) -> list[str]:
    """Return what Kafka's tools say before, while and after a quorum is upgraded."""
    story = Story(quorum, partial(run_real, tools=tools), run_ours)
    by_id: set[Key] = {(node_id, NO_DIRECTORY) for node_id in VOTERS}
    story.describe(by_id, set())
    story.features("describe", tools=tools)
    story.add(NEWCOMER)
    story.remove(quorum.members[3].key)
    wait_until_voters_have_told_their_versions(quorum, tools)
    story.features(*TO_DYNAMIC, "--dry-run", tools=tools)
    story.features("upgrade", "--feature", "kraft.version=2", tools=tools)
    story.features("describe", tools=tools)
    story.features(*TO_DYNAMIC, tools=tools)
    story.describe(quorum.keys(*VOTERS), set())
    story.features("describe", tools=tools)
    story.features(*TO_DYNAMIC, tools=tools)
    story.features("downgrade", "--feature", "kraft.version=0", tools=tools)
    story.features("disable", "--feature", "kraft.version", tools=tools)
    story.features("describe", tools=tools)
    quorum.start(NEWCOMER)
    story.describe(quorum.keys(*VOTERS), quorum.keys(NEWCOMER))
    story.add(NEWCOMER)
    story.describe(quorum.keys(*VOTERS, NEWCOMER), set())
    story.remove(quorum.members[NEWCOMER].key)
    story.describe(quorum.keys(*VOTERS), quorum.keys(NEWCOMER))
    return story.lines


def wait_until_voters_have_told_their_versions(quorum: Quorum, tools: ToolRunner) -> None:
    """Try the upgrade, without doing it, until it would work.

    The voters of a static quorum tell their leader what they support within a few fetch timeouts.
    """

    def look() -> bool:
        asked = ("--bootstrap-controller", quorum.addresses, *TO_DYNAMIC, "--dry-run")
        return tools.run("kafka-features", *asked).exit_code == 0

    quorum.wait_for(look, "kraft.version can be 1")


def write_settings(quorum: Quorum) -> None:
    """Name the voters in every file but the newcomer's: it asks who they are."""
    quorum.configure(quorum.static_voters(*VOTERS), *VOTERS)
    servers = ",".join(quorum.members[node_id].address for node_id in VOTERS)
    quorum.configure({"controller.quorum.bootstrap.servers": servers}, NEWCOMER)


def test_a_quorum_of_ours_is_upgraded_as_a_real_one(
    make_quorum: MakeQuorum, kafka_tools: ToolRunner
) -> None:
    told: dict[Kind, list[str]] = {}
    for kind in KINDS:
        with make_quorum(kind, 4) as quorum:
            write_settings(quorum)
            levels = LEVELS_OF_OURS if kind == "kafka" else ()
            for node_id in VOTERS:
                quorum.format(node_id, *levels)
            quorum.format(NEWCOMER, *NO_VOTERS, *levels)
            quorum.start(*VOTERS)
            told[kind] = tell_of_upgrade(quorum, kafka_tools)
    assert told["kvorum"] == told["kafka"]
    features = [" ".join(line.split()) for line in told["kvorum"]]
    for level in (0, 1):
        assert FINALIZED.format(level) in features
