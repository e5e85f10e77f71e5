"""Bugs in voter changes and in who is who."""

from __future__ import annotations

from tests.mutation.mutant import Edit, Kind, Mutant

RAFT = "server/kvorum/raft"
CHANGES = f"{RAFT}/voter_changes"

MUTANTS = (
    Mutant(
        id="KAFKA-16530",
        cause="the high watermark counted a leader that is no voter",
        breaks="P6",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/roles/leader.py",
                "            for voter in voters.voters\n        ]\n        return advanced",
                "            for voter in voters.voters\n        ]\n"
                "        if not voters.is_voter(self.own_key):\n"
                "            ends.append(durable_end_offset)\n"
                "        return advanced",
            ),
        ),
    ),
    Mutant(
        id="single-server change of 2014",
        cause="a leader changed the voters before it had committed in its own epoch",
        breaks="P11",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CHANGES}/checks.py",
                "    if replica.high_watermark is None:\n",
                "    if replica.high_watermark is None and replica.log.end_offset == 0:\n",
            ),
            Edit(
                f"{CHANGES}/checks.py",
                "    if not replica.are_voters_committed:\n",
                "    if not replica.are_voters_committed and replica.high_watermark is not None:\n",
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
                f"{CHANGES}/checks.py",
                "    if not replica.are_voters_committed:\n",
                "    if not replica.are_voters_committed and history.voters_offset is None:\n",
            ),
            Edit(
                f"{CHANGES}/checks.py",
                "    if replica.change is not None:\n",
                "    if replica.change is not None and replica.high_watermark is None:\n",
            ),
        ),
    ),
    Mutant(
        id="a change that timed out is forgotten",
        cause="a voter record that was not committed in time did not hold back the next change",
        breaks="P11",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CHANGES}/checks.py",
                "    if not replica.are_voters_committed:\n",
                "    if not replica.are_voters_committed and replica.change is not None:\n",
            ),
        ),
    ),
    Mutant(
        id="canonical/raft#250",
        cause="voters of a record that was cut off stayed in force",
        breaks="P12",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/responding.py",
                "    replica.history.truncate_to(offset)\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="databendlabs/openraft#1808",
        cause="after a snapshot was installed, voters of records that were gone stayed in force",
        breaks="P12",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/voter_history.py",
                "        self._changes = [_Change(snapshot_id.offset - 1, "
                "voters, kraft_version)]\n",
                "        first = _Change(snapshot_id.offset - 1, voters, kraft_version)\n"
                "        self._changes = [first, *self._changes]\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-17973",
        cause="a log with several voter changes in a row was refused when it was read",
        breaks="P12",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/voter_history.py",
                "        self._add(_Change(offset, voters=voters))\n",
                "        if not self.voters.overlaps_safely(voters):\n"
                '            raise ValueError("not one voter at a time")\n'
                "        self._add(_Change(offset, voters=voters))\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-17608",
        cause="a leader that had removed itself led on",
        breaks="P16",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    is_removed = replica.are_voters_committed and not replica.is_voter\n",
                "    is_removed = False\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-16963",
        cause="a leader that removes itself went before its removal was committed",
        breaks="L7",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/polling.py",
                "    is_removed = replica.are_voters_committed and not replica.is_voter\n",
                "    is_removed = not replica.is_voter\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-20661",
        cause="a voter was added that cannot be reached where it says",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{CHANGES}/adding.py",
                "    if error_name is not None or isinstance(response, RequestFailed):\n",
                "    if isinstance(response, RequestFailed):\n"
                "        response = ApiVersionsResponse(kraft_versions=(0, 1))\n"
                "        error_name = None\n"
                "    if error_name is not None:\n",
            ),
        ),
    ),
    Mutant(
        id="voter added that lags",
        cause="a voter was added that had never had all of the log",
        breaks="L3",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{CHANGES}/adding.py",
                "    has_been_there = known is not None and known.last_caught_up is not None\n",
                "    has_been_there = known is not None\n",
            ),
        ),
    ),
    Mutant(
        id="voter added twice",
        cause="a node's id was added once more under another directory",
        breaks="P15",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CHANGES}/adding.py",
                "    if voters.by_id(key.id) is None:\n",
                "    if not voters.is_voter(key):\n",
            ),
        ),
    ),
    Mutant(
        id="voter removed by its id",
        cause="a voter was removed although the request named another directory",
        breaks="P15",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CHANGES}/removing.py",
                "    if known is not None and known.key == key and len(voters.voters) > 1:\n",
                "    if known is not None and len(voters.voters) > 1:\n",
            ),
        ),
    ),
    Mutant(
        id="last voter removed",
        cause="the last voter could be removed",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{CHANGES}/removing.py",
                "    if known is not None and known.key == key and len(voters.voters) > 1:\n",
                "    if known is not None and known.key == key:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-19850",
        cause="a controller that joins by itself came back after it had been removed",
        breaks="P14",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{CHANGES}/reporting.py",
                "replica.own.can_vote and not replica.has_been_voter\n",
                "replica.own.can_vote\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-18061",
        cause='a change that succeeded was answered with the text "NONE"',
        breaks="P20",
        kind=Kind.CONFORMITY,
        edits=(
            Edit(
                f"{CHANGES}/ending.py",
                "    return None if error is Error.NONE else ErrorCode(error).default_message\n",
                '    return "NONE" if error is Error.NONE else ErrorCode(error).default_message\n',
            ),
        ),
    ),
    Mutant(
        id="wiped disk votes again",
        cause=(
            "a voter that came back with an empty disk was taken for the one it had been (KIP-853)"
        ),
        breaks="P15",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/voter_set.py",
                "        return self.key.directory_id is None or "
                "self.key.directory_id == key.directory_id\n",
                "        return True\n",
            ),
        ),
    ),
    Mutant(
        id="vote meant for another directory",
        cause="a vote was given that had been asked of the directory before",
        breaks="P15",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "    return voter.id == own.id and voter.directory_id in {None, "
                "own.directory_id}\n",
                "    return voter.id == own.id\n",
            ),
        ),
    ),
    Mutant(
        id="vote given to a node, not to its directory",
        cause="a vote was repeated to the same node with another directory",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{RAFT}/roles/role.py",
                "        return role.voted.id == request.replica.id and same_directory\n",
                "        return role.voted.id == request.replica.id\n",
            ),
        ),
    ),
    Mutant(
        id="observers do not vote",
        cause="a node that does not know yet that it is a voter refused its vote",
        breaks="L1",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{RAFT}/answering.py",
                "    if error is Error.NONE and not _is_meant(replica, request.voter):\n"
                "        error = Error.INVALID_VOTER_KEY\n"
                "    if error is not Error.NONE:\n",
                "    if error is Error.NONE and not _is_meant(replica, request.voter):\n"
                "        error = Error.INVALID_VOTER_KEY\n"
                "    if error is Error.NONE and not replica.is_voter:\n"
                "        error = Error.INVALID_VOTER_KEY\n"
                "    if error is not Error.NONE:\n",
            ),
        ),
    ),
    Mutant(
        id="kraft.version raised too early",
        cause="kraft.version rose although a voter had not said that it can work at it",
        breaks="P15",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{CHANGES}/upgrading.py",
                "        if not is_known or not voter.kraft_version_min <= "
                "wanted <= voter.kraft_version_max:\n",
                "        if not is_known and voter.kraft_version_max < 0:\n",
            ),
        ),
    ),
)
