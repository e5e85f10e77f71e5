"""Bugs in replication: fetches, the high watermark, snapshots that replace a log."""

from tests.model.mutation.mutant import conformity_bug, liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="KAFKA-10533",
        cause="a leader counted records that it had not flushed",
        breaks="P6",
        within="update_high_watermark",
        old="replica.log.durable_end_offset",
        new="replica.log.end_offset",
    ),
    safety_bug(
        id="KAFKA-10533 at the follower",
        cause="a follower fetched on, which acknowledges, before it had flushed",
        breaks="P6",
        within="_poll_follower",
        old="if log.durable_end_offset < log.end_offset: return",
    ),
    safety_bug(
        id="KAFKA-17332",
        cause=(
            "a controller that is an observer did not flush before it "
            "acknowledged, and was promoted"
        ),
        breaks="P6",
        within="_poll_follower",
        old="log.durable_end_offset < log.end_offset",
        new="replica.is_voter and log.durable_end_offset < log.end_offset",
    ),
    safety_bug(
        id="logcabin#44",
        cause="records of an earlier epoch were committed by counting their copies",
        breaks="P5",
        within="advanced_high_watermark",
        old="if offset <= epoch_start_offset: return None",
    ),
    safety_bug(
        id="KAFKA-12619",
        cause="a leader showed a high watermark before its epoch's first record was committed",
        breaks="P7",
        within="Replica.move",
        old="role.name in {RoleName.LEADER, RoleName.RESIGNED}",
        new="role.name is RoleName.RESIGNED",
    ),
    safety_bug(
        id="KAFKA-12331",
        cause="the first batch of an epoch was written at offset 0 instead of the log's end",
        breaks="P13",
        within="become_leader",
        old="""
            AppendEpochStart(
                base_offset=base_offset,
                epoch=leader.epoch,
                leader_id=replica.own.key.id,
                voter_ids=voter_ids,
                granting_ids=leader.granting_ids,
                kraft_version=version,
                voters=voters,
            )
        """,
        new="""
            AppendEpochStart(
                base_offset=0,
                epoch=leader.epoch,
                leader_id=replica.own.key.id,
                voter_ids=voter_ids,
                granting_ids=leader.granting_ids,
                kraft_version=version,
                voters=voters,
            )
        """,
    ),
    liveness_bug(
        id="KAFKA-12181",
        cause="a follower whose offset went back stopped its leader",
        breaks="P20",
        within="Progress.fetched",
        old="""
            if offset >= leader_end_offset:
                self.last_caught_up = now
            elif self.last_fetch is not None and offset >= self.last_fetch_leader_end:
                self.last_caught_up = self.last_fetch
        """,
        new="""
            if offset >= leader_end_offset:
                self.last_caught_up = now
            elif self.last_fetch is not None and offset >= self.last_fetch_leader_end:
                self.last_caught_up = self.last_fetch
            if offset < (self.log_end_offset or 0):
                raise ValueError("the offset went back")
        """,
    ),
    liveness_bug(
        id="KAFKA-15100",
        cause="the answer that a log diverges waited in purgatory",
        breaks="L2",
        within="handle_fetch_request",
        old="is_valid = response.read_from is not None and isinstance(role, Leader)",
        new="""
            is_valid = response.read_from is not None and isinstance(role, Leader)
            if not is_valid and response.diverging is not None:
                replica.parked.park(token, request, deadline=now + request.max_wait_ms)
                return
        """,
    ),
    liveness_bug(
        id="KAFKA-14145",
        cause="a follower learned of a commit only with the next record",
        breaks="L3",
        within="update_high_watermark",
        old="answer_parked(replica, replica.parked.take_all())",
    ),
    liveness_bug(
        id="KAFKA-13959",
        cause="a fetcher with an old high watermark was left waiting",
        breaks="L3",
        within="_has_news",
        old="request.high_watermark < known",
        new="request.high_watermark < 0",
    ),
    safety_bug(
        id="KAFKA-18723",
        cause="batches of an epoch above the replica's own were appended",
        breaks="P10",
        within="_append",
        old="not log.last_epoch <= batch.epoch <= role.epoch",
        new="batch.epoch < log.last_epoch",
    ),
    safety_bug(
        id="gap in a response",
        cause="fetched batches were appended that do not continue the log",
        breaks="P13",
        within="_append",
        old="batch.base_offset == log.end_offset",
        new="batch.base_offset >= log.end_offset",
    ),
    safety_bug(
        id="KIP-320",
        cause="a fetch position was judged by its offset alone, so a diverging log counted",
        breaks="P4",
        within="validate_offset_and_epoch",
        old="end.epoch != position.epoch or end.offset < position.offset",
        new="end.offset < position.offset and log.end_offset < position.offset",
    ),
    safety_bug(
        id="truncation below the high watermark",
        cause="a replica cut off committed records because a leader said so",
        breaks="P27",
        within="_truncate",
        old="offset < replica.high_watermark",
        new="offset < 0",
    ),
    safety_bug(
        id="high watermark goes back",
        cause="a lower high watermark of the leader was taken over",
        breaks="P26",
        within="Replica.raise_high_watermark",
        old="offset <= self.high_watermark",
        new="offset == self.high_watermark",
    ),
    safety_bug(
        id="committed before it is there",
        cause="a follower took over the leader's high watermark beyond what it has durably",
        breaks="P6",
        within="update_follower_high_watermark",
        old="replica.log.durable_end_offset",
        new="replica.log.end_offset",
    ),
    safety_bug(
        id="majority off by one",
        cause="half of an even number of voters counted as a majority",
        breaks="P6",
        within="majority_offset",
        old="len(end_offsets)",
        new="len(end_offsets) - 1",
    ),
    safety_bug(
        id="elected by half",
        cause="half of an even number of voters elected a leader",
        breaks="P1",
        within="is_election_won",
        old="majority_of(voter_count)",
        new="(voter_count + 1) // 2",
    ),
    safety_bug(
        id="hashicorp/raft#697",
        cause="installing a snapshot kept records behind it that conflict with it",
        breaks="P4",
        within="LogView.replace_by_snapshot",
        old="""
            self.start_offset = self.end_offset = self.durable_end_offset = snapshot_id.offset
            self.epochs.clear()
        """,
        new="""
            self.start_offset = snapshot_id.offset
            self.end_offset = max(self.end_offset, snapshot_id.offset)
            self.durable_end_offset = max(self.durable_end_offset, snapshot_id.offset)
        """,
    ),
    liveness_bug(
        id="camunda/zeebe#4451",
        cause="with several snapshots, an older one was named to who needs the latest",
        breaks="P9",
        within="validate_offset_and_epoch",
        old="""
            if latest is not None and _is_outside(log, position):
                return ValidOffsetAndEpoch(ValidityKind.SNAPSHOT, latest)
        """,
        new="""
            if latest is not None and _is_outside(log, position):
                return ValidOffsetAndEpoch(ValidityKind.SNAPSHOT, min(log.snapshots))
        """,
    ),
    safety_bug(
        id="camunda/zeebe#3573",
        cause="parts of a snapshot were put together with a gap between them",
        breaks="P9",
        within="_take_part",
        old="download.position",
        new="response.position",
    ),
    liveness_bug(
        id="redpanda#30817",
        cause="a replica that takes a snapshot in began elections meanwhile",
        breaks="L8",
        within="_poll_follower",
        old="role.fetch_deadline = max(role.fetch_deadline, now + replica.config.fetch_timeout_ms)",
        new="if role.fetch_deadline <= now and replica.is_voter: replica.become_prospective(now)",
    ),
    liveness_bug(
        id="snapshot gone",
        cause="a replica went on asking for a snapshot that its leader had deleted",
        breaks="L2",
        within="_is_snapshot_gone",
        old="if response.error is Error.SNAPSHOT_NOT_FOUND: return True",
    ),
    safety_bug(
        id="snapshot below the high watermark",
        cause="a replica replaced committed records by an older snapshot",
        breaks="P27",
        within="_begin_download",
        old="snapshot_id.offset < replica.high_watermark",
        new="snapshot_id.offset < 0",
    ),
    conformity_bug(
        id="bootstrap snapshot served",
        cause="the snapshot that formatting writes was sent to other nodes",
        breaks="P20",
        within="LogView.latest_loadable_snapshot",
        old="None if latest == BOOTSTRAP_SNAPSHOT_ID else latest",
        new="latest",
    ),
    safety_bug(
        id="a forgotten epoch is believed",
        cause="a leader took a follower's word for an epoch that its log no longer knew",
        breaks="P4",
        within="validate_offset_and_epoch",
        old="""
            if latest is not None and not _is_vouched_for(log, position):
                return ValidOffsetAndEpoch(ValidityKind.SNAPSHOT, latest)
        """,
    ),
)
