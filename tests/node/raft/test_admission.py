"""Changes of the voters by hand while the quorum is reassigned (KIP-642): which are let through."""

import pytest

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.target_voters import TARGET_VOTERS
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import add_raft_voter, remove_raft_voter
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

BROKER = 4
DISK, OTHER_DISK = bytes([0xA0]) * 16, bytes([0xB0]) * 16
DISK_TEXT = uuid_to_text(DISK)
TARGETS_TEXT = "the target voters 4,5, to which the quorum is being reassigned."


def wanting(value: str | None) -> MetadataImage:
    return MetadataImage().apply(ConfigRecord(BROKER, "", TARGET_VOTERS, value), 0, 0)


def answer(api: RaftApi[Message], image: MetadataImage, request: Message) -> tuple[int, str] | None:
    """Return the error and message of the refusal, None where the replica gets the request."""
    assert api.admit is not None
    response = api.admit(image, request)
    if response is None:
        return None
    assert isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse)
    return response.error_code, response.error_message or ""


def adding(value: str | None, node_id: int, directory_id: bytes = DISK) -> tuple[int, str] | None:
    request = AddRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id)
    return answer(add_raft_voter.API, wanting(value), request)


def removing(value: str | None, node_id: int, directory_id: bytes = DISK) -> tuple[int, str] | None:
    request = RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id)
    return answer(remove_raft_voter.API, wanting(value), request)


@pytest.mark.parametrize("value", [None, "", "four", "4,4", "9" * 5_000])
def test_without_a_target_that_can_be_read_every_change_is_let_through(value: str | None) -> None:
    assert adding(value, 7) is None
    assert removing(value, 4) is None


def test_a_target_may_be_added_by_hand_and_no_other() -> None:
    assert adding("4,5", 4) is None
    text = f"Voter 6:{DISK_TEXT} is none of {TARGETS_TEXT}"
    assert adding("4,5", 6) == (ErrorCode.REASSIGNMENT_IN_PROGRESS, text)


def test_any_voter_may_be_removed_by_hand_but_no_target() -> None:
    assert removing("4,5", 6) is None
    text = f"Voter 5:{DISK_TEXT} is one of {TARGETS_TEXT}"
    assert removing("4,5", 5) == (ErrorCode.REASSIGNMENT_IN_PROGRESS, text)


def test_a_target_with_its_directory_is_not_another_directory_of_that_node() -> None:
    value = f"4:{DISK_TEXT},5"
    assert adding(value, 4) is None
    assert removing(value, 4) is not None
    assert adding(value, 4, OTHER_DISK) is not None
    assert removing(value, 4, OTHER_DISK) is None


def test_a_request_without_a_directory_is_refused_by_the_id_alone() -> None:
    refused = adding("4,5", 6, ZERO_UUID)
    assert refused is not None
    assert refused[1].startswith("Voter 6 is none of ")


def test_a_stray_value_of_a_single_broker_refuses_nothing() -> None:
    image = MetadataImage().apply(ConfigRecord(BROKER, "1", TARGET_VOTERS, "4"), 0, 0)
    request = AddRaftVoterRequest(voter_id=6, voter_directory_id=DISK)
    assert answer(add_raft_voter.API, image, request) is None
