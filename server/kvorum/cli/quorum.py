"""``kvorum quorum``: describe and change the metadata quorum, as kafka-metadata-quorum does.

Its options, checks and exit codes are those of Kafka's tool; the addresses may follow the
sub-command as well. ``reassign`` (KIP-642) and ``recover`` are ours alone: they have parsers of
their own, and their wrong usage has the exit code 2.
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from kvorum.cli import INTERRUPTION
from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.command import client_properties, exit_code, print_warning
from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.nodes import AdminSettings, admin_settings
from kvorum.cli.command_parser import CommandParser
from kvorum.cli.kafka_arguments import (
    CONNECTION_EPILOG,
    KafkaStyleParser,
    check_command_options,
    command_index,
    java_integer,
    with_options_first,
    with_whole_command,
)
from kvorum.cli.quorum_tool.changes import add_controller, remove_controller
from kvorum.cli.quorum_tool.describe import print_replication, print_status
from kvorum.cli.quorum_tool.reassign import (
    NO_REASSIGNMENT,
    cancel_reassignment,
    follow_reassignment,
    print_plan,
    print_reassignment,
    start_reassignment,
)
from kvorum.cli.unparsed import accept_unparsed
from kvorum.metadata.config_definitions import (
    InvalidConfigError,
    QuorumVoterEntry,
    parse_quorum_voters,
)
from kvorum.metadata.voters import InvalidTargetVotersError, TargetVoters, parse_target_voters
from kvorum.storage.files import RealFileSystem

PROGRAM = "kvorum quorum"
COMMANDS = MappingProxyType(
    {
        "describe": "show the quorum's state",
        "add-controller": "make a controller a voter",
        "remove-controller": "remove a controller from the voters",
    }
)
CONNECTION_OPTIONS = ("--bootstrap-server", "--bootstrap-controller", "--command-config")
_DRY_RUN = "print what would be done, without doing it"
REASSIGN = "reassign"
_REASSIGN_DESCRIPTION = (
    "Replace the voters of the quorum, one step after the other (KIP-642). The active controller "
    "takes the steps; the reassignment goes on without this command, and outlives changes of the "
    "leader."
)
RECOVER = "recover"
_RECOVER_DESCRIPTION = (
    "Make one surviving controller the only voter, after the majority of the controllers is lost "
    "for good. Works on the directories of stopped nodes. Without --execute nothing is written: "
    "what would be kept, lost and written is printed."
)
_EPILOG = (
    "Name every directory that is left, those of brokers too: the more there are, the more is "
    "known of what was committed. The lost controllers must never start again with their old "
    "directories."
)
NAME = "quorum"
HELP = "describe the metadata quorum, add, remove and replace its voters, recover a lost majority"


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; UsageError after the message is printed."""
    parser = KafkaStyleParser(
        prog=PROGRAM,
        description="Describe the metadata quorum, and change its voters.",
        epilog="'reassign' (kvorum quorum reassign --help) replaces the voters step by step; "
        "'recover' (kvorum quorum recover --help) goes on after the loss of the majority.",
    )
    add_connection_options(parser)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=KafkaStyleParser)
    added = {
        name: commands.add_parser(name, help=text, epilog=CONNECTION_EPILOG)
        for name, text in COMMANDS.items()
    }
    _add_describe_options(added["describe"])
    added["add-controller"].add_argument("--dry-run", action="store_true", help=_DRY_RUN)
    _add_remove_options(added["remove-controller"])
    words = with_options_first(
        parser,
        with_whole_command(arguments, COMMANDS, options_with_value=CONNECTION_OPTIONS),
        COMMANDS,
        options_with_value=CONNECTION_OPTIONS,
    )
    check_command_options(words, added, options_with_value=CONNECTION_OPTIONS)
    return parser.parse_args(words)


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every sub-command that asks a server."""
    connection = parser.add_mutually_exclusive_group(required=True)
    connection.add_argument(
        "--bootstrap-server",
        help="brokers to connect to first, host:port each, separated by commas",
    )
    connection.add_argument(
        "--bootstrap-controller",
        help="controllers to connect to first, host:port each, separated by commas",
    )
    parser.add_argument(
        "--command-config",
        help="a properties file with settings of the client; for add-controller, the "
        "configuration file of the controller",
    )


def _add_describe_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status", action="store_true", help="show the leader, the voters and their progress"
    )
    parser.add_argument(
        "--replication", action="store_true", help="show a table of the metadata log's replicas"
    )
    parser.add_argument(
        "--human-readable", action="store_true", help="with --replication: times as 'n ms ago'"
    )


def _add_remove_options(parser: argparse.ArgumentParser) -> None:
    # If both options are missing, Kafka's tool reports this one.
    parser.add_argument(
        "--controller-directory-id", "-d", required=True, help="the id of its metadata directory"
    )
    parser.add_argument(
        "--controller-id", "-i", required=True, type=java_integer, help="the controller's node id"
    )
    parser.add_argument("--dry-run", action="store_true", help=_DRY_RUN)
    parser.add_argument(
        "--unregister",
        action="store_true",
        help="remove its registration too, after it is no voter any more",
    )


def command_of(arguments: Sequence[str]) -> str | None:
    """Return the first word that is neither an option nor the value of one."""
    index = command_index(arguments, CONNECTION_OPTIONS)
    return arguments[index] if index < len(arguments) else None


def parse_reassign_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; SystemExit with code 2 after the message is printed."""
    parser = CommandParser(prog=PROGRAM)
    add_connection_options(parser)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        REASSIGN, description=_REASSIGN_DESCRIPTION, epilog=CONNECTION_EPILOG
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--voters",
        type=_targets,
        metavar="ID[:DIRECTORY],...",
        help="the voters that the quorum is to have; a directory id where a node has two",
    )
    what.add_argument(
        "--cancel", action="store_true", help="stop where the reassignment is; undo nothing"
    )
    what.add_argument(
        "--status", action="store_true", help="show the reassignment that is under way"
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="with --voters: print every step and the quorum after it, without doing anything; who "
        "has not fetched for controller.quorum.fetch.timeout.ms counts as down (the leader's value "
        "with --bootstrap-controller, 2000 with --bootstrap-server)",
    )
    command.add_argument(
        "--wait",
        action="store_true",
        help="with --voters or alone: show the progress until the reassignment ends; Ctrl-C leaves "
        "it running",
    )
    words = with_options_first(
        parser, arguments, (REASSIGN,), options_with_value=CONNECTION_OPTIONS
    )
    parsed = parser.parse_args(words)
    _check_combination(parsed, command)
    return parsed


