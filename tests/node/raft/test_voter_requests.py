"""Requests about voters, in the versions that a peer knows."""

import pytest
from tests.node.raft.cluster import static_settings
from tests.support.pretended_quorum import HERE, endpoint_of, key_of

from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.raft.peer_exchange import PeerConnection, Response, ask_about_voters
from kvorum.raft import messages as core
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.primitives import Message

SETTINGS = static_settings(HERE)


class PlayedPeer(PeerConnection):
    """A leader that accepts every voter, and knows AddRaftVoter up to one version."""

    def __init__(self, version: int) -> None:
        self._version = version
        self.asked: list[Message] = []

    def version_for(self, message: type[Message]) -> int:
        return min(self._version, message.MAX_VERSION)

    async def request(self, message: Message, kind: type[Response], *, timeout_ms: int) -> Response:
        assert timeout_ms == SETTINGS.raft.request_timeout_ms
        self.asked.append(message)
        answer = AddRaftVoterResponse()
        assert isinstance(answer, kind)
        return answer


def joining(*, acks_when_committed: bool) -> core.AddRaftVoterRequest:
    return core.AddRaftVoterRequest(
        key_of(2), (endpoint_of(2),), acks_when_committed=acks_when_committed
    )


async def test_who_joins_by_itself_does_not_ask_a_leader_that_answers_at_the_commit() -> None:
    """It does not fetch until the response comes, and the commit may need its fetch."""
    peer = PlayedPeer(version=0)
    with pytest.raises(NoCommonVersionError, match="joins by itself"):
        await ask_about_voters(peer, joining(acks_when_committed=False), settings=SETTINGS)
    assert peer.asked == []


@pytest.mark.parametrize(("version", "acks_when_committed"), [(1, False), (1, True), (0, True)])
async def test_other_requests_are_sent(version: int, acks_when_committed: bool) -> None:
    peer = PlayedPeer(version)
    request = joining(acks_when_committed=acks_when_committed)
    response = await ask_about_voters(peer, request, settings=SETTINGS)
    assert isinstance(response, core.AddRaftVoterResponse)
    assert response.error is core.Error.NONE
    [asked] = peer.asked
    assert isinstance(asked, AddRaftVoterRequest)
    assert asked.ack_when_committed == acks_when_committed
