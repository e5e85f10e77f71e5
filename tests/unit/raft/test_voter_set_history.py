"""The history of the voters: what a snapshot and each prefix of the log say."""

from itertools import product

import pytest
from tests.unit.raft.core_builder import voters_of

from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch


def test_static_voters_count_until_the_log_says_otherwise() -> None:
    history = VoterSetHistory(static=voters_of(9))
    assert history.voters == voters_of(9)
    assert history.voters_offset is None
    assert history.recorded_voters_at(10) is None
    history.add_voters(4, voters_of(1))
    assert history.voters == voters_of(1)
    assert history.voters_at(4) == voters_of(9)
    history.truncate_to(4)
    assert history.voters == voters_of(9)


def test_the_bootstrap_snapshot_counts_as_before_the_log() -> None:
    history = VoterSetHistory()
    history.start_from_snapshot(BOOTSTRAP_SNAPSHOT_ID, voters=voters_of(1), kraft_version=1)
    assert history.voters_offset == -1
    assert history.kraft_version_at(0) == 1
    history.truncate_to(0)
    assert history.voters == voters_of(1)


def test_a_snapshot_replaces_everything() -> None:
    history = VoterSetHistory(static=voters_of(9))
    history.add_voters(3, voters_of(1, 2))
    history.start_from_snapshot(OffsetAndEpoch(10, 2), voters=voters_of(1), kraft_version=1)
    assert history.voters == voters_of(1)
    assert history.recorded_voters_at(10) == voters_of(1)
    assert history.recorded_voters_at(9) is None
    history.start_from_snapshot(OffsetAndEpoch(20, 2), voters=None, kraft_version=0)
    assert history.voters == voters_of(9)


def test_changes_come_in_order() -> None:
    history = VoterSetHistory()
    history.add_kraft_version(5, 1)
    with pytest.raises(ValueError, match="behind"):
        history.add_voters(4, voters_of(1))


def test_truncation_reverts_to_what_the_prefix_says_for_every_log_and_every_cut() -> None:
    for kinds in product(["voters", "version", "data"], repeat=5):
        for cut in range(7):
            history = VoterSetHistory(static=voters_of(9))
            fill(history, kinds)
            history.truncate_to(cut)
            prefix = VoterSetHistory(static=voters_of(9))
            fill(prefix, kinds[:cut])
            assert history == prefix
            assert history.voters_at(2) == prefix.voters_at(2)
            assert history.kraft_version == prefix.kraft_version


def fill(history: VoterSetHistory, kinds: tuple[str, ...]) -> None:
    for offset, kind in enumerate(kinds):
        if kind == "voters":
            history.add_voters(offset, voters_of(offset + 1))
        elif kind == "version":
            history.add_kraft_version(offset, offset % 2)
