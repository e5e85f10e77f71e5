"""Bugs in voter changes and in the identity of voters."""

from tests.model.mutation.mutant import Edit, Kind, Mutant, conformity_bug, liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="KAFKA-16530",
        cause="the high watermark counted a leader that is no voter",
        breaks="P6",
        within="Leader.advanced_high_watermark",
        old="""
            return advanced_high_watermark(
                current=current,
                end_offsets=ends,
                epoch_start_offset=self.epoch_start_offset,
            )
        """,
        new="""
            if not voters.is_voter(self.own_key):
                ends.append(durable_end_offset)
            return advanced_high_watermark(
                current=current,
                end_offsets=ends,
                epoch_start_offset=self.epoch_start_offset,
            )
        """,
    ),
    Mutant(
        id="single-server change of 2014",
        cause="a leader changed the voters before it had committed in its own epoch",
        breaks="P11",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="refuse_while_changing",
                old="replica.high_watermark is None",
                new="replica.high_watermark is None and replica.log.end_offset == 0",
            ),
            Edit(
                within="refuse_unless_settled",
                old="not replica.are_voters_committed",
                new="not replica.are_voters_committed and replica.high_watermark is not None",
            ),
        ),
    ),
    Mutant(
        id="two changes at once",
        cause="a second voter change did not wait for the commit of the first",
        breaks="P11",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="refuse_while_changing",
                old="replica.change is not None",
                new="replica.change is not None and replica.high_watermark is None",
            ),
            Edit(
                within="refuse_unless_settled",
                old="not replica.are_voters_committed",
                new="not replica.are_voters_committed and history.voters_offset is None",
            ),
        ),
    ),
    safety_bug(
        id="a change that timed out is forgotten",
        cause="a voter record that was not committed in time did not hold back the next change",
        breaks="P11",
        within="refuse_unless_settled",
        old="not replica.are_voters_committed",
        new="not replica.are_voters_committed and replica.change is not None",
    ),
    Mutant(
        id="KAFKA-20740",
        cause=(
            "a change that timed out was forgotten before its record was known to be in the log: "
            "the next one began from the voters before it"
        ),
        breaks="P11",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="refuse_unless_settled",
                old="not replica.are_voters_committed",
                new="replica.high_watermark is None",
            ),
            Edit(
                within="_begin_removal",
                old="replica.voters.without(key.id)",
                new="replica.history.voters_at(replica.high_watermark).without(key.id)",
            ),
            Edit(
                within="continue_adding_voter",
                old="replica.voters.with_voter(Voter(change.key, change.endpoints, *versions))",
                new="""
                    replica.history.voters_at(replica.high_watermark).with_voter(
                        Voter(change.key, change.endpoints, *versions)
                    )
                """,
            ),
            Edit(
                within="_voters_to_update",
                old="replica.voters if replica.are_voters_committed else None",
                new="replica.history.voters_at(replica.high_watermark)",
            ),
            Edit(
                within="append_voters",
                old="old = replica.voters",
                new="old = replica.history.voters_at(replica.high_watermark)",
            ),
        ),
    ),
    safety_bug(
        id="KAFKA-20740 at an update",
        cause="a voter's update did not wait for the commit of a change that had timed out",
        breaks="P11",
        within="_voters_to_update",
        old="replica.voters if replica.are_voters_committed else None",
        new="replica.voters",
    ),
    safety_bug(
        id="KAFKA-20740 at an upgrade",
        cause="the voters changed while the record that first held them was not committed",
        breaks="P11",
        within="refuse_unless_settled",
        old="not replica.are_voters_committed",
        new="""(
            not replica.are_voters_committed
            and history.kraft_version_at(replica.high_watermark) > 0
        )""",
    ),
    safety_bug(
        id="probe answered by another node",
        cause="a late response to the probe of an update that had timed out added another voter",
        breaks="P15",
        within="continue_adding_voter",
        old="change.record_offset is not None or change.key.id != node_id",
        new="change.record_offset is not None",
    ),
    liveness_bug(
        id="update confirmed by another node",
        cause="a late response to the probe of an update that had timed out confirmed another one",
        breaks="P15",
        within="continue_updating_voter",
        old="if change.key.id != node_id: return None",
    ),
    safety_bug(
        id="probe answered too late",
        cause="a late response was taken for that of the next request to the same node",
        breaks="P15",
        within="RequestManager.sent",
        old="number = self._next_number",
        new="number = destination.id",
    ),
    liveness_bug(
        id="feature upgrade asks the voters alone",
        cause="a controller that ceased to be a voter was not asked before a feature was upgraded",
        breaks="P20",
        within="reason_not_supported",
        old="""
            nodes += [
                (
                    f"Controller {node_id}",
                    controllers[node_id].supported_features.get(name, DISABLED),
                )
                for node_id in sorted(controllers)
                if node_id != settings.node_id
            ]
        """,
        new="""
            nodes += [
                (
                    f"Controller {node_id}",
                    controllers[node_id].supported_features.get(name, DISABLED),
                )
                for node_id in sorted(controllers)
                if node_id != settings.node_id and node_id in settings.quorum_voter_ids
            ]
        """,
    ),
    safety_bug(
        id="canonical/raft#250",
        cause="voters of a record that was cut off stayed in force",
        breaks="P12",
        within="_truncate",
        old="replica.history.truncate_to(offset)",
    ),
    safety_bug(
        id="databendlabs/openraft#1808",
        cause="after a snapshot was installed, voters of records that were gone stayed in force",
        breaks="P12",
        within="VoterSetHistory.start_from_snapshot",
        old="self._changes = [_Change(snapshot_id.offset - 1, voters, kraft_version)]",
        new="""
            first = _Change(snapshot_id.offset - 1, voters, kraft_version)
            self._changes = [first, *self._changes]
        """,
    ),
    liveness_bug(
        id="KAFKA-17973",
        cause="a log with several voter changes in a row was refused when it was read",
        breaks="P12",
        within="VoterSetHistory.add_voters",
        old='"Note a KRAFT_VOTERS record at `offset`, behind all that were noted before."',
        new="""
            "Note a KRAFT_VOTERS record at `offset`, behind all that were noted before."

            if not self.voters.overlaps_safely(voters):
                raise ValueError("not one voter at a time")
        """,
    ),
    liveness_bug(
        id="KAFKA-17608",
        cause="a leader that had removed itself led on",
        breaks="P16",
        within="_poll_leader",
        old="replica.are_voters_committed and not replica.is_voter",
        new="False",
    ),
    liveness_bug(
        id="KAFKA-16963",
        cause="a leader that removes itself went before its removal was committed",
        breaks="L7",
        within="_poll_leader",
        old="replica.are_voters_committed and not replica.is_voter",
        new="not replica.is_voter",
    ),
    liveness_bug(
        id="KAFKA-20661",
        cause="a voter was added that cannot be reached where it says",
        breaks="L1",
        within="continue_adding_voter",
        old="error_name = probe_error(response)",
        new="""
            error_name = probe_error(response)
            if isinstance(response, RequestFailed):
                response = ApiVersionsResponse(kraft_versions=(0, 1))
                error_name = None
        """,
    ),
    Mutant(
        id="KAFKA-20661 at an update",
        cause="a voter's new address was recorded where it cannot be reached",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                within="continue_updating_voter",
                old="error_name = probe_error(response)",
                new="error_name = None",
            ),
            Edit(
                within="continue_updating_voter",
                old="probed_versions(response)",
                new="(change.request.kraft_version_min, change.request.kraft_version_max)",
            ),
        ),
    ),
    liveness_bug(
        id="voter added that lags",
        cause="a voter was added that had never had all of the log",
        breaks="L3",
        within="_refuse_lagging",
        old="known is not None and known.last_caught_up is not None",
        new="known is not None",
    ),
    safety_bug(
        id="voter added twice",
        cause="a node's id was added once more under another directory",
        breaks="P15",
        within="_refuse_duplicate",
        old="voters.by_id(key.id) is None",
        new="not voters.is_voter(key)",
    ),
    safety_bug(
        id="voter removed by its id",
        cause="a voter was removed although the request named another directory",
        breaks="P15",
        within="_refuse_unknown",
        old="known is not None and known.key == key and (len(voters.voters) > 1)",
        new="known is not None and len(voters.voters) > 1",
    ),
    liveness_bug(
        id="last voter removed",
        cause="the last voter could be removed",
        breaks="L1",
        within="_refuse_unknown",
        old="known is not None and known.key == key and (len(voters.voters) > 1)",
        new="known is not None and known.key == key",
    ),
    safety_bug(
        id="KAFKA-19850",
        cause="a controller that joins by itself came back after it had been removed",
        breaks="P14",
        within="_joins",
        old="replica.config.auto_join and replica.own.can_vote and (not replica.has_been_voter)",
        new="replica.config.auto_join and replica.own.can_vote",
    ),
    conformity_bug(
        id="KAFKA-18061",
        cause='a change that succeeded was answered with the text "NONE"',
        breaks="P20",
        within="_default_message",
        old="None if error is Error.NONE else ErrorCode(error).default_message",
        new='"NONE" if error is Error.NONE else ErrorCode(error).default_message',
    ),
    safety_bug(
        id="wiped disk votes again",
        cause=(
            "a voter that came back with an empty disk was taken for the one it had been (KIP-853)"
        ),
        breaks="P15",
        within="Voter.is_replica",
        old="self.key.directory_id is None or self.key.directory_id == key.directory_id",
        new="True",
    ),
    safety_bug(
        id="vote meant for another directory",
        cause="a vote was given that had been asked of the directory before",
        breaks="P15",
        within="_is_meant",
        old="voter.id == own.id and voter.directory_id in {None, own.directory_id}",
        new="voter.id == own.id",
    ),
    safety_bug(
        id="vote given to a node, not to its directory",
        cause="a vote was repeated to the same node with another directory",
        breaks="P2",
        within="Role.would_grant",
        old="self.voted.id == request.replica.id and same_directory",
        new="self.voted.id == request.replica.id",
    ),
    liveness_bug(
        id="observers do not vote",
        cause="a node that does not know yet that it is a voter refused its vote",
        breaks="L1",
        within="handle_vote_request",
        old="""
            if error is Error.NONE and not _is_meant(replica, request.voter):
                error = Error.INVALID_VOTER_KEY
        """,
        new="""
            if error is Error.NONE and not _is_meant(replica, request.voter):
                error = Error.INVALID_VOTER_KEY
            if error is Error.NONE and not replica.is_voter:
                error = Error.INVALID_VOTER_KEY
        """,
    ),
    liveness_bug(
        id="kraft.version raised too early",
        cause="kraft.version rose although a voter had not said that it can work at it",
        breaks="P15",
        within="_voters_that_support",
        old="not is_known or not voter.kraft_version_min <= wanted <= voter.kraft_version_max",
        new="not is_known and voter.kraft_version_max < 0",
    ),
    liveness_bug(
        id="a probe of an update before an operator's change",
        cause="a voter that reported an address without an answer held up its own removal",
        breaks="L7",
        within="_begin_removal",
        old="end_probe_of_update(replica)",
        new="pass",
    ),
)
