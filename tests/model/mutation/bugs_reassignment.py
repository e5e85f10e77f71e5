"""Mistakes in the reassignment of the quorum (KIP-642), which no quorum has had so far."""

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
)
