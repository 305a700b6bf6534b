"""Access tokens: a file that others cannot read, and that may change while the service runs."""

import os

import pytest

from kernelbench.service.tokens import TokenError, Tokens


def test_a_new_file_has_one_random_token_that_only_its_owner_reads(tmp_path):
    tokens = Tokens(tmp_path / "tokens")
    assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o600
    name, token = (tmp_path / "tokens").read_text().splitlines()[1].split()
    assert tokens.client(token) == name == "default" and len(token) == 64
    for wrong in ("", token[:-1], token + "0", token.upper(), "\udcff"):
        assert tokens.client(wrong) is None


def test_clients_come_and_go_without_a_restart(tmp_path):
    path = tmp_path / "tokens"
    tokens = Tokens(path)
    path.write_text(f"# two\none {'1' * 32}\ntwo {'2' * 32}\n")
    assert (tokens.client("1" * 32), tokens.client("2" * 32)) == ("one", "two")
    path.write_text(f"two {'2' * 32}\n")
    assert (tokens.client("1" * 32), tokens.client("2" * 32)) == (None, "two")


@pytest.mark.parametrize(
    "line",
    ["one short", f"one {'1' * 32}\none {'2' * 32}", "one", f"o/ne {'1' * 32}", f"one {'1' * 32}\ntwo {'1' * 32}"],
)
def test_a_file_that_gives_weak_access_is_refused(tmp_path, line):
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_text(line)
    with pytest.raises(TokenError, match="tokens, line"):
        Tokens(path)


def test_a_file_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "tokens"
    Tokens(path)
    os.chmod(path, 0o640)
    with pytest.raises(TokenError, match="chmod 600"):
        Tokens(path)


@pytest.mark.parametrize("written", [b"", b"# caf\xe9\n"], ids=["empty", "no text"])
def test_a_file_that_is_being_written_makes_nobody_a_stranger(tmp_path, written):
    """Clients were refused for good while an editor had emptied the file; other bytes were a fault of the service."""
    path = tmp_path / "tokens"
    tokens, whole = Tokens(path), path.read_bytes()
    path.write_bytes(written)
    with pytest.raises(TokenError, match="tokens is "):
        tokens.client("1" * 32)
    path.write_bytes(whole)
    assert tokens.client(whole.split()[-1].decode()) == "default"


def test_a_file_that_cannot_be_made_is_told_as_such(tmp_path):
    """It was told as a port that could not be listened on."""
    (tmp_path / "tokens").symlink_to(tmp_path / "gone" / "tokens")
    with pytest.raises(TokenError, match="tokens cannot be used: File exists"):
        Tokens(tmp_path / "tokens")
