"""Bugs in the replication of topic partitions: fetchers, truncation, the high watermark."""

from tests.model.mutation.mutant import Edit, Kind, Mutant, conformity_bug, liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="KAFKA-6361",
        cause="a follower truncated to its high watermark, not to where the logs diverge (KIP-101)",
        breaks="committed records stay",
        within="initial_fetch_state",
        old="must_truncate = epoch is None",
        new="must_truncate = True",
    ),
    safety_bug(
        id="KAFKA-7164",
        cause="a log that diverges in several epochs was truncated in the last one only (KIP-279)",
        breaks="replicas are equal",
        within="truncation_offset",
        old="if own.epoch != leader.epoch: return min(own.end_offset, end_offset)",
        new="if own.epoch != leader.epoch: return min(leader.end_offset, end_offset)",
    ),
    conformity_bug(
        id="KIP-320 for followers",
        cause="a follower of an earlier leader epoch fetched on, again and again",
        breaks="fencing",
        within="ReplicaFetcher.on_error",
        old="code == ErrorCode.FENCED_LEADER_EPOCH",
        new="False",
    ),
    Mutant(
        id="KIP-320 at the leader",
        cause="a leader served a follower of another leader epoch",
        breaks="fencing",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="Partition.fetch_records_of_follower",
                old="""
                    self.check_current_leader_epoch(fetch.leader_epoch)
                    leader = self.demand_leader()
                    leader.check_fetch(fetch)
                """,
                new="leader = self.demand_leader()",
            ),
            Edit(within="PartitionLeader.on_fetch", old="self.check_fetch(fetch)"),
        ),
    ),
    safety_bug(
        id="KAFKA-10706",
        cause="an epoch without records stayed where a log was truncated to its end",
        breaks="replicas are equal",
        within="LocalLog.truncate_to",
        old="""
            if offset >= self.log_end_offset:
                self._epochs.truncate_from_end(offset)
                return self.log_end_offset
        """,
        new="if offset >= self.log_end_offset: return self.log_end_offset",
    ),
    safety_bug(
        id="KAFKA-18991",
        cause="a response to a fetch of an earlier leader epoch was appended",
        breaks="replicas are equal",
        within="PartitionFetchState.is_same_fetch",
        old="(asked.fetch_offset, asked.leader_epoch)",
        new="(asked.fetch_offset, self.leader_epoch)",
    ),
    safety_bug(
        id="KAFKA-18723 in topics",
        cause="batches of a later leader epoch than that of the fetch were appended",
        breaks="replicas are equal",
        within="replicated_batches",
        old="if batch.partition_leader_epoch > leader_epoch: break",
    ),
    liveness_bug(
        id="KAFKA-15510",
        cause="a response without records made a follower forget the epoch of its last record",
        breaks="followers catch up",
        within="ReplicaFetcher._on_data",
        old="""
            if last_epoch is not None or state.lag is None:
                self._put_last(state.behind(last_epoch, data.high_watermark))
        """,
        new="""
            last_epoch = -1 if last_epoch is None else last_epoch
            self._put_last(state.behind(last_epoch, data.high_watermark))
        """,
    ),
    safety_bug(
        id="KAFKA-14704",
        cause="the high watermark of a response that shows a divergence was taken",
        breaks="the high watermark is within the log",
        within="ReplicaFetcher._on_divergence",
        old="self.truncate(state, offset)",
        new="""
            self.truncate(state, offset)
            state.partition.follow_leader(
                data.high_watermark, data.log_start_offset, wall_ms=self._wall_ms()
            )
        """,
    ),
    safety_bug(
        id="KAFKA-9491",
        cause="the high watermark stayed behind when a log was truncated fully",
        breaks="the high watermark is within the log",
        within="UnifiedLog._after_truncation",
        old="self.update_high_watermark(self.high_watermark)",
    ),
    liveness_bug(
        id="KAFKA-7414",
        cause="a follower whose offset the leader does not have gave up",
        breaks="followers catch up",
        within="OffsetSearch._truncate",
        old="if answer.offset > end_offset: fetcher.truncate(state, answer.offset, fully=True)",
    ),
    liveness_bug(
        id="KAFKA-6975",
        cause="a new replica could not begin where the leader's log starts within a batch",
        breaks="followers catch up",
        within="UnifiedLog.append_as_follower",
        old="""
            if start == end and batches[0].base_offset < end <= batches[0].last_offset:
                self.truncate_fully_and_start_at(batches[0].base_offset, now_ms=now_ms)
        """,
    ),
    safety_bug(
        id="KAFKA-8400",
        cause="a fetch that failed counted as progress of its follower",
        breaks="committed records stay",
        within="Partition.fetch_records_of_follower",
        old="leader.check_fetch(fetch)",
        new="""
            leader.check_fetch(fetch)
            if now_ms is not None:
                leader.on_fetch(fetch, now_ms)
                self._follow_high_watermark(leader)
        """,
    ),
    safety_bug(
        id="KAFKA-15221",
        cause="a follower that has restarted counted with what it had before (KIP-903)",
        breaks="committed records stay",
        within="PartitionLeader.on_fetch",
        old="self._is_of_past_incarnation(fetch)",
        new="False",
    ),
    liveness_bug(
        id="KAFKA-13091",
        cause="the high watermark was not looked at again when the ISR shrank",
        breaks="writes are acknowledged",
        within="Partition.on_altered",
        old="self._follow_high_watermark(leader)",
    ),
    safety_bug(
        id="KAFKA-15583",
        cause="the high watermark moved while too few replicas were in sync (KIP-966)",
        breaks="committed records stay",
        within="PartitionLeader._raise_high_watermark",
        old="if self.is_under_min_isr: return",
    ),
    safety_bug(
        id="KAFKA-13916 at the leader",
        cause="a fenced replica could be proposed for the ISR (KIP-841)",
        breaks="the ISR holds unfenced brokers",
        within="PartitionLeader._may_join",
        old="not broker.is_active",
        new="False",
    ),
    liveness_bug(
        id="KAFKA-7152",
        cause="a follower at the end of an idle log counted as lagging",
        breaks="the ISR does not flap",
        within="ReplicaProgress.is_caught_up",
        old="self.log_end_offset == leader_end_offset",
        new="False",
    ),
    safety_bug(
        id="producers behind a truncation",
        cause="a follower remembered the sequences of records that it had truncated",
        breaks="records are written once",
        within="UnifiedLog._after_truncation",
        old="self.load_producers(now_ms=now_ms)",
    ),
    liveness_bug(
        id="KAFKA-12686",
        cause="a change of the ISR stayed pending when the metadata came before its answer",
        breaks="followers join the ISR",
        within="PartitionLeader.lead",
        old="self.state = CommittedPartitionState(isr, RECOVERED)",
        new="""
            if isinstance(self.state, CommittedPartitionState):
                self.state = CommittedPartitionState(isr, RECOVERED)
        """,
    ),
    safety_bug(
        id="KAFKA-13266",
        cause="a follower went on in a new leader epoch from where it was in the one before",
        breaks="replicas are equal",
        within="ReplicaFetcher.add",
        old="known is None or known.leader_epoch != leader_epoch",
        new="known is None",
    ),
    safety_bug(
        id="KAFKA-3978",
        cause="a new leader took the end of a follower it knew nothing of for the high watermark",
        breaks="a high watermark does not fall",
        within="PartitionLeader._raise_high_watermark",
        old="max(self.high_watermark, offset)",
        new="offset",
    ),
    safety_bug(
        id="two changes of the ISR at a time",
        cause="a leader proposed another change of the ISR while one was under way",
        breaks="the ISR of the log is one that the leader knows",
        within="PartitionLeader.shrink",
        old="if not isinstance(state, CommittedPartitionState): return None",
        new="if not isinstance(state, CommittedPartitionState): state = state.committed",
    ),
    safety_bug(
        id="KIP-497 at the high watermark",
        cause="the high watermark went by the committed ISR while a replica was joining",
        breaks="committed records stay",
        within="PartitionLeader._raise_high_watermark",
        old="""(
            follower in self.state.maximal
            or (self._is_caught_up(follower, now_ms) and self._may_join(follower))
        )""",
        new="follower in self.state.members",
    ),
    conformity_bug(
        id="KAFKA-9004",
        cause="clients that cannot know of followers were served by one",
        breaks="former clients read from the leader",
        within="Partition.fetch_records",
        old="is_leader_needed or self._is_closed",
        new="self._is_closed",
    ),
    safety_bug(
        id="KAFKA-6046",
        cause="a follower did not refuse to delete records",
        breaks="a log starts where its leader's does",
        within="Partition.delete_records",
        old="self.demand_leader()",
    ),
    liveness_bug(
        id="request before a slow disk has stored",
        cause="a follower asked for other partitions while its slow disk stored one",
        breaks="writes are acknowledged",
        within="ReplicaFetcherThread._fetch",
        old="await self._wait_for_writes()",
    ),
    liveness_bug(
        id="long wait without a slow disk's partition",
        cause="a leader waited for idle partitions while a slow disk had stored the other one",
        breaks="writes are acknowledged",
        within="ReplicaFetcher.fetch",
        old="not self.is_stored",
        new="False",
    ),
)
