"""``kvorum quorum reassign`` against controllers over TCP and files."""

from pathlib import Path

import pytest
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.quorum.quorum import registered_controllers

from kvorum.cli import main

pytestmark = pytest.mark.slow


def test_a_voter_is_replaced_as_it_was_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProxiedQuorum(tmp_path, 2, is_dynamic=True, observers=(2,)) as quorum:
        leader = quorum.leader().address
        quorum.wait_for(lambda: 2 in registered_controllers(leader), "2 has registered")
        command = ["quorum", "--bootstrap-controller", quorum.addresses, "reassign"]
        one, two = (f"{node_id}:{key}" for node_id, key in sorted(quorum.keys(1, 2)))
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
