"""Nodes in processes of their own, as operators see them: metrics, probes and the log."""

import json
import math
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.support.metrics_scrape import Page, Probe, probe, scrape
from tests.support.node import Node, Pair, make_pair
from tests.support.node_process import RUNS, NodeProcess
from tests.support.played_broker import BROKER_ID, register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.raw_client import RawClient
from tests.support.topics import create, create_request

from kvorum.wire.messages.create_topics import CreateTopicsResponse

LISTENER = {"kvorum.metrics.listener": "127.0.0.1:0"}
# Elections that a busy machine causes must not be taken for what a test has caused.
PATIENT = {
    "controller.quorum.fetch.timeout.ms": "10000",
    "controller.quorum.request.timeout.ms": "10000",
}
SERVED = re.compile(r"Metrics and health are served host=(\S+) port=(\d+)")
CONTROLLER = "kafka_controller_KafkaController_"
RAFT = "kafka_server_raft_metrics_"
CURRENT_CONTROLLER = "kafka_server_MetadataLoader_CurrentControllerId"
BROKER = "kafka_server_broker_metadata_metrics_"
REQUESTS = 100
TOPICS = 20
HELD_CONNECTIONS = 100


def address_of(process: NodeProcess) -> str:
    found = SERVED.search(process.wait_for_line("Metrics and health are served"))
    assert found is not None
    return f"{found[1]}:{found[2]}"


def wait_until_ready(process: NodeProcess) -> None:
    address = address_of(process)
    process.wait_until(lambda: probe(address, "/readyz").status is HTTPStatus.OK, "it is ready")


def wait_until_unready(process: NodeProcess, reason: str) -> Probe:
    address = address_of(process)

    def find() -> Probe | None:
        answer = probe(address, "/readyz")
        return answer if reason in str(answer.said["reasons"]) else None

    answer = process.wait_until(find, f"it is not ready and says {reason!r}")
    assert answer.status is HTTPStatus.SERVICE_UNAVAILABLE
    assert answer.said["status"] == "unavailable"
    return answer


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[ProxiedQuorum]:
    """Three controllers, and a broker that is registered with them."""
    settings = {**LISTENER, **PATIENT}
    with ProxiedQuorum(tmp_path, 3, is_dynamic=True, settings=settings) as three:
        register_broker(three)
        three.wait_until_settled()
        yield three


def pages(quorum: ProxiedQuorum) -> dict[int, Page]:
    return {
        member.node_id: scrape(address_of(member.process))
        for member in quorum.members.values()
        if member.process.is_launched
    }


def pages_of_one_state(quorum: ProxiedQuorum) -> dict[int, Page]:
    """Return the pages once all tell of one leader, one epoch, and one end of the log."""
    told_alike = [f"{RAFT}{name}" for name in ("current_leader", "current_epoch", "log_end_offset")]
    told_alike += [f"{CONTROLLER}LastAppliedRecordOffset", CURRENT_CONTROLLER]

    def find() -> dict[int, Page] | None:
        found = pages(quorum)
        states = {tuple(page.value(name) for name in told_alike) for page in found.values()}
        return found if len(states) == 1 else None

    return quorum.wait_for(find, "all controllers tell of the same leader, epoch and log")


def check_agreement(quorum: ProxiedQuorum, leader: Node) -> dict[int, Page]:
    """Check what all controllers have to say alike, and what only the leader says."""
    found = pages_of_one_state(quorum)
    for node_id, page in found.items():
        is_leader = node_id == leader.node_id
        assert page.value(f"{CONTROLLER}ActiveControllerCount") == is_leader
        assert page.value(f"{RAFT}current_leader") == leader.node_id
        assert page.value(CURRENT_CONTROLLER) == leader.node_id
        state = "leader" if is_leader else "follower"
        assert page.value(f"{RAFT}current_state_info", current_state=state) == 1
        assert (f"{RAFT}number_of_observers" in page.names) is is_leader
        assert page.value(f"{RAFT}number_of_voters") == 3
        assert page.value(f"{RAFT}is_observer") == 0
        for change in ("pending_add_voter", "pending_remove_voter", "duplicate_voter_ids"):
            assert (f"{RAFT}{change}" in page.names) is is_leader
        assert page.value(f"{CONTROLLER}ActiveBrokerCount") == 1
        assert page.value(f"{CONTROLLER}BrokerRegistrationState", broker=str(BROKER_ID)) == 30
        assert (f"{CONTROLLER}TimeSinceLastHeartbeatReceivedMs" in page.names) is is_leader
        assert page.value("kvorum_is_ready") == page.value("kvorum_is_alive") == 1
    return found


