"""The names of projects' workspaces."""

from __future__ import annotations

import hashlib
import os
import re

MOST_NAME = 40


def workspace_name(folder: str) -> str:
    """Return the workspace name of a folder: the folder's name, and eight digits of the hash of its path."""
    path = os.path.realpath(folder.replace("\x00", ""))
    return _named(os.path.basename(path), os.fsencode(path))


def identity_name(identity: str, folder: str, times: int = 1) -> str:
    """Return the workspace name of a project: the name of its repository, and eight digits of its identity's hash.

    Without a remote repository, the folder where it was first met gives the name. `times` counts the workspaces that a
    project of that identity has had: somebody may want a new one.
    """
    name = os.path.basename(folder) if identity.startswith("commit:") else identity.rsplit("/", 1)[-1]
    return _named(name, identity.encode("utf-8", "replace")) + (f"-{times}" if times > 1 else "")


def apart_name(folder: str, identity: str) -> str:
    """Return the workspace name of a folder that claims an identity which it cannot show to be its own."""
    path = os.path.realpath(folder.replace("\x00", ""))
    return _named(os.path.basename(path), os.fsencode(path) + b"\0" + identity.encode("utf-8", "replace"))


def _named(name: str, what: bytes) -> str:
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:MOST_NAME]
    return f"{plain or 'root'}-{hashlib.sha256(what).hexdigest()[:8]}"