def _check_combination(parsed: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if parsed.dry_run and (parsed.voters is None or parsed.wait):
        parser.error("--dry-run goes with --voters alone")
    if parsed.wait and (parsed.cancel or parsed.status):
        parser.error("--wait goes with --voters, or alone")
    if parsed.voters is None and not (parsed.cancel or parsed.status or parsed.wait):
        parser.error("one of --voters, --cancel, --status and --wait is required")


def _targets(text: str) -> TargetVoters:
    try:
        return parse_target_voters(text)
    except InvalidTargetVotersError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def parse_recover_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; SystemExit with code 2 after the message is printed."""
    parser = CommandParser(
        prog=f"{PROGRAM} {RECOVER}", description=_RECOVER_DESCRIPTION, epilog=_EPILOG
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--directories",
        type=_directories,
        metavar="DIR,...",
        help="the metadata log directories of the survivors: metadata.log.dir, or the first of "
        "log.dirs",
    )
    where.add_argument(
        "--config",
        nargs="+",
        metavar="FILE",
        help="the configurations of the survivors, in place of their directories",
    )
    parser.add_argument(
        "--voters",
        type=_voter,
        metavar="ID@HOST:PORT",
        help="the node to recover from, and its address as a controller (default: the voter with "
        "the longest log, with its recorded address); others are added when it runs",
    )
    parser.add_argument(
        "--allow-observer",
        action="store_true",
        help="recover from a node that is no voter, such as a broker",
    )
    parser.add_argument(
        "--allow-shorter-log",
        action="store_true",
        help="recover from a log that is not the longest one",
    )
    parser.add_argument(
        "--execute", action="store_true", help="write, after the same checks and the same forecast"
    )
    # The only words before the sub-command that may stand there are options of other commands.
    index = command_index(arguments, CONNECTION_OPTIONS)
    if index:
        parser.error(f"{arguments[0]} does not go with {RECOVER}, which asks no server")
    return parser.parse_args(arguments[index + 1 :])


def _directories(text: str) -> list[str]:
    directories = [part.strip() for part in text.split(",") if part.strip()]
    if not directories:
        raise argparse.ArgumentTypeError("no directory is named")
    return directories


def _voter(text: str) -> QuorumVoterEntry:
    entries = [part.strip() for part in text.split(",") if part.strip()]
    if len(entries) != 1:
        raise argparse.ArgumentTypeError(
            "exactly one voter: the quorum is recovered from one directory; the other controllers "
            "get empty directories and are added with add-controller"
        )
    try:
        return parse_quorum_voters(entries)[0]
    except InvalidConfigError as error:
        raise argparse.ArgumentTypeError(error.message) from error


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-metadata-quorum's rules for it differ from ours."""
    accept_unparsed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments, is_debugging=arguments.debug)


