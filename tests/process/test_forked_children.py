"""A process that forks while it has a cluster keeps it, whatever its child does."""

import pytest
from tests.support.node_process import run_python
from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE_S

FORKING = '''
import logging, os, socket, subprocess, sys, time
from contextlib import contextmanager
from pathlib import Path
from kvorum.testing import Cluster

logging.disable()

@contextmanager
def living_child():
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(there)
        os.read(here, 1)
        os._exit(0)
    try:
        yield
    finally:
        os.close(there)
        os.waitpid(child, 0)

def result_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def connected(address):
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_S)

def is_answered(connection):
    """Have a request answered, ApiVersions in version 0: now the node has the connection."""
    connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))
    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    return len(connection.recv(size, socket.MSG_WAITALL)) == size

def has_ended(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
'''

KILLED = """
overrides = {"kvorum.metrics.listener": sys.argv[1], "broker.session.timeout.ms": "300"}
with Cluster(overrides=overrides) as cluster:
    addresses = (cluster.bootstrap_servers, cluster.controller_servers, sys.argv[1])
    connections = [connected(address) for address in reversed(addresses)]
    print([is_answered(connection) for connection in connections[1:]])
    with living_child():
        cluster.kill(1)
        print([has_ended(connection) for connection in connections])
        cluster.restart(1)
        print(cluster.leader_id, cluster.bootstrap_servers == addresses[0])
"""
LOST_LEADER = """
with Cluster(controllers=3, brokers=1) as cluster, living_child():
    leader_id = cluster.leader_id
    cluster.kill(leader_id)
    print(cluster.wait_for_leader(other_than=leader_id) != leader_id)
    cluster.restart(leader_id)
    print(len(cluster.node_ids))
"""
LOST_BROKER = """
with Cluster(controllers=1, brokers=2) as cluster:
    quotas = cluster.node(1).shared_server.connection_quotas
    before = quotas.total
    with living_child():
        cluster.kill(102)
        while quotas.total == before:
            time.sleep(0.01)
        print(quotas.total < before)
"""
SAME_FOLDER = """
import tempfile
overrides = {"broker.session.timeout.ms": "300"}
with tempfile.TemporaryDirectory() as folder:
    size = {"controllers": 1, "brokers": 2, "folder": Path(folder), "overrides": overrides}
    cluster = Cluster(**size)
    cluster.start()
    cluster.kill(102)  # its ports are bound again, and nothing listens there
    address = cluster.bootstrap_servers
    with living_child():
        cluster.stop()
        with Cluster(**size) as again:
            print(again.bootstrap_servers.startswith(address), again.node_ids)
"""
ENDING_CHILD = """
with Cluster() as cluster:
    if sys.argv[1] == "fork":
        child = os.fork()
        if child == 0:
            sys.exit(7)
        print(result_of(child))
    else:
        import multiprocessing
        child = multiprocessing.get_context("fork").Process(target=sys.exit, args=(7,))
        child.start()
        child.join()
        print(child.exitcode)
    print(cluster.folder.exists())
    cluster.restart(1)
    folder = cluster.folder
print(folder.exists())
"""
FOREIGN = """
calls = {
    "start": lambda: cluster.start(),
    "kill": lambda: cluster.kill(1),
    "restart": lambda: cluster.restart(1),
    "partition": lambda: cluster.partition(),
    "heal": lambda: cluster.heal(),
    "wait_for_leader": lambda: cluster.wait_for_leader(),
}
with Cluster() as cluster:
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        connected(cluster.bootstrap_servers).close()
        for name, call in calls.items():
            try:
                call()
            except RuntimeError as error:
                print(name, f"belongs to process {parent}, which made it" in str(error))
        cluster.stop()
        with Cluster() as own:
            print("own", own.leader_id, flush=True)
        os._exit(0)
    result_of(child)
    cluster.restart(1)
"""
ANOTHER_PROGRAM = """
listing = "import os; print(*(int(name) for name in os.listdir('/proc/self/fd')))"
def listed():
    command = [sys.executable, "-c", listing]
    return subprocess.run(command, close_fds=False, check=True, capture_output=True).stdout
before = listed()
with Cluster() as cluster:
    print(listed() == before)
"""


def run_forking(program: str, *arguments: str) -> str:
    """Run a program in a process of its own; return what it prints. It may say nothing else."""
    text = FORKING.replace("PATIENCE_S", str(PATIENCE_S)) + program
    done = run_python("-c", text, *arguments, timeout_s=2 * PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_connections_of_a_killed_node_end_and_it_starts_again() -> None:
    (port,) = free_ports(1)
    said = run_forking(KILLED, f"127.0.0.1:{port}")
    assert said.splitlines() == ["[True, True]", "[True, True, True]", "1 True"]


def test_a_quorum_gets_another_leader() -> None:
    assert run_forking(LOST_LEADER).split() == ["True", "4"]


def test_connections_from_a_killed_node_end_at_the_others() -> None:
    assert run_forking(LOST_BROKER) == "True\n"


def test_ports_and_locks_of_a_stopped_cluster_are_free() -> None:
    assert run_forking(SAME_FOLDER) == "True (1, 101, 102)\n"


@pytest.mark.parametrize("way", ["fork", "multiprocessing"])
def test_a_child_that_ends_leaves_the_data(way: str) -> None:
    """It leaves the block of the cluster as well, and that has no effect."""
    assert run_forking(ENDING_CHILD, way).split() == ["7", "True", "False"]


def test_a_child_reads_the_addresses_and_changes_nothing() -> None:
    names = ("start", "kill", "restart", "partition", "heal", "wait_for_leader")
    assert run_forking(FOREIGN).splitlines() == [*(f"{name} True" for name in names), "own 1"]


def test_another_program_inherits_no_file_and_no_socket() -> None:
    assert run_forking(ANOTHER_PROGRAM) == "True\n"
