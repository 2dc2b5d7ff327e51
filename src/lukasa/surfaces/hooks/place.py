"""Which workspace a project folder has: a name that a person recognises and no other folder gets."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping

MOST_NAME = 40


def project(cwd: str, env: Mapping[str, str]) -> str:
    """The folder of the project. Claude Code names it in the environment, for `cwd` moves with every `cd`."""
    return env.get("CLAUDE_PROJECT_DIR") or cwd or os.getcwd()


def workspace_name(folder: str) -> str:
    """The workspace of a folder: the folder's own name, and a few digits of its whole path."""
    path = os.path.realpath(folder.replace("\x00", ""))
    name = re.sub(r"[^\w.-]+", "-", os.path.basename(path)).strip("-.")[:MOST_NAME]
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
    return f"{name or 'root'}-{digest}"
