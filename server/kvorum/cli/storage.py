"""``kvorum storage``: format and inspect a node's directories, as kafka-storage does."""

import argparse
import random
import sys
import traceback
from collections.abc import Iterable, Sequence
from types import MappingProxyType

from kvorum.cli.feature_mappings import (
    UnknownLevelError,
    dependency_lines,
    split_feature,
    version_mapping_lines,
)
from kvorum.cli.kafka_arguments import KafkaStyleParser, UsageError, with_whole_command
from kvorum.cli.storage_directories import load_configuration, print_info, run_format
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    MINIMUM_METADATA_VERSION,
)
from kvorum.node.config import ConfigError
from kvorum.node.format import FormatError
from kvorum.storage.errors import StorageError
from kvorum.storage.files import RealFileSystem
from kvorum.wire.java_text import parse_java_integer
from kvorum.wire.uuid_text import random_uuid, uuid_to_text

NAME = "storage"
HELP = "format and inspect the directories of a node"
PROGRAM = "kvorum storage"
_VERSIONS = (
    f"at least {MINIMUM_METADATA_VERSION.text}, by default "
    f"{LATEST_PRODUCTION_METADATA_VERSION.text}"
)
COMMANDS = MappingProxyType(
    {
        "info": "show what the directories of a node hold",
        "format": "format the directories of a node",
        "version-mapping": "show the feature levels that belong to a metadata.version",
        "feature-dependencies": "show which features a feature level needs",
        "random-uuid": "print a random uuid",
    }
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-storage's own rules for it differ from ours."""
    parser.usage = f"kvorum storage {{{','.join(COMMANDS)}}} ..."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(
        ("commands (each has --help):", *(f"  {name:22}{text}" for name, text in COMMANDS.items()))
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments, is_debugging=arguments.debug)


def main(arguments: Sequence[str], *, is_debugging: bool = False) -> int:
    """Run one command line and return 0, or 1 after wrong usage, refusals and problems."""
    try:
        return _run_command(parse_arguments(arguments))
    except UsageError:
        return 1
    except SystemExit:
        # argparse exits in this way after it has printed the help.
        return 0
    except (ConfigError, FormatError, StorageError) as error:
        if is_debugging:
            traceback.print_exc()
        print(error, file=sys.stderr)
        return 1


def _run_command(arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "info":
            return print_info(load_configuration(arguments.config), RealFileSystem())
        case "format":
            run_format(arguments, load_configuration(arguments.config), RealFileSystem())
        case "version-mapping":
            print_version_mapping(arguments.release_version)
        case "feature-dependencies":
            print_feature_dependencies(arguments.feature)
        case _:
            print(uuid_to_text(random_uuid(random.SystemRandom())))
    return 0


def build_parser() -> KafkaStyleParser:
    """Return the parser of the whole command line; `command` is the sub-command's name."""
    parser = KafkaStyleParser(
        prog=PROGRAM,
        description="Format and inspect the directories of a node.",
        fromfile_prefix_chars="@",
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=KafkaStyleParser)
    added = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    _add_config(added["info"])
    _add_format_options(added["format"])
    added["version-mapping"].add_argument(
        "--release-version", "-r", help=f"the release or metadata.version: {_VERSIONS}"
    )
    added["feature-dependencies"].add_argument(
        "--feature",
        "-f",
        action="append",
        required=True,
        help="a feature and its level, such as group.version=1; may be given several times",
    )
    return parser


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; UsageError after the message is printed.

    A sub-command may be abbreviated, as long as only one name matches.
    """
    return build_parser().parse_args(with_whole_command(arguments, COMMANDS))


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", required=True, help="the node's configuration file")


def _add_format_options(parser: argparse.ArgumentParser) -> None:
    _add_config(parser)
    parser.add_argument("--cluster-id", "-t", required=True, help="the id of the cluster")
    parser.add_argument(
        "--add-scram",
        "-S",
        action="append",
        help="a SCRAM credential the cluster starts with, such as "
        "'SCRAM-SHA-256=[name=alice,password=secret]'; may be given several times",
    )
    parser.add_argument(
        "--ignore-formatted",
        "-g",
        action="store_true",
        help="skip directories that are formatted already, instead of failing",
    )
    parser.add_argument(
        "--release-version", "-r", help=f"the release or metadata.version to start on: {_VERSIONS}"
    )
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        help="a feature and its level, such as kraft.version=1; may be given several times",
    )
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone",
        "-s",
        action="store_true",
        help="make this controller the only voter of a new dynamic quorum",
    )
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help="format for a dynamic quorum whose voters are known elsewhere",
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        help="the voters of a new dynamic quorum, id@host:port:directory-id each, the same on "
        "every node",
    )


def print_version_mapping(release_version: str | None) -> None:
    """Print the level of metadata.version and of each feature that goes with it."""
    try:
        lines = version_mapping_lines(release_version)
    except UnknownFeatureError as error:
        raise FormatError(str(error)) from error
    print("\n".join(lines))


def print_feature_dependencies(arguments: Iterable[str]) -> None:
    """Print the features that each ``feature=level`` depends on."""
    for argument in arguments:
        name, level = _feature_level(argument)
        try:
            lines = dependency_lines(name, level)
        except UnknownLevelError:
            problem = f"Feature level {level} is not supported for feature {name}"
            raise FormatError(problem) from None
        except UnknownFeatureError as error:
            raise FormatError(str(error)) from error
        print("\n".join(lines))


def _feature_level(argument: str) -> tuple[str, int]:
    parts = split_feature(argument)
    if parts is None:
        raise FormatError(
            f"Invalid feature format: {argument}. Expected format: 'feature=version' "
            "(e.g. 'group.version=1')"
        )
    name, level_text = parts
    try:
        return name, parse_java_integer(level_text, bits=16)
    except ValueError:
        raise FormatError(f"Invalid version format: {level_text} for feature {name}") from None
