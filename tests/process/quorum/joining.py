"""When a controller counts as a voter."""

from tests.support.quorum.members import Member, Quorum
from tests.support.quorum.writers import Writers


def wait_until_it_is_a_voter(quorum: Quorum, member: Member, writers: Writers) -> None:
    """Wait until the leader counts a member in, and that is committed."""
    quorum.wait_for(lambda: _is_voter(quorum, member), f"{member.node_id} is a voter")
    # What is acknowledged now is behind the new voters in the log.
    writers.wait_for_progress()
    quorum.wait_for(lambda: _is_voter(quorum, member), f"{member.node_id} is still a voter")


def _is_voter(quorum: Quorum, member: Member) -> bool | None:
    """Tell whether a member is a voter under the directory id that it has now, and has it all."""
    answer = quorum.leader()
    if answer is None:
        return None
    found = [one for one in answer.current_voters if one.replica_id == member.node_id]
    is_found = [one.replica_directory_id for one in found] == [member.directory_id]
    return (is_found and found[0].log_end_offset >= answer.high_watermark) or None
