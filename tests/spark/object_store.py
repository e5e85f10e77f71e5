"""An object store that is asked over HTTP: a server of S3's protocol, on loopback."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from moto.server import ThreadedMotoServer

# Has no type hints.
fsspec: Any = import_module("fsspec")

Options = dict[str, Any]
SOCKETS_LEFT_OPEN = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""The marks of tests with a client of an object store: it leaves sockets to the collector."""


def upload(source: Path, folder: str, options: Options) -> None:
    system = fsspec.filesystem(folder.partition(":")[0], **options)
    for path in source.rglob("*"):
        if path.is_file():
            system.pipe_file(f"{folder}/{path.relative_to(source)}", path.read_bytes())


@contextmanager
def object_store() -> Generator[Options]:
    """Yield the options with which fsspec reaches the server."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield {
            "key": "key", "secret": "secret", "skip_instance_cache": True,
            "client_kwargs": {
                "endpoint_url": f"http://{host}:{port}", "region_name": "eu-west-1",
            },
        }  # fmt: skip
    finally:
        # State that a server keeps outlives it: the next one of this process would have it.
        urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
        server.stop()
