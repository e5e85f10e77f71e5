"""The shares of connections and logs in the limit of open files."""

import resource

import pytest

from kvorum.node.open_file_limit import (
    RESERVED_DESCRIPTORS,
    connection_count_max,
    log_file_count_max,
)

MANY = 2**31 - 1


def limit_open_files(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    def getrlimit(_: int) -> tuple[int, int]:
        return limit, limit

    monkeypatch.setattr(resource, "getrlimit", getrlimit)


@pytest.mark.parametrize("limit", [64, 256, 1024, 20_000, 1_000_000])
@pytest.mark.parametrize("wanted", [7, 1_000, MANY])
def test_connections_and_logs_share_what_is_not_reserved(
    limit: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_open_files(monkeypatch, limit)
    connections = connection_count_max(wanted, has_logs=True)
    log_files = log_file_count_max(wanted)
    assert 0 < connections <= min(wanted, 3 * log_files + 3)
    assert log_files >= limit // 8
    assert connections + log_files <= limit - min(RESERVED_DESCRIPTORS, limit // 2)
    assert connections + log_files >= limit // 2


def test_a_controller_has_all_of_it_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_open_files(monkeypatch, 1024)
    assert connection_count_max(MANY, has_logs=False) == 1024 - RESERVED_DESCRIPTORS
    assert connection_count_max(7, has_logs=False) == 7


def test_without_a_limit_nothing_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_open_files(monkeypatch, resource.RLIM_INFINITY)
    assert connection_count_max(10**6, has_logs=True) == 10**6
    assert log_file_count_max() >= 10**8
