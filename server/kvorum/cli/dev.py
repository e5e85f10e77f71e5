"""``kvorum dev``: a cluster in one process, for trying things out."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvorum.cli import UsageError

if TYPE_CHECKING:
    from kvorum.node.embedded import EmbeddedNode

NAME: Final = "dev"
HELP: Final = "run a cluster in one process on this machine, for trying things out"
PORT_DEFAULT: Final = 9092
STATUS_INTERVAL_SECONDS: Final = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--controllers",
        type=int,
        default=1,
        metavar="N",
        help="how many controllers; this release runs 1, in the broker's process",
    )
    parser.add_argument(
        "--brokers", type=int, default=1, metavar="N", help="how many brokers; this release runs 1"
    )
    parser.add_argument(
        "--port",
        type=int,
        metavar="P",
        help=f"where the broker listens (default: {PORT_DEFAULT}, 0: any free port)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="keep the data here (default: removed at the end)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one line of JSON once it answers, nothing else"
    )


def run(args: argparse.Namespace) -> int:
    """Run the cluster until Ctrl-C or SIGTERM; 0 then."""
    if args.controllers != 1 or args.brokers != 1:
        raise UsageError("only 1 controller and 1 broker, in one node, can be run for now")
    # Imported here: `kvorum --help` needs nothing of it.
    from kvorum.cli.server import set_up_logging  # noqa: PLC0415 - loaded only by who runs it
    from kvorum.node.embedded import prepare_node  # noqa: PLC0415 - loaded only by who runs it
    from kvorum.node.runtime import run_in_loop, run_until_stopped  # noqa: PLC0415 - loaded only by who runs it

    set_up_logging(level=30)
    with ExitStack() as cleaning:
        folder = _folder(args.data, cleaning)
        is_kept = args.data is not None

        async def serve() -> None:
            embedded = prepare_node(folder, broker_port=_broker_port(args.port, folder))

            async def report() -> None:
                await _report(embedded, as_json=args.json, is_kept=is_kept)

            await run_until_stopped(embedded.node, when_started=report)

        run_in_loop(serve())
    return 0


def _folder(given: str | None, cleaning: ExitStack) -> Path:
    if given is not None:
        return Path(given)
    return Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix="kvorum-dev-")))


def _broker_port(given: int | None, folder: Path) -> int | None:
    """Return the port asked for, None for the one that the kept data was used with before."""
    from kvorum.node.embedded import PROPERTIES_FILE  # noqa: PLC0415 - as in `run`

    if given is not None:
        return given
    return None if (folder / PROPERTIES_FILE).exists() else PORT_DEFAULT


async def _report(embedded: EmbeddedNode, *, as_json: bool, is_kept: bool) -> None:
    cluster_id = embedded.node.core.directories.cluster_id
    if as_json:
        facts = {
            "bootstrap_servers": embedded.bootstrap_servers,
            "controller_servers": embedded.controller_servers,
            "cluster_id": cluster_id,
            "data": str(embedded.folder),
            "node_ids": [embedded.node.config.node_id],
        }
        print(json.dumps(facts), flush=True)
        return
    kept = "kept" if is_kept else "removed at the end"
    print(f"kvorum: cluster {cluster_id} answers; Ctrl-C stops it")
    print(f"  bootstrap servers:   {embedded.bootstrap_servers}")
    print(f"  controller servers:  {embedded.controller_servers}")
    print(f"  data:                {embedded.folder} ({kept})", flush=True)
    if sys.stdout.isatty():
        from kvorum.cli.dev_status import show_status  # noqa: PLC0415 - slow to import

        await show_status(embedded.node)
