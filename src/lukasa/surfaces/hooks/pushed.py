"""What a hook has to say, whatever the moment."""

from __future__ import annotations

from msgspec import Struct


class Pushed(Struct, frozen=True):
    """What a hook has to say: the text to inject, empty if there is nothing new, and the entries in it.

    `queued` says that it left work for a worker to do.
    """

    text: str = ""
    ids: tuple[str, ...] = ()
    queued: bool = False
