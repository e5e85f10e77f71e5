"""Every transition of one partition in small clusters, by exhaustion where that can be had.

A state is everything the controller's decisions about the partition hang on, up to the names of
brokers and epochs. From each one, every action of `actions.py` is taken by the controller's own
functions, and `explore.py` looks at every record and at every step.

Some spaces are too large for every run: those are cut off, and seen whole with
``KVORUM_PARTITION_SPACES=all``.

Four things that stand out are Kafka's own behaviour (4.3.1) and are kept:

- A replica that a reassignment takes away stays in the ELR until the next change. It cannot lead:
  a reassignment that would make it a replica again while the ELR counts is refused.
- Who comes to lead out of the ELR leaves the others in it until the next change, even where
  min.insync.replicas is 1.
- An unclean cancellation of a reassignment makes the first old replica the whole ISR, and it need
  not recover.
- A replica that a broker reports to be in an offline directory while none leads may be elected
  by that very report, since the election looks at the directory it was in before.
"""

import os
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.model.properties.partitions.folding import (
    Numbered,
    differing_folds,
    in_groups,
    numbered,
    through_snapshot,
)
from tests.support.partitions.actions import Step, steps
from tests.support.partitions.explore import explore, taken
from tests.support.partitions.space import Space, World, first_world

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion

IS_WHOLE = os.environ.get("KVORUM_PARTITION_SPACES") == "all"

THREE = Space(name="three replicas", brokers=3, replicas=3)
THREE_WITHOUT_ELR = replace(THREE, name="three replicas without ELR", is_elr_enabled=False)
TWO = Space(name="two replicas, any may go", brokers=2, replicas=2, has_unregistering=True)
MOVES = Space(
    name="moves under ELR",
    brokers=3,
    replicas=2,
    factor_max=2,
    has_shutdowns=False,
    has_incarnations=False,
)
EXHAUSTED = [
    THREE,
    THREE_WITHOUT_ELR,
    TWO,
    replace(TWO, name="one replica", replicas=1),
    replace(
        THREE_WITHOUT_ELR,
        name="leader epochs rise with a smaller ISR",
        version=MetadataVersion.V3_5_IV2,
        has_shutdowns=False,
    ),
    replace(THREE, name="unclean elections", is_unclean_enabled=True, has_shutdowns=False),
    replace(
        THREE_WITHOUT_ELR,
        name="unclean elections without ELR",
        is_unclean_enabled=True,
        has_shutdowns=False,
    ),
    replace(MOVES, name="two replicas move among three brokers", is_elr_enabled=False),
]
"""Small enough to be seen whole on every run."""

LARGE = [
    MOVES,
    replace(
        MOVES,
        name="moves with unclean elections and lost brokers",
        is_elr_enabled=False,
        is_unclean_enabled=True,
        has_shutdowns=True,
        has_unregistering=True,
    ),
    Space(name="directories fail", brokers=2, replicas=2, has_failing_directories=True),
    replace(
        TWO,
        name="settings and features change",
        has_changing_configs=True,
        has_changing_features=True,
    ),
    replace(MOVES, name="four brokers", brokers=4, replicas=3, factor_max=3),
]
"""Seen whole only when asked for."""

STATES_MAX = 120


@pytest.mark.parametrize("space", EXHAUSTED, ids=lambda space: space.name)
def test_a_small_space_is_seen_whole(space: Space) -> None:
    found = explore(space)
    assert found.broken is None
    assert found.is_exhausted
    assert found.states > 20


@pytest.mark.timeout(7_200 if IS_WHOLE else 600)
@pytest.mark.parametrize("space", LARGE, ids=lambda space: space.name)
def test_a_large_space_is_seen_as_far_as_there_is_time(space: Space) -> None:
    found = explore(space, states_max=None if IS_WHOLE else STATES_MAX)
    assert found.broken is None
    assert found.is_exhausted or not IS_WHOLE


@pytest.mark.parametrize("space", [EXHAUSTED[0], *LARGE[:4]], ids=lambda space: space.name)
def test_every_step_folds_alike(space: Space) -> None:
    assert explore(space, states_max=None if IS_WHOLE else 60, visit=differing_folds).broken is None


@pytest.mark.parametrize("seed", range(40 if IS_WHOLE else 6))
def test_a_long_log_folds_alike_at_every_offset_in_any_groups(seed: int) -> None:
    random = Random(seed)
    walk = _walk(random, LARGE[seed % len(LARGE)], steps_max=60)
    for _ in range(4):
        image = walk.first.image
        for group in in_groups(walk.log, random):
            image = image.apply_all(group)
            assert image == walk.images[image.last_offset]
            if image.features.is_elr_enabled and random.random() < 0.2:
                image = through_snapshot(image)
        assert image.last_offset == max(walk.images)


@dataclass(frozen=True)
class Walk:
    """A log and the image at each of its offsets."""

    first: World
    log: list[Numbered]
    images: dict[int, MetadataImage]


def _walk(random: Random, space: Space, *, steps_max: int) -> Walk:
    world = first = first_world(space)
    log: list[Numbered] = []
    images: dict[int, MetadataImage] = {}
    for _ in range(steps_max):
        choices = list(steps(space, world))
        if not choices:
            break
        for record in numbered(random.choice(choices).records, world.next_offset):
            image = world.image.apply(*record)
            images[image.last_offset] = image
            log.append(record)
            world = World(image, world.next_offset + 1)
    return Walk(first, log, images)


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
