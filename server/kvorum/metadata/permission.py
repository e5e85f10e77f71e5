"""The permission on the cluster that a whole request needs, before its parts are looked at."""

from enum import Enum, unique
from typing import TypeAlias

from kvorum.metadata.acl_codes import AclOperation


@unique
class NoClusterPermission(Enum):
    """Why a whole request needs no operation on the cluster: stated, so that none is forgotten."""

    PER_RESOURCE = "the resources that the request names are looked at one by one"
    BY_CONTROLLER = "the active controller looks at the request, which a broker passes on"
    BY_HANDLER = "what answers asks for the permission itself, after other checks"
    NONE = "everybody may ask"


PER_RESOURCE = NoClusterPermission.PER_RESOURCE
BY_CONTROLLER = NoClusterPermission.BY_CONTROLLER
BY_HANDLER = NoClusterPermission.BY_HANDLER
NONE = NoClusterPermission.NONE

Permission: TypeAlias = AclOperation | NoClusterPermission
"""The operation that a client needs on the cluster, or why it needs none."""
