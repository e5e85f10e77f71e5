"""A quorum grows, shrinks and has a disk replaced: ours and a real one say the same about it."""

from collections.abc import Mapping
from functools import partial

import pytest
from tests.interop.quorum_story import Story, Tool
from tests.interop.quorum_tools import run_ours, run_real
from tests.support.kafka.tools import ToolRunner
from tests.support.node import COMBINED, NO_VOTERS, STANDALONE, Kind
from tests.support.ports import listens
from tests.support.quorum.quorum import MakeQuorum, Quorum

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
    leader = story.describe(quorum.keys(*voters), quorum.keys(*others))
    struck = max(voters - {leader})
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
