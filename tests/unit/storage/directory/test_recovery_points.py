"""The recovery points of a directory's logs, which several threads store in one file."""

import threading
from functools import partial
from pathlib import Path
from typing import Final

from tests.support.waiting import Threads

from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.files import RealFileSystem
from kvorum.storage.topic_partition import TopicPartition

FIRST: Final = TopicPartition("first", 0)
SECOND: Final = TopicPartition("second", 0)
OTHERS_WAIT_S: Final = 0.3
"""The time in which a thread that does not wait for the first one has written its file."""


class OnlyOne(RealFileSystem):
    """A file system that keeps the first replacement of a file from its end for a while."""

    def __init__(self) -> None:
        self.is_first_there = threading.Event()
        self.is_second_done = threading.Event()

    def rename(self, source: Path, target: Path) -> None:
        if not self.is_first_there.is_set():
            self.is_first_there.set()
            # A second thread that does not wait for the first one takes its file away.
            self.is_second_done.wait(OTHERS_WAIT_S)
        super().rename(source, target)


def test_one_thread_after_the_other_stores_the_recovery_points(tmp_path: Path) -> None:
    files = OnlyOne()
    directory = LogDirectory(tmp_path, bytes(16), files, was_clean=True)
    threads = Threads()
    threads.start(partial(directory.keeper_of(FIRST).write, 5, durably=True))
    assert files.is_first_there.wait(threads.patience_s)
    directory.keeper_of(SECOND).write(7, durably=True)
    files.is_second_done.set()
    threads.join()
    stored = LogDirectory(tmp_path, bytes(16), files, was_clean=True)
    assert stored.checkpoint_of(FIRST).recovery_point == 5
    assert stored.checkpoint_of(SECOND).recovery_point == 7
