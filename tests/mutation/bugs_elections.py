"""Bugs in elections, epochs and leadership."""

from __future__ import annotations

from tests.mutation.mutant import Edit, Kind, Mutant

RAFT = "server/kvorum/raft"

MUTANTS = (
    Mutant(
        id="KAFKA-10527",
        cause="a restarted leader led on in the epoch it had led",
        breaks="P1",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/starting.py",
                "        return _resigned(replica, record, deadline=now + timeout_ms)\n",
                "        from kvorum.raft.roles import Leader\n\n"
                "        return Leader(\n"
                "            record.epoch,\n"
                "            own_key=replica.own.key,\n"
                "            own_endpoints=replica.own.endpoints,\n"
                "            epoch_start_offset=0,\n"
                "            granting_ids=(own_id,),\n"
                "            check_quorum_deadline=now + replica.config.check_quorum_ms,\n"
                "        )\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-10661",
        cause="a restarted leader could vote for another one in the epoch it had led",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/starting.py",
                "        return _resigned(replica, record, deadline=now + timeout_ms)\n",
                "        return Unattached(record.epoch, election_deadline=deadline)\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-10677",
        cause="parked fetches were not answered when the leader resigned",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/core.py",
                "        if not isinstance(replica.role, Leader):\n            "
                "fail_parked(replica)\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-15489",
        cause="a leader that nobody could reach led on",
        breaks="L4",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    if is_removed or (others and role.check_quorum_deadline <= now):\n",
                "    if is_removed:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-16144",
        cause="a voter that is alone resigned because it heard from no other",
        breaks="L4",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    if is_removed or (others and role.check_quorum_deadline <= now):\n",
                "    if is_removed or role.check_quorum_deadline <= now:\n",
            ),
            Edit(
                f"{RAFT}/polling.py",
                "    if isinstance(role, Leader) and "
                "len(replica.voters.others(role.own_key)) > 0:\n",
                "    if isinstance(role, Leader):\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-16531",
        cause="a leader outside the voters counted itself for the check of the quorum",
        breaks="L4",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/serving.py",
                "    needed = voters.majority - (1 if voters.is_voter(leader.own_key) else 0)\n",
                "    needed = voters.majority - 1\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-16536",
        cause="a restarted voter did not know where the leader listens",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/starting.py",
                "    if record.leader_id is not None and endpoints:\n",
                "    if record.leader_id is not None and endpoints == ():\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-16926",
        cause="BeginQuorumEpoch went out every period to voters that were fetching",
        breaks="message budget",
        kind=Kind.CONFORMITY,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "        if last_fetch is not None and now - last_fetch < "
                "replica.config.begin_quorum_ms:\n"
                "            continue\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-16927",
        cause="to hear of more endpoints of the leader was an illegal move",
        breaks="P18",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/transitions.py",
                "    if isinstance(old, Follower) and len(new.leader_endpoints) "
                "<= len(old.leader_endpoints):\n",
                "    if isinstance(old, Follower):\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-17030",
        cause="a node that took itself for a voter did not look for the leader",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    if not replica.is_installing:\n        _fetch_from_anyone(replica, now)\n",
                "    if not replica.is_installing and not replica.is_voter:\n"
                "        _fetch_from_anyone(replica, now)\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-17067",
        cause="a node that is no voter could become a candidate",
        breaks="P16",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/replica.py",
                "        return self.own.can_vote and self.voters.is_voter(self.own.key)\n",
                "        return self.own.can_vote\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-18345",
        cause="the times that nodes wait before an election converged",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/replica.py",
                "        return timeout_ms + self.random.randrange(timeout_ms) "
                "if timeout_ms > 0 else 1\n",
                "        return timeout_ms if timeout_ms > 0 else 1\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-18379",
        cause="a leader that resigned an epoch could follow another leader in it",
        breaks="P1",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "    if leader_id is None or role.leader_id not in {None, leader_id}:\n"
                "        return False\n"
                "    if len(endpoints) <= len(role.leader_endpoints):\n",
                "    if leader_id is None:\n"
                "        return False\n"
                "    if role.leader_id == leader_id and len(endpoints) <= "
                "len(role.leader_endpoints):\n",
            ),
            Edit(
                f"{RAFT}/transitions.py",
                "    if old.leader_id is not None and old.leader_id != new.leader_id:\n"
                '        raise _illegal(old, new, "an epoch has one leader")\n',
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-20895",
        cause="no pre-vote was given once the leader had resigned",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/roles/resigned.py",
                "        return request.is_pre_vote and is_up_to_date\n",
                "        return False\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-17751",
        cause="a timer of a follower that is no voter stayed at zero: a busy loop",
        breaks="L6",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "role.is_leader_silent, role.has_fetched = True, False\n"
                "        role.fetch_deadline = NEVER\n",
                "role.is_leader_silent, role.has_fetched = True, False\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-10826",
        cause="the next thing to do was not what the process was woken for",
        breaks="L6",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    return min(deadline, replica.peers.deadline, replica.parked.deadline, "
                "change_deadline(replica))\n",
                "    return min(deadline, replica.peers.deadline, change_deadline(replica))\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-19354",
        cause="a node that once asked the bootstrap servers went on doing so",
        breaks="L2",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "    role.is_leader_silent = False\n",
                "    role.is_leader_silent = role.is_leader_silent and not replica.is_voter\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-13940",
        cause="DescribeQuorum was answered with the wrong error by a node that does not lead",
        breaks="P20",
        kind=Kind.CONFORMITY,
        edits=(
            Edit(
                f"{RAFT}/serving.py",
                "            error=Error.NOT_LEADER_OR_FOLLOWER, leader=replica.known_leader()\n",
                "            error=Error.INVALID_REQUEST, leader=replica.known_leader()\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14154",
        cause="a request from an epoch ahead was answered as if it was from one behind",
        breaks="P20",
        kind=Kind.CONFORMITY,
        edits=(
            Edit(
                f"{RAFT}/serving.py",
                "        return Error.UNKNOWN_LEADER_EPOCH\n",
                "        return Error.FENCED_LEADER_EPOCH\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-15345",
        cause=(
            "the state machine was told that it leads before the epoch's first record was committed"
        ),
        breaks="P17",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    leader.next_begin_quorum = now\n    replica.move(leader)\n",
                "    leader.next_begin_quorum = now\n    replica.move(leader)\n"
                "    from kvorum.raft.effects import LeadershipGained\n\n"
                "    leader.is_established = True\n"
                "    replica.outbox.add(LeadershipGained(leader.epoch))\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-16286",
        cause="who came late was not told of the leader",
        breaks="P17",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/replica.py",
                "        self._write_if_changed()\n"
                "        self.outbox.add(LeaderChanged(role.leader_id, role.epoch))\n",
                "        self._write_if_changed()\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-17333",
        cause="a node that had resigned announced after a restart that it leads",
        breaks="P17",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/replica.py",
                "        self._write_if_changed()\n"
                "        self.outbox.add(LeaderChanged(role.leader_id, role.epoch))\n",
                "        self._write_if_changed()\n"
                "        self.outbox.add(LeaderChanged(role.leader_id, role.epoch))\n"
                "        if role.leader_id == self.own.key.id:\n"
                "            from kvorum.raft.effects import LeadershipGained\n\n"
                "            self.outbox.add(LeadershipGained(role.epoch))\n",
            ),
        ),
    ),
    Mutant(
        id="hashicorp/raft#661",
        cause="the epoch was stored without the vote in it",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/roles/role.py",
                "        return ElectionRecord(self.epoch, self.leader_id, self.voted)\n",
                "        return ElectionRecord(self.epoch, self.leader_id)\n",
            ),
        ),
    ),
    Mutant(
        id="vote answered before it is durable",
        cause="the answer to a vote left before the vote was stored",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/effects.py",
                "        (self._at_once if self._write is None else "
                "self._after_write).append(effect)\n",
                "        self._at_once.append(effect)\n",
            ),
        ),
    ),
    Mutant(
        id="microsoft/CCF#8094",
        cause="a step down within an epoch forgot the vote that was given in it",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/replica.py",
                "                voted=old.voted if is_same else None,\n         "
                "   )\n        )\n\n"
                "    def note_vote(",
                "            )\n        )\n\n    def note_vote(",
            ),
            Edit(
                f"{RAFT}/transitions.py",
                "    if new.epoch == old.epoch and old.voted is not None and "
                "new.voted != old.voted:\n",
                "    if new.epoch == old.epoch and old.voted and new.voted not "
                "in {None, old.voted}:\n",
            ),
        ),
    ),
    Mutant(
        id="eliben/raft#27",
        cause="a message of the same epoch reset the vote",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "    is_up_to_date = not request.log_end.is_before(replica.log.end)\n",
                "    is_up_to_date = not request.log_end.is_before(replica.log.end)\n"
                "    if not request.is_pre_vote:\n"
                "        replica.role.voted = None\n",
            ),
        ),
    ),
    Mutant(
        id="vote for a shorter log",
        cause="a vote was given without comparing the logs (section 5.4.1 of the Raft paper)",
        breaks="P5",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "    is_up_to_date = not request.log_end.is_before(replica.log.end)\n",
                "    is_up_to_date = request.log_end.offset >= 0\n",
            ),
        ),
    ),
    Mutant(
        id="vote for the longer log, not the later epoch",
        cause="logs were compared by length before epoch",
        breaks="P5",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/basics.py",
                "        return (self.epoch, self.offset) < (other.epoch, other.offset)\n",
                "        return (self.offset, self.epoch) < (other.offset, other.epoch)\n",
            ),
        ),
    ),
    Mutant(
        id="candidate claims what is not durable",
        cause="a vote was asked for with records that a power cut took away afterwards",
        breaks="P5",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    return replica.role.epoch <= EPOCH_MAX and "
                "log.durable_end_offset == log.end_offset\n",
                "    return replica.role.epoch <= EPOCH_MAX and log.end_offset >= 0\n",
            ),
        ),
    ),
    Mutant(
        id="pre-vote counts as vote",
        cause="a pre-vote was stored as the vote of its epoch",
        breaks="P28",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "    if is_granted and not request.is_pre_vote and replica.role.voted is None:\n",
                "    if is_granted and replica.role.voted is None:\n",
            ),
        ),
    ),
    Mutant(
        id="pre-vote against a living leader",
        cause="a voter that hears its leader gave pre-votes, so a cut link deposed the leader",
        breaks="L5",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/roles/follower.py",
                "        return request.is_pre_vote and not self.has_fetched and is_up_to_date\n",
                "        return request.is_pre_vote and is_up_to_date\n",
            ),
        ),
    ),
    Mutant(
        id="epoch without ceiling",
        cause="a peer's highest epoch was entered, and none was left for an election",
        breaks="P20",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "    if not role.epoch <= leader.epoch <= EPOCH_MAX:\n",
                "    if not role.epoch <= leader.epoch:\n",
            ),
        ),
    ),
    Mutant(
        id="second leader for an epoch stops the node",
        cause=(
            "a peer that names another leader of the epoch broke the node, instead of being refused"
        ),
        breaks="P20",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "    if leader_id is None or role.leader_id not in {None, leader_id}:\n"
                "        return False\n"
                "    if len(endpoints) <= len(role.leader_endpoints):\n",
                "    if leader_id is None:\n"
                "        return False\n"
                "    if role.leader_id == leader_id and len(endpoints) <= "
                "len(role.leader_endpoints):\n",
            ),
        ),
    ),
    Mutant(
        id="reply of an earlier role is believed",
        cause="what was asked for before a move still counted after it",
        breaks="P6",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/replica.py",
                "        if not keeps_requests:\n            self.peers.reset()\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KIP-996 fall-back",
        cause="a peer from before pre-votes kept a quorum from electing a leader",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "    if failure.lacks_version and is_pre_vote and is_nominee:\n",
                "    if failure.lacks_version and not is_pre_vote and is_nominee:\n",
            ),
        ),
    ),
    Mutant(
        id="EndQuorumEpoch order",
        cause="the successors in EndQuorumEpoch did not take their turns",
        breaks="L1",
        kind=Kind.CONFORMITY,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "            if position == 0:\n                return 0\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="observer in a candidate's epoch",
        cause="an observer entered the epoch of a candidate that no other voter ever heard of",
        breaks="L8",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "    if leader_id is None and not replica.may_stand:\n        return False\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="observer loyal to the lost",
        cause="a new voter that had not heard of it let nobody pass for a leader that was lost",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "        role.is_leader_silent, role.has_fetched = True, False\n",
                "        role.is_leader_silent = True\n",
            ),
        ),
    ),
    Mutant(
        id="asking itself alone",
        cause="who once kept silent was not asked again while anybody else answered, even in vain",
        breaks="L8",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    if all(peers.was_asked(server.id) for server in others):\n",
                "    if not others:\n",
            ),
        ),
    ),
)
