"""quorum-state, properties, partition.metadata, locks and the like."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.storage.errors import (
    CorruptFileError,
    DirectoryLockedError,
    MetaPropertiesError,
    PropertiesFormatError,
    StorageError,
    UnknownVersionError,
)
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.producer_snapshot import encode_producer_snapshot
from kvorum.storage.small_files.clean_shutdown import (
    read_clean_shutdown,
    renew_clean_shutdown,
    take_clean_shutdown,
    write_clean_shutdown,
)
from kvorum.storage.small_files.directory_lock import lock_directory
from kvorum.storage.small_files.java_properties import load_java_properties, store_java_properties
from kvorum.storage.small_files.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    draw_directory_id,
    encode_meta_properties,
    is_reserved_directory_id,
    load_meta_properties,
)
from kvorum.storage.small_files.offset_checkpoint_file import decode_offsets
from kvorum.storage.small_files.partition_metadata import (
    check_partition_metadata,
    read_partition_metadata,
    write_partition_metadata,
)
from kvorum.storage.small_files.quorum_state import (
    QuorumState,
    QuorumStateFile,
    decode_quorum_state,
    encode_quorum_state,
)

FILES = RealFileSystem()
VERSION_0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
)
VERSION_1 = (
    b'{"leaderId":-1,"leaderEpoch":10,"votedId":2,'
    b'"votedDirectoryId":"j7MVWhzdWf1mVKzeMLoj1Q","data_version":1}'
)
NOW = datetime(2026, 11, 7, 4, 28, 5, tzinfo=UTC)
META = MetaProperties(cluster_id="kvorum", node_id=3, directory_id=b"0123456789abcdef")


def test_quorum_state_of_version_0() -> None:
    state = decode_quorum_state(VERSION_0, Path("f"))
    assert state == QuorumState(leader_epoch=2, leader_id=1, voters=(1, 2))
    assert encode_quorum_state(state, 0) == VERSION_0


def test_quorum_state_of_version_1() -> None:
    state = decode_quorum_state(VERSION_1, Path("f"))
    assert (state.leader_epoch, state.leader_id, state.voted_id) == (10, None, 2)
    assert state.voted_directory_id is not None
    assert encode_quorum_state(state, 1) == VERSION_1


def test_quorum_state_is_read_back(tmp_path: Path) -> None:
    file = QuorumStateFile(tmp_path, FILES)
    assert file.read() is None
    file.write(QuorumState(leader_epoch=1), version=1)
    file.write(QuorumState(leader_epoch=2, leader_id=4), version=1)
    assert file.read() == QuorumState(leader_epoch=2, leader_id=4)
    assert [path.name for path in tmp_path.iterdir()] == ["quorum-state"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100,
        b"null",
        b"[]",
        b"{}",
        VERSION_1[:-1],
        VERSION_1.replace(b"leaderEpoch", b"leaderepoch"),
        VERSION_1.replace(b"10", b'"10"'),
        VERSION_1.replace(b"10", b"1e1"),
        VERSION_1.replace(b"10", b"99999999999"),
        VERSION_1.replace(b"10", b"true"),
        VERSION_1.replace(b"j7", b"?7"),
        VERSION_1.replace(b"j7MVWhzdWf1mVKzeMLoj1Q", b""),
        VERSION_1.replace(b'"data_version":1', b'"data_version":null'),
        VERSION_0.replace(b"[", b"").replace(b"]", b""),
        VERSION_0.replace(b'"clusterId":""', b'"clusterId":"\xff"'),
        VERSION_0.replace(b'{"voterId":2}', b"2"),
        VERSION_0.replace(b'{"voterId":2}', b"{}"),
    ],
)
def test_a_broken_quorum_state_is_never_read_as_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "quorum-state").write_bytes(data)
    with pytest.raises(CorruptFileError) as caught:
        QuorumStateFile(tmp_path, FILES).read()
    assert caught.value.file == tmp_path / "quorum-state"
    assert "vote twice" in caught.value.advice


@pytest.mark.parametrize("version", [0, 1])
def test_no_flipped_bit_of_a_quorum_state_is_believed(tmp_path: Path, version: int) -> None:
    file = QuorumStateFile(tmp_path, FILES)
    state = QuorumState(
        leader_epoch=10, voted_id=2, voted_directory_id=bytes(range(16)), voters=(1, 2)
    )
    file.write(state, version=version)
    data = bytearray((tmp_path / "quorum-state").read_bytes())
    whole = decode_quorum_state(bytes(data), file.path)
    for place in range(len(data) * 8):
        data[place // 8] ^= 1 << place % 8
        with pytest.raises((CorruptFileError, UnknownVersionError)):
            decode_quorum_state(bytes(data), file.path)
        data[place // 8] ^= 1 << place % 8
    assert decode_quorum_state(bytes(data), file.path) == whole


def test_a_quorum_state_that_kafka_wrote_has_no_checksum(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").write_bytes(VERSION_1)
    file = QuorumStateFile(tmp_path, FILES)
    state = file.read()
    assert state is not None
    file.write(state, version=1)
    assert file.path.read_bytes().startswith(VERSION_1[:-1] + b',"kvorumChecksum":"')
    assert file.read() == state


@pytest.mark.parametrize("version", [-1, 2, 7])
def test_a_quorum_state_of_an_unknown_version_is_refused(tmp_path: Path, version: int) -> None:
    data = VERSION_1.replace(b'version":1', b'version":%d' % version)
    (tmp_path / "quorum-state").write_bytes(data)
    with pytest.raises(UnknownVersionError, match="is not within the min"):
        QuorumStateFile(tmp_path, FILES).read()
    with pytest.raises(UnknownVersionError):
        encode_quorum_state(QuorumState(leader_epoch=1), version)


def test_meta_properties_as_kafka_writes_them() -> None:
    data = encode_meta_properties(META, now=NOW)
    assert data == (
        b"#\n#Sat Nov 07 04:28:05 UTC 2026\nnode.id=3\n"
        b"directory.id=MDEyMzQ1Njc4OWFiY2RlZg\nversion=1\ncluster.id=kvorum\n"
    )
    assert decode_meta_properties(data) == META


def test_meta_properties_of_version_0_may_lack_anything() -> None:
    assert decode_meta_properties(b"") == MetaProperties(version=0)
    found = decode_meta_properties(b"broker.id=7\ncluster.id=a\\ b")
    assert found == MetaProperties(version=0, cluster_id="a b", node_id=7)
    assert b"\nbroker.id=7\nversion=0\n" in encode_meta_properties(found, now=NOW)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version=x", "Invalid meta.properties version string 'x'"),
        ("version=2", "Unknown meta.properties version number 2"),
        ("version=1", "Failed to find node.id"),
        ("version=1\nnode.id=a", "Unable to read node.id as a base-10 number."),
        ("version=1\nnode.id=1_0", "Unable to read node.id as a base-10 number."),
        ("version=1\nnode.id=1", "cluster.id was not found."),
        ("directory.id=nothing", "Unable to read directory.id as a Uuid"),
        ("broker.id=99999999999", "Unable to read broker.id as a base-10 number."),
    ],
)
def test_meta_properties_that_kafka_refuses(text: str, message: str) -> None:
    with pytest.raises(MetaPropertiesError) as caught:
        decode_meta_properties(text.encode())
    assert message in str(caught.value)


@pytest.mark.parametrize(("low", "expected"), [(0, True), (99, True), (100, False), (2**63, True)])
def test_reserved_directory_ids(low: int, expected: bool) -> None:
    assert is_reserved_directory_id(bytes(8) + low.to_bytes(8)) is expected
    assert not is_reserved_directory_id(b"\1" + bytes(15))


def write_meta(directory: Path, properties: MetaProperties) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "meta.properties").write_bytes(encode_meta_properties(properties, now=NOW))


def test_the_files_of_a_node_are_completed_and_written(tmp_path: Path) -> None:
    one, two, three = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    write_meta(one, META)
    write_meta(two, replace(META, directory_id=None))
    three.mkdir()
    loaded = load_meta_properties([two, three], FILES, metadata_directory=one)
    loaded.verify(expected_node_id=3, at_least_one=True)
    assert (loaded.cluster_id, loaded.node_id) == ("kvorum", 3)
    assert list(loaded.properties) == [one, two]
    assert loaded.failed_directories == {}
    completed = loaded.with_directory_ids(Random(1))
    assert completed.write_changes(loaded, FILES, now=NOW) == [two]
    again = load_meta_properties([two], FILES, metadata_directory=one)
    assert again.properties[two].directory_id not in {None, META.directory_id}
    assert again.properties == completed.properties


def test_files_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    write_meta(one, META)
    for other, message in (
        (replace(META, cluster_id="x"), f"Invalid cluster.id in: {two}/meta.properties. "),
        (replace(META, node_id=4), "Stored node id 4 doesn't match previous node id 3 in "),
        (replace(META, directory_id=bytes(16)), "Invalid reserved directory ID AAAAAAAAAAAAA"),
        (META, "Duplicate directory ID Optional[MDEyMzQ1Njc4OWFiY2RlZg] found. It was the ID of"),
    ):
        write_meta(two, other)
        loaded = load_meta_properties([two], FILES, metadata_directory=one)
        with pytest.raises(MetaPropertiesError) as caught:
            loaded.verify()
        assert message in str(caught.value)


def test_a_metadata_directory_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=9")
    loaded = load_meta_properties([], FILES, metadata_directory=tmp_path)
    assert list(loaded.failed_directories) == [tmp_path]
    with pytest.raises(MetaPropertiesError, match="Encountered I/O error in metadata log direc"):
        loaded.verify()
    with pytest.raises(MetaPropertiesError, match="No readable"):
        loaded.verify(at_least_one=True)


def test_drawn_directory_ids_are_new() -> None:
    first = draw_directory_id(Random(5))
    assert draw_directory_id(Random(5), [first]) != first


def test_partition_metadata(tmp_path: Path) -> None:
    assert read_partition_metadata(tmp_path, FILES) is None
    assert not check_partition_metadata(tmp_path, FILES)
    write_partition_metadata(tmp_path, FILES)
    assert check_partition_metadata(tmp_path, FILES)
    path = tmp_path / "partition.metadata"
    assert path.read_bytes() == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    with pytest.raises(CorruptFileError, match="another topic"):
        check_partition_metadata(tmp_path, FILES, topic_id=b"x" * 16)


def test_a_later_version_of_partition_metadata_names_the_topic_as_well(tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    path.write_bytes(b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\nmore: 1")
    assert check_partition_metadata(tmp_path, FILES)


@pytest.mark.parametrize(
    ("content", "error", "problem"),
    [
        (b"", CorruptFileError, "not a partition metadata file"),
        (b"version: -1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", UnknownVersionError, "version -1"),
        (b"\xff: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", CorruptFileError, "not a partition"),
    ],
)
def test_damaged_partition_metadata_is_refused(
    tmp_path: Path, content: bytes, error: type[StorageError], problem: str
) -> None:
    (tmp_path / "partition.metadata").write_bytes(content)
    with pytest.raises(error, match=problem):
        check_partition_metadata(tmp_path, FILES)


def test_a_checkpoint_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="not UTF-8"):
        decode_offsets(b"0\n1\ntopic\xff 0 0\n", Path("file"), advice="")


def test_the_empty_producer_state() -> None:
    assert encode_producer_snapshot({}).hex() == "000148674bc700000000"


@pytest.mark.parametrize("data", [b"", b"rubbish", b"[]", b'{"brokerEpoch":"x"}'])
def test_a_clean_shutdown_that_says_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(data)
    assert take_clean_shutdown(tmp_path, FILES).broker_epoch is None
    assert list(tmp_path.iterdir()) == []


def test_a_mark_that_is_there_is_renewed(tmp_path: Path) -> None:
    renew_clean_shutdown(tmp_path, FILES, broker_epoch=66)
    assert not read_clean_shutdown(tmp_path, FILES).was_clean
    write_clean_shutdown(tmp_path, FILES, broker_epoch=8)
    renew_clean_shutdown(tmp_path, FILES, broker_epoch=66)
    assert read_clean_shutdown(tmp_path, FILES).broker_epoch == 66


def test_a_clean_shutdown_counts_once(tmp_path: Path) -> None:
    write_clean_shutdown(tmp_path, FILES, broker_epoch=1323)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":1323}'
    assert take_clean_shutdown(tmp_path, FILES).broker_epoch == 1323
    assert take_clean_shutdown(tmp_path, FILES).broker_epoch is None


def test_a_directory_has_one_owner_in_this_process(tmp_path: Path) -> None:
    held = lock_directory(tmp_path, FILES)
    for files in (FILES, RealFileSystem()):
        with pytest.raises(DirectoryLockedError, match="using this directory"):
            lock_directory(tmp_path, files)
    held.release()
    held.release()
    lock_directory(tmp_path, FILES).release()


@pytest.mark.process
def test_a_directory_has_one_owner_among_processes(tmp_path: Path) -> None:
    program = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError: print('refused')\n"
        "else: print('locked', flush=True); sys.stdin.readline()\n"
    )
    path = tmp_path / ".lock"
    held = lock_directory(tmp_path, FILES)
    command = [sys.executable, "-c", program, str(path)]
    refused = subprocess.run(command, check=True, capture_output=True, text=True, input="")
    assert refused.stdout == "refused\n"
    held.release()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(DirectoryLockedError):
            lock_directory(tmp_path, FILES)
        other.communicate("\n")
    lock_directory(tmp_path, FILES).release()


def test_an_error_says_file_place_and_advice_on_one_line() -> None:
    error = StorageError("is bad", file=Path("/a"), offset=7, advice="Do that")
    assert str(error) == "/a: is bad (at byte 7). Do that"
    assert str(StorageError("is bad")) == "is bad"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("key=value", {"key": "value"}),
        ("  key = value ", {"key": "value "}),
        ("key:value", {"key": "value"}),
        ("key value", {"key": "value"}),
        ("key\t \f=  value", {"key": "value"}),
        ("key = = value", {"key": "= value"}),
        ("key", {"key": ""}),
        ("=value", {"": "value"}),
        ("# a=b\n! c=d\n  # e=f\ng=h", {"g": "h"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3\n\n \t\nd=4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("a = one, \\\n    two, \\\r\n  three", {"a": "one, two, three"}),
        ("a=one\\\n# not a comment", {"a": "one# not a comment"}),
        ("a=one\\\\\nb=two", {"a": "one\\", "b": "two"}),
        ("a=one\\\n\nb=two", {"a": "one", "b": "two"}),
        ("a=end\\", {"a": "end"}),
        ("a=b\n\\", {"a": "b", "": ""}),
        ("# comment \\\na=b", {"a": "b"}),
        ("a\\ b\\:c\\=d = e", {"a b:c=d": "e"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u0041\\u00e9\\ud83d\\ude00", {"a": "A\u00e9\U0001f600"}),
        ("key\\\n  more = value", {"keymore": "value"}),
        ("\\\n\\\n# comment after nothing\na=b", {"a": "b"}),
    ],
)
def test_loading(text: str, expected: dict[str, str]) -> None:
    assert load_java_properties(text) == expected


def test_bytes_are_latin_1() -> None:
    assert load_java_properties(b"a=\xe9\xc3\xa9") == {"a": "\u00e9\u00c3\u00a9"}


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12G4", "a=\\u"])
def test_a_malformed_escape_is_refused(text: str) -> None:
    with pytest.raises(PropertiesFormatError, match="Malformed"):
        load_java_properties(text)


def test_storing_writes_comments_and_escapes() -> None:
    text = store_java_properties([("a b", " x y"), ("c:=#!", "\t\u00e9")], comments=["", "now"])
    assert text == "#\n#now\na\\ b=\\ x y\nc\\:\\=\\#\\!=\\t\\u00E9\n"


@given(st.dictionaries(st.text(), st.text(), max_size=5))
def test_what_is_stored_is_loaded_again(properties: dict[str, str]) -> None:
    text = store_java_properties(properties.items(), comments=["comment"])
    assert load_java_properties(text.encode("ascii")) == properties
