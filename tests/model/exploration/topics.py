"""The topics that are explored: the correct design within bounds, each mistake with its break."""

from collections.abc import Mapping
from dataclasses import replace

from tests.model.exploration import target_topics
from tests.model.exploration.design import Bounds, Design, Mistake

_LED = Bounds(is_led=True, pre_votes=False, syncs_at_once=True)
_REPLACED = Bounds(pre_votes=False, syncs_at_once=True, replacements=1)

QUICK: Mapping[str, Bounds] = {
    "elections with pre-votes": Bounds(epochs=2, syncs_at_once=True),
    "a leader goes, and says so": Bounds(is_led=True, resignations=1, syncs_at_once=True),
    "elections without pre-votes, a message late": Bounds(
        epochs=1, pre_votes=False, delayed=1, resignations=1
    ),
    "unflushed tails lost in a crash": Bounds(is_led=True, pre_votes=False, writes=1, crashes=1),
    "voter changes": replace(_LED, changes=2),
    "snapshots and the log's start": replace(_LED, writes=1, snapshots=1),
    "a snapshot that holds voters": replace(_LED, voters=2, changes=1, snapshots=1),
    "a disk is replaced among elections": _REPLACED,
    "a disk is replaced, and becomes a voter": replace(_LED, changes=2, replacements=1),
    **target_topics.QUICK,
}
"""Exhausted in every test run."""

LARGE: Mapping[str, Bounds] = {
    "voter changes from two voters, with a crash": Bounds(
        voters=2, is_led=True, pre_votes=False, changes=1, crashes=1
    ),
    "elections with pre-votes and crashes": Bounds(epochs=2, crashes=1, resignations=1),
    "elections without pre-votes, a message late": Bounds(
        epochs=2, pre_votes=False, delayed=1, syncs_at_once=True
    ),
    "elections, two messages late": Bounds(epochs=1, delayed=2, syncs_at_once=True),
    "unflushed tails through three epochs": Bounds(
        epochs=3, is_led=True, pre_votes=False, writes=1, crashes=1
    ),
    "unflushed tails and partial fetches": Bounds(
        is_led=True, pre_votes=False, writes=2, crashes=1, partial_fetches=True
    ),
    "voter changes among four nodes": replace(_LED, nodes=4, voters=3, changes=2),
    "voter changes through three epochs": replace(_LED, epochs=3, changes=2),
    "voter changes with a crash": Bounds(is_led=True, pre_votes=False, changes=1, crashes=1),
    "snapshots with two writes": replace(_LED, writes=2, snapshots=1),
    "snapshots with a crash": Bounds(
        is_led=True, pre_votes=False, writes=1, snapshots=1, crashes=1
    ),
    "snapshots and voter changes": replace(_LED, changes=2, snapshots=1),
    "a disk is replaced among elections with pre-votes": Bounds(syncs_at_once=True, replacements=1),
    "a disk is replaced, a message late": Bounds(
        epochs=1, pre_votes=False, syncs_at_once=True, delayed=1, replacements=1
    ),
    "a disk is replaced, and unflushed tails are lost": Bounds(
        is_led=True, pre_votes=False, writes=1, crashes=1, replacements=1
    ),
    "a disk is replaced, and snapshots": replace(_LED, writes=1, snapshots=1, replacements=1),
    "a disk is replaced among three voter changes": replace(_LED, changes=3, replacements=1),
    **target_topics.LARGE,
}
"""Exhausted on demand; together they take from half an hour to some hours."""


_ELECTIONS = Bounds(syncs_at_once=True)
_CRASH = Bounds(pre_votes=False, crashes=1, syncs_at_once=True)
_LOST_TAIL = Bounds(epochs=1, pre_votes=False, crashes=1, writes=2)
_WRITE = Bounds(is_led=True, pre_votes=False, writes=1, crashes=1)
_SYNCED_WRITES = replace(_LED, epochs=3, writes=2)
_CHANGES = replace(_LED, changes=2)
_SNAPSHOTS = replace(_LED, writes=2, snapshots=1)
_TWO_LEADERS = (
    *("changes voters to 0 7", "stands 2"),
    *("vote 2 1 granted", "vote 2 3 granted", "leads 2"),
)
_TWO_LEADERS_CHANGE = replace(_LED, nodes=4, voters=4, epochs=3, changes=2, prologue=_TWO_LEADERS)
_LED_BY_TWO = (
    *("stands 0", "vote 0 1 granted", "leads 0"),
    *("stands 1", "begin 0 1 done", "vote 1 2 granted", "leads 1"),
)
_LATE_REPLY = Bounds(pre_votes=False, syncs_at_once=True, delayed=1, prologue=_LED_BY_TWO)
_BACK_AGAIN = (
    *("writes 0", "stands 1", "vote 1 2 granted", "leads 1"),
    *("begin 1 0 done", "stands 0", "vote 0 2 granted"),
)
_FIGURE_8 = replace(_LED, epochs=4, writes=1, partial_fetches=True, prologue=_BACK_AGAIN)

