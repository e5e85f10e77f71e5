"""A power cut before every single call to the disk, and a look at what is left."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import count
from random import Random

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles, PowerCutError
from tests.unit.storage.local_logs import content
from tests.unit.storage.metadata_logs import add_snapshot, open_log

from kvorum.storage.log.batch_header import read_header
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.retention import clean
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, retention_bytes=0)


@dataclass
class Model:
    """The least and the most content of the log after a power cut right now.

    Batches by base offset. `must` is what a flush has confirmed; `allowed` are the contents the log
    may be a first part of: two while a truncation is under way.
    """

    start: int = 0
    must: list[bytes] = field(default_factory=list[bytes])
    allowed: list[list[bytes]] = field(default_factory=lambda: [[]])
    snapshot_is_enough: bool = False


Step = Generator[None]


class Scenario:
    """A log and its model, moving on together."""

    def __init__(self, files: FaultyFiles) -> None:
        self.files = files
        self.model = Model()
        self.log: MetadataLog | None = None

    def opened(self) -> MetadataLog:
        if self.log is None:
            self.log = open_log(self.files, CONFIG)
        return self.log

    def append(self, number: int, *, epoch: int) -> None:
        log = self.opened().local_log
        for _ in range(number):
            batch = make_batch(log.log_end_offset, epoch=epoch, values=(b"0123456789" * 4,))
            self.model.allowed[-1].append(batch)
            log.append(batch)

    def flush(self) -> None:
        self.opened().local_log.flush()
        self.model.must = list(self.model.allowed[-1])

    def truncate(self, offset: int) -> None:
        kept = self.model.allowed[-1][:offset]
        self.model.must = self.model.must[:offset]
        self.model.allowed.append(kept)
        self.opened().local_log.truncate_to(offset, now_ms=0)
        self.model.allowed = [kept]

    def snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        add_snapshot(self.opened().snapshots, snapshot_id)

    def close(self) -> None:
        self.opened().local_log.close()
        self.log = None
        self.model.must = list(self.model.allowed[-1])


def appending(scenario: Scenario) -> None:
    scenario.append(3, epoch=1)
    scenario.flush()
    scenario.append(6, epoch=1)
    scenario.append(2, epoch=3)
    scenario.flush()
    scenario.append(2, epoch=3)
    scenario.close()
    scenario.append(2, epoch=4)


def truncating(scenario: Scenario) -> None:
    scenario.append(8, epoch=1)
    scenario.append(3, epoch=2)
    scenario.flush()
    scenario.truncate(2)
    scenario.append(2, epoch=5)
    scenario.truncate(3)
    scenario.append(6, epoch=6)
    scenario.flush()
    scenario.truncate(0)
    scenario.append(1, epoch=7)
    scenario.close()


def cleaning(scenario: Scenario) -> None:
    scenario.append(12, epoch=1)
    scenario.flush()
    scenario.snapshot(OffsetAndEpoch(5, 1))
    scenario.snapshot(OffsetAndEpoch(9, 1))
    scenario.model.snapshot_is_enough = True
    clean(scenario.opened(), now_ms=0)
    scenario.append(3, epoch=2)
    scenario.flush()
    clean(scenario.opened(), now_ms=100_000)
    scenario.close()


def replacing_all(scenario: Scenario) -> None:
    scenario.append(12, epoch=1)
    scenario.flush()
    scenario.model.snapshot_is_enough = True
    scenario.snapshot(OffsetAndEpoch(50, 2))
    scenario.opened().truncate_to_latest_snapshot(now_ms=0)
    scenario.close()


def check(model: Model, files: FaultyFiles) -> None:
    """Open what is left, and compare it with the model."""
    log = open_log(files, CONFIG)
    found = {read_header(batch).base_offset: batch for batch in content(log.local_log)}
    assert any(
        all(index < len(allowed) and allowed[index] == batch for index, batch in found.items())
        for allowed in model.allowed
    )
    if log.local_log.log_end_offset < len(model.must):
        raise AssertionError(
            f"acknowledged up to {len(model.must)}, left {log.local_log.log_end_offset}"
        )
    if log.local_log.log_start_offset > 0:
        assert model.snapshot_is_enough
        latest = log.snapshots.latest()
        assert latest is not None
        assert latest.offset >= log.local_log.log_start_offset
    log.local_log.append(make_batch(log.local_log.log_end_offset, epoch=9))
    log.local_log.close()


@pytest.mark.parametrize("script", [appending, truncating, cleaning, replacing_all])
def test_no_call_is_a_bad_moment_for_a_power_cut(script: Callable[[Scenario], None]) -> None:
    for calls in count():
        scenario = Scenario(FaultyFiles(calls_until_power_cut=calls))
        try:
            script(scenario)
        except PowerCutError:
            for seed in range(6):
                check(scenario.model, scenario.files.after_power_cut(Random(seed)))
            check(scenario.model, scenario.files.after_process_crash())
        else:
            assert calls > 100
            break
