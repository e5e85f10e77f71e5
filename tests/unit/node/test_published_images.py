"""Waits for images of the loader: they end with the image that is waited for, or with the time."""

from random import Random

import pytest

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import encode_record
from kvorum.node.coroutines import Task
from kvorum.node.metadata_loader import MetadataLoader, PublishedImages
from kvorum.node.raft import CommittedBatch
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord

TIMEOUT_MS = 50


class World:
    """A loader, and tasks that note whether and when they have found the image they wait for."""

    def __init__(self) -> None:
        self.events = Events()
        self.runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), Random(1), turn=lambda callback: callback()
        )
        self.loader = MetadataLoader(self.runtime)
        self.images = PublishedImages(self.loader, self.runtime)
        self.found: list[tuple[object, int]] = []

    def commit(self) -> None:
        """Commit a record more."""
        offset = self.loader.last_offset + 1
        batch = CommittedBatch(
            base_offset=offset,
            last_offset=offset,
            epoch=1,
            append_timestamp_ms=0,
            values=(encode_record(ProducerIdsRecord(1, 1, next_producer_id=offset), 0),),
            is_control=False,
            size_bytes=1,
        )
        self.loader.commit([batch])

    def wait(self, offset: int, timeout_ms: float | None = None) -> Task[bool]:
        """Begin to wait for a record."""

        def is_there(image: MetadataImage) -> bool:
            return image.last_offset >= offset

        return Task(
            self.images.wait_for(is_there, timeout_ms),
            lambda result: self.found.append((result, round(self.runtime.monotonic_ms()))),
        )

    def run(self) -> list[tuple[object, int]]:
        """Commit a record every 20 ms, and return what was found."""
        for number in range(1, 4):
            self.events.after(20 * number, self.commit)
        while (callback := self.events.take_next(1000)) is not None:
            callback()
        return self.found


@pytest.fixture
def world() -> World:
    return World()


def test_an_image_that_is_there_is_not_waited_for(world: World) -> None:
    world.commit()
    world.wait(0)
    assert world.found == [(True, 0)]


def test_each_wait_ends_with_its_image(world: World) -> None:
    world.wait(2)
    world.wait(0)
    assert world.run() == [(True, 20), (True, 60)]


def test_a_wait_ends_with_its_time_however_many_other_images_come(world: World) -> None:
    world.wait(2, TIMEOUT_MS)
    world.wait(1, TIMEOUT_MS)
    assert world.run() == [(True, 40), (False, TIMEOUT_MS)]


def test_a_wait_that_is_given_up_does_not_go_on(world: World) -> None:
    world.wait(1).close()
    assert world.run() == []
