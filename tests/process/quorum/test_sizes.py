"""Quorums of every usual size form, and lose leader after leader without waiting for silence."""

from pathlib import Path

import pytest
from tests.process.quorum.logs import assert_same_batches
from tests.support.played_broker import register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.quorum.topic_writers import Writers

# A test that waited for this would still do so when the writers lose their patience.
SETTINGS = {"controller.quorum.fetch.timeout.ms": "600000"}


@pytest.mark.slow
@pytest.mark.parametrize(("count", "is_dynamic"), [(1, True), (3, False), (5, True), (7, True)])
def test_a_quorum_forms_and_leaders_that_are_killed_are_replaced_at_once(
    tmp_path: Path, count: int, *, is_dynamic: bool
) -> None:
    with ProxiedQuorum(tmp_path, count, is_dynamic=is_dynamic, settings=SETTINGS) as quorum:
        register_broker(quorum)
        addresses = [member.address for member in quorum.members.values()]
        with Writers(addresses, count=2, seed=count) as writers:
            writers.wait_for_progress()
            for victim in [_kill_leader(quorum, writers) for _ in range(count - quorum.majority)]:
                quorum.start(victim)
            writers.wait_for_progress()
        end_offset = quorum.wait_until_settled()
        quorum.kill_all_at_once()
    assert_same_batches(list(quorum.members.values()), end_offset=end_offset)


def _kill_leader(quorum: ProxiedQuorum, writers: Writers) -> int:
    leader = quorum.leader()
    quorum.kill(leader.node_id)
    writers.wait_for_progress()
    return leader.node_id
