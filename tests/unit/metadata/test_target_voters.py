"""The value of kvorum.quorum.target.voters: what is read, what is written, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.metadata.directory_ids import RESERVED_BELOW, is_reserved
from kvorum.metadata.voters import (
    INT32_MAX,
    InvalidTargetVotersError,
    VoterKey,
    checked_target_voters,
    parse_target_voters,
    target_voters_text,
)
from kvorum.wire.uuid_text import uuid_to_text

DIRECTORY = bytes(range(16))
DIRECTORY_TEXT = "AAECAwQFBgcICQoLDA0ODw"
NO_TARGET = "' is no target voter: expected the id of a node, or id:directory."


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("4", [VoterKey(4)]),
        ("6,4,5", [VoterKey(4), VoterKey(5), VoterKey(6)]),
        (" 4 ,\t5\n", [VoterKey(4), VoterKey(5)]),
        ("0,2147483647", [VoterKey(0), VoterKey(INT32_MAX)]),
        ("007", [VoterKey(7)]),
        (f"4:{DIRECTORY_TEXT},5", [VoterKey(4, DIRECTORY), VoterKey(5)]),
        (f"4:{DIRECTORY_TEXT}==", [VoterKey(4, DIRECTORY)]),
    ],
)
def test_target_voters_are_read_in_the_order_of_their_ids(
    text: str, targets: list[VoterKey]
) -> None:
    assert parse_target_voters(text) == tuple(targets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The target voters are empty: a quorum needs a voter."),
        (" \t", "The target voters are empty: a quorum needs a voter."),
        (",", NO_TARGET),
        ("4,", NO_TARGET),
        ("4,,5", NO_TARGET),
        ("four", "'four" + NO_TARGET),
        ("-1", "'-1" + NO_TARGET),
        ("+4", "'+4" + NO_TARGET),
        ("4.0", "'4.0" + NO_TARGET),
        ("1_0", "'1_0" + NO_TARGET),
        ("٤", "'٤" + NO_TARGET),
        ("²", "'²" + NO_TARGET),
        ("4 5", "'4 5" + NO_TARGET),
        (f":{DIRECTORY_TEXT}", NO_TARGET),
        ("2147483648", "2147483648 is not the id of a node."),
        ("12345678901", NO_TARGET),
        ("4,5,4", "The target voters list node 4 twice."),
        ("4,04", "The target voters list node 4 twice."),
        (f"4,4:{DIRECTORY_TEXT}", "The target voters list node 4 twice."),
        ("4:", "'' is no directory id of node 4: "),
        ("4:disk", "'disk' is no directory id of node 4: "),
        (f"4:{DIRECTORY_TEXT}:5", "' is no directory id of node 4: "),
        ("4:AAAAAAAAAAAAAAAAAAAAAA", "is reserved and names no directory of node 4."),
        ("4:AAAAAAAAAAAAAAAAAAAAAQ", "is reserved and names no directory of node 4."),
        ("4:AAAAAAAAAAAAAAAAAAAAYw", "is reserved and names no directory of node 4."),
    ],
)
def test_what_names_no_quorum_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidTargetVotersError) as raised:
        parse_target_voters(text)
    assert message in str(raised.value)


@pytest.mark.parametrize("text", ["9" * 5_000, "0" * 5_000, "x" * 5_000, f"4:{'A' * 5_000}"])
def test_a_long_value_is_refused_and_not_repeated_whole(text: str) -> None:
    """Python raises an error of its own for a number of more than 4,300 digits."""
    with pytest.raises(InvalidTargetVotersError) as raised:
        parse_target_voters(text)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("node_id", [-1, INT32_MAX + 1])
def test_an_id_beyond_those_of_nodes_is_refused(node_id: int) -> None:
    with pytest.raises(InvalidTargetVotersError, match=f"{node_id} is not the id of a node."):
        checked_target_voters([VoterKey(node_id)])


def directories() -> st.SearchStrategy[bytes]:
    first = RESERVED_BELOW.to_bytes(16, "big")
    return st.just(first) | st.binary(min_size=16, max_size=16).filter(
        lambda value: not is_reserved(value)
    )


TARGETS = st.lists(
    st.builds(VoterKey, st.integers(0, INT32_MAX) | st.integers(0, 9), st.none() | directories()),
    min_size=1,
    max_size=9,
    unique_by=lambda target: target.id,
)


@given(TARGETS)
def test_what_is_written_is_read_again(targets: list[VoterKey]) -> None:
    checked = checked_target_voters(targets)
    text = target_voters_text(checked)
    assert parse_target_voters(text) == checked
    assert set(checked) == set(targets)
    assert target_voters_text(parse_target_voters(text)) == text


@given(st.text(alphabet="0123456789,: +-AQxy=\t", max_size=40) | st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        targets = parse_target_voters(text)
    except InvalidTargetVotersError:
        return
    assert parse_target_voters(target_voters_text(targets)) == targets


def test_a_directory_is_written_as_kafka_writes_it() -> None:
    assert str(VoterKey(4, DIRECTORY)) == f"4:{uuid_to_text(DIRECTORY)}" == f"4:{DIRECTORY_TEXT}"