def test_a_failover_is_to_be_seen(quorum: ProxiedQuorum) -> None:
    for member in quorum.members.values():
        wait_until_ready(member.process)
    old = quorum.leader()
    before = check_agreement(quorum, old)
    assert before[old.node_id].value(f"{RAFT}number_of_offline_voters") == 0
    quorum.kill(old.node_id)
    new = quorum.leader()
    survivors = [member for member in quorum.members.values() if member.process.is_launched]
    for member in survivors:
        wait_until_ready(member.process)
    quorum.wait_for(
        lambda: pages(quorum)[new.node_id].value(f"{RAFT}number_of_offline_voters") == 1,
        "the dead voter is missed",
    )
    after = check_agreement(quorum, new)
    for member in survivors:
        epochs = [of[member.node_id].value(f"{RAFT}current_epoch") for of in (before, after)]
        assert epochs[0] < epochs[1]
        name = f"{CONTROLLER}NewActiveControllersCount"
        assert before[member.node_id].value(name) < after[member.node_id].value(name)
    assert after[new.node_id].value(f"{RAFT}election_latency_max") > 0
    assert not math.isnan(after[new.node_id].value(f"{RAFT}commit_latency_avg"))


def test_without_a_majority_a_controller_lives_but_is_not_ready(quorum: ProxiedQuorum) -> None:
    leader = quorum.leader()
    others = [member for member in quorum.members.values() if member is not leader]
    quorum.kill(leader.node_id)
    quorum.kill(others[0].node_id)
    address = address_of(others[1].process)
    answer = wait_until_unready(others[1].process, "no leader of the quorum is known")
    assert answer.said["state"] not in {"leader", "follower"}
    assert probe(address, "/healthz").status is HTTPStatus.OK
    page = scrape(address)
    assert (page.value("kvorum_is_alive"), page.value("kvorum_is_ready")) == (1, 0)


def test_the_log_of_a_controller_tells_the_story_once(quorum: ProxiedQuorum) -> None:
    leader = quorum.leader()
    follower = next(one for one in quorum.members.values() if one is not leader)
    quorum.kill(follower.node_id)
    leader.process.wait_for_line(f"A peer is lost peer={follower.node_id}")
    quorum.start(follower.node_id)
    follower.process.wait_for_line("All committed metadata is known here")
    lines = "\n".join(leader.process.lines())
    assert lines.count("Became the active controller") == 1
    assert lines.count(f"A broker has registered broker={BROKER_ID}") == 1
    assert lines.count(f"A broker is unfenced broker={BROKER_ID}") == 1
    # State from before the controller came is no news to it.
    assert "A broker has registered" not in "\n".join(follower.process.lines())
    assert "Traceback" not in lines


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return make_pair(tmp_path, LISTENER)


def test_a_broker_is_ready_only_while_it_serves(pair: Pair) -> None:
    with ExitStack() as stack:
        broker = pair.broker.process
        broker.launch()
        stack.callback(broker.kill)
        address = address_of(broker)
        wait_until_unready(broker, "the broker is STARTING")
        assert probe(address, "/healthz").status is HTTPStatus.OK
        with pair.controller:
            broker.wait_for_line(RUNS)
            wait_until_ready(broker)
            page = scrape(address)
            assert page.value("kafka_server_KafkaServer_BrokerState") == 3
            assert f"{CONTROLLER}ActiveControllerCount" not in page.names
            assert page.value(f"{BROKER}last_applied_record_offset") > 0
        # It goes on by what it knows: it would not help to take all brokers out of service.
        assert probe(address, "/readyz").status is HTTPStatus.OK
        broker.wait_for_line("The controller cannot be reached")


def test_requests_leave_no_lines_in_the_log(formatted: Node, tmp_path: Path) -> None:
    node = formatted.copy_to(tmp_path / "node", LISTENER)
    with node.process as process:
        wait_until_ready(process)
        create(node.broker, "first")
        before = process.lines()
        for number in range(REQUESTS):
            create(node.broker, f"topic-{number}")
            probe(address_of(process), "/healthz")
        scrape(address_of(process))
        # A busy machine may have the process stand still, which is an event.
        assert len(process.lines()) - len(before) < REQUESTS / 10


