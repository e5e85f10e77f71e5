"""Bugs in the transaction coordinator: ids and epochs, outcomes, markers, time-outs, loading."""

from tests.model.mutation.mutant import conformity_bug, liveness_bug, safety_bug

MUTANTS = (
    liveness_bug(
        id="KAFKA-20090",
        cause="a time-out in the last epoch left the id without another one",
        breaks="epochs of producers",
        within="aborted_by_coordinator",
        old="_next_producer_id(metadata, generate_producer_id)",
        new="NO_PRODUCER",
    ),
    conformity_bug(
        id="KAFKA-19367",
        cause="the abort of an open transaction took two epochs",
        breaks="epochs of producers",
        within="aborted_by_coordinator",
        old="metadata if has_next_epoch else metadata.fence_producer()",
        new="metadata.fence_producer()",
    ),
    safety_bug(
        id="KAFKA-18660",
        cause="an epoch that is exhausted led back to the same id with epoch 0",
        breaks="epochs of producers",
        within="_end_response",
        old="EndTxnResponse(producer_id=metadata.next_producer_id, producer_epoch=0)",
        new="EndTxnResponse(producer_id=metadata.producer_id, producer_epoch=0)",
    ),
    conformity_bug(
        id="KAFKA-18464",
        cause="an abort right after a commit was judged by its epoch, and fenced its producer",
        breaks="requests for a pending id",
        within="_ended_with_next_epoch",
        old="metadata = ids.demand(wanted.transactional_id)",
        new="""
            metadata = ids.committed(wanted.transactional_id)
            if metadata is None:
                raise RequestError.with_default_message(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        """,
    ),
    safety_bug(
        id="KAFKA-16352",
        cause="the end of an older transaction completed a newer one",
        breaks="a transaction is whole",
        within="TransactionMetadata.has_same_end",
        old="""
            (
                self.state.is_prepared
                and self.state is other.state
                and self.producer_id == other.producer_id
                and self.producer_epoch == other.producer_epoch
                and self.start_ms == other.start_ms
            )
        """,
        new="""
            (
                self.state.is_prepared
                and self.state is other.state
                and self.producer_id == other.producer_id
            )
        """,
    ),
    safety_bug(
        id="KAFKA-9600",
        cause="EndTxn took a higher epoch than that of the producer",
        breaks="zombies are fenced",
        within="_ended_in_one_epoch",
        old="metadata.producer_epoch != wanted.producer_epoch",
        new="metadata.producer_epoch > wanted.producer_epoch",
    ),
    liveness_bug(
        id="KAFKA-5202",
        cause="markers for a deleted topic kept a transaction from its end",
        breaks="transactions end",
        within="TransactionMarkerChannelManager._write",
        old="codes[where] = ErrorCode.NONE",
        new="pass",
    ),
    safety_bug(
        id="partition without a leader is left out",
        cause="a partition that has no leader now was taken for a deleted one",
        breaks="a transaction is whole",
        within="TransactionMarkerChannelManager._write",
        old="leader = coordinator_node(image, where.topic, where.partition, self._listener)",
        new="""
            leader = coordinator_node(image, where.topic, where.partition, self._listener)
            if leader is None:
                codes[where] = ErrorCode.NONE
        """,
    ),
    safety_bug(
        id="markers before the outcome is committed",
        cause="an outcome that may be lost was written to the partitions",
        breaks="a transaction is whole",
        within="TransactionCoordinatorShard._prepare",
        old="append = self._prepared_append(prepared.transactional_id)",
        new="""
            append = self._prepared_append(prepared.transactional_id)
            self._surroundings.write_markers(prepared)
        """,
    ),
    safety_bug(
        id="loaded outcome is not waited for",
        cause="a new coordinator wrote the markers of an outcome that was not committed",
        breaks="a transaction is whole",
        within="TransactionCoordinatorShard.on_loaded",
        old="self._outbox.set_timer(PreparedTransaction(metadata.transactional_id), 0)",
        new="self._write_markers(metadata.transactional_id)",
    ),
    liveness_bug(
        id="loaded outcome is forgotten",
        cause="the coordinator before had written some of the markers only",
        breaks="transactions end",
        within="TransactionCoordinatorShard.on_loaded",
        old="self._outbox.set_timer(PreparedTransaction(metadata.transactional_id), 0)",
        new="pass",
    ),
    liveness_bug(
        id="late outcome is forgotten",
        cause="an outcome that was committed after its time had no markers",
        breaks="transactions end",
        within="_PreparedAppend.failed",
        old="self.on_late(self.transactional_id)",
        new="pass",
    ),
    safety_bug(
        id="zombie adds partitions",
        cause="a producer of an earlier epoch added partitions to the transaction",
        breaks="zombies are fenced",
        within="_require_producer",
        old="metadata.producer_epoch != wanted.producer_epoch",
        new="metadata.producer_epoch < wanted.producer_epoch",
    ),
    safety_bug(
        id="step on a pending id",
        cause="a second step began before the first one was committed",
        breaks="requests for a pending id",
        within="TransactionalIds.is_pending",
        old="return latest is not self.committed(transactional_id)",
        new="return False",
    ),
    safety_bug(
        id="verified before it is committed",
        cause="a partition counted as added that may be lost with the coordinator",
        breaks="verification",
        within="verified",
        old="metadata = ids.committed(wanted.transactional_id)",
        new="metadata = ids.latest(wanted.transactional_id)",
    ),
    conformity_bug(
        id="time-out from the last request on",
        cause="a producer that adds partitions again and again was never aborted",
        breaks="time-outs",
        within="TransactionMetadata.add_partitions",
        old="now_ms if self.state.is_at_rest else self.start_ms",
        new="now_ms",
    ),
    safety_bug(
        id="producer id is not rotated",
        cause="epochs of a producer began again at 0 under its id",
        breaks="epochs of producers",
        within="TransactionMetadata.complete",
        old="replace(completed, producer_id=self.next_producer_id, producer_epoch=0)",
        new="replace(completed, producer_epoch=0)",
    ),
    conformity_bug(
        id="lost answer of InitProducerId",
        cause="a producer that had not got its epoch was fenced when it asked again",
        breaks="epochs of producers",
        within="initialized",
        old="expected.epoch == metadata.last_producer_epoch",
        new="False",
    ),
    conformity_bug(
        id="repeated commit of a transaction",
        cause="an EndTxn whose answer was lost was refused",
        breaks="repeated requests",
        within="_ended_with_next_epoch",
        old="is_retry and metadata.state is _OUTCOMES[wanted.is_commit]",
        new="False",
    ),
    safety_bug(
        id="commit after an abort",
        cause="a producer that repeated a commit learned nothing of the coordinator's abort",
        breaks="repeated requests",
        within="_ended_in_one_epoch",
        old="metadata.state is _OUTCOMES[wanted.is_commit]",
        new="metadata.state in _OUTCOMES.values()",
    ),
    liveness_bug(
        id="id that never expires",
        cause="ids of producers that were gone filled the memory",
        breaks="expiry of transactional ids",
        within="TransactionCoordinatorShard._remove_expired",
        old="self._outbox.set_timer(ExpiredTransactionalIds(), interval_ms)",
        new="return CoordinatorResult(effects=self._outbox.take())",
    ),
    liveness_bug(
        id="question to oneself without limit",
        cause="a broker waited for its own answer for as long as a transaction may last",
        breaks="one transaction holds up no other",
        within="OwnBroker.send",
        old="in_time(self._runtime, self._handle(request), timeout_ms, late)",
        new="self._handle(request)",
    ),
    liveness_bug(
        id="epoch of markers from before",
        cause="a coordinator led on in a higher epoch, and its markers were fenced for ever",
        breaks="a transaction ends",
        within="CoordinatorRuntime._is_loaded_again",
        old="self._settings.loads_in_each_epoch or known.state is CoordinatorState.FAILED",
        new="known.state is CoordinatorState.FAILED",
    ),
    safety_bug(
        id="abort without its index",
        cause="an abort was in the log though its entry for readers could not be made",
        breaks="nothing aborted is read",
        within="UnifiedLog._write",
        old="self._active_transaction_index.prepare()",
    ),
)
