"""A database address leads where it says, encrypted beyond this machine, and no password goes anywhere else."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from learnt import Memory
from learnt.errors import LearntError, WrongRequest
from tests.support.doors import Learnt
from tests.support.postgres import PostgresServer

pytest.importorskip("psycopg")

from learnt.store.postgres import PostgresDatabase, _is_local, _read_address

TLS_REQUEST = struct.pack("!ii", 8, 80877103)


class Listener:
    """A server on this machine's outer address that has no TLS and notes what it is sent."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._server = socket.create_server((host, 0))
        self.port = self._server.getsockname()[1]
        self.received = b""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                while piece := connection.recv(4096):
                    self.received += piece
                    connection.sendall(b"N" if piece == TLS_REQUEST else b"R\0\0\0\x08\0\0\0\x03")

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; tells which of our addresses would be used
            host = probe.getsockname()[0]
        except OSError:
            host = ""
    if not host or _is_local(host):
        pytest.skip("this machine has no address but its own")
    server = Listener(host)
    yield server
    server.close()


def test_a_password_is_not_sent_without_tls(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "sesame-open")
    host = listener.host
    database = PostgresDatabase(f"postgresql://anna@{host}:{listener.port}/shop", project="shop", wait_ms=2000)

    with pytest.raises(LearntError) as caught:
        database.rows("select 1 as one")

    assert "TLS" in caught.value.hint
    assert "sslmode=disable" in caught.value.hint
    assert b"sesame" not in listener.received
    assert listener.received == TLS_REQUEST


@pytest.mark.parametrize(
    ("address", "mode"),
    [
        ("postgresql://db.example.org/shop", "require"),
        ("postgresql://db.example.org/shop?sslmode=prefer", "require"),
        ("postgresql://db.example.org/shop?sslmode=allow", "require"),
        ("postgresql://localhost,db.example.org/shop", "require"),
        ("postgresql:///shop?host=db.example.org", "require"),
        ("postgresql:///shop?host=/run/postgresql,10.0.0.7", "require"),
        ("postgresql://128.0.0.1/shop", "require"),
        ("postgresql://127.0.0.1.example.org/shop", "require"),
        ("postgresql://db.example.org/shop?sslmode=verify-full", "verify-full"),
        ("postgresql://10.0.0.7/shop?sslmode=disable", "disable"),
        ("postgresql://localhost/shop", None),
        ("postgresql://127.0.0.2/shop", None),
        ("postgresql://[::1]/shop", None),
        ("postgresql:///shop?host=/run/postgresql", None),
        ("postgresql:///shop", None),
    ],
)
def test_beyond_this_machine_tls_is_required(address: str, mode: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)

    assert _read_address(address, "…").get("sslmode") == mode


def test_a_host_from_the_environment_needs_tls_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example.org")
    monkeypatch.delenv("PGSSLMODE", raising=False)
    assert _read_address("postgresql:///shop", "…")["sslmode"] == "require"


@pytest.mark.parametrize(
    "parameter", ["hostaddr=192.0.2.7", "service=evil", "passfile=.learnt/passwords", "hostaddr=127.0.0.1,192.0.2.7"]
)
def test_an_address_that_hides_where_it_leads_is_refused(parameter: str) -> None:
    database = PostgresDatabase(f"postgresql://db.example.org/shop?{parameter}", project="shop", wait_ms=2000)

    with pytest.raises(WrongRequest, match="hides where it leads") as caught:
        database.rows("select 1 as one")

    assert caught.value.hint


def test_a_variable_does_not_lead_an_address_elsewhere(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOSTADDR", listener.host)
    monkeypatch.setenv("PGPASSWORD", "sesame-open")
    address = f"postgresql://anna@127.0.0.1:{listener.port}/shop"

    with pytest.raises(LearntError):
        PostgresDatabase(address, project="shop", wait_ms=2000).rows("select 1 as one")

    assert listener.received == b""


def test_the_history_says_which_role_has_logged_in(postgres: PostgresServer, project: Path, learnt: Learnt) -> None:
    (project / "learnt.toml").write_text(f'database = "{postgres.address()}"\nproject = "shop"\n')
    assert learnt("init").code == 0
    id = json.loads(learnt("add", "Read from the primary", "--json", env={"LEARNT_PERSON": "the boss"}).out)["id"]

    told = learnt("history", id).out

    assert "the boss (role learnt)" in told
    (event,) = json.loads(learnt("history", id, "--json").out)
    assert (event["who"], event["role"]) == ("the boss", "learnt")


def test_a_file_has_no_login_role(sqlite_memory: Memory) -> None:
    (event,) = sqlite_memory.history(sqlite_memory.add("Read from the primary").id)
    assert (event.who, event.role) == ("anna", "")
