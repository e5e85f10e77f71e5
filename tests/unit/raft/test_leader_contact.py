"""Every state of a follower's leader with everything that can be heard of it."""

from itertools import product

import pytest

from kvorum.raft import Endpoint, IllegalMoveError, OffsetAndEpoch, ReplicaKey
from kvorum.raft.messages import VoteRequest
from kvorum.raft.roles import ContactEvent, Follower, LeaderContact
from kvorum.raft.roles.leader_contact import CONTACT_MOVES, contact_after

ENDPOINTS = (Endpoint("CONTROLLER", "host", 9093),)
ILLEGAL = {
    *product(set(LeaderContact) - {LeaderContact.GONE}, [ContactEvent.YIELDED]),
    *product([LeaderContact.GONE, LeaderContact.YIELDED], [ContactEvent.ENDED]),
}


def follower_in(contact: LeaderContact) -> Follower:
    """Return a follower that has come to a state the usual way."""
    follower = Follower(1, leader_id=2, leader_endpoints=ENDPOINTS, fetch_deadline=0.0)
    ways = {
        LeaderContact.UNHEARD: [],
        LeaderContact.ALIVE: [ContactEvent.ANSWERED],
        LeaderContact.RESIGNED: [ContactEvent.ANSWERED, ContactEvent.HANDED_OVER],
        LeaderContact.SILENT: [ContactEvent.TIMED_OUT],
        LeaderContact.GONE: [ContactEvent.ENDED],
        LeaderContact.YIELDED: [ContactEvent.ENDED, ContactEvent.YIELDED],
    }
    for event in ways[contact]:
        follower.note(event)
    assert follower.contact is contact
    return follower


@pytest.mark.parametrize(("contact", "event"), [*product(LeaderContact, ContactEvent)])
def test_what_can_happen_leads_to_a_state_and_nothing_else_does(
    contact: LeaderContact, event: ContactEvent
) -> None:
    follower = follower_in(contact)
    if (contact, event) in ILLEGAL:
        with pytest.raises(IllegalMoveError):
            follower.note(event)
        assert follower.contact is contact
    else:
        follower.note(event)
        assert follower.contact is CONTACT_MOVES[contact][event]


@pytest.mark.parametrize("contact", LeaderContact)
def test_an_answer_shows_that_the_leader_is_there(contact: LeaderContact) -> None:
    assert contact_after(contact, ContactEvent.ANSWERED) is LeaderContact.ALIVE


@pytest.mark.parametrize("contact", LeaderContact)
def test_no_event_but_an_answer_makes_a_leader_alive(contact: LeaderContact) -> None:
    others = {event for event, to in CONTACT_MOVES[contact].items() if to is LeaderContact.ALIVE}
    assert others == {ContactEvent.ANSWERED}


@pytest.mark.parametrize("contact", LeaderContact)
def test_only_a_living_leader_is_a_reason_to_refuse_a_pre_vote(contact: LeaderContact) -> None:
    other = ReplicaKey(3, b"3" * 16)
    request = VoteRequest(1, other, None, OffsetAndEpoch(0, 0), is_pre_vote=True)
    is_refused = contact is LeaderContact.ALIVE
    follower = follower_in(contact)
    assert follower.would_grant(request, is_up_to_date=True) is not is_refused
    assert not follower.would_grant(request, is_up_to_date=False)
    assert not follower.would_grant(request._replace(is_pre_vote=False), is_up_to_date=True)


@pytest.mark.parametrize("contact", LeaderContact)
def test_a_leader_that_is_gone_is_known_to_be(contact: LeaderContact) -> None:
    is_gone = contact in {LeaderContact.GONE, LeaderContact.YIELDED}
    assert follower_in(contact).is_leader_gone is is_gone
