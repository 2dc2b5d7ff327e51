"""Bounds on connections: how many there are, and how long one may take to send a request or to read its answer.

A connection that has no request in progress makes room for a new one when all places are taken, the one that has
waited longest first. So clients that send slowly, however many they are, do not keep others out.
"""

from __future__ import annotations

import asyncio

import h11
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

_REFUSAL = "HTTP/1.1 {}\r\nContent-Length: 0\r\nConnection: close\r\n{}\r\n"
TOO_SLOW = _REFUSAL.format("408 Request Timeout", "").encode("ascii")
TOO_MANY = _REFUSAL.format("503 Service Unavailable", "Retry-After: 1\r\n").encode("ascii")


class Limits(Struct, frozen=True):
    """How many connections may be open, and the seconds that a client may take: for a request's head, for its body,
    and to go on reading an answer."""

    connections: int = 256
    head: float = 10.0
    body: float = 60.0
    answer: float = 60.0


USUAL = Limits()


def bounded(limits: Limits) -> type[H11Protocol]:
    """Return the protocol of connections within these limits."""
    return type("BoundedConnection", (_Bounded,), {"limits": limits})


class _Bounded(H11Protocol):
    limits = USUAL
    _phase = ""
    _timer: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > self.limits.connections:
            waiting = [one for one in self.connections if isinstance(one, _Bounded) and one is not self and one.waits]
            oldest = min(waiting, key=lambda one: one._since, default=None)
            if oldest is None:
                self._turn_away(TOO_MANY)
                return
            oldest._turn_away(TOO_SLOW if oldest._phase else b"")
        self._look()

    @property
    def waits(self) -> bool:
        """Whether the connection has no request in progress."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():
            super().data_received(data)
            self._look()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """Start the clock of what is being sent now. Between two requests the server's own one runs."""
        phase = ""
        if self.conn.their_state is h11.SEND_BODY:
            phase = "body"
        elif self.conn.their_state is h11.IDLE and (self.cycle is None or self.conn.trailing_data[0]):
            phase = "head"
        if phase != self._phase:
            self._phase = phase
            self._stop_clock()
            if phase:
                allowed = self.limits.head if phase == "head" else self.limits.body
                self._timer = self.loop.call_later(allowed, self._too_slow)

    def _too_slow(self) -> None:
        started = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        self._turn_away(b"" if started else TOO_SLOW)

    def _turn_away(self, answer: bytes) -> None:
        self._stop_clock()
        self.connections.discard(self)
        if not self.transport.is_closing():
            if answer:
                self.transport.write(answer)
            self.transport.close()

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.answer, self.transport.abort)

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)
