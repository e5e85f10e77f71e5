"""The shell beside a running quorum, where new records cannot be had for a while."""

import errno
import os
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.waiting import PATIENCE_S

from kvorum.cli.shell_tool import session
from kvorum.cli.shell_tool.session import opened_source, read_arguments
from kvorum.inspection.folded_log import FoldedLog
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.shell import quorum
from kvorum.inspection.shell.quorum import LiveQuorum
from kvorum.quorum_client.client import QuorumClient
from kvorum.quorum_client.fetch import Fetched
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

CONTROLLERS = "127.0.0.1:1"
NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FailingQuorum:
    """A quorum whose records cannot be had at first."""

    def __init__(self, controllers: str, properties: Mapping[str, str]) -> None:
        assert (controllers, properties) == (CONTROLLERS, {})
        self.folded = FoldedLog()
        self.is_followed, self.is_closed = threading.Event(), threading.Event()
        self.failures: list[Exception] = [
            MetadataSourceError("no leader"),
            UnicodeError("label too long"),
        ]

    def catch_up(self) -> None:
        """Have all that is committed."""

    def follow(self) -> None:
        """Fail, as long as there are failures left; then wait for the end."""
        if self.failures:
            raise self.failures.pop()
        self.is_followed.set()
        self.is_closed.wait()

    def close(self) -> None:
        """Let the thread that follows end."""
        self.is_closed.set()


def test_the_shell_says_why_it_cannot_follow_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[FailingQuorum] = []

    def opened(controllers: str, properties: Mapping[str, str]) -> FailingQuorum:
        followed.append(FailingQuorum(controllers, properties))
        return followed[0]

    monkeypatch.setattr(session, "LiveQuorum", opened)
    monkeypatch.setattr(session, "PAUSE_S", 0)
    warnings: list[str] = []
    with opened_source(read_arguments(["-b", CONTROLLERS]), warn=warnings.append):
        assert followed[0].is_followed.wait(PATIENCE_S)
    assert warnings == [
        "new records cannot be had: UnicodeError: label too long (this is a defect)",
        "new records cannot be had: no leader",
    ]


def test_a_snapshot_that_finds_no_space_is_an_error_of_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fetch(client: QuorumClient, place: OffsetAndEpoch, *, wait_ms: int) -> Fetched:
        del client, place, wait_ms
        return Fetched(10, 10, OffsetAndEpoch(10, 1), ())

    def copy(client: QuorumClient, snapshot: OffsetAndEpoch, file: Path) -> bool:
        raise NO_SPACE

    monkeypatch.setattr(quorum, "fetch", fetch)
    monkeypatch.setattr(quorum, "copy_snapshot", copy)
    with (
        closing(LiveQuorum(CONTROLLERS, {})) as live,
        pytest.raises(MetadataSourceError, match=r"temporary file: .*No space left on device"),
    ):
        live.follow()
