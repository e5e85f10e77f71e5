"""Bugs in the controller: registration, fencing, replay, and what it shows."""

from __future__ import annotations

from tests.mutation.mutant import Edit, Kind, Mutant

CONTROLLER = "server/kvorum/controller"
METADATA = "server/kvorum/metadata"

MUTANTS = (
    Mutant(
        id="KAFKA-13528",
        cause="a broker of another cluster could register",
        breaks="P15",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CONTROLLER}/broker_registration.py",
                "    if request.cluster_id != cluster_id:\n",
                "    if request.cluster_id is None:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-19047",
        cause="a broker that restarts quickly was refused although its session was over",
        breaks="registration liveness",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{CONTROLLER}/broker_registration.py",
                "        and context.sessions.is_valid(existing.id, "
                "existing.epoch, context.now_ms)\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-16952",
        cause="the same incarnation of a broker got another epoch when it registered again",
        breaks="broker epochs",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CONTROLLER}/broker_registration.py",
                "    if is_new:\n        record.broker_epoch = context.next_offset\n",
                "    record.broker_epoch = context.next_offset\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-16757",
        cause="a broker that registers again while it is healthy was fenced",
        breaks="no fence while heartbeating",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{CONTROLLER}/broker_registration.py",
                "        fenced=existing.is_fenced if existing else True,\n",
                "        fenced=True,\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-18138",
        cause="a new controller forgot brokers that had died during the failover",
        breaks="dead brokers are fenced",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{CONTROLLER}/sessions.py",
                "            if not broker.is_fenced:\n",
                "            if broker.is_in_controlled_shutdown:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-19130",
        cause="a new controller gave sessions to brokers that were fenced already",
        breaks="soft state is a function of the log",
        kind=Kind.CONFORMITY,
        edits=(
            Edit(
                f"{CONTROLLER}/sessions.py",
                "            if not broker.is_fenced:\n",
                "            if broker.epoch >= 0:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-13841",
        cause="a broker without heartbeats stayed unfenced",
        breaks="dead brokers are fenced",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{CONTROLLER}/periodic.py",
                "    yield from gather(records, fencing(ClusterRules(image, context.settings), "
                "broker))\n",
                "    yield from gather(records, iter(()))\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14292",
        cause="the offset that a controlled shutdown waits for moved on with every heartbeat",
        breaks="shutdown liveness",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{CONTROLLER}/sessions.py",
                "        if not session.is_shutting_down:\n",
                "        if offset >= 0:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-13916",
        cause="a replica whose broker is fenced could join the ISR",
        breaks="the ISR holds unfenced brokers",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CONTROLLER}/alter_partition.py",
                "    return broker is not None and broker.is_active and epoch in "
                "(UNKNOWN_BROKER_EPOCH, broker.epoch)\n",
                "    return broker is not None and epoch in (UNKNOWN_BROKER_EPOCH, broker.epoch)\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14617",
        cause="an ISR was accepted that named an earlier incarnation of a broker",
        breaks="epochs fence ISR changes",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CONTROLLER}/alter_partition.py",
                "    return broker is not None and broker.is_active and epoch in "
                "(UNKNOWN_BROKER_EPOCH, broker.epoch)\n",
                "    return broker is not None and broker.is_active and epoch >= "
                "UNKNOWN_BROKER_EPOCH\n",
            ),
        ),
    ),
    Mutant(
        id="stale partition epoch",
        cause="an ISR change that had been overtaken was applied",
        breaks="epochs fence ISR changes",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CONTROLLER}/alter_partition.py",
                "    if wanted.partition_epoch < partition.partition_epoch:\n",
                "    if wanted.partition_epoch < -2:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-19522",
        cause="the last known leader was elected although its broker is fenced",
        breaks="leaders are unfenced",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CONTROLLER}/partition_change.py",
                "        return last_known[0] if "
                "self._rules.is_acceptable_leader(last_known[0]) else None\n",
                "        return last_known[0]\n",
            ),
        ),
    ),
    Mutant(
        id="unclean leader by the way",
        cause="an election took a replica that is not in sync without being allowed to",
        breaks="no acknowledged record is lost",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CONTROLLER}/election.py",
                "    if election is Election.UNCLEAN:\n",
                "    if election is not None:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14857",
        cause="a removed topic left its configuration in the image",
        breaks="the image is a fold of the log",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{METADATA}/replay.py",
                "    editor.configs = editor.configs.without(ResourceType.TOPIC, name)\n",
                "    del name\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-19383",
        cause="a topic that was created and deleted within one batch came back",
        breaks="the image is a fold of the log",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{METADATA}/topics_image.py",
                "        del by_id[topic_id]\n        del ids[topic.name]\n",
                "        del ids[topic.name]\n",
            ),
        ),
    ),
    Mutant(
        id="transaction half applied",
        cause="an aborted metadata transaction left what it had written",
        breaks="the image is a fold of the log",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{METADATA}/replay.py",
                "    editor.rebase(editor.transaction.before)\n    editor.transaction = None\n",
                "    editor.transaction = None\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14457",
        cause="what is not committed yet was shown to readers",
        breaks="P7",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                "server/kvorum/node/metadata_loader.py",
                "        if self.image.transaction is not None:\n            "
                "return\n        self.published_offset",
                "        self.published_offset",
            ),
            Edit(
                "server/kvorum/node/metadata_loader.py",
                "        return self.image.published\n",
                "        return self.image\n",
            ),
        ),
    ),
    Mutant(
        id="answered before it is committed",
        cause="a request that changes metadata was answered before the change was committed",
        breaks="P25",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                "server/kvorum/node/controller/shell.py",
                "            await self._deferred.wait_for(claim.pending.last_offset)\n",
                "            await asyncio.sleep(0)\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-13104",
        cause="the controller gave up after an error, and the replica led on without one",
        breaks="P17",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                "server/kvorum/node/controller/shell.py",
                "            self._raft.resign(claim.epoch)\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-13100",
        cause="a controller that lost its leadership kept what it had not committed",
        breaks="P17",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                "server/kvorum/node/controller/shell.py",
                "        claim, self._claim = self._claim, None\n        "
                "self._is_claimed.clear()\n",
                "        claim = self._claim\n        self._is_claimed.clear()\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14996",
        cause="an operation too large for the log made one controller after the other resign",
        breaks="P20",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                "server/kvorum/node/controller/shell.py",
                "        except ProposalTooLargeError as error:\n"
                "            raise RequestError(ErrorCode.RECORD_LIST_TOO_LARGE, "
                "str(error)) from error\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-17636",
        cause="the records that formatting had left were not written at the first start",
        breaks="format to first start",
        kind=Kind.CONFORMITY,
        edits=(
            Edit(
                f"{CONTROLLER}/activation.py",
                "    records.extend(bootstrap.records)\n",
                "    records.extend(bootstrap.records[:1])\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-19192",
        cause="a bootstrap checkpoint was written once more by a later controller",
        breaks="format to first start",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CONTROLLER}/activation.py",
                "    if version is None:\n        return _bootstrap",
                "    if version is not None or image.transaction is None:\n      "
                "  return _bootstrap",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-18920",
        cause="a node told a wrong kraft.version",
        breaks="P20",
        kind=Kind.CONFORMITY,
        edits=(
            Edit(
                "server/kvorum/node/handlers/api_versions.py",
                "        levels[KRAFT_VERSION_FEATURE] = kraft_version\n",
                "        levels[KRAFT_VERSION_FEATURE] = kraft_version + 1\n",
            ),
        ),
    ),
)
