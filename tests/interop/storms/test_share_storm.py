"""A share group gives out each record until it is done with, in a storm of kills and cuts."""

from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.storms.share_storm import ShareStory, storm, stormy_cluster
from tests.interop.storms.storm_command import EVERYBODY
from tests.support.kafka.java import Java, ToolRunner

BLOWS: Final = 10


@pytest.mark.slow
def test_every_record_is_delivered_until_it_is_done_with(
    java: Java, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    with stormy_cluster(
        "kvorum", tmp_path, java=java, tools=kafka_tools, ours=EVERYBODY
    ) as proxied:
        figures = storm(proxied, java, Random(7), seconds=0, blows_min=BLOWS)
    assert figures.flaws == []
    assert figures.words > 0


@pytest.mark.parametrize(
    ("second", "flaw"),
    [
        # Another process, which may have had them before.
        ("got 15 0 5 7\nsaid 15 40 0 accept:5:2 accept:7:1", None),
        ("got 30 0 7\nsaid 30 40 0 accept:7:2", None),
        ("got 30 0 7\nsaid 30 40 0 accept:7:1", "deliveries that do not rise"),
        ("got 30 0 5", "given out after it was done with"),
        ("got 30 0 6", "given out after it was done with"),
    ],
)
def test_what_later_processes_had_and_said_tells_a_flaw(second: str, flaw: str | None) -> None:
    story = ShareStory()
    story.add("got 10 0 5 6 7\n")
    story.add("said 10 20 0 accept:5:1 reject:6:1 release:7:1\n")
    for line in second.splitlines():
        story.add(f"{line}\n")
    story.add("said 30 40 0 accept:7")
    assert [text for text in story.flaws() if flaw is None or flaw not in text] == []
    assert bool(story.flaws()) == (flaw is not None)


def test_a_record_that_no_member_had_is_missed() -> None:
    story = ShareStory()
    story.add("got 10 0 0 1 2\n")
    story.add("got 11 0 2 4\n")
    assert story.has_read(0, 3)
    assert not story.has_read(0, 5)
