"""Bytes that rot while a log is open are never read as records."""

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage.metadata_logs import HERE, open_log

from kvorum.storage.errors import CorruptLogError
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog

FIRST = make_batch(0, epoch=3, values=(b"one", b"two"))


def _log() -> tuple[MetadataLog, bytearray]:
    files = FaultyFiles()
    log = open_log(files, LogConfig())
    log.local_log.append(FIRST + make_batch(2, epoch=3) + make_batch(3, epoch=4))
    log.local_log.flush()
    return log, files.names[HERE / "00000000000000000000.log"].content


@pytest.mark.parametrize("byte", range(len(FIRST)))
def test_a_flipped_bit_is_noticed_wherever_it_is(byte: int) -> None:
    log, content = _log()
    whole = bytes(log.local_log.read(0, 1_000))
    content[byte] ^= 0x10
    with pytest.raises(CorruptLogError, match=r"00000000000000000000\.log"):
        log.local_log.read(0, 1_000)
    assert whole.startswith(FIRST)


@pytest.mark.parametrize("bit", range(64))
def test_no_flipped_bit_of_an_offset_makes_a_record_disappear(bit: int) -> None:
    log, content = _log()
    assert bytes(log.local_log.read(0, 1_000, end_offset=2)) == FIRST
    assert not log.local_log.read(0, 1_000, end_offset=1)
    content[bit // 8] ^= 0x80 >> bit % 8
    with pytest.raises(CorruptLogError, match=r"00000000000000000000\.log"):
        log.local_log.read(0, 1_000, end_offset=2)


def test_a_later_batch_that_says_another_offset_is_not_a_record() -> None:
    log, content = _log()
    content[len(FIRST) + 7] ^= 1
    with pytest.raises(CorruptLogError, match="offset 3 and epoch 3 lies where 2"):
        log.local_log.read(0, 1_000)


def test_a_batch_that_says_another_epoch_is_not_a_record() -> None:
    log, content = _log()
    content[15] ^= 1
    with pytest.raises(CorruptLogError, match="lies where 0, of epoch 3"):
        log.local_log.read(0, 1_000)


def test_every_batch_reads_as_it_was_written() -> None:
    log, _ = _log()
    assert len(log.local_log.read(0, 1_000)) == log.local_log.size_bytes
    assert bytes(log.local_log.read(1, 1)) == FIRST


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("bit", range(64))
def test_no_batch_is_taken_for_the_one_after_it(bit: int, *, is_indexed: bool) -> None:
    files = FaultyFiles()
    log = open_log(files, LogConfig(index_interval_bytes=0 if is_indexed else 4096)).local_log
    for offset in range(4):
        log.append(make_batch(offset, epoch=3))
    content = files.names[HERE / "00000000000000000000.log"].content
    size = len(content) // 4
    content[2 * size + bit // 8] ^= 0x80 >> bit % 8
    with pytest.raises(CorruptLogError, match=r"00000000000000000000\.log"):
        log.read(2, 1)
    if not is_indexed:
        with pytest.raises(CorruptLogError, match=r"00000000000000000000\.log"):
            log.read(3, 1)
