"""A program that listens on a port and says so, in place of a node."""

import sys
from pathlib import Path

from tests.support.node_process import NodeProcess

LISTENS = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print("up", server.getsockname()[1], flush=True)
time.sleep(600)
"""


def program(text: str, log: Path | None = None, attempts: int = 1) -> NodeProcess:
    return NodeProcess([sys.executable, "-c", text], log, ready="up", attempts=attempts)
