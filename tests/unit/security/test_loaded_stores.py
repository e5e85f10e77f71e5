"""Which stores may follow others while a listener is open."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.support.certificates import NODE_NAME, THIS_MACHINE, Authority

from kvorum.metadata.config_definitions import BROKER_CONFIGS, parse_all, read_settings
from kvorum.security.errors import InvalidSslSettingsError
from kvorum.security.loaded_stores import LoadedStores
from kvorum.security.ssl_settings import SslSettings

AUTHORITY: Final = Authority()
ROLES: Final = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "C"}


def settings_of(**stores: Path) -> SslSettings:
    texts = dict(ROLES)
    for store, path in stores.items():
        texts |= {f"ssl.{store}.type": "PEM", f"ssl.{store}.location": str(path)}
    values = parse_all(BROKER_CONFIGS, texts)
    return read_settings(SslSettings, values.__getitem__)


def written(folder: Path, name: str = NODE_NAME, *, hosts: tuple[str, ...] = THIS_MACHINE) -> Path:
    """Write the key store of a node with a new certificate; return its path."""
    certified = AUTHORITY.certify(name, hosts=hosts)
    return certified.write_pem(folder / f"{certified.certificate.serial_number}.pem")


def stores(folder: Path, name: str = NODE_NAME, *hosts: str) -> LoadedStores:
    return LoadedStores.of(settings_of(keystore=written(folder, name, hosts=hosts or THIS_MACHINE)))


def test_a_new_key_for_the_same_name_and_more_hosts_may_follow(tmp_path: Path) -> None:
    before = stores(tmp_path)
    before.check_successor(stores(tmp_path, "LOCALHOST", *THIS_MACHINE, "more.example"))


@pytest.mark.parametrize(
    ("name", "hosts", "reason"),
    [
        ("other", THIS_MACHINE, "Name does not match:  existing={alias=kafka, DN=CN=localhost, O="),
        (
            NODE_NAME,
            (NODE_NAME,),
            r"SubjectAltNames do not match:  existing=\['127.0.0.1'",
        ),
    ],
    ids=["another subject", "fewer hosts"],
)
def test_another_subject_or_fewer_hosts_may_follow_only_where_it_is_allowed(
    tmp_path: Path, name: str, hosts: tuple[str, ...], reason: str
) -> None:
    before = stores(tmp_path)
    after = stores(tmp_path, name, *hosts)
    with pytest.raises(InvalidSslSettingsError, match=reason):
        before.check_successor(after)
    allowing = replace(before.settings, allows_dn_changes=True, allows_san_changes=True)
    replace(before, settings=allowing).check_successor(after)


def test_no_store_comes_or_goes(tmp_path: Path) -> None:
    none = LoadedStores.of(settings_of())
    key = stores(tmp_path)
    trust = LoadedStores.of(settings_of(truststore=AUTHORITY.write_pem(tmp_path / "trust.pem")))
    with pytest.raises(InvalidSslSettingsError, match="Cannot add SSL keystore to an existing"):
        none.check_successor(key)
    with pytest.raises(InvalidSslSettingsError, match="Cannot remove the SSL keystore from an"):
        key.check_successor(none)
    with pytest.raises(InvalidSslSettingsError, match="Cannot add SSL truststore to an existing"):
        none.check_successor(trust)


def test_a_replaced_file_is_not_the_one_that_was_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    settings = settings_of(keystore=path)
    read = LoadedStores.of(settings)
    assert read.is_of(settings)
    AUTHORITY.certify(NODE_NAME).write_pem(path)
    assert not read.is_of(settings)
    path.unlink()
    assert not read.is_of(settings)


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_location_with_a_nul_is_that_of_no_file(tmp_path: Path, store: str) -> None:
    read = stores(tmp_path)
    settings = settings_of(**{store: tmp_path / "a\0b"})
    assert not read.is_of(settings)
    with pytest.raises(InvalidSslSettingsError, match="embedded null byte"):
        LoadedStores.of(settings)
