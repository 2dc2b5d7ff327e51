"""The URL of a database: what is one, and that no part of a password is ever shown."""

from __future__ import annotations

import pytest

from lukasa.app import Settings
from lukasa.model.database_url import check, has_password, masked
from lukasa.model.errors import InvalidInput

PASSWORDS = (
    "secret",
    "se@cret",
    "se/cret",
    "se?cret",
    "se#cret",
    "se:cret",
    "1/secret",
    "1?secret",
    "%73ecret",
    "s'ecret",
)


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("form", ["postgresql://ada:{}@host:5432/memory", "mysql://ada:{}@host/memory", "ada:{}@host"])
def test_a_password_in_front_of_the_host_is_masked(form: str, password: str) -> None:
    """T61: also one with characters that should have been escaped, and in what is no URL of PostgreSQL."""
    shown = masked(form.format(password))
    assert shown == form.format("***")
    assert has_password(form.format(password))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://host/memory?user=ada&password=secret&sslmode=require",
        "postgresql://host/memory?sslpassword=secret",
        "host=localhost password=secret dbname=memory",
        "host=localhost password = 'sec ret' dbname=memory",
    ],
)
def test_a_password_behind_the_host_is_masked(url: str) -> None:
    """T61: as a parameter, and in the form that libpq has for settings."""
    assert "sec" not in masked(url)
    assert has_password(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://host/memory",
        "postgresql://ada@host:5432/memory?sslmode=verify-full&application_name=x",
        "postgres://ada@[::1]:5432/memory",
        "postgresql://one:5432,two:5433/memory?target_session_attrs=read-write",
        "postgresql:///memory?host=/run/postgresql",
        "postgresql://host:5432/memory?user=ada@tenant",
        "postgresql://host",
    ],
)
def test_a_url_without_a_password_is_as_it_was(url: str) -> None:
    check(url)
    assert masked(url) == url
    assert not has_password(url)


@pytest.mark.parametrize("password", ["se@cret", "se/cret", "se?cret", "se#cret", "1/secret", "1?secret"])
def test_a_password_that_is_not_escaped_is_refused(password: str) -> None:
    """U2: libpq would take a part of it for a host or a port, and an error about that would show it."""
    with pytest.raises(InvalidInput, match="cannot be read") as error:
        check(f"postgresql://ada:{password}@host/memory")
    assert "cret" not in str(error.value)
    assert "%40" in error.value.fix


def test_settings_do_not_show_the_password() -> None:
    """T61: a log that holds settings holds no password."""
    settings = Settings.resolve(env={"LUKASA_DATABASE": "postgresql://ada:secret@host/memory"})
    assert settings.database == "postgresql://ada:secret@host/memory"
    assert "secret" not in repr(settings)
    assert "postgresql://ada:***@host/memory" in repr(settings)


def test_an_empty_database_is_none_whatever_the_environment_says() -> None:
    """U1: a program that opens a folder can say that it means the folder."""
    env = {"LUKASA_DATABASE": "postgresql://host/memory"}
    assert Settings.resolve(database="", env=env).database == ""
    assert Settings.resolve(env=env).database == "postgresql://host/memory"
