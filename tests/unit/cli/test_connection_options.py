"""Options for the connection: before the sub-command, as Kafka's tools have them, or after it."""

from collections.abc import Callable

import pytest

from kvorum.cli import features, main, quorum

SERVER = "--bootstrap-server a:1"
PARSERS = {
    "describe --status": quorum.parse_arguments,
    "desc --replication": quorum.parse_arguments,
    "remove-controller -i 1 -d x": quorum.parse_arguments,
    "reassign --voters 1": quorum.parse_reassign_arguments,
    "reassign --cancel": quorum.parse_reassign_arguments,
    "describe": features.parse_arguments,
    "upgrade --feature group.version=1 --dry-run": features.parse_arguments,
}
HELPS = ("quorum describe", "quorum reassign", "quorum add-controller", "features downgrade")


@pytest.mark.parametrize("command", PARSERS)
@pytest.mark.parametrize(
    "options",
    [SERVER, "--bootstrap-server=a:1", "--bootstrap-controller a:1 --command-config x=y"],
)
def test_they_mean_the_same_before_the_sub_command_and_after_it(command: str, options: str) -> None:
    parse: Callable[[list[str]], object] = PARSERS[command]
    name, *words = command.split()
    before = parse([*options.split(), name, *words])
    assert parse([name, *options.split(), *words]) == before
    assert parse([name, *words, *options.split()]) == before


@pytest.mark.parametrize("tool", ["quorum", "features"])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (f"{SERVER} describe {SERVER}", "argument --bootstrap-server: given twice"),
        (f"--bootstrap-s=a:1 describe {SERVER}", "argument --bootstrap-server: given twice"),
        (f"describe {SERVER} {SERVER}", "argument --bootstrap-server: given twice"),
        ("describe --command-config", "argument --command-config: expected one argument"),
        ("describe --bootstrap-server --x", "argument --bootstrap-server: expected one argument"),
        (f"--bootstrap-controller b:1 describe {SERVER}", "not allowed with argument"),
    ],
)
def test_one_that_is_given_twice_is_refused(
    tool: str, line: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([tool, *line.split()]) == 1
    assert problem in capsys.readouterr().err


def test_one_that_is_given_twice_is_refused_by_reassign(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["quorum", *SERVER.split(), "reassign", "--cancel", *SERVER.split()]) == 2
    assert "argument --bootstrap-server: given twice" in capsys.readouterr().err


@pytest.mark.parametrize("command", HELPS)
def test_the_help_of_a_sub_command_says_where_they_stand(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*command.split(), "--help"])
    assert "stand before the sub-command or after it" in " ".join(capsys.readouterr().out.split())
