"""The assignors of groups: Kafka's own and ours give each member the same partitions."""

from random import Random
from typing import Final

import pytest
from tests.interop.assigned_groups import FAILED, AssignedGroup
from tests.support.kafka.java import Java

STEPS: Final = 40
GROUPS: Final = 600
SAMPLE_GROUPS: Final = 15


def compare(java: Java, groups: int, *, are_share: bool = False) -> None:
    """Have both assign the partitions of groups over time: the same records, in the same order."""
    lines: list[str] = []
    ours: list[tuple[str, str]] = []
    for seed in range(groups):
        group = AssignedGroup(Random(seed), is_share=are_share)
        ours += [(f"group {seed}, step {number}", group.step()) for number in range(STEPS)]
        lines += group.lines
    theirs = java.answers("AssignorOracle", asked=lines)
    differences = [
        f"{place}:\n  ours     {mine}\n  Kafka's  {other}"
        for (place, mine), other in zip(ours, theirs, strict=True)
        if mine != other
    ]
    assert not differences, f"{len(differences)} of {len(ours)}\n{differences[0]}"
    assert sum(answer not in {"", FAILED} for answer in theirs) > len(theirs) // 3


@pytest.mark.sample
def test_both_assignors_give_members_what_kafkas_give_them(java: Java) -> None:
    compare(java, SAMPLE_GROUPS)


@pytest.mark.slow
def test_assignors_agree_with_kafkas_over_the_lives_of_many_groups(java: Java) -> None:
    compare(java, GROUPS)


@pytest.mark.sample
def test_the_simple_assignor_gives_members_what_kafkas_gives_them(java: Java) -> None:
    compare(java, SAMPLE_GROUPS, are_share=True)


@pytest.mark.slow
def test_the_simple_assignor_agrees_with_kafkas_over_the_lives_of_many_groups(java: Java) -> None:
    compare(java, GROUPS, are_share=True)
