"""Mistakes in the reassignment of the quorum (KIP-642), under leaders that act on it or do not."""

from tests.model.mutation.mutant import Edit, Kind, Mutant, conformity_bug, liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="reassignment removes while as many come",
        cause="a voter was removed although as many were to come as to go",
        breaks="reassignment sizes",
        within="next_step",
        old="coming >= len(assignment.leaving)",
        new="coming > len(assignment.leaving)",
    ),
    liveness_bug(
        id="reassignment removes the leader",
        cause="the leader was removed while it led, instead of handing over first",
        breaks="the leader leaves last",
        within="_removal",
        old="RemoveVoter(chosen) if others else HandOver()",
        new="RemoveVoter(chosen)",
    ),
    liveness_bug(
        id="reassignment hands over early",
        cause="the leader handed over while other voters were still to be removed",
        breaks="the leader leaves last",
        within="_removal",
        old="RemoveVoter(chosen) if others else HandOver()",
        new="RemoveVoter(chosen) if len(others) == len(leaving) else HandOver()",
    ),
    safety_bug(
        id="reassignment counts silent voters",
        cause="a voter was removed although those that stay do not fetch",
        breaks="a majority fetches after every step",
        within="_has_fetching_majority",
        old="sum(key not in silent for key in voters)",
        new="len(voters)",
    ),
    liveness_bug(
        id="reassignment adds to a quorum without a majority",
        cause="a voter was added to a set of which no majority fetches even then",
        breaks="a majority fetches after every step",
        within="_addition",
        old="_checked_addition(AddVoter(chosen, ready[chosen]), quorum, circumstances)",
        new="AddVoter(chosen, ready[chosen])",
    ),
    liveness_bug(
        id="reassignment promotes a silent target",
        cause="a target became a voter that had stopped fetching after it had caught up",
        breaks="targets have caught up",
        within="_ready",
        old="state is None or not state.fetches(within_ms=circumstances.fetch_timeout_ms)",
        new="state is None",
    ),
    liveness_bug(
        id="reassignment promotes a target in a long round",
        cause="a target became a voter by its last round although the present one takes too long",
        breaks="targets have caught up",
        within="CatchUp.has_caught_up",
        old="now_ms - known.started_ms < self._election_timeout_ms",
        new="now_ms >= known.started_ms",
    ),
    liveness_bug(
        id="reassignment counts a round from its end",
        cause="a round of replication was timed from when it ended, so every round was short",
        breaks="targets have caught up",
        within="CatchUp._observe_one",
        old="max(fetched_ms - known.started_ms, 0)",
        new="max(fetched_ms - now_ms, 0)",
    ),
    liveness_bug(
        id="reassignment clears other target voters",
        cause="the end of one reassignment cleared the next one, which had replaced it meanwhile",
        breaks="the last target voters count",
        within="clear_reached_targets",
        old="recorded_target_voters(image) == reached",
        new="recorded_target_voters(image) is not None",
    ),
    Mutant(
        id="reassignment takes a new disk for the old one",
        cause="a voter whose directory is to be replaced counted as the target itself",
        breaks="a voter is an id and a directory",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                within="assignment_of",
                old="tuple(key for key in wanted if key not in voters)",
                new="tuple(key for key in wanted if key.id not in {one.id for one in voters})",
            ),
            Edit(
                within="assignment_of",
                old="key not in wanted and key.id not in unclear_ids",
                new="key.id not in {one.id for one in wanted} | unclear_ids",
            ),
        ),
    ),
    safety_bug(
        id="reassignment drops the old disk at once",
        cause="a voter was removed for a directory that nobody has, for example a mistyped one",
        breaks="targets have caught up",
        within="_addition",
        old="""
            if isinstance(found, Blocked):
                blocked.append(found)
            elif key.id in voter_ids:
                replaced += [old for old in assignment.leaving if old.id == key.id]
            else:
                ready[key] = found
        """,
        new="""
            if key.id in voter_ids:
                replaced += [old for old in assignment.leaving if old.id == key.id]
            elif isinstance(found, Blocked):
                blocked.append(found)
            else:
                ready[key] = found
        """,
    ),
    liveness_bug(
        id="reassignment accepts two directories",
        cause="a target was accepted although two directories claim its id",
        breaks="a voter is an id and a directory",
        within="_check_target",
        old="target.directory_id is None and len(keys) > 1",
        new="target.directory_id is None and not keys and is_voter",
    ),
    liveness_bug(
        id="reassignment counts a disk that was given up",
        cause="a target whose node had joined with another disk stayed unclear for five minutes",
        breaks="target voters that are reached are cleared",
        within="QuorumDescription.without_superseded",
        old="one.key.id not in live or one.fetches(within_ms=within_ms)",
        new="True",
    ),
    conformity_bug(
        id="reassignment is undone by hand",
        cause="a target voter could be removed by hand, and was added again by the next step",
        breaks="manual changes",
        within="refusal_of_change",
        old="is_wanted is adds",
        new="is_wanted or not adds",
    ),
    liveness_bug(
        id="reassignment reads endless ids",
        cause="an id of thousands of digits made the controller fail and resign",
        breaks="P20",
        within="_parse_one",
        old="id_text.isascii() and id_text.isdecimal() and len(id_text) <= ID_DIGITS_MAX",
        new="id_text.isascii() and id_text.isdecimal()",
    ),
    safety_bug(
        id="reassignment does not wait for a commit",
        cause="a step was taken while the change before it was not committed",
        breaks="P31",
        within="next_step",
        old="not quorum.may_change",
        new="quorum.has_static_voters",
    ),
    liveness_bug(
        id="reassignment ends early",
        cause="the targets were cleared as soon as all new voters had come, and old ones stayed",
        breaks="P31",
        within="next_step",
        old="not coming and not assignment.leaving",
        new="not coming",
    ),
    safety_bug(
        id="reassignment keeps to the first target voters",
        cause="a leader went on towards the targets that it had begun with, which were replaced",
        breaks="P31",
        within="Pursuit.decide",
        old="recorded_target_voters(image)",
        new="vars(self).setdefault('first', recorded_target_voters(image))",
    ),
    liveness_bug(
        id="reassignment lets the leader go first",
        cause="the leader removed itself although other voters were still to go",
        breaks="P32",
        within="_removal",
        old="[key for key in leaving if key.id != quorum.leader_id]",
        new="sorted(leaving, key=lambda key: key.id != quorum.leader_id)[:1]",
    ),
    liveness_bug(
        id="reassignment adds all before it removes",
        cause="the quorum grew to the size of both sets together, and with it the majority",
        breaks="P31",
        within="next_step",
        old="coming >= len(assignment.leaving)",
        new="coming > 0",
    ),
    liveness_bug(
        id="reassignment is forgotten by snapshots",
        cause="a snapshot left out the configuration of the cluster, and with it the target voters",
        breaks="P30",
        within="_configs",
        room="metadata",
        old="sorted(image.resources)",
        new="sorted(one for one in image.resources if one[1])",
    ),
    safety_bug(
        id="reassignment is not cancelled",
        cause="the record that ends targets was read as nothing, so the quorum went on changing",
        breaks="P30",
        within="replay_config",
        old="record.name not in current",
        new="record.name not in current or not record.resource_name",
    ),
    liveness_bug(
        id="reassignment names no directory",
        cause="the leader asked itself to remove a voter without its directory, and refused",
        breaks="L9",
        within="request_of",
        old="step.key.directory_id or ZERO_UUID",
        new="ZERO_UUID",
    ),
    conformity_bug(
        id="reassignment is undone by an addition",
        cause="a voter that is not wanted could be added by hand, and was removed by the next step",
        breaks="P31",
        within="refusal_of_change",
        old="is_wanted is adds",
        new="adds or not is_wanted",
    ),
    safety_bug(
        id="proxy decides on an image that is behind",
        cause="a step was taken towards target voters that the leader knew to be replaced",
        breaks="P31",
        within="QuorumReassignmentProxy._look",
        old="await self._has_image_of(answer.high_watermark)",
        new="await self._has_image_of(answer.high_watermark) or True",
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