def main(arguments: Sequence[str], *, is_debugging: bool = False) -> int:
    """Run one command line and return 0, or 1 after wrong usage, refusals and problems."""
    run_words = _run_recover if command_of(arguments) == RECOVER else _run_command
    return exit_code(lambda: run_words(arguments), is_debugging=is_debugging)


def _run_recover(arguments: Sequence[str]) -> int:
    parsed = parse_recover_arguments(arguments)
    # Loaded only here: the other commands need no storage and no raft.
    from kvorum.cli.quorum_tool.recover import run_recover  # noqa: PLC0415 - see above

    return run_recover(parsed, [NAME, *arguments])


def _run_command(words: Sequence[str]) -> int:
    parse = parse_reassign_arguments if command_of(words) == REASSIGN else parse_arguments
    arguments = parse(words)
    properties = _properties(arguments)
    settings = admin_settings(properties, warn=print_warning)
    if arguments.command == REASSIGN:
        _run_reassign(arguments, settings)
        return 0
    _check_options(arguments)
    asyncio.run(_ask(arguments, properties, settings))
    return 0


def _run_reassign(arguments: argparse.Namespace, settings: AdminSettings) -> None:
    try:
        asyncio.run(_reassign(arguments, settings))
    except KeyboardInterrupt:
        if not arguments.wait:
            raise
        raise KeyboardInterrupt(
            f"{INTERRUPTION}: the reassignment goes on without this command; --cancel stops it"
        ) from None


async def _reassign(arguments: argparse.Namespace, settings: AdminSettings) -> None:
    async with AdminClient(settings, warn=print_warning) as client:
        if arguments.status:
            await print_reassignment(client)
        elif arguments.cancel:
            await cancel_reassignment(client)
        elif arguments.dry_run:
            await print_plan(client, arguments.voters)
        else:
            if arguments.voters is not None:
                await start_reassignment(client, arguments.voters)
            if arguments.wait and not await follow_reassignment(client, arguments.voters):
                print(NO_REASSIGNMENT)


def _properties(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the properties of --command-config, with the addresses of the command line."""
    file = arguments.command_config
    if file is not None and not Path(file).exists():
        raise AdminError(f"Properties file {file} does not exist.")
    return client_properties(
        file, servers=arguments.bootstrap_server, controllers=arguments.bootstrap_controller
    )


def _check_options(arguments: argparse.Namespace) -> None:
    """Refuse conflicting options, in the order of Kafka's tool."""
    if arguments.command == "describe":
        if arguments.status and arguments.replication:
            raise AdminError(
                "Only one of --status or --replication should be specified with describe "
                "sub-command"
            )
        if arguments.status and arguments.human_readable:
            raise AdminError(
                "The option --human-readable is only supported along with --replication"
            )
        if not arguments.status and not arguments.replication:
            raise AdminError(
                "One of --status or --replication must be specified with describe sub-command"
            )
    if arguments.command == "add-controller" and arguments.command_config is None:
        raise AdminError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )


async def _ask(
    arguments: argparse.Namespace, properties: Mapping[str, str], settings: AdminSettings
) -> None:
    async with AdminClient(settings, warn=print_warning) as client:
        if arguments.command == "add-controller":
            await add_controller(
                client, properties, files=RealFileSystem(), is_dry_run=arguments.dry_run
            )
        elif arguments.command == "remove-controller":
            await remove_controller(
                client,
                voter_id=arguments.controller_id,
                directory_id_text=arguments.controller_directory_id,
                is_dry_run=arguments.dry_run,
                unregisters=arguments.unregister,
                client_id=settings.client_id,
            )
        elif arguments.replication:
            await print_replication(client, is_human_readable=arguments.human_readable)
        else:
            await print_status(client)
