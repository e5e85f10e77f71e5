"""``kvorum cluster``: a cluster's id, its nodes and their registration, as kafka-cluster does."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.cluster_calls import NodeEndpoint, describe_cluster, unregister_call
from kvorum.cli.admin.command import client_properties, exit_code, print_warning
from kvorum.cli.admin.errors import ERRORS_PACKAGE, AdminError, CallFailedError
from kvorum.cli.admin.feature_calls import describe_apis_call
from kvorum.cli.admin.nodes import AdminSettings, admin_settings
from kvorum.cli.kafka_arguments import (
    KafkaStyleParser,
    ToolParser,
    java_integer,
    parse_in_kafkas_order,
)
from kvorum.cli.unparsed import accept_unparsed
from kvorum.metadata.features import VersionRange
from kvorum.wire.apis import API_SPECS

NAME = "cluster"
HELP = "show a cluster's id and nodes, unregister nodes"
PROGRAM = "kvorum cluster"
COMMANDS = MappingProxyType(
    {
        "cluster-id": "show the id of the cluster",
        "unregister": "remove the registration of a broker that will not return",
        "unregister-controller": "remove the registration of a controller that will not return",
        "list-endpoints": "show the addresses of the brokers, or of the controllers",
        "api-versions": "show the APIs and versions that each broker, or controller, serves",
    }
)
_NOT_SUPPORTED = f"{ERRORS_PACKAGE}.UnsupportedVersionException"
_HOST_WIDTH_OF_NONE = 100
_RACK_WIDTH_OF_NONE = 10
_BROKER = "broker"


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-cluster's own rules for it differ from ours."""
    accept_unparsed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments, is_debugging=arguments.debug)


def main(arguments: Sequence[str], *, is_debugging: bool = False) -> int:
    """Run one command line and return 0, or 1 after wrong usage, refusals and problems."""
    return exit_code(lambda: _run_command(arguments), is_debugging=is_debugging)


def _run_command(words: Sequence[str]) -> int:
    arguments = parse_arguments(words)
    properties = client_properties(
        _config_file(arguments),
        servers=arguments.bootstrap_server,
        controllers=arguments.bootstrap_controller,
    )
    asyncio.run(_ask(arguments, admin_settings(properties, warn=print_warning)))
    return 0


def _config_file(arguments: argparse.Namespace) -> str | None:
    file: str | None = arguments.command_config
    if arguments.config is None:
        return file
    if file is not None:
        raise AdminError("--config and --command-config cannot be specified together.")
    print(
        "Option --config has been deprecated and will be removed in a future version. "
        "Use --command-config instead."
    )
    deprecated: str = arguments.config
    return deprecated


