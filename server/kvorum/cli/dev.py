"""``kvorum dev``: run a cluster in one process, for trying things out."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvorum.cli import UsageError

if TYPE_CHECKING:
    from kvorum.node.embedded.cluster import EmbeddedCluster
    from kvorum.node.embedded.node import ClusterSize

NAME: Final = "dev"
HELP: Final = "run a cluster in one process on this machine, for trying things out"
PORT_DEFAULT: Final = 9092
CONTROLLERS_DEFAULT: Final = 3
BROKERS_DEFAULT: Final = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
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
    parser.add_argument(
        "--port",
        type=int,
        metavar="P",
        help=f"port of the first broker (default: {PORT_DEFAULT}, 0: any free port)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="keep the data here (default: removed at the end)"
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
    from kvorum.node.embedded.cluster import EmbeddedCluster  # noqa: PLC0415 - as above
    from kvorum.node.runtime import run_in_loop, run_until_stopped  # noqa: PLC0415 - as above

    set_up_logging(level=30)
    with ExitStack() as cleaning:
        is_kept = args.data is not None
        if is_kept:
            folder = Path(args.data)
        else:
            folder = Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix="kvorum-dev-")))
        size = _size(args.controllers, args.brokers, folder)

        async def serve() -> signal.Signals | None:
            port = _broker_port(args.port, folder)
            cluster = EmbeddedCluster(folder, size=size, broker_port=port)

            async def report() -> None:
                # The cluster serves its clients, also where no reader takes its addresses.
                with suppress(BrokenPipeError):
                    await _report(cluster, as_json=args.json, is_kept=is_kept)

            return await run_until_stopped(cluster, when_started=report)

        return exit_code_of(run_in_loop(serve()))


def _size(controllers: int | None, brokers: int | None, folder: Path) -> ClusterSize:
    """Return the requested size, completed from existing data."""
    from kvorum.node.embedded.cluster import check_size  # noqa: PLC0415 - as in `run`
    from kvorum.node.embedded.node import ClusterSize, WrongSizeError, size_of  # noqa: PLC0415 - as in `run`

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
        raise UsageError(str(error)) from error
    return size


def _broker_port(given: int | None, folder: Path) -> int | None:
    """Return the requested port; None stands for the port that existing data was used with."""
    from kvorum.node.embedded.node import size_of  # noqa: PLC0415 - as in `run`

    if given is not None:
        return given
    return PORT_DEFAULT if size_of(folder) is None else None


async def _report(cluster: EmbeddedCluster, *, as_json: bool, is_kept: bool) -> None:
    if as_json:
        facts = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "controller_servers": cluster.controller_servers,
            "cluster_id": cluster.cluster_id,
            "data": str(cluster.folder),
            "node_ids": sorted(cluster.nodes),
        }
        print(json.dumps(facts), flush=True)
        return
    kept = "kept" if is_kept else "removed at the end"
    print(f"kvorum: cluster {cluster.cluster_id} answers; Ctrl-C stops it")
    print(f"  bootstrap servers:   {cluster.bootstrap_servers}")
    print(f"  controller servers:  {cluster.controller_servers}")
    print(f"  data:                {cluster.folder} ({kept})", flush=True)
    if sys.stdout.isatty():
        from kvorum.cli.dev_status import show_status  # noqa: PLC0415 - slow to import

        await show_status(cluster)
