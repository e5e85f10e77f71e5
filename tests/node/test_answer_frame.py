"""Error messages that quote too much."""

import pytest
from tests.support.raw_client import RawClient

from kvorum.node.serving.answer_frame import encode_answer
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError
from kvorum.wire.headers import decode_response_frame
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

LONGEST = 32_767


@pytest.mark.parametrize("letter", ["x", "é", "€"])
def test_a_message_that_does_not_fit_is_cut_between_two_characters(letter: str) -> None:
    topic = CreateTopicsResponse.CreatableTopicResult(
        name="t", error_message=letter * LONGEST + "!"
    )
    frame = encode_answer(CreateTopicsResponse(topics=[topic]), version=7, correlation_id=5)
    header, response = decode_response_frame(frame, response_class=CreateTopicsResponse, version=7)
    message = response.topics[0].error_message
    assert header.correlation_id == 5
    assert message is not None
    assert set(message) == {letter}
    assert LONGEST - len(letter.encode()) < len(message.encode()) <= LONGEST


def test_anything_else_that_does_not_fit_is_an_error() -> None:
    topic = CreateTopicsResponse.CreatableTopicResult(name="x" * (LONGEST + 1))
    with pytest.raises(EncodeError):
        encode_answer(CreateTopicsResponse(topics=[topic]), version=7, correlation_id=5)


def test_the_longest_name_is_refused_and_not_met_with_silence(controller: RawClient) -> None:
    topic = CreateTopicsRequest.CreatableTopic("x" * LONGEST, 1, 1)
    request = CreateTopicsRequest([topic], 60_000)
    response = controller.ask(request, CreateTopicsResponse, 7)
    assert response.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
