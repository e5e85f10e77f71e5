"""``kvorum quorum reassign`` against controllers over TCP and files."""

from pathlib import Path

import pytest
from tests.support.quorum.controller_processes import Quorum
from tests.support.raw_client import RawClient

from kvorum.cli import main
from kvorum.storage.java_properties import load_java_properties
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

pytestmark = pytest.mark.slow


def wait_until_registered(quorum: Quorum, address: str, node_id: int) -> None:
    """Wait until a controller that is no voter has registered."""

    def find() -> bool | None:
        with RawClient(address) as client:
            request = DescribeClusterRequest(endpoint_type=2)
            response = client.ask(request, DescribeClusterResponse, 1)
        return node_id in {one.broker_id for one in response.brokers} or None

    quorum.wait_for(find, f"{node_id} has registered")


def directory_of(quorum: Quorum, node_id: int) -> str:
    """Return a controller's directory id, which an observer has chosen itself."""
    text = (quorum.members[node_id].data / "meta.properties").read_bytes()
    return load_java_properties(text)["directory.id"]


def test_a_voter_is_replaced_as_it_was_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Quorum(tmp_path, 2, is_dynamic=True, observers=(2,)) as quorum:
        leader = quorum.wait_for_leader()
        wait_until_registered(quorum, leader.address, 2)
        both = ",".join(one.address for one in quorum.members.values())
        command = ["quorum", "--bootstrap-controller", both, "reassign"]
        one, two = (f"{node_id}:{directory_of(quorum, node_id)}" for node_id in (1, 2))
        assert main([*command, "--voters", "2", "--dry-run"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"1. add voter {two}: 2 voters, 0 may fail",
            "2. hand over the leadership: 2 voters, 0 may fail",
            f"3. remove voter {one}: 1 voter, 0 may fail",
        ]
        assert main([*command, "--voters", "3", "--dry-run"]) == 1
        assert "Node 3 is neither a voter nor a registered controller" in capsys.readouterr().err
        assert main([*command, "--voters", "2", "--wait"]) == 0
        told = capsys.readouterr().out.splitlines()
        assert told[0] == "The quorum is being reassigned to voters 2."
        assert told[-2:] == [f"Voters: {two}", "The quorum has the target voters."]
        assert main([*command, "--status"]) == 0
        assert capsys.readouterr().out == "No reassignment of the quorum is under way.\n"
        assert main([*command, "--cancel"]) == 1
        assert "NoReassignmentInProgressException" in capsys.readouterr().err
