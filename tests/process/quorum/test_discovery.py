"""Controllers and brokers that know one address alone: a balancer's, in front of all (KIP-642)."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.process.quorum.balancer import Balancer
from tests.process.quorum.life import commit_topic
from tests.support.combined_node import CLUSTER_ID
from tests.support.node_process import kvorum_server, run_kvorum, write_properties
from tests.support.ports import free_ports
from tests.support.quorum.broker import register_broker
from tests.support.quorum.members import Quorum, describe
from tests.support.quorum.reassigning import wait_until_all_have_all, wait_until_reached, want
from tests.support.topics import create, read_topics

from kvorum.wire.error_codes import ErrorCode

pytestmark = pytest.mark.slow


@contextmanager
def behind_balancer(
    folder: Path, count: int, *, observers: tuple[int, ...]
) -> Generator[tuple[Quorum, Balancer]]:
    """Run controllers that know a balancer alone; it sends connections to all of them in turns."""
    with ExitStack() as resources:
        balancer = resources.enter_context(Balancer())
        settings = {"controller.quorum.bootstrap.servers": balancer.address}
        quorum = Quorum(folder, count, is_dynamic=True, settings=settings, observers=observers)
        balancer.point_at([one.port for one in quorum.members.values()])
        yield resources.enter_context(quorum), balancer


@contextmanager
def broker(folder: Path, node_id: int, *, bootstrap_server: str) -> Generator[str]:
    """Run a broker that knows one address; gives its own."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    properties = folder / f"broker-{node_id}.properties"
    settings = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": bootstrap_server,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{address}",
        "log.dirs": str(folder / f"broker-{node_id}"),
    }
    write_properties(properties, settings)
    config = ("--cluster-id", CLUSTER_ID, "--config", str(properties))
    run_kvorum("storage", "format", *config, "--no-initial-controllers")
    process = kvorum_server(properties).start()
    try:
        yield address
    finally:
        process.kill()


def test_each_new_leader_is_found_behind_one_address(tmp_path: Path) -> None:
    with behind_balancer(tmp_path, 4, observers=(4,)) as (quorum, balancer):
        for _ in range(3):
            leader = quorum.wait_for_leader()
            wait_until_all_have_all(quorum)
            quorum.kill(leader)
            quorum.wait_for_leader()
            quorum.start(leader)
        wait_until_all_have_all(quorum)
        assert set(balancer.forwarded) == {one.port for one in quorum.members.values()}


def test_voters_who_moved_are_found_by_who_ran_and_by_who_starts(tmp_path: Path) -> None:
    ones, others = (1, 2), (3, 4)
    with (
        behind_balancer(tmp_path, 4, observers=others) as (quorum, balancer),
        broker(tmp_path, 8, bootstrap_server=balancer.address) as who_ran,
    ):
        want(quorum, others)
        wait_until_reached(quorum, others)
        for node_id in ones:
            quorum.stop(quorum.members[node_id])
        quorum.wait_for(lambda: create_topic(who_ran, "ran"), "the broker that ran has the quorum")
        # Half of the connections that the balancer takes come to nothing.
        with broker(tmp_path, 9, bootstrap_server=balancer.address) as who_starts:
            quorum.wait_for(
                lambda: create_topic(who_starts, "starts"),
                "the one that starts finds the quorum",
            )
            quorum.wait_for(
                lambda: {"ran", "starts"} <= read_topics(who_starts).keys() or None,
                "the broker that starts sees all topics",
            )


def test_a_leader_that_is_cut_off_finds_out_and_those_it_served_find_the_next(
    tmp_path: Path,
) -> None:
    with behind_balancer(tmp_path, 4, observers=(4,)) as (quorum, balancer):
        register_broker(quorum)
        zombie = quorum.wait_for_leader()
        wait_until_all_have_all(quorum)
        voters = [one for one in quorum.members.values() if one.node_id not in {4, zombie.node_id}]
        balancer.point_at([zombie.port])
        for one in voters:
            quorum.network.cut(zombie.node_id, one.node_id)
            quorum.network.cut(one.node_id, zombie.node_id)
        # Nobody tells it that the others have elected another one.
        quorum.wait_for(lambda: describe(zombie) is None, "who is cut off leads no more")
        quorum.wait_for(quorum.leader, "the others elect somebody")
        # So far the one that is cut off was all that the balancer offered to the observer.
        balancer.point_at([one.port for one in voters])
        commit_topic(quorum, "after")
        quorum.network.heal()
        wait_until_all_have_all(quorum)
        assert quorum.wait_for_leader() in voters


def create_topic(address: str, name: str) -> bool | None:
    """Create a topic through a broker; None where it has to be tried again."""
    try:
        (code,) = create(address, name)
    except (OSError, AssertionError):
        return None
    return code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS} or None
