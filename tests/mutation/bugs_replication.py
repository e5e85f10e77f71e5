"""Bugs in replication: fetches, the high watermark, snapshots that replace a log."""

from __future__ import annotations

from tests.mutation.mutant import Edit, Kind, Mutant

RAFT = "server/kvorum/raft"

MUTANTS = (
    Mutant(
        id="KAFKA-10533",
        cause="a leader counted records that it had not flushed",
        breaks="P6",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/serving.py",
                "        durable_end_offset=replica.log.durable_end_offset,\n",
                "        durable_end_offset=replica.log.end_offset,\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-10533 at the follower",
        cause="a follower fetched on, which acknowledges, before it had flushed",
        breaks="P6",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    if log.durable_end_offset < log.end_offset:\n"
                "        # A fetch would tell the leader that these records are stored.\n"
                "        return\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-17332",
        cause=(
            "a controller that is an observer did not flush before it "
            "acknowledged, and was promoted"
        ),
        breaks="P6",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    if log.durable_end_offset < log.end_offset:\n",
                "    if replica.is_voter and log.durable_end_offset < log.end_offset:\n",
            ),
        ),
    ),
    Mutant(
        id="logcabin#44",
        cause="records of an earlier epoch were committed by counting their copies",
        breaks="P5",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/high_watermark.py",
                "    if offset <= epoch_start_offset:\n        return None\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-12619",
        cause="a leader showed a high watermark before its epoch's first record was committed",
        breaks="P7",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/replica.py",
                "        if role.name in {RoleName.LEADER, RoleName.RESIGNED}:\n",
                "        if role.name is RoleName.RESIGNED:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-12331",
        cause="the first batch of an epoch was written at offset 0 instead of the log's end",
        breaks="P13",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "            base_offset=base_offset,\n",
                "            base_offset=0,\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-12181",
        cause="a follower whose offset went back stopped its leader",
        breaks="P20",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/roles/leader.py",
                "        self.log_end_offset = offset\n",
                "        if offset < (self.log_end_offset or 0):\n"
                '            raise ValueError("the offset went back")\n'
                "        self.log_end_offset = offset\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-15100",
        cause="the answer that a log diverges waited in purgatory",
        breaks="L2",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/serving.py",
                "    if not is_valid:\n        replica.outbox.add(Answer(token, response))\n",
                "    if not is_valid and response.diverging is not None:\n"
                "        replica.parked.park(token, request, deadline=now + request.max_wait_ms)\n"
                "        return\n"
                "    if not is_valid:\n        replica.outbox.add(Answer(token, response))\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14145",
        cause="a follower learned of a commit only with the next record",
        breaks="L3",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/serving.py",
                "        replica.outbox.add(LeadershipGained(leader.epoch))\n"
                "    answer_parked(replica, replica.parked.take_all())\n",
                "        replica.outbox.add(LeadershipGained(leader.epoch))\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-13959",
        cause="a fetcher with an old high watermark was left waiting",
        breaks="L3",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/serving.py",
                "        and (request.high_watermark < known)\n",
                "        and (request.high_watermark < 0)\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-18723",
        cause="batches of an epoch above the replica's own were appended",
        breaks="P10",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "        if not continues or not log.last_epoch <= batch.epoch <= role.epoch:\n",
                "        if not continues or batch.epoch < log.last_epoch:\n",
            ),
        ),
    ),
    Mutant(
        id="gap in a response",
        cause="fetched batches were appended that do not continue the log",
        breaks="P13",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "        continues = batch.base_offset == log.end_offset and count > 0\n",
                "        continues = batch.base_offset >= log.end_offset and count > 0\n",
            ),
        ),
    ),
    Mutant(
        id="KIP-320",
        cause="a fetch position was judged by its offset alone, so a diverging log counted",
        breaks="P4",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/log_view.py",
                "        if end.epoch != position.epoch or end.offset < position.offset:\n",
                "        if end.offset < position.offset and self.end_offset < position.offset:\n",
            ),
        ),
    ),
    Mutant(
        id="truncation below the high watermark",
        cause="a replica cut off committed records because a leader said so",
        breaks="P27",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "    if replica.high_watermark is not None and offset < replica.high_watermark:\n"
                '        return f"truncation',
                "    if replica.high_watermark is not None and offset < 0:\n"
                '        return f"truncation',
            ),
        ),
    ),
    Mutant(
        id="high watermark goes back",
        cause="a lower high watermark of the leader was taken over",
        breaks="P26",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/replica.py",
                "        if self.high_watermark is not None and offset <= self.high_watermark:\n",
                "        if self.high_watermark is not None and offset == self.high_watermark:\n",
            ),
        ),
    ),
    Mutant(
        id="committed before it is there",
        cause="a follower took over the leader's high watermark beyond what it has durably",
        breaks="P6",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "            min(role.leader_high_watermark, replica.log.durable_end_offset)\n",
                "            min(role.leader_high_watermark, replica.log.end_offset)\n",
            ),
        ),
    ),
    Mutant(
        id="majority off by one",
        cause="half of an even number of voters counted as a majority",
        breaks="P6",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/high_watermark.py",
                "    return sorted(end_offsets, reverse=True)[len(end_offsets) // 2]\n",
                "    return sorted(end_offsets, reverse=True)[(len(end_offsets) - 1) // 2]\n",
            ),
        ),
    ),
    Mutant(
        id="elected by half",
        cause="half of an even number of voters elected a leader",
        breaks="P1",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/votes.py",
                "        return len(self._answers) // 2 + 1\n",
                "        return (len(self._answers) + 1) // 2\n",
            ),
        ),
    ),
    Mutant(
        id="hashicorp/raft#697",
        cause="installing a snapshot kept records behind it that conflict with it",
        breaks="P4",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/log_view.py",
                "        self.start_offset = self.end_offset = "
                "self.durable_end_offset = snapshot_id.offset\n"
                "        self.epochs.clear()\n",
                "        self.start_offset = snapshot_id.offset\n"
                "        self.end_offset = max(self.end_offset, snapshot_id.offset)\n"
                "        self.durable_end_offset = max(self.durable_end_offset, "
                "snapshot_id.offset)\n",
            ),
        ),
    ),
    Mutant(
        id="camunda/zeebe#4451",
        cause="with several snapshots, an older one was named to who needs the latest",
        breaks="P9",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/log_view.py",
                "                return FetchVerdict.SNAPSHOT, latest\n",
                "                return FetchVerdict.SNAPSHOT, earliest\n",
            ),
        ),
    ),
    Mutant(
        id="camunda/zeebe#3573",
        cause="parts of a snapshot were put together with a gap between them",
        breaks="P9",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "    expected = (download.snapshot_id, download.position)\n",
                "    expected = (download.snapshot_id, response.position)\n",
            ),
        ),
    ),
    Mutant(
        id="redpanda#30817",
        cause="a replica that takes a snapshot in began elections meanwhile",
        breaks="L8",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "        role.fetch_deadline = max(role.fetch_deadline, "
                "now + replica.config.fetch_timeout_ms)\n        return\n",
                "        if role.fetch_deadline <= now and replica.is_voter:\n"
                "            replica.become_prospective(now)\n        return\n",
            ),
        ),
    ),
    Mutant(
        id="snapshot gone",
        cause="a replica went on asking for a snapshot that its leader had deleted",
        breaks="L2",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "    if response.error is Error.SNAPSHOT_NOT_FOUND:\n        return True\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="snapshot below the high watermark",
        cause="a replica replaced committed records by an older snapshot",
        breaks="P27",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "    if replica.high_watermark is not None and "
                "snapshot_id.offset < replica.high_watermark:\n",
                "    if replica.high_watermark is not None and snapshot_id.offset < 0:\n",
            ),
        ),
    ),
    Mutant(
        id="bootstrap snapshot served",
        cause="the snapshot that formatting writes was sent to other nodes",
        breaks="P20",
        kind=Kind.CONFORMITY,
        edits=(
            Edit(
                f"{RAFT}/log_view.py",
                "        return None if latest == BOOTSTRAP_SNAPSHOT_ID else latest\n",
                "        return latest\n",
            ),
        ),
    ),
    Mutant(
        id="a forgotten epoch is believed",
        cause="a leader took a follower's word for an epoch that its log no longer knew",
        breaks="P4",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/log_view.py",
                "        if latest is not None and not self._is_vouched_for(position):\n"
                "            return FetchVerdict.SNAPSHOT, latest\n",
                "",
            ),
        ),
    ),
)