def test_what_is_counted_of_requests_is_what_was_asked(formatted: Node, tmp_path: Path) -> None:
    node = formatted.copy_to(tmp_path / "node", LISTENER)
    with node.process as process, RawClient(node.controller) as client:
        address = address_of(process)
        before = scrape(address)
        late = create_request(["late"])
        late.timeout_ms = 0
        for request in [late, late, *(create_request([f"topic-{n}"]) for n in range(TOPICS))]:
            client.ask(request, CreateTopicsResponse, 7)
        after = scrape(address)

    def grown(name: str) -> float:
        return after.value(name) - before.value(name)

    events = "kafka_controller_ControllerEventManager_EventQueueProcessingTimeMs"
    assert grown(f"{CONTROLLER}EventQueueOperationsTimedOutCount") == 2
    assert grown(f"{CONTROLLER}EventQueueOperationsStartedCount") >= TOPICS
    assert grown(f"{events}_count") == grown(f"{CONTROLLER}EventQueueOperationsStartedCount")
    assert grown(f"{events}_sum") > 0
    waits = "kafka_controller_ControllerEventManager_EventQueueTimeMs"
    assert grown(f"{waits}_count") == grown(f"{events}_count")
    assert grown(f"{CONTROLLER}LastCommittedRecordOffset") >= 2 * TOPICS
    assert grown(f"{CONTROLLER}GlobalTopicCount") == TOPICS
    assert grown("kafka_server_BrokerMetadataListener_MetadataBatchSizes_sum") >= 2 * TOPICS
    assert after.value(f"{RAFT}append_records_rate") > before.value(f"{RAFT}append_records_rate")
    assert after.value("kafka_controller_ControllerEventManager_AvgIdleRatio") < 1


def test_json_lines_are_json_from_the_first_to_the_last(formatted: Node, tmp_path: Path) -> None:
    node = formatted.copy_to(
        tmp_path / "node", {"kvorum.log.format": "json", "num.io.threads": "1", "no.such.key": "1"}
    )
    with node.process as process:
        ended = process.terminate()
    said = [json.loads(line) for line in ended.lines]
    assert any("no.such.key" in line["message"] for line in said)
    (runs,) = [line for line in said if line["message"] == RUNS]
    assert (runs["node"], runs["level"]) == (1, "INFO")
    assert all(line["time"] and line["logger"].startswith("kvorum.") for line in said)


def garbage(address: str) -> None:
    """Send what is not a request and wait until the connection is closed."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"\x00\x00\x00\x04abcd")
        assert client.recv(1) == b""


def test_clients_that_misbehave_do_not_keep_others_out(formatted: Node, tmp_path: Path) -> None:
    node = formatted.copy_to(tmp_path / "node", LISTENER)
    with node.process as process, ExitStack() as held:
        host, port = address_of(process).split(":")
        for number in range(HELD_CONNECTIONS):
            garbage(node.broker)
            client = socket.create_connection((host, int(port)))
            held.enter_context(client)
            client.sendall([b"", b"GET /metr", b"\x16\x03\x01", b"\x00" * 6_000][number % 4])
        wait_until_ready(process)
        create(node.broker, "while-held")
        page = scrape(address_of(process))
        names = ("GlobalTopicCount", "GlobalPartitionCount", "OfflinePartitionsCount")
        assert [page.value(f"{CONTROLLER}{name}") for name in names] == [1, 1, 0]
        process.wait_for_line("Closed a connection client=127.0.0.1:")
        # One line in ten seconds at most, however many connections are closed.
        closings = [line for line in process.lines() if "Closed a connection" in line]
        assert len(closings) < HELD_CONNECTIONS / 4
        assert "Traceback" not in "\n".join(process.lines())


def test_a_taken_port_is_one_clear_line(formatted: Node, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listener = {"kvorum.metrics.listener": f"127.0.0.1:{port}"}
        ended = formatted.copy_to(tmp_path / "node", listener).process.run_to_end()
    assert ended.exit_code != 0
    assert f"Cannot listen on kvorum.metrics.listener://127.0.0.1:{port}" in ended.last_line
    assert "change 'kvorum.metrics.listener'" in ended.last_line


def test_metrics_are_served_while_the_node_takes_its_leave(pair: Pair) -> None:
    with pair.controller.process as controller, pair.broker.process as broker:
        wait_until_ready(broker)
        # Without its controller the broker has to wait for leave.
        controller.send(signal.SIGSTOP)
        broker.send(signal.SIGTERM)
        wait_until_unready(broker, "the broker is PENDING_CONTROLLED_SHUTDOWN")
        controller.send(signal.SIGCONT)
        assert broker.wait().exit_code == 0
