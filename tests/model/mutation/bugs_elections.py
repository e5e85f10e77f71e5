"""Bugs in votes, elections, epochs and leadership."""

from tests.model.mutation.mutant import Edit, Kind, Mutant, conformity_bug, liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="KAFKA-10527",
        cause="a restarted leader led on in the epoch it had led",
        breaks="P1",
        within="initial_role",
        old="return _resigned(replica, record, deadline=now + timeout_ms)",
        new="""
            from kvorum.raft.roles import Leader

            return Leader(
                record.epoch,
                own_key=replica.own.key,
                own_endpoints=replica.own.endpoints,
                epoch_start_offset=0,
                granting_ids=(replica.own.key.id,),
                check_quorum_deadline=now + replica.config.check_quorum_ms,
            )
        """,
    ),
    safety_bug(
        id="KAFKA-10661",
        cause="a restarted leader could vote for another one in the epoch it had led",
        breaks="P2",
        within="initial_role",
        old="_resigned(replica, record, deadline=now + timeout_ms)",
        new="Unattached(record.epoch, election_deadline=deadline)",
    ),
    liveness_bug(
        id="KAFKA-10677",
        cause="parked fetches were not answered when the leader resigned",
        breaks="L1",
        within="RaftCore._finish",
        old="if not isinstance(replica.role, Leader): fail_parked(replica)",
    ),
    liveness_bug(
        id="KAFKA-15489",
        cause="a leader that nobody could reach led on",
        breaks="L4",
        within="_poll_leader",
        old="is_removed or (others and role.check_quorum_deadline <= now)",
        new="is_removed",
    ),
    Mutant(
        id="KAFKA-16144",
        cause="a voter that is alone resigned because it heard from no other",
        breaks="L4",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                within="next_deadline",
                old="isinstance(role, Leader) and len(replica.voters.others(role.own_key)) > 0",
                new="isinstance(role, Leader)",
            ),
            Edit(
                within="_poll_leader",
                old="others and role.check_quorum_deadline <= now",
                new="role.check_quorum_deadline <= now",
            ),
        ),
    ),
    liveness_bug(
        id="KAFKA-16531",
        cause="a leader outside the voters counted itself for the check of the quorum",
        breaks="L4",
        within="note_contact",
        old="1 if voters.is_voter(leader.own_key) else 0",
        new="1",
    ),
    liveness_bug(
        id="KAFKA-16536",
        cause="a restarted voter did not know where the leader listens",
        breaks="L1",
        within="initial_role",
        old="record.leader_id is not None and endpoints",
        new="record.leader_id is not None and endpoints == ()",
    ),
    conformity_bug(
        id="KAFKA-16926",
        cause="BeginQuorumEpoch went out every period to voters that were fetching",
        breaks="message budget",
        within="_poll_leader",
        old="""
            if last_fetch is not None and now - last_fetch < replica.config.begin_quorum_ms:
                continue
        """,
    ),
    liveness_bug(
        id="KAFKA-16927",
        cause="to hear of more endpoints of the leader was an illegal move",
        breaks="P18",
        within="_check_following",
        old="isinstance(old, Follower) and len(new.leader_endpoints) <= len(old.leader_endpoints)",
        new="isinstance(old, Follower)",
    ),
    liveness_bug(
        id="KAFKA-17030",
        cause="a node that took itself for a voter did not look for the leader",
        breaks="L1",
        within="_poll_unattached",
        old="if not replica.is_installing: _fetch_from_anyone(replica, now)",
        new="""
            if not replica.is_installing and not replica.is_voter:
                _fetch_from_anyone(replica, now)
        """,
    ),
    safety_bug(
        id="KAFKA-17067",
        cause="a node that is no voter could become a candidate",
        breaks="P16",
        within="Replica.is_voter",
        old="self.own.can_vote and self.voters.is_voter(self.own.key)",
        new="self.own.can_vote",
    ),
    liveness_bug(
        id="KAFKA-18345",
        cause="the times that nodes wait before an election converged",
        breaks="L1",
        within="Replica.random_election_timeout",
        old="timeout_ms + self.random.randrange(timeout_ms)",
        new="timeout_ms",
    ),
    liveness_bug(
        id="observer enters the epoch of a candidate that it refuses",
        cause="former voters entered the epochs of a removed voter, and lost their leader for good",
        breaks="L8",
        within="handle_vote_request",
        old="stays = is_later and not (is_up_to_date or replica.may_stand)",
        new="stays = is_later and replica.is_voter and not replica.may_stand",
    ),
    Mutant(
        id="KAFKA-18379",
        cause="a leader that resigned an epoch could follow another leader in it",
        breaks="P1",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="learn_leader",
                old="""
                    if leader_id is None or role.leader_id not in {None, leader_id}:
                        return False
                    if len(endpoints) <= len(role.leader_endpoints):
                        return False
                """,
                new="""
                    if leader_id is None:
                        return False
                    if role.leader_id == leader_id and len(endpoints) <= len(role.leader_endpoints):
                        return False
                """,
            ),
            Edit(
                within="_check_following",
                old="""
                    if old.leader_id is not None and old.leader_id != new.leader_id:
                        raise _illegal(old, new, "an epoch has one leader")
                """,
            ),
        ),
    ),
    liveness_bug(
        id="KAFKA-20895",
        cause="no pre-vote was given once the leader had resigned",
        breaks="L1",
        within="Resigned.would_grant",
        old="request.is_pre_vote and is_up_to_date",
        new="False",
    ),
    liveness_bug(
        id="KAFKA-17751",
        cause="a timer of a follower that is no voter stayed at zero: a busy loop",
        breaks="L6",
        within="_poll_follower",
        old="role.fetch_deadline = NEVER",
    ),
    liveness_bug(
        id="KAFKA-10826",
        cause="the next thing to do was not what the process was woken for",
        breaks="L6",
        within="next_deadline",
        old="""
            min(deadline, replica.peers.deadline, replica.parked.deadline, change_deadline(replica))
        """,
        new="min(deadline, replica.peers.deadline, change_deadline(replica))",
    ),
    liveness_bug(
        id="KAFKA-19354",
        cause="a node that once asked the bootstrap servers went on doing so",
        breaks="L2",
        within="_note_leader_lives",
        old="role.note(ContactEvent.ANSWERED)",
        new="""
            if role.contact is not LeaderContact.SILENT or replica.is_voter:
                role.note(ContactEvent.ANSWERED)
        """,
    ),
    conformity_bug(
        id="KAFKA-13940",
        cause="DescribeQuorum was answered with the wrong error by a node that does not lead",
        breaks="P20",
        within="handle_describe_quorum_request",
        old="Error.NOT_LEADER_OR_FOLLOWER",
        new="Error.INVALID_REQUEST",
    ),
    conformity_bug(
        id="KAFKA-14154",
        cause="a request from an epoch ahead was answered as if it was from one behind",
        breaks="P20",
        within="leader_error",
        old="Error.UNKNOWN_LEADER_EPOCH",
        new="Error.FENCED_LEADER_EPOCH",
    ),
    safety_bug(
        id="KAFKA-15345",
        cause=(
            "the state machine was told that it leads before the epoch's first record was committed"
        ),
        breaks="P17",
        within="become_leader",
        old="replica.move(leader)",
        new="""
            replica.move(leader)
            from kvorum.raft.effects import LeadershipGained

            leader.is_established = True
            replica.outbox.add(LeadershipGained(leader.epoch))
        """,
    ),
    liveness_bug(
        id="KAFKA-16286",
        cause="who came late was not told of the leader",
        breaks="P17",
        within="Replica.begin_as",
        old="self.outbox.add(LeaderChanged(role.leader_id, role.epoch))",
    ),
    safety_bug(
        id="KAFKA-17333",
        cause="a node that had resigned announced after a restart that it leads",
        breaks="P17",
        within="Replica.begin_as",
        old="self.outbox.add(LeaderChanged(role.leader_id, role.epoch))",
        new="""
            self.outbox.add(LeaderChanged(role.leader_id, role.epoch))
            if role.leader_id == self.own.key.id:
                from kvorum.raft.effects import LeadershipGained

                self.outbox.add(LeadershipGained(role.epoch))
        """,
    ),
    liveness_bug(
        id="epoch without ceiling",
        cause="a peer's highest epoch was entered, and none was left for an election",
        breaks="P20",
        within="learn_leader",
        old="role.epoch <= leader.epoch <= EPOCH_MAX",
        new="role.epoch <= leader.epoch",
    ),
    liveness_bug(
        id="second leader for an epoch stops the node",
        cause=(
            "a peer that names another leader of the epoch broke the node, instead of being refused"
        ),
        breaks="P20",
        within="learn_leader",
        old="""
            if leader_id is None or role.leader_id not in {None, leader_id}:
                return False
            if len(endpoints) <= len(role.leader_endpoints):
                return False
        """,
        new="""
            if leader_id is None:
                return False
            if role.leader_id == leader_id and len(endpoints) <= len(role.leader_endpoints):
                return False
        """,
    ),
    safety_bug(
        id="reply of an earlier role is believed",
        cause="what was asked for before a move still counted after it",
        breaks="P6",
        within="Replica.move",
        old="if not keeps_requests: self.peers.reset()",
    ),
    liveness_bug(
        id="KIP-996 fall-back",
        cause="a peer from before pre-votes kept a quorum from electing a leader",
        breaks="L1",
        within="_handle_failure",
        old="failure.lacks_version and is_pre_vote and is_nominee",
        new="failure.lacks_version and not is_pre_vote and is_nominee",
    ),
    conformity_bug(
        id="EndQuorumEpoch order",
        cause="the successors in EndQuorumEpoch did not take their turns",
        breaks="L1",
        within="_successor_wait_ms",
        old="if position == 0: return 0",
    ),
    liveness_bug(
        id="observer in a candidate's epoch",
        cause="an observer entered the epoch of a candidate that no other voter ever heard of",
        breaks="L8",
        within="learn_leader",
        old="if leader_id is None and not replica.may_stand: return False",
    ),
    liveness_bug(
        id="observer loyal to the lost",
        cause="a new voter that had not heard of it let nobody pass for a leader that was lost",
        breaks="L1",
        within="Follower.would_grant",
        old="self.contact is LeaderContact.ALIVE",
        new="self.contact in {LeaderContact.ALIVE, LeaderContact.SILENT}",
    ),
    liveness_bug(
        id="asking itself alone",
        cause="who once kept silent was not asked again while anybody else answered, even in vain",
        breaks="L8",
        within="_whom_to_ask",
        old="all((peers.was_asked(server.id) for server in others))",
        new="not others",
    ),
    Mutant(
        id="a new disk votes for the old one",
        cause="a replica with a voter's id and another directory stood and counted its own vote",
        breaks="P29",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="Replica.may_stand",
                old="self.history.previous_voters.names(self.own.key)",
                new="self.history.previous_voters.is_voter(self.own.key)",
            ),
            Edit(
                within="EpochElection.__init__",
                old="own_voter = voters.voter_for(own_key)",
                new="own_voter = voters.by_id(own_key.id)",
            ),
            Edit(
                within="_voters_to_write",
                old="history.voters.voter_for(own.key)",
                new="history.voters.by_id(own.key.id)",
            ),
        ),
    ),
    liveness_bug(
        id="a turn for an observer",
        cause="an observer looked for its turn when a leader resigned that named no successors",
        breaks="P20",
        within="_successor_wait_ms",
        old="not preferred and replica.is_voter",
        new="not preferred",
    ),
    safety_bug(
        id="hashicorp/raft#661",
        cause="the epoch was stored without the vote in it",
        breaks="P2",
        within="Role.election_record",
        old="ElectionRecord(self.epoch, self.leader_id, self.voted)",
        new="ElectionRecord(self.epoch, self.leader_id)",
    ),
    safety_bug(
        id="vote answered before it is durable",
        cause="the answer to a vote left before the vote was stored",
        breaks="P2",
        within="Outbox.add",
        old="self._at_once if self._write is None else self._after_write",
        new="self._at_once",
    ),
    Mutant(
        id="microsoft/CCF#8094",
        cause="a step down within an epoch forgot the vote that was given in it",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="Replica.become_unattached",
                old="""
                    Unattached(
                        epoch,
                        election_deadline=deadline,
                        leader_id=old.leader_id if is_same else leader_id,
                        voted=old.voted if is_same else None,
                    )
                """,
                new="""
                    Unattached(
                        epoch,
                        election_deadline=deadline,
                        leader_id=old.leader_id if is_same else leader_id,
                    )
                """,
            ),
            Edit(
                within="_check_vote",
                old="new.epoch == old.epoch and old.voted is not None and (new.voted != old.voted)",
                new="new.epoch == old.epoch and old.voted and (new.voted not in {None, old.voted})",
            ),
        ),
    ),
    safety_bug(
        id="eliben/raft#27",
        cause="a message of the same epoch reset the vote",
        breaks="P2",
        within="handle_vote_request",
        old="is_up_to_date = request.log_end >= replica.log.end",
        new="""
            is_up_to_date = request.log_end >= replica.log.end
            if not request.is_pre_vote:
                replica.role.voted = None
        """,
    ),
    safety_bug(
        id="vote for a shorter log",
        cause="a vote was given without comparing the logs (section 5.4.1 of the Raft paper)",
        breaks="P5",
        within="handle_vote_request",
        old="request.log_end >= replica.log.end",
        new="request.log_end.offset >= 0",
    ),
    safety_bug(
        id="vote for the longer log, not the later epoch",
        cause="logs were compared by length before epoch",
        breaks="P5",
        within="handle_vote_request",
        old="request.log_end >= replica.log.end",
        new="""(
            (request.log_end.offset, request.log_end.epoch)
            >= (replica.log.end.offset, replica.log.end.epoch)
        )""",
    ),
    safety_bug(
        id="candidate claims what is not durable",
        cause="a vote was asked for with records that a power cut took away afterwards",
        breaks="P5",
        within="may_campaign",
        old="log.durable_end_offset == log.end_offset",
        new="log.end_offset >= 0",
    ),
    safety_bug(
        id="pre-vote counts as vote",
        cause="a pre-vote was stored as the vote of its epoch",
        breaks="P28",
        within="handle_vote_request",
        old="is_granted and not request.is_pre_vote and replica.role.voted is None",
        new="is_granted and replica.role.voted is None",
    ),
    liveness_bug(
        id="pre-vote against a living leader",
        cause="a voter that hears its leader gave pre-votes, so a cut link deposed the leader",
        breaks="L5",
        within="Follower.would_grant",
        old="request.is_pre_vote and not is_alive and is_up_to_date",
        new="request.is_pre_vote and is_up_to_date",
    ),
)