MISTAKES: Mapping[str, Mistake] = {
    "a vote is not durable": Mistake(
        Design(forgets_vote_in_crash=True), _CRASH, ("vote_once", "one_leader_per_epoch")
    ),
    "a lost pre-vote takes the vote of the epoch with it": Mistake(
        Design(forgets_vote_when_pre_vote_fails=True),
        _ELECTIONS,
        ("vote_once", "one_leader_per_epoch", "epochs_grow"),
    ),
    "votes do not look at the log": Mistake(
        Design(votes_for_any_log=True), _WRITE, ("leader_completeness",)
    ),
    "who has a voter's id and another directory stands, and counts the voter's vote": Mistake(
        Design(stands_by_id=True), _REPLACED, ("one_leader_per_epoch", "leader_completeness")
    ),
    "who has a voter's id and another directory gives the voter's vote": Mistake(
        Design(grants_by_id=True), _REPLACED, ("one_leader_per_epoch", "leader_completeness")
    ),
    "a pre-vote binds": Mistake(
        Design(pre_vote_binds=True), _ELECTIONS, ("pre_vote_leaves_no_trace",)
    ),
    "a pre-vote is given against a leader that is alive": Mistake(
        Design(pre_vote_against_living_leader=True),
        Bounds(is_led=True, syncs_at_once=True),
        ("living_leader_is_kept",),
    ),
    "a candidate claims a log that is not durable": Mistake(
        Design(stands_with_unflushed_log=True), _WRITE, ("leader_completeness",)
    ),
    "a reply to what a node was before is believed": Mistake(
        Design(believes_stale_replies=True), _LATE_REPLY, ("durable_majority",)
    ),
    "a leader leads on after a restart": Mistake(
        Design(leads_on_after_restart=True), _LOST_TAIL, ("log_matching",)
    ),
    "a restarted leader votes in the epoch it led": Mistake(
        Design(votes_in_epoch_it_led=True), _LOST_TAIL, ("vote_once", "one_leader_per_epoch")
    ),
    "a leader counts what it has not flushed": Mistake(
        Design(counts_unflushed_tail=True), _WRITE, ("durable_majority", "leader_completeness")
    ),
    "a follower fetches on before it has flushed": Mistake(
        Design(fetches_before_flush=True), _WRITE, ("durable_majority", "leader_completeness")
    ),
    "records of older epochs are committed by counting": Mistake(
        Design(commits_older_epochs_by_count=True), _FIGURE_8, ("leader_completeness",)
    ),
    "a fetch is served without a look at its epoch": Mistake(
        Design(appends_without_epoch_check=True),
        _SYNCED_WRITES,
        ("log_matching", "durable_majority", "committed_stays"),
    ),
    "a log is cut off below what is committed": Mistake(
        Design(votes_for_any_log=True, truncates_below_watermark=True), _WRITE, ("watermark_stays",)
    ),
    "voters change before a commit in the leader's own epoch": Mistake(
        Design(changes_voters_before_own_commit=True),
        _TWO_LEADERS_CHANGE,
        ("overlapping_majorities", "leader_completeness"),
    ),
    "a second voter change does not wait for the first": Mistake(
        Design(changes_voters_twice=True),
        _CHANGES,
        ("overlapping_majorities", "leader_completeness"),
    ),
    "a change that ran out of time is forgotten (KAFKA-20740)": Mistake(
        Design(forgets_changes_out_of_time=True),
        replace(_CHANGES, nodes=2, voters=2),
        ("overlapping_majorities", "leader_completeness"),
    ),
    "two voters change at once": Mistake(
        Design(changes_many_voters=True),
        replace(_LED, nodes=4, changes=1),
        ("overlapping_majorities", "leader_completeness"),
    ),
    "a leader counts itself when it is no voter": Mistake(
        Design(counts_itself_outside_voters=True), _CHANGES, ("durable_majority",)
    ),
    "voters of a record that was cut off stay in force": Mistake(
        Design(keeps_voters_when_truncating=True), _CHANGES, ("overlapping_majorities",)
    ),
    "a snapshot is taken of what is not committed": Mistake(
        Design(snapshots_uncommitted=True), _SNAPSHOTS, ("snapshots_are_committed",)
    ),
    "an installed snapshot keeps the log behind it": Mistake(
        Design(snapshot_keeps_tail=True), _SNAPSHOTS, ("epochs_in_order",)
    ),
    "a log that ends where a snapshot does is taken to be the same": Mistake(
        Design(snapshot_known_by_offset=True), _SNAPSHOTS, ("log_matching",)
    ),
    **target_topics.MISTAKES,
}

GOING_ON: Mapping[str, Bounds] = {
    "elections with pre-votes": Bounds(epochs=1),
    "a leader of two removes a voter": replace(
        _LED, nodes=2, voters=2, epochs=3, changes=1, crashes=1
    ),
    "voters come and go, and one node dies": replace(_LED, voters=2, changes=1, deaths=1),
    "a disk is replaced, and a voter comes or goes": replace(_LED, changes=1, replacements=1),
}
"""Configurations in which a quorum must be able to go on from every state."""

DEAD_ENDS: Mapping[str, tuple[Design, str]] = {
    "who removes itself waits for others to elect a leader": (
        Design(removed_waits_for_others=True),
        "a leader of two removes a voter",
    ),
    "a node that does not know yet that it is a voter does not vote": (
        Design(observers_refuse_votes=True),
        "voters come and go, and one node dies",
    ),
}
"""Mistakes by which a quorum can come to a state that it does not get out of, and where."""
