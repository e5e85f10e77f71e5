"""``kvorum quorum`` as a command of ``kvorum``: its arguments and exit codes."""

import pytest

from kvorum.cli import main

REMOVE = ("remove-controller", "-i", "1", "-d", "JEXY6aqzQY-32P5TStzaFg")
REASSIGN = ("quorum", "--bootstrap-server", "127.0.0.1:1", "reassign")


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


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "one of --voters, --cancel, --status and --wait is required"),
        (("--voters", "4,x"), "'x' is no target voter"),
        (("--voters", "4,4"), "list node 4 twice"),
        (("--voters", "4:short"), "is no directory id of node 4"),
        (("--voters", "4", "--cancel"), "not allowed with argument --voters"),
        (("--status", "--dry-run"), "--dry-run goes with --voters alone"),
        (("--voters", "4", "--dry-run", "--wait"), "--dry-run goes with --voters alone"),
        (("--cancel", "--wait"), "--wait goes with --voters, or alone"),
        (("--bogus",), "unrecognized arguments: --bogus"),
    ],
)
def test_wrong_usage_of_reassign_ends_with_two(
    options: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*REASSIGN, *options]) == 2
    assert problem in capsys.readouterr().err


def test_help_of_reassign_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*REASSIGN, "-h"]) == 0
    told = capsys.readouterr().out
    assert all(f"--{name}" in told for name in ("voters", "cancel", "status", "dry-run", "wait"))


def test_an_interrupted_wait_says_that_the_reassignment_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def interrupt(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("kvorum.cli.quorum.follow_reassignment", interrupt)
    assert main([*REASSIGN, "--wait"]) == 1
    assert capsys.readouterr().err == (
        "Interrupted: the reassignment goes on without this command; --cancel stops it.\n"
    )
