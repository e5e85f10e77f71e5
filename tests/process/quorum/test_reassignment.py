"""The quorum goes to the voters that are wanted (KIP-642): processes over TCP and files."""

from pathlib import Path

import pytest
from tests.process.quorum.broker import register_broker
from tests.process.quorum.life import assert_no_bugs
from tests.process.quorum.members import Quorum
from tests.process.quorum.reassigning import wait_until_reached, want
from tests.process.quorum.writers import Writers

pytestmark = pytest.mark.slow


def test_three_voters_are_replaced_by_three_others_under_load(tmp_path: Path) -> None:
    with Quorum(tmp_path, 6, is_dynamic=True, observers=(4, 5, 6)) as quorum:
        writers = Writers([member.address for member in quorum.members.values()], count=2, seed=1)
        register_broker(quorum)
        with writers:
            writers.wait_for_progress()
            want(quorum, (4, 5, 6))
            reached = wait_until_reached(quorum, (4, 5, 6))
            writers.wait_for_progress(5)
        assert reached.leader_id in {4, 5, 6}
        for member in quorum.members.values():
            assert_no_bugs(member)
