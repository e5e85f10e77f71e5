"""``kvorum dev``: run a cluster in one process, for trying things out."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvorum.cli import UsageError
from kvorum.cli.shared_arguments import INT_MAX, whole_number
from kvorum.node.embedded.client_security.mode import SecurityMode

if TYPE_CHECKING:
    from kvorum.node.embedded.cluster import EmbeddedCluster
    from kvorum.node.embedded.listeners import ClientListener
    from kvorum.node.embedded.node import ClusterSize

NAME: Final = "dev"
FOLDER_PREFIX: Final = "kvorum-dev-"
HELP: Final = "run a cluster in one process on this machine, for trying things out"
PORT_DEFAULT: Final = 9092
PORT_MAX: Final = 65_535
CONTROLLERS_DEFAULT: Final = 3
BROKERS_DEFAULT: Final = 1
LOOPBACK: Final = "127.0.0.1"
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - clients of other machines connect to it
SECURITY_MODES: Final = tuple(mode.value for mode in SecurityMode)
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
PORT_REMEDY: Final = "give another one with --port"
HOST_REMEDY: Final = "give others with --host and --port"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    _configure_size(parser)
    _configure_clients(parser)
    _configure_nodes(parser)
    _configure_output(parser)


def _configure_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--controllers",
        type=int,
        metavar="N",
        help=f"number of controllers (default: as in --data DIR, else {CONTROLLERS_DEFAULT})",
    )
    parser.add_argument(
        "--brokers",
        type=int,
        metavar="N",
        help=f"number of brokers (default: as in --data DIR, else {BROKERS_DEFAULT}); "
        "1 controller and 1 broker are one combined node",
    )


def _configure_clients(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=whole_number(0, PORT_MAX),
        metavar="P",
        help=f"port of the first broker (default: {PORT_DEFAULT}, 0: any free port)",
    )
    parser.add_argument(
        "--host",
        metavar="HOST",
        help=f"address that the brokers listen at (default: {LOOPBACK}; {EVERYWHERE}: all)",
    )
    parser.add_argument(
        "--advertised-host",
        metavar="NAME",
        help="name that clients reach the brokers by (default: the one of --host)",
    )
    parser.add_argument(
        "--security",
        choices=SECURITY_MODES,
        metavar="KIND",
        help=f"what clients need: {', '.join(SECURITY_MODES)}; certificates and users are made on "
        "the spot (default: as in --data DIR, else nothing)",
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        type=_topic,
        metavar="NAME[:PARTITIONS]",
        help="create this topic unless it is there; may be given several times",
    )


def _configure_nodes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a property of every node; may be given several times",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="keep the data here, in the directory of an earlier run, an empty or a new one "
        "(default: removed at the end)",
    )


def _configure_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ready-file",
        type=Path,
        metavar="FILE",
        help="write the line of --json to FILE once it is ready, and remove it at the end",
    )
    parser.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        default="warning",
        metavar="LEVEL",
        help=f"which events are logged: {', '.join(LOG_LEVELS)} (default: warning)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one line of JSON once it is ready, nothing else"
    )


def run(args: argparse.Namespace) -> int:
    """Run the cluster until Ctrl-C or SIGTERM, and return the exit code."""
    # Imported here to keep `kvorum --help` fast.
    from kvorum.cli.server import exit_code_of, set_up_logging  # noqa: PLC0415 - loaded only when it runs
    from kvorum.node.garbage import bound_pauses  # noqa: PLC0415 - as above

    bound_pauses()
    from kvorum.cli.ready_file import prepare_ready_file, remove_ready_file, write_ready_file  # noqa: PLC0415 - as above
    from kvorum.node.embedded.cluster import EmbeddedCluster  # noqa: PLC0415 - as above
    from kvorum.node.embedded.temporary_folder import make_temporary_folder  # noqa: PLC0415 - as above
    from kvorum.node.process import run_in_loop, run_until_stopped  # noqa: PLC0415 - as above
    from kvorum.storage.files import RealFileSystem, disk_errors  # noqa: PLC0415 - as above

    set_up_logging(level=logging.getLevelNamesMapping()[args.log_level.upper()])
    with ExitStack() as cleaning:
        is_kept = args.data is not None
        if is_kept:
            folder = _kept_folder(args.data)
        else:
            made = make_temporary_folder(FOLDER_PREFIX)
            cleaning.callback(made.remove)
            folder = made.path
        size = _size(args.controllers, args.brokers, folder)
        clients = _clients(args.host, args.advertised_host)
        security = _security(args.security, folder)
        overrides = _overrides(args.override)
        if args.ready_file is not None:
            # The file may be meant to be in the directory of the data.
            with disk_errors(folder, "creating"):
                RealFileSystem().make_directory(folder)
            prepare_ready_file(args.ready_file)
            cleaning.callback(remove_ready_file, args.ready_file)

        async def serve() -> signal.Signals | None:
            port = _broker_port(args.port, folder)
            cluster = EmbeddedCluster(
                folder,
                size=size,
                broker_port=port,
                clients=clients,
                security=security,
                overrides=overrides,
                topics=dict(args.topic),
            )

            async def report() -> None:
                if args.ready_file is not None:
                    write_ready_file(args.ready_file, f"{_facts(cluster)}\n")
                # The cluster serves its clients, also where no reader takes its addresses.
                with suppress(BrokenPipeError):
                    await _report(cluster, as_json=args.json, is_kept=is_kept)

            return await run_until_stopped(cluster, when_started=report)

        code = exit_code_of(run_in_loop(serve()))
    if not args.json:
        with suppress(BrokenPipeError):
            print(f"kvorum: stopped; the data is {_end_of_data(folder, is_kept)}", flush=True)
    return code


def _topic(text: str) -> tuple[str, int]:
    """Return the name of a topic and its partitions."""
    name, separator, count = text.partition(":")
    if not name or (separator and not (count.isdecimal() and 0 < int(count) <= INT_MAX)):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:PARTITIONS")
    return name, int(count or 1)


def _overrides(arguments: list[str]) -> dict[str, str]:
    """Return the properties of --override."""
    from kvorum.node.config import ConfigError, parse_overrides  # noqa: PLC0415 - as in `run`
    from kvorum.node.embedded.overrides import override_texts  # noqa: PLC0415 - as in `run`

    try:
        return override_texts(parse_overrides(arguments))
    except ConfigError as error:
        raise UsageError(f"--override: {error}") from error


def _clients(host: str | None, advertised: str | None) -> ClientListener:
    """Return where the brokers listen, and the name that clients get."""
    from kvorum.node.embedded.listeners import ClientListener  # noqa: PLC0415 - as in `run`

    if host == EVERYWHERE and advertised is None:
        raise UsageError(f"--host {EVERYWHERE} needs --advertised-host: clients connect to a name")
    listens_at = host or LOOPBACK
    remedy = PORT_REMEDY if host is None else HOST_REMEDY
    return ClientListener(listens_at=listens_at, advertised=advertised or listens_at, remedy=remedy)


def _security(word: str | None, folder: Path) -> SecurityMode | None:
    """Return the requested security, or that of existing data."""
    from kvorum.node.embedded.existing_data import WrongSecurityError, check_security  # noqa: PLC0415 - as in `run`
    from kvorum.node.embedded.identity import load_identity  # noqa: PLC0415 - as in `run`

    known = load_identity(folder)
    if word is None:
        return None if known is None else known.security
    wanted = SecurityMode(word)
    try:
        check_security(folder, wanted)
    except WrongSecurityError as error:
        raise UsageError(f"--security {word}: {error}") from error
    return wanted


def _kept_folder(name: str) -> Path:
    """Return the folder of --data: a cluster's, or one without files."""
    from kvorum.node.embedded.existing_data import ForeignFolderError, check_is_ours  # noqa: PLC0415 - as in `run`
    from kvorum.storage.files import disk_errors  # noqa: PLC0415 - as in `run`

    folder = Path(name)
    try:
        with disk_errors(folder, "reading"):
            check_is_ours(folder)
    except ForeignFolderError as error:
        raise UsageError(f"--data {name}: {error}: give a new or an empty one") from error
    return folder


