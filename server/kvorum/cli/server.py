"""``kvorum server``: run one node in the foreground, as kafka-server-start does."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from typing import TYPE_CHECKING, Final

from kvorum.cli import OK, SIGNALLED

if TYPE_CHECKING:
    from kvorum.node.config import NodeConfig

NAME: Final = "server"
HELP: Final = "run one node: broker, controller or both, from a server.properties file"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="the node's server.properties")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="replace a value of the file; may be given several times",
    )


def run(args: argparse.Namespace) -> int:
    """Run the node until SIGTERM or SIGINT, and return the exit code."""
    # Imported here to keep `kvorum --help` fast.
    from kvorum.node.garbage import bound_pauses  # noqa: PLC0415 - loaded only when it runs

    # Before the other imports: they make many objects that stay, and no garbage worth a search.
    bound_pauses()
    from kvorum.node.config import LogFormat, NodeConfig, load_properties, parse_overrides  # noqa: PLC0415 - loaded only when it runs
    from kvorum.node.kafka_raft_server import KafkaRaftServer  # noqa: PLC0415 - loaded only when it runs
    from kvorum.node.process import run_in_loop, run_until_stopped  # noqa: PLC0415 - loaded only when it runs

    set_up_logging()
    properties = {**load_properties(args.file), **parse_overrides(args.override)}
    config = NodeConfig.from_properties(properties)
    logging.getLogger().setLevel(config.own.log_level)
    if config.own.log_format is LogFormat.JSON:
        from kvorum.node.events.log_format import JsonFormatter  # noqa: PLC0415 - loaded only when it runs

        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())
    log_identity(config)
    log_remarks(config)

    async def serve() -> signal.Signals | None:
        return await run_until_stopped(KafkaRaftServer(config))

    return exit_code_of(run_in_loop(serve()))


def exit_code_of(second_signal: signal.Signals | None) -> int:
    """Return the exit code of a stop; a shell gives that of a second signal to what it killed."""
    return OK if second_signal is None else SIGNALLED + second_signal


def set_up_logging(level: int = logging.INFO) -> None:
    """Log events on stderr, one line each."""
    from kvorum.node.events.log_format import TEXT_FORMAT  # noqa: PLC0415 - loaded only when it runs

    logging.basicConfig(stream=sys.stderr, level=level, format=TEXT_FORMAT)


def log_identity(config: NodeConfig) -> None:
    """Log what starts here: the version, the node and its roles, its listeners and directories."""
    from kvorum.node.events.log_event import LogEvent  # noqa: PLC0415 - loaded only when it runs
    from kvorum.node.version import VERSION  # noqa: PLC0415 - loaded only when it runs

    logging.getLogger(__name__).info(
        LogEvent(
            "A node starts",
            version=VERSION,
            node=config.node_id,
            roles=",".join(sorted(role.value for role in config.roles)),
            listeners=",".join(map(str, config.listeners.bound)),
            directories=",".join(config.log_directories),
        )
    )


def log_remarks(config: NodeConfig) -> None:
    """Log what is unusual about the configuration."""
    from kvorum.node.config.known import known_but_unused, unknown  # noqa: PLC0415 - loaded only when it runs

    log = logging.getLogger(__name__)
    for warning in config.warnings:
        log.warning("%s", warning)
    if names := known_but_unused(config.texts):
        log.info("Keys without effect in kvorum: %s", ", ".join(names))
    if names := unknown(config.texts):
        log.warning("Unknown configuration keys: %s", ", ".join(names))
