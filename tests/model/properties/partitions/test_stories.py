"""Long stories in clusters too large to be exhausted, drawn and made short by hypothesis."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.model.properties.partitions.folding import Numbered, numbered, through_snapshot
from tests.support.partitions.actions import Step, steps
from tests.support.partitions.explore import taken
from tests.support.partitions.space import Space, World, first_world

STORIES = int(os.environ.get("KVORUM_PARTITION_STORIES", "25"))
EVERYTHING = Space(
    name="everything at once",
    brokers=5,
    replicas=3,
    factor_max=2,
    has_unregistering=True,
    has_failing_directories=True,
    has_changing_configs=True,
    has_changing_features=True,
)
FIRST = first_world(EVERYTHING)
RARE = ("replicas are", "is unregistered", "is set to", "ELR is")


def chosen(world: World, choice: int) -> Step | None:
    """One of the steps that can be taken now: what has many forms must not be all there is."""
    every = list(steps(EVERYTHING, world))
    common = [step for step in every if not any(word in step.told for word in RARE)]
    kind = common if choice % 4 and common else every
    return kind[choice // 4 % len(kind)] if kind else None


@pytest.mark.process
@settings(
    max_examples=STORIES,
    derandomize="KVORUM_PARTITION_STORIES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    st.lists(st.integers(0, 2_000), min_size=1, max_size=40),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
def test_no_story_breaks_anything(choices: list[int], group_sizes: list[int]) -> None:
    world, told = FIRST, list[str]()
    log: list[Numbered] = []
    for choice in choices:
        step = chosen(world, choice)
        if step is None:
            break
        told.append(step.told)
        log += numbered(step.records, world.next_offset)
        world, claims = taken(world, step)
        assert claims == [], told
    image, start = FIRST.image, 0
    for number, size in enumerate(group_sizes * len(log)):
        image = image.apply_all(log[start : start + size])
        start += size
        if number % 3 == 0 and image.features.is_elr_enabled:
            image = through_snapshot(image)
    assert image == world.image
