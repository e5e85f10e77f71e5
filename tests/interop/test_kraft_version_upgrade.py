"""A static quorum is made a dynamic one with kafka-features: ours and a real one, step by step."""

from functools import partial

import pytest
from tests.interop.quorum_story import Story
from tests.interop.quorum_tools import run_ours, run_real
from tests.support.kafka.tools import ToolRunner
from tests.support.node import NO_VOTERS, Key, Kind
from tests.support.quorum.quorum import NO_DIRECTORY, MakeQuorum, Quorum

pytestmark = pytest.mark.slow
KINDS: tuple[Kind, ...] = ("kvorum", "kafka")
VOTERS = (1, 2, 3)
NEWCOMER = 4
TO_DYNAMIC = ("upgrade", "--feature", "kraft.version=1")
FINALIZED = (
    "Feature: kraft.version SupportedMinVersion: 0 SupportedMaxVersion: 1 "
    "FinalizedVersionLevel: {} Epoch: N"
)


def tell(quorum: Quorum, tools: ToolRunner) -> list[str]:
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
            for node_id in VOTERS:
                quorum.format(node_id)
            quorum.format(NEWCOMER, *NO_VOTERS)
            quorum.start(*VOTERS)
            told[kind] = tell(quorum, kafka_tools)
    assert told["kvorum"] == told["kafka"]
    features = [" ".join(line.split()) for line in told["kvorum"]]
    for level in (0, 1):
        assert FINALIZED.format(level) in features
