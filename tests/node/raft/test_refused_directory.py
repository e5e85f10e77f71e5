"""A replica that may not start leaves all of its directory as it was."""

from pathlib import Path

import pytest
from tests.node.raft.cluster import static_settings
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles, MemoryFile

from kvorum.node.raft.directory import open_directory
from kvorum.storage.errors import StorageError
from kvorum.storage.metadata_log.metadata_log import MetadataLog

HERE = Path("/data/__cluster_metadata-0")


@pytest.mark.parametrize(
    "state",
    [b"", b"rubbish", b'{"data_version":7}', b'{"leaderId":1,"data_version":1}'],
    ids=["empty", "rubbish", "unknown version", "incomplete"],
)
def test_a_quorum_state_that_cannot_be_read_leaves_the_log_alone(state: bytes) -> None:
    files = FaultyFiles()
    log = MetadataLog.open(HERE, files=files, now_ms=0).local_log
    log.append(make_batch(0))
    log.flush()
    left = files.after_process_crash()
    left.names[HERE / f"{0:020d}.log"].content.extend(make_batch(1)[:-5])
    left.names[HERE / f"{0:020d}.log.deleted"] = MemoryFile(b"of a former run")
    left.names[HERE / "quorum-state"] = MemoryFile(state)
    before = {path: bytes(file.content) for path, file in left.names.items()}
    with pytest.raises(StorageError):
        open_directory(static_settings(HERE), files=left, now_ms=0)
    assert {path: bytes(file.content) for path, file in left.names.items()} == before
