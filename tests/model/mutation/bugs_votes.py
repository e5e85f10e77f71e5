"""Bugs in votes: who may get one, what it is given for, and what is remembered of it."""

from tests.model.mutation.mutant import Edit, Kind, Mutant, liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="hashicorp/raft#661",
        cause="the epoch was stored without the vote in it",
        breaks="P2",
        within="Role.election_record",
        old="ElectionRecord(self.epoch, self.leader_id, self.voted)",
        new="ElectionRecord(self.epoch, self.leader_id)",
    ),
    safety_bug(
        id="vote answered before it is durable",
        cause="the answer to a vote left before the vote was stored",
        breaks="P2",
        within="Outbox.add",
        old="self._at_once if self._write is None else self._after_write",
        new="self._at_once",
    ),
    Mutant(
        id="microsoft/CCF#8094",
        cause="a step down within an epoch forgot the vote that was given in it",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="Replica.become_unattached",
                old="""
                    Unattached(
                        epoch,
                        election_deadline=deadline,
                        leader_id=old.leader_id if is_same else leader_id,
                        voted=old.voted if is_same else None,
                    )
                """,
                new="""
                    Unattached(
                        epoch,
                        election_deadline=deadline,
                        leader_id=old.leader_id if is_same else leader_id,
                    )
                """,
            ),
            Edit(
                within="_check_vote",
                old="new.epoch == old.epoch and old.voted is not None and (new.voted != old.voted)",
                new="new.epoch == old.epoch and old.voted and (new.voted not in {None, old.voted})",
            ),
        ),
    ),
    safety_bug(
        id="eliben/raft#27",
        cause="a message of the same epoch reset the vote",
        breaks="P2",
        within="handle_vote_request",
        old="is_up_to_date = request.log_end >= replica.log.end",
        new="""
            is_up_to_date = request.log_end >= replica.log.end
            if not request.is_pre_vote:
                replica.role.voted = None
        """,
    ),
    safety_bug(
        id="vote for a shorter log",
        cause="a vote was given without comparing the logs (section 5.4.1 of the Raft paper)",
        breaks="P5",
        within="handle_vote_request",
        old="request.log_end >= replica.log.end",
        new="request.log_end.offset >= 0",
    ),
    safety_bug(
        id="vote for the longer log, not the later epoch",
        cause="logs were compared by length before epoch",
        breaks="P5",
        within="handle_vote_request",
        old="request.log_end >= replica.log.end",
        new="""(
            (request.log_end.offset, request.log_end.epoch)
            >= (replica.log.end.offset, replica.log.end.epoch)
        )""",
    ),
    safety_bug(
        id="candidate claims what is not durable",
        cause="a vote was asked for with records that a power cut took away afterwards",
        breaks="P5",
        within="may_campaign",
        old="log.durable_end_offset == log.end_offset",
        new="log.end_offset >= 0",
    ),
    safety_bug(
        id="pre-vote counts as vote",
        cause="a pre-vote was stored as the vote of its epoch",
        breaks="P28",
        within="handle_vote_request",
        old="is_granted and not request.is_pre_vote and replica.role.voted is None",
        new="is_granted and replica.role.voted is None",
    ),
    liveness_bug(
        id="pre-vote against a living leader",
        cause="a voter that hears its leader gave pre-votes, so a cut link deposed the leader",
        breaks="L5",
        within="Follower.would_grant",
        old="request.is_pre_vote and not is_alive and is_up_to_date",
        new="request.is_pre_vote and is_up_to_date",
    ),
)
