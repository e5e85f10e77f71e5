"""Bugs in the controller: registration, fencing, replay, and what it shows."""

from tests.model.mutation.mutant import Edit, Kind, Mutant, conformity_bug, liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="KAFKA-13528",
        cause="a broker of another cluster could register",
        breaks="P15",
        within="_check_identity",
        old="request.cluster_id != cluster_id",
        new="request.cluster_id is None",
    ),
    liveness_bug(
        id="KAFKA-19047",
        cause="a broker that restarts quickly was refused although its session was over",
        breaks="registration liveness",
        within="_check_identity",
        old="""(
            existing is not None
            and existing.incarnation_id != request.incarnation_id
            and context.sessions.is_valid(existing.id, existing.epoch, context.now_ms)
        )""",
        new="existing is not None and existing.incarnation_id != request.incarnation_id",
    ),
    safety_bug(
        id="KAFKA-16952",
        cause="the same incarnation of a broker got another epoch when it registered again",
        breaks="broker epochs",
        within="register_broker",
        old="if is_new: record.broker_epoch = context.next_offset",
        new="record.broker_epoch = context.next_offset",
    ),
    liveness_bug(
        id="KAFKA-16757",
        cause="a broker that registers again while it is healthy was fenced",
        breaks="no fence while heartbeating",
        within="_registration_record",
        old="existing.is_fenced if existing else True",
        new="True",
    ),
    liveness_bug(
        id="KAFKA-18138",
        cause="a new controller forgot brokers that had died during the failover",
        breaks="dead brokers are fenced",
        within="BrokerHeartbeatManager.start",
        old="not broker.is_fenced",
        new="broker.is_in_controlled_shutdown",
    ),
    conformity_bug(
        id="KAFKA-19130",
        cause="a new controller gave sessions to brokers that were fenced already",
        breaks="soft state is a function of the log",
        within="BrokerHeartbeatManager.start",
        old="not broker.is_fenced",
        new="broker.epoch >= 0",
    ),
    liveness_bug(
        id="KAFKA-13841",
        cause="a broker without heartbeats stayed unfenced",
        breaks="dead brokers are fenced",
        within="maybe_fence_stale_broker",
        old="handle_broker_fenced(ClusterRules(image, context.settings), broker)",
        new="iter(())",
    ),
    liveness_bug(
        id="KAFKA-14292",
        cause="the offset that a controlled shutdown waits for moved on with every heartbeat",
        breaks="shutdown liveness",
        within="BrokerHeartbeatManager.begin_controlled_shutdown",
        old="not session.is_shutting_down",
        new="offset >= 0",
    ),
    safety_bug(
        id="KAFKA-13916",
        cause="a replica whose broker is fenced could join the ISR",
        breaks="the ISR holds unfenced brokers",
        within="_is_eligible",
        old="""(
            broker is not None
            and broker.is_active
            and epoch in (UNKNOWN_BROKER_EPOCH, broker.epoch)
        )""",
        new="broker is not None and epoch in (UNKNOWN_BROKER_EPOCH, broker.epoch)",
    ),
    safety_bug(
        id="KAFKA-14617",
        cause="an ISR was accepted that named an earlier incarnation of a broker",
        breaks="epochs fence ISR changes",
        within="_is_eligible",
        old="epoch in (UNKNOWN_BROKER_EPOCH, broker.epoch)",
        new="epoch >= UNKNOWN_BROKER_EPOCH",
    ),
    safety_bug(
        id="stale partition epoch",
        cause="an ISR change that had been overtaken was applied",
        breaks="epochs fence ISR changes",
        within="refusal_code",
        old="wanted.partition_epoch < partition.partition_epoch",
        new="wanted.partition_epoch < -2",
    ),
    safety_bug(
        id="KAFKA-19522",
        cause="the last known leader was elected although its broker is fenced",
        breaks="leaders are unfenced",
        within="PartitionChangeBuilder._last_known_leader",
        old="last_known[0] if self._rules.is_acceptable_leader(last_known[0]) else None",
        new="last_known[0]",
    ),
    safety_bug(
        id="unclean leader by the way",
        cause="an election took a replica that is not in sync without being allowed to",
        breaks="no acknowledged record is lost",
        within="elect_leader",
        old="election is Election.UNCLEAN",
        new="election is not None",
    ),
    safety_bug(
        id="KAFKA-14857",
        cause="a removed topic left its configuration in the image",
        breaks="the image is a fold of the log",
        within="_remove_topic",
        old="editor.configs = editor.configs.without(ResourceType.TOPIC, name)",
        new="del name",
    ),
    safety_bug(
        id="KAFKA-19383",
        cause="a topic that was created and deleted within one batch came back",
        breaks="the image is a fold of the log",
        within="TopicsEditor.remove_topic",
        old="del by_id[topic_id]",
    ),
    safety_bug(
        id="transaction half applied",
        cause="an aborted metadata transaction left what it had written",
        breaks="the image is a fold of the log",
        within="_abort_transaction",
        old="editor.rebase(editor.transaction.before)",
    ),
    Mutant(
        id="KAFKA-14457",
        cause="what is not committed yet was shown to readers",
        breaks="P7",
        kind=Kind.SAFETY,
        edits=(
            Edit(within="MetadataLoader._publish", old="self.image.published", new="self.image"),
            Edit(
                within="MetadataLoader._publish",
                old="if self.image.transaction is not None: return",
            ),
        ),
    ),
    safety_bug(
        id="answered before it is committed",
        cause="a request that changes metadata was answered before the change was committed",
        breaks="P25",
        within="QuorumController._run",
        old="await committed.result()",
        new="await other_work(self._runtime)",
    ),
    liveness_bug(
        id="KAFKA-13104",
        cause="the controller gave up after an error, and the replica led on without one",
        breaks="P17",
        within="QuorumController._decide",
        old="self._raft.resign(claim.epoch)",
    ),
    safety_bug(
        id="KAFKA-13100",
        cause="a controller that lost its leadership kept what it had not committed",
        breaks="P17",
        within="QuorumController.renounce",
        old="claim, self._claim = self._claim, None",
        new="claim = self._claim",
    ),
    liveness_bug(
        id="KAFKA-14996",
        cause="an operation too large for the log made one controller after the other resign",
        breaks="P20",
        within="QuorumController._decide",
        old="""
            except ProposalTooLargeError as error:
                raise RequestError(ErrorCode.RECORD_LIST_TOO_LARGE, str(error)) from error
        """,
    ),
    conformity_bug(
        id="KAFKA-17636",
        cause="the records that formatting had left were not written at the first start",
        breaks="format to first start",
        within="_bootstrap_records",
        old="bootstrap.records",
        new="bootstrap.records[:1]",
    ),
    safety_bug(
        id="KAFKA-19192",
        cause="a bootstrap checkpoint was written once more by a later controller",
        breaks="format to first start",
        within="activation_records",
        old="version is None",
        new="version is not None or image.transaction is None",
    ),
    conformity_bug(
        id="KAFKA-18920",
        cause="a node told a wrong kraft.version",
        breaks="P20",
        within="_finalized",
        old="levels[KRAFT_VERSION_FEATURE] = kraft_version",
        new="levels[KRAFT_VERSION_FEATURE] = kraft_version + 1",
    ),
)
