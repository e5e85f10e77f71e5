"""``kvorum quorum`` as a command of ``kvorum``: its arguments and exit codes."""

from __future__ import annotations

import pytest

from kvorum.cli import main

REMOVE = ("remove-controller", "-i", "1", "-d", "JEXY6aqzQY-32P5TStzaFg")


def test_options_before_the_sub_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "--bootstrap-server", "127.0.0.1:1", *REMOVE, "--dry-run"]) == 0
    assert capsys.readouterr().out == (
        "DRY RUN of removing KRaft controller 1 with directory id JEXY6aqzQY-32P5TStzaFg\n"
    )


def test_help_is_that_of_the_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "-h"]) == 0
    assert "--bootstrap-controller" in capsys.readouterr().out
    assert main(["quorum", "remove-controller", "-h"]) == 0
    assert "--controller-directory-id" in capsys.readouterr().out


def test_wrong_usage_ends_with_one_as_kafkas_tool_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "describe"]) == 1
    assert capsys.readouterr().err.endswith(
        "kvorum quorum: error: one of the arguments --bootstrap-server --bootstrap-controller is "
        "required\n"
    )


def test_a_cause_is_a_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "--bootstrap-server", "x", "describe", "--status"]) == 1
    assert capsys.readouterr().err == (
        "Failed to create new KafkaAdminClient\n"
        "Caused by: org.apache.kafka.common.config.ConfigException: "
        "Invalid url in bootstrap.servers: x\n"
    )


def test_only_plain_text_is_spoken(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path_factory.mktemp("settings") / "client.properties"
    file.write_text("security.protocol=ssl\n")
    arguments = ["--command-config", str(file), "--bootstrap-server", "127.0.0.1:1", "describe"]
    assert main(["quorum", *arguments, "--status"]) == 1
    assert "security.protocol=SSL: kvorum's commands connect in plain text" in (
        capsys.readouterr().err
    )