def _size(controllers: int | None, brokers: int | None, folder: Path) -> ClusterSize:
    """Return the requested size, completed from existing data."""
    from kvorum.node.embedded.existing_data import check_size  # noqa: PLC0415 - as in `run`
    from kvorum.node.embedded.node import ClusterSize, WrongSizeError, size_of  # noqa: PLC0415 - as in `run`

    given = [
        f"{option} {count}"
        for option, count in (("--controllers", controllers), ("--brokers", brokers))
        if count is not None
    ]
    known = size_of(folder)
    default = (CONTROLLERS_DEFAULT, BROKERS_DEFAULT)
    if known is not None:
        default = (known.controllers, known.brokers)
    try:
        size = ClusterSize(
            controllers=default[0] if controllers is None else controllers,
            brokers=default[1] if brokers is None else brokers,
        )
        check_size(folder, size)
    except WrongSizeError as error:
        raise UsageError(": ".join([*filter(None, [" ".join(given)]), str(error)])) from error
    return size


def _broker_port(given: int | None, folder: Path) -> int | None:
    """Return the requested port; None stands for the port that existing data was used with."""
    from kvorum.node.embedded.node import size_of  # noqa: PLC0415 - as in `run`

    if given is not None:
        return given
    return PORT_DEFAULT if size_of(folder) is None else None


def _facts(cluster: EmbeddedCluster) -> str:
    """Return the line of JSON about a cluster that answers."""
    from kvorum.node.embedded.client_security.client_access import FORMS  # noqa: PLC0415 - as in `run`

    facts = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "controller_servers": cluster.controller_servers,
        "cluster_id": cluster.cluster_id,
        "data": str(cluster.folder),
        "node_ids": sorted(cluster.nodes),
        "client_settings": {form: cluster.client_settings(form) for form in FORMS},
    }
    return json.dumps(facts)


def _end_of_data(folder: Path, is_kept: bool) -> str:
    """Return what became of the data, after the removal of what was to be removed."""
    if is_kept:
        return "kept"
    if folder.exists():
        return f"not removed: the next kvorum dev tries to remove {folder} again"
    return "removed"


async def _report(cluster: EmbeddedCluster, *, as_json: bool, is_kept: bool) -> None:
    if as_json:
        print(_facts(cluster), flush=True)
        return
    kept = "kept" if is_kept else "removed at the end"
    print(f"kvorum: cluster {cluster.cluster_id} answers; Ctrl-C stops it")
    print(f"  bootstrap servers:   {cluster.bootstrap_servers}")
    print(f"  controller servers:  {cluster.controller_servers}")
    print(f"  data:                {cluster.folder} ({kept})", flush=True)
    if cluster.security is not None:
        _report_client_settings(cluster)
    # A caller may have closed the output, and then it is None.
    if sys.stdout is not None and sys.stdout.isatty():
        from kvorum.cli.dev_status import show_status  # noqa: PLC0415 - slow to import

        await show_status(cluster)


def _report_client_settings(cluster: EmbeddedCluster) -> None:
    from kvorum.node.embedded.client_security.client_access import FORMS  # noqa: PLC0415 - as in `run`

    for form in FORMS:
        print(f"  client settings, {form}:")
        for key, value in cluster.client_settings(form).items():
            print(f"    {key}={value}", flush=True)
