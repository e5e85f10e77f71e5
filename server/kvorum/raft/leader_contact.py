"""A follower's contact with its leader: six states, and the moves between them.

A follower has one leader for the whole of an epoch, and the role itself does not change while that
leader is slow, or gone, or back. Three decisions rest on what the follower has last heard:

- whether it gives a pre-vote. It refuses only while it takes its leader for alive: a pre-vote that
  a follower of a living leader gives lets one voter with a bad link end an epoch (KIP-996);
- the node that it asks for records. It asks the leader, unless the fetch timeout has passed and it
may not
  stand for election: then another node may know who leads now;
- how long it waits before it stands. Usually it waits for the fetch timeout; where the leader's
  process has ended, it waits for its turn among the voters only.

The states are these, of which exactly one holds::

    state      pre-votes  asks         what has been heard
    UNHEARD    gives      the leader   that it leads, and nothing that shows that it is there
    ALIVE      refuses    the leader   an answer to a fetch, to a part of a snapshot, to a report
    RESIGNED   gives      the leader   that it has resigned, and the order of its successors
    SILENT     gives      anyone       nothing for a fetch timeout, and this replica may not stand
    GONE       gives      the leader   that its port refuses connections now
    YIELDED    gives      the leader   the same, and another voter was given precedence, once

An answer of the leader brings every state back to ALIVE: what was taken for its end was not.

The steps of a usual failover: (1) The leader's process ends, and its connections break; every voter
that follows it goes from ALIVE to GONE, and stops refusing pre-votes. (2) The first in line asks
for them. (3) Each other voter that gives one goes on to YIELDED: it waits a moment longer for the
first to win, but not once more for the next that asks, or no replica would stand in the end. (4)
The winner announces a higher epoch, and the role is replaced together with its state.

A leader that resigns can still be asked, but there is nothing to protect any more. A resignation
that names successors moves a follower from UNHEARD and ALIVE to RESIGNED: the successors have their
turns, whatever else the former leader answers. A resignation that names none comes from a leader
after its restart, and moves the follower to UNHEARD; the former leader's answer to a fetch, that it
does not lead, then counts as its end. The other states already record something worse, and stay.

A replica that may stand is never SILENT: at its fetch timeout it leaves the role (see `poll`).
Only a voter comes to GONE and YIELDED.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from kvorum.raft.errors import IllegalMoveError


class LeaderContact(Enum):
    """The state of a follower's contact with its leader."""

    UNHEARD = "unheard"
    ALIVE = "alive"
    RESIGNED = "resigned"
    SILENT = "silent"
    GONE = "gone"
    YIELDED = "yielded"


class ContactEvent(Enum):
    """An event that may change the contact with the leader."""

    ANSWERED = "the leader answered"
    TIMED_OUT = "the fetch timeout passed at a replica that may not stand"
    ENDED = "nobody listens where the leader listened, or it does not lead since its restart"
    RESIGNED = "the leader resigned and named no successors"
    HANDED_OVER = "the leader resigned and named its successors"
    YIELDED = "another voter was given precedence"


CONTACT_MOVES: Mapping[LeaderContact, Mapping[ContactEvent, LeaderContact]] = MappingProxyType(
    {
        LeaderContact.UNHEARD: {
            ContactEvent.ANSWERED: LeaderContact.ALIVE,
            ContactEvent.TIMED_OUT: LeaderContact.SILENT,
            ContactEvent.ENDED: LeaderContact.GONE,
            ContactEvent.RESIGNED: LeaderContact.UNHEARD,
            ContactEvent.HANDED_OVER: LeaderContact.RESIGNED,
        },
        LeaderContact.ALIVE: {
            ContactEvent.ANSWERED: LeaderContact.ALIVE,
            ContactEvent.TIMED_OUT: LeaderContact.SILENT,
            ContactEvent.ENDED: LeaderContact.GONE,
            ContactEvent.RESIGNED: LeaderContact.UNHEARD,
            ContactEvent.HANDED_OVER: LeaderContact.RESIGNED,
        },
        LeaderContact.RESIGNED: {
            ContactEvent.ANSWERED: LeaderContact.ALIVE,
            ContactEvent.TIMED_OUT: LeaderContact.SILENT,
            ContactEvent.ENDED: LeaderContact.GONE,
            ContactEvent.RESIGNED: LeaderContact.UNHEARD,
            ContactEvent.HANDED_OVER: LeaderContact.RESIGNED,
        },
        LeaderContact.SILENT: {
            ContactEvent.ANSWERED: LeaderContact.ALIVE,
            # A resignation has set another deadline, and that has passed as well.
            ContactEvent.TIMED_OUT: LeaderContact.SILENT,
            ContactEvent.ENDED: LeaderContact.GONE,
            ContactEvent.RESIGNED: LeaderContact.SILENT,
            ContactEvent.HANDED_OVER: LeaderContact.SILENT,
        },
        # The end of the leader's process is noticed once: here it has been noticed.
        LeaderContact.GONE: {
            ContactEvent.ANSWERED: LeaderContact.ALIVE,
            ContactEvent.TIMED_OUT: LeaderContact.SILENT,
            ContactEvent.RESIGNED: LeaderContact.GONE,
            ContactEvent.HANDED_OVER: LeaderContact.GONE,
            ContactEvent.YIELDED: LeaderContact.YIELDED,
        },
        LeaderContact.YIELDED: {
            ContactEvent.ANSWERED: LeaderContact.ALIVE,
            ContactEvent.TIMED_OUT: LeaderContact.SILENT,
            ContactEvent.RESIGNED: LeaderContact.YIELDED,
            ContactEvent.HANDED_OVER: LeaderContact.YIELDED,
        },
    }
)


def contact_after(contact: LeaderContact, event: ContactEvent) -> LeaderContact:
    """Return the state that an event leads to; raise IllegalMoveError where it cannot happen."""
    following = CONTACT_MOVES[contact].get(event)
    if following is None:
        raise IllegalMoveError(f"a follower whose leader is {contact.value}: {event.value}")
    return following
