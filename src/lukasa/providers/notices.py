"""Channels for notices about what waits for a person: a command, a URL, or both.

    LUKASA_REVIEW_COMMAND     a program and its arguments; it gets the notice on stdin
    LUKASA_REVIEW_URL         an address that gets the notice by POST
    LUKASA_REVIEW_SECRET      signs the POST: X-Lukasa-Signature holds the HMAC-SHA256 of the body
    LUKASA_REVIEW_INSECURE=1  allow http to other machines

A delivery ends within SECONDS, and reads at most MOST_OUTPUT bytes of an answer. No shell is involved, no redirect
is followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import ipaddress
import os
import shlex
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from lukasa.model.errors import InvalidInput, NoticeFailed
from lukasa.ports import INSIDE, Notice, NoticeChannel
from lukasa.providers.programs import TooLong, ended, exchange

COMMAND, URL = "LUKASA_REVIEW_COMMAND", "LUKASA_REVIEW_URL"
SECRET, INSECURE = "LUKASA_REVIEW_SECRET", "LUKASA_REVIEW_INSECURE"
SECONDS = 30.0
MOST_OUTPUT = 65_536  # bytes


def open_channels(env: Mapping[str, str]) -> tuple[NoticeChannel, ...]:
    """Open the channels that the environment sets; InvalidInput if one cannot be read."""
    found: list[NoticeChannel] = []
    if command := env.get(COMMAND, "").strip():
        found.append(CommandChannel(_words(command), env))
    if url := env.get(URL, "").strip():
        found.append(UrlChannel(_address(url, insecure=env.get(INSECURE, "").strip() == "1"), env.get(SECRET, "")))
    return tuple(found)


def _words(command: str) -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidInput(f"{COMMAND} cannot be read: {error}", fix="close its quotes") from None
    return (str(Path(words[0]).expanduser()), *words[1:])


class CommandChannel:
    """A program that gets each notice on stdin, and the id of the notice in LUKASA_NOTICE. Exit code 0 takes it."""

    name = "command"

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str], *, seconds: float = SECONDS) -> None:
        self._argv, self._env, self._seconds = argv, env, seconds

    def send(self, notice: Notice) -> None:
        path = shutil.which(self._argv[0], path=self._env.get("PATH", os.defpath))
        if path is None:
            raise NoticeFailed("the program for reviews is not there", fix=f"install it, or correct {COMMAND}")
        ends = time.monotonic() + self._seconds
        env = {key: value for key, value in self._env.items() if key != SECRET}
        try:
            process = subprocess.Popen(
                [path, *self._argv[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**env, INSIDE: "1", "LUKASA_NOTICE": notice.id},
                start_new_session=True,
                bufsize=0,
            )
            with ended(process):
                exchange(process, notice.body, ends, MOST_OUTPUT)
        except TimeoutError:
            raise NoticeFailed(
                f"the command for reviews did not end within {self._seconds:g} s", fix="let it do its work later"
            ) from None
        except TooLong:
            raise NoticeFailed(
                f"the command for reviews wrote more than {MOST_OUTPUT:,} bytes", fix="let it write less"
            ) from None
        except OSError as error:
            raise NoticeFailed(
                f"the command for reviews cannot be run: {error.strerror}", fix="check the program and its permissions"
            ) from None
        if process.returncode:
            raise NoticeFailed(
                f"the command for reviews ended with code {process.returncode}", fix="run it by hand to see why"
            )


class Address(Struct, frozen=True):
    """A checked URL in its parts."""

    secure: bool
    host: str
    port: int | None
    path: str


def _address(url: str, *, insecure: bool) -> Address:
    fix = f"write {URL} as https://host/path"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidInput(f"{URL} cannot be read", fix=fix) from None
    printable = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not host or not printable or parts.username is not None:
        raise InvalidInput(f"{URL} cannot be read", fix=fix)
    if parts.scheme == "http" and not insecure and not _is_loopback(host):
        raise InvalidInput(
            f"notices would go to {host} unencrypted", fix=f"use https, or set {INSECURE}=1 if the network is yours"
        )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme == "https", host, port, path)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class UrlChannel:
    """An address that gets each notice by POST, with its id in X-Lukasa-Notice. A status of 2xx takes it."""

    name = "url"

    def __init__(self, address: Address, secret: str = "", *, seconds: float = SECONDS) -> None:
        self._address, self._secret, self._seconds = address, secret.encode(), seconds

    def send(self, notice: Notice) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "lukasa", "X-Lukasa-Notice": notice.id}
        if self._secret:
            digest = hmac.new(self._secret, notice.body, hashlib.sha256).hexdigest()
            headers["X-Lukasa-Signature"] = f"sha256={digest}"
        try:
            status = self._post(notice.body, headers)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise NoticeFailed(
                f"the URL for reviews gave no answer within {self._seconds:g} s ({type(error).__name__})",
                fix=f"check {URL} and the network",
            ) from None
        if not 200 <= status < 300:
            raise NoticeFailed(f"the URL for reviews answered {status}", fix=f"check {URL} and what listens there")

    def _post(self, body: bytes, headers: Mapping[str, str]) -> int:
        to, ends = self._address, time.monotonic() + self._seconds
        connection: http.client.HTTPConnection
        if to.secure:
            trust = ssl.create_default_context()
            connection = http.client.HTTPSConnection(to.host, to.port, timeout=self._seconds, context=trust)
        else:
            connection = http.client.HTTPConnection(to.host, to.port, timeout=self._seconds)
        with contextlib.closing(connection):
            connection.connect()
            with _until(connection.sock, ends):
                connection.request("POST", to.path, body, dict(headers))
                answer = connection.getresponse()
                answer.read(MOST_OUTPUT)
                return answer.status


@contextlib.contextmanager
def _until(connected: socket.socket, ends: float) -> Iterator[None]:
    """End a connection at a time, although single bytes may keep arriving; TimeoutError if it had to be ended."""
    over = threading.Event()

    def end() -> None:
        over.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, ends - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if over.is_set():  # a cut-off answer can look like a whole one
        raise TimeoutError
