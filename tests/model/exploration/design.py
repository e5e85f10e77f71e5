"""The design of the quorum, and what it would be with one mistake in it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of one exploration.

    `voters` of the `nodes` vote at first. `is_led` begins with node 0 leading epoch 1, whose first
    record everybody has. `delayed` messages may be on their way at once; all others arrive at once
    or never. Without `pre_votes` the nodes stand for election at once, as releases before 3.9 did.
    `replacements` are of disks, as long as a majority of the voters keeps what it has stored.
    `target_changes` are stated, replaced or cancelled by an operator (KIP-642). They name the
    voters by their ids; with `names_directories` by their directories too. `prologue` are steps
    that are taken before the exploration begins, as words. With `syncs_at_once` no log has an
    unflushed tail. With `partial_fetches` a fetch may also bring one record only.
    """

    nodes: int = 3
    voters: int = 3
    epochs: int = 2
    writes: int = 0
    crashes: int = 0
    changes: int = 0
    snapshots: int = 0
    resignations: int = 0
    deaths: int = 0
    replacements: int = 0
    target_changes: int = 0
    delayed: int = 0
    is_led: bool = False
    pre_votes: bool = True
    syncs_at_once: bool = False
    partial_fetches: bool = False
    names_directories: bool = False
    prologue: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The mistakes; without any, this is the quorum as it is meant to be."""

    forgets_vote_in_crash: bool = False
    forgets_vote_when_pre_vote_fails: bool = False
    votes_for_any_log: bool = False
    stands_by_id: bool = False
    grants_by_id: bool = False
    pre_vote_binds: bool = False
    pre_vote_against_living_leader: bool = False
    stands_with_unflushed_log: bool = False
    believes_stale_replies: bool = False
    leads_on_after_restart: bool = False
    votes_in_epoch_it_led: bool = False
    counts_unflushed_tail: bool = False
    fetches_before_flush: bool = False
    commits_older_epochs_by_count: bool = False
    appends_without_epoch_check: bool = False
    truncates_below_watermark: bool = False
    changes_voters_before_own_commit: bool = False
    changes_voters_twice: bool = False
    forgets_changes_out_of_time: bool = False
    changes_many_voters: bool = False
    counts_itself_outside_voters: bool = False
    keeps_voters_when_truncating: bool = False
    removed_waits_for_others: bool = False
    observers_refuse_votes: bool = False
    snapshots_uncommitted: bool = False
    snapshot_keeps_tail: bool = False
    snapshot_known_by_offset: bool = False
    acts_on_uncommitted_targets: bool = False
    acts_before_active: bool = False
    keeps_first_targets: bool = False
    takes_silent_for_fetching: bool = False
    takes_any_for_caught_up: bool = False
    forgets_who_leads: bool = False
    clears_replaced_targets: bool = False
    never_hands_over: bool = False
    forgets_targets_of_others: bool = False
    admits_any_change: bool = False


CORRECT = Design()


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in the design, the bounds it shows in, and the invariants it breaks."""

    design: Design
    bounds: Bounds
    breaks: tuple[str, ...]
