"""The lock of an output that is in a store: what a run that was killed has left."""

import json
import os
import socket

import pytest

from kvorum.spark.errors import OutputInUseError
from kvorum.spark.pipeline.layout import LOCK
from kvorum.spark.pipeline.lock import locked
from kvorum.spark.pipeline.output_files import RemoteOutput

ROOT = "memory://locked"
PATH = f"{ROOT}/{LOCK}"


def left_by(*, pid: int, host: str) -> RemoteOutput:
    files = RemoteOutput(ROOT, {})
    holder = {"pid": pid, "host": host, "token": "of another run"}
    files.write(PATH, json.dumps(holder).encode())
    return files


def test_a_former_process_with_the_id_of_this_one_has_ended() -> None:
    """A container's first process has the same id each time it is started."""
    files = left_by(pid=os.getpid(), host=socket.gethostname())
    with locked(files, ROOT):
        assert files.read(PATH) is not None
    assert files.read(PATH) is None


def test_another_run_of_this_process_holds_its_output() -> None:
    files = RemoteOutput(ROOT, {})
    with (
        locked(files, ROOT),
        pytest.raises(OutputInUseError, match=f"process {os.getpid()}"),
        locked(files, ROOT),
    ):
        pass


def test_a_process_of_another_machine_holds_its_output() -> None:
    files = left_by(pid=os.getpid(), host="elsewhere")
    with pytest.raises(OutputInUseError, match="on elsewhere"), locked(files, ROOT):
        pass
    files.remove(PATH)
