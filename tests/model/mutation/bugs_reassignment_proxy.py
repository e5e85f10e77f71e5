"""Mistakes in a reassignment of the quorum under a leader that does not act on it."""

from tests.model.mutation.mutant import liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="proxy decides on an image that is behind",
        cause="a step was taken towards target voters that the leader knew to be replaced",
        breaks="P31",
        within="QuorumReassignmentProxy._has_image_of",
        old="return False",
        new="return True",
    ),
    safety_bug(
        id="proxy lacks the last committed record",
        cause="the image counted as complete although the last committed record was not in it",
        breaks="P31",
        within="QuorumReassignmentProxy._has_image_of",
        old="self._loader.last_offset >= high_watermark - 1",
        new="self._loader.last_offset >= high_watermark - 2",
    ),
    safety_bug(
        id="proxy takes described voters for committed",
        cause="a step was taken although the log of the one who took it had other voters",
        breaks="P31",
        within="quorum_described_by",
        old="committed_voters == frozenset(state.key for state in voters)",
        new="committed_voters is not None",
    ),
    safety_bug(
        id="proxy takes uncommitted voters for committed",
        cause="a step was taken while the change before it was in the logs, but not committed",
        breaks="P31",
        within="RaftClient.committed_voters",
        old="not self.core.are_voters_committed",
        new="not self.voters.voters",
    ),
    liveness_bug(
        id="proxy changes voters before the leader has committed",
        cause="a step was taken under a leader that had not committed a record of its epoch",
        breaks="P31",
        within="quorum_described_by",
        old="answer.high_watermark >= 0",
        new="answer.high_watermark >= -1",
    ),
    liveness_bug(
        id="proxy goes on under a leader that leaves",
        cause="a step was asked of a leader that was no voter any more and about to resign",
        breaks="the leader leaves last",
        within="quorum_described_by",
        old="row is not None",
        new="row is None or row.replica_id >= 0",
    ),
    safety_bug(
        id="proxy acts beside a leader that acts itself",
        cause="the tagged field was not looked at, so two took the steps of one reassignment",
        breaks="one controller takes the steps",
        within="QuorumReassignmentProxy._described",
        old="""
            if reassignment_in(answer) is not None:
                self._acting_epoch = epoch
                return None
        """,
    ),
    liveness_bug(
        id="proxy leaves every later leader alone",
        cause="after one leader that acted itself, no leader was asked any more",
        breaks="L9",
        within="QuorumReassignmentProxy._look",
        old="epoch == self._acting_epoch",
        new="self._acting_epoch >= 0",
    ),
    safety_bug(
        id="proxy uses an answer of another epoch",
        cause="a step was decided from the answer of a leader that another one had replaced",
        breaks="P31",
        within="QuorumReassignmentProxy._described",
        old="answer.error_code != ErrorCode.NONE or answer.leader_epoch != epoch",
        new="answer.error_code != ErrorCode.NONE",
    ),
    safety_bug(
        id="proxy has the turn beside another",
        cause="all controllers waited equally long, and took the same step at the same time",
        breaks="one controller takes the steps",
        within="Turn.has_come",
        old="(rank + 1) * self._delay_ms",
        new="self._delay_ms",
    ),
    safety_bug(
        id="proxy has waited before there was a step",
        cause="the time in which a target was missing counted, so all acted when it came",
        breaks="one controller takes the steps",
        within="Turn.has_come",
        old="situation != self._situation",
        new="""
            (
                self._situation is None
                or replace(situation, waits_for=None)
                != replace(self._situation, waits_for=None)
            )
        """,
    ),
    safety_bug(
        id="proxy keeps its turn under the next leader",
        cause="who had acted for the last leader acted for the next at once, which acts itself",
        breaks="one controller takes the steps",
        within="Turn.has_come",
        old="replace(situation, waits_for=None) == self._own",
        new="""
            (
                self._own is not None
                and replace(situation, waits_for=None, leader_epoch=self._own.leader_epoch)
                == self._own
            )
        """,
    ),
    liveness_bug(
        id="proxy waits for itself",
        cause="who had taken a step waited before the next one as if another had taken it",
        breaks="one controller takes the steps",
        within="_voters_after",
        old="voters - {step.key}",
        new="voters",
    ),
    liveness_bug(
        id="proxy waits for the first of all",
        cause="only the lowest id acted, which was a real controller's",
        breaks="L9",
        within="Turn.has_come",
        old="now_ms - self._since_ms >= (rank + 1) * self._delay_ms",
        new="not rank and now_ms - self._since_ms >= self._delay_ms",
    ),
    liveness_bug(
        id="proxy waits for who is down",
        cause="a controller that is registered and down was given time for every step",
        breaks="one controller takes the steps",
        within="live_controllers",
        old="state.fetches(within_ms=fetch_timeout_ms)",
        new="fetch_timeout_ms > 0",
    ),
    liveness_bug(
        id="proxy repeats a refused step at once",
        cause="a refused step was sent again and again, and nobody else had a turn",
        breaks="one controller takes the steps",
        within="QuorumReassignmentProxy._take",
        old="self._turn.missed()",
        new="pass",
    ),
    liveness_bug(
        id="proxy repeats an unanswered step at once",
        cause="a step whose answer was lost was sent again at once, though it may have been taken",
        breaks="one controller takes the steps",
        within="QuorumReassignmentProxy._look",
        old="self._turn.missed()",
        new="pass",
    ),
    liveness_bug(
        id="proxy forgets a refusal",
        cause="what the leader refused was shown for one look only, and logged with every try",
        breaks="what is waited for is told",
        within="QuorumReassignmentProxy._decide",
        old="self._refused is None or self._refused[0] != situation",
        new="True",
    ),
    liveness_bug(
        id="proxy insists on a refused target",
        cause="one target that the leader refused kept all others from becoming voters",
        breaks="L9",
        within="QuorumReassignmentProxy._take",
        old="self._pursuit.refused(step)",
        new="pass",
    ),
    liveness_bug(
        id="proxy takes a timeout for success",
        cause="a change that the leader gave up counted as made",
        breaks="P31",
        within="_refusal",
        room="controller.quorum_reassignment",
        old="code == ErrorCode.NONE",
        new="code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)",
    ),
    liveness_bug(
        id="proxy does not see that the target voters stay",
        cause="the leader refused to clear the target voters, and nothing said so",
        breaks="what is waited for is told",
        within="refusal_to_clear",
        old="one.error_code != ErrorCode.NONE",
        new="one.error_code < ErrorCode.NONE",
    ),
    liveness_bug(
        id="proxy leaves the leader in",
        cause="the leader was not told to remove itself, so it never left",
        breaks="L9",
        within="QuorumReassignmentProxy._take",
        old="step = RemoveVoter(_leader_of(quorum))",
        new="return",
    ),
    safety_bug(
        id="proxy clears the targets before the last commit",
        cause="targets were cleared while the last change was not committed, and was undone later",
        breaks="P31",
        within="next_step",
        old="not quorum.may_change",
        new="""
            (
                not quorum.may_change
                and {one.key.id for one in quorum.voters} != {one.id for one in targets}
            )
        """,
    ),
    liveness_bug(
        id="proxy keeps the connection to the last leader",
        cause="the next leader was never asked, because the last one still answered",
        breaks="L9",
        within="LeaderConnection.open",
        old="connection is not None and connection.is_open and epoch == self._epoch",
        new="connection is not None and connection.is_open",
    ),
    liveness_bug(
        id="proxy keeps a broken connection",
        cause="after the leader had hung up once, it was not asked again",
        breaks="L9",
        within="LeaderConnection.open",
        old="connection is not None and connection.is_open and epoch == self._epoch",
        new="connection is not None and epoch == self._epoch",
    ),
    liveness_bug(
        id="proxy leaves connections behind",
        cause="every change of the leader left an open connection to the one before",
        breaks="connections are closed",
        within="LeaderConnection.open",
        old="self.close()",
        new="pass",
    ),
    safety_bug(
        id="proxy goes on while it leads itself",
        cause="a controller sent steps to the leader before although it had become the leader",
        breaks="one controller takes the steps",
        within="QuorumReassignmentProxy.take_steps",
        old="not self._raft.is_leader",
        new="True",
    ),
)
