"""The name of a project's workspace."""

from __future__ import annotations

import hashlib
import os
import re

MOST_NAME = 40


def workspace_name(folder: str) -> str:
    """Return the workspace name of a folder: the folder's name, and eight digits of the hash of its path."""
    path = os.path.realpath(folder.replace("\x00", ""))
    name = re.sub(r"[^\w.-]+", "-", os.path.basename(path)).strip("-.")[:MOST_NAME]
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
    return f"{name or 'root'}-{digest}"
