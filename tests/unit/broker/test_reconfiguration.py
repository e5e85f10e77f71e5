"""Dynamic values of a broker that are judged with its other values."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kvorum.broker.views.config_layers import ConfigLayers
from kvorum.broker.views.reconfiguration import check_reconfiguration
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

STATIC = {"log.dirs": "/a,/b"}
PER_ADDRESS = "max.connections.per.ip"
OVERRIDES = "max.connections.per.ip.overrides"
CORDONED = "cordoned.log.dirs"


def change_to(dynamic: Mapping[str, str]) -> None:
    before = ConfigLayers(node={}, cluster={}, static=STATIC)
    check_reconfiguration(before, replace(before, node=dynamic))


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        (
            {CORDONED: "/a,/nowhere,/c"},
            (
                "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs "
                "or log.dir. Missing entries : /nowhere, /c"
            ),
        ),
        (
            {CORDONED: "*,/a"},
            (
                "requirement failed: When cordoned.log.dirs is set to *, it must not contain other "
                "values"
            ),
        ),
        (
            {PER_ADDRESS: "0"},
            (
                "requirement failed: max.connections.per.ip can be set to zero only if "
                "max.connections.per.ip.overrides property is set."
            ),
        ),
        (
            {OVERRIDES: "::1:3,nonsense"},
            f"Error parsing configuration property '{OVERRIDES}': begin 0, end -1, length 8",
        ),
        ({OVERRIDES: "a:"}, 'For input string: ""'),
        ({OVERRIDES: "a b:5,c:6,d e:7"}, f"{OVERRIDES} contains invalid addresses : a b,d e"),
    ],
)
def test_values_with_which_a_broker_would_not_start_are_refused(
    dynamic: Mapping[str, str], message: str
) -> None:
    with pytest.raises(RequestError) as refused:
        change_to(dynamic)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, message)


@pytest.mark.parametrize(
    "dynamic",
    [{CORDONED: "/b"}, {CORDONED: "*"}, {PER_ADDRESS: "0", OVERRIDES: "::1:3,10.0.0.1:-1"}],
)
def test_values_with_which_a_broker_would_start_are_taken(dynamic: Mapping[str, str]) -> None:
    change_to(dynamic)