async def _ask(arguments: argparse.Namespace, settings: AdminSettings) -> None:
    async with AdminClient(settings, warn=print_warning) as client:
        match arguments.command:
            case "cluster-id":
                await print_cluster_id(client)
            case "unregister":
                await unregister_node(client, "broker", arguments.id, client_id=settings.client_id)
            case "unregister-controller":
                await unregister_node(
                    client, "controller", arguments.id, client_id=settings.client_id
                )
            case "api-versions":
                await print_api_versions(client)
            case _:
                await print_endpoints(client, includes_fenced=arguments.include_fenced_brokers)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; UsageError after the message is printed."""
    return parse_in_kafkas_order(_build_parser, arguments)


def _build_parser(is_strict: bool) -> ToolParser:
    parser = KafkaStyleParser(
        prog=PROGRAM, description="Show what a cluster is made of, and unregister nodes."
    )
    commands = parser.add_subparsers(
        dest="command", required=is_strict, parser_class=KafkaStyleParser
    )
    added = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    for command in added.values():
        _add_connection_options(command, is_strict=is_strict)
    added["unregister"].add_argument(
        "--id", "-i", type=java_integer, required=is_strict, help="the broker's node id"
    )
    added["unregister-controller"].add_argument(
        "--id", "-i", type=java_integer, required=is_strict, help="the controller's node id"
    )
    added["list-endpoints"].add_argument(
        "--include-fenced-brokers", action="store_true", help="show fenced brokers too"
    )
    return ToolParser(parser, added)


def _add_connection_options(parser: argparse.ArgumentParser, *, is_strict: bool) -> None:
    connection = parser.add_mutually_exclusive_group(required=is_strict)
    connection.add_argument(
        "--bootstrap-server",
        "-b",
        help="brokers to connect to first, host:port each, separated by commas",
    )
    connection.add_argument(
        "--bootstrap-controller",
        "-C",
        help="controllers to connect to first, host:port each, separated by commas",
    )
    parser.add_argument("--config", help="deprecated: use --command-config")
    parser.add_argument(
        "--command-config", "-c", help="a properties file with settings of the client"
    )


async def print_cluster_id(client: AdminClient) -> None:
    """Print the id of the cluster."""
    cluster = await describe_cluster(client)
    if cluster.cluster_id is None:
        print("No cluster ID found. The Kafka version is probably too old.")
    else:
        print(f"Cluster ID: {cluster.cluster_id}")


async def unregister_node(client: AdminClient, kind: str, node_id: int, *, client_id: str) -> None:
    """Remove the registration of a broker or a controller, and print the result."""
    try:
        await client.call(unregister_call(kind, node_id, client_id=client_id))
    except CallFailedError as error:
        if error.failure.class_name != _NOT_SUPPORTED:
            raise
        print(f"The target cluster does not support the {kind} unregistration API.")
    else:
        print(f"{kind.capitalize()} {node_id} is no longer registered.")


async def print_endpoints(client: AdminClient, *, includes_fenced: bool) -> None:
    """Print a table of the brokers, or of the controllers if they are asked."""
    if client.asks_controllers and includes_fenced:
        raise AdminError(
            "The option --include-fenced-brokers is only supported with --bootstrap-server option"
        )
    try:
        cluster = await describe_cluster(client, includes_fenced=includes_fenced)
    except CallFailedError as error:
        if error.failure.class_name != _NOT_SUPPORTED:
            raise
        print(error.failure.text)
        return
    _print_table(cluster.endpoints, are_controllers=client.asks_controllers)


async def print_api_versions(client: AdminClient) -> None:
    """Print the APIs of each broker, or of each controller if they are asked, by their node ids."""
    cluster = await describe_cluster(client)
    for one in sorted(cluster.endpoints, key=lambda each: each.node_id):
        fenced = "true" if one.is_fenced else "false"
        rack = "null" if one.rack is None else one.rack
        node = f"{one.host}:{one.port} (id: {one.node_id} rack: {rack} isFenced: {fenced})"
        try:
            served = await client.call(describe_apis_call(one.node_id))
        except CallFailedError as error:
            print(f"{node} -> ERROR: {error.failure}")
        else:
            print(f"{node} -> {api_versions_text(served)}")


def api_versions_text(served: Mapping[int, VersionRange]) -> str:
    """Return the APIs of a node as Kafka's NodeApiVersions shows them."""
    texts = {key: _api_text(key, versions) for key, versions in served.items()}
    for key, spec in API_SPECS.items():
        if _BROKER in spec.listeners:
            texts.setdefault(key, f"{spec.name}({key}): UNSUPPORTED")
    return "(\n\t" + ",\n\t".join(texts[key] for key in sorted(texts)) + "\n)"


def _api_text(key: int, versions: VersionRange) -> str:
    spec = API_SPECS.get(key)
    one_or_more = str(versions).replace("-", " to ")
    if spec is None:
        return f"UNKNOWN({key}): {one_or_more}"
    if spec.max_version < versions.min:
        usable = "unusable: node too new"
    elif versions.max < spec.min_version:
        usable = "unusable: node too old"
    else:
        usable = f"usable: {min(spec.max_version, versions.max)}"
    return f"{spec.name}({key}): {one_or_more} [{usable}]"


def _print_table(endpoints: Sequence[NodeEndpoint], *, are_controllers: bool) -> None:
    host_width = max((len(one.host) for one in endpoints), default=_HOST_WIDTH_OF_NONE)
    racks = (one.rack for one in endpoints if one.rack is not None)
    rack_width = max(map(len, racks), default=_RACK_WIDTH_OF_NONE)
    widths = [10, host_width, 10, rack_width, *(() if are_controllers else (10,)), 15]
    states = () if are_controllers else ("STATE",)
    rows = [["ID", "HOST", "PORT", "RACK", *states, "ENDPOINT_TYPE"]]
    for one in endpoints:
        state = "fenced" if one.is_fenced else "unfenced"
        rack = "null" if one.rack is None else one.rack
        kind = ["controller"] if are_controllers else [state, "broker"]
        rows.append([str(one.node_id), one.host, str(one.port), rack, *kind])
    for row in rows:
        print(" ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)))
