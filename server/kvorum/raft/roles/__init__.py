"""The roles of a replica, one class each."""

from kvorum.raft.roles.candidate import Candidate
from kvorum.raft.roles.follower import Download, Follower
from kvorum.raft.roles.leader import Leader, Progress
from kvorum.raft.roles.leader_contact import ContactEvent, LeaderContact
from kvorum.raft.roles.prospective import Prospective
from kvorum.raft.roles.resigned import Resigned
from kvorum.raft.roles.role import Role, RoleName
from kvorum.raft.roles.unattached import Unattached

__all__ = [
    "Candidate",
    "ContactEvent",
    "Download",
    "Follower",
    "Leader",
    "LeaderContact",
    "Progress",
    "Prospective",
    "Resigned",
    "Role",
    "RoleName",
    "Unattached",
]
