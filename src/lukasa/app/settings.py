"""Settings: the folders, models and limits of a memory, from arguments and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model import database_url
from lukasa.providers import folders
from lukasa.providers.embed import EmbedderStatus, embedder_status
from lukasa.providers.embed.cached import default_cache
from lukasa.service.jobs.budget import Budget

if TYPE_CHECKING:
    from lukasa.providers.chat import ChatStatus

DEFAULT_WORKSPACE = "main"
DEFAULT_ACCOUNT = "default"


class Settings(Struct, frozen=True):
    """The folders, models and limits of a memory. Every field has a default that needs no network."""

    data: Path
    models: Path
    embedder: str = "auto"
    preset: str = "default"
    chat: str = "auto"
    budget: Budget = field(default_factory=Budget)
    database: str = ""  # the URL of a PostgreSQL database; without one, SQLite keeps memory in the data folder
    account_name: str = DEFAULT_ACCOUNT  # the account in that database; a data folder has one
    project: str = ""  # a folder of the project at hand, whose files entries may cite; empty for none

    @classmethod
    def resolve(
        cls,
        *,
        data: str | Path | None = None,
        database: str | None = None,
        account: str | None = None,
        embedder: str | None = None,
        project: str | Path | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> Settings:
        """Read settings: arguments first, then environment variables, then the platform's own folders.

        The variables are LUKASA_DATA, _DATABASE, _ACCOUNT, _EMBEDDER, _PRESET, _CHAT, _PROJECT, _BUDGET_TOKENS,
        _BUDGET_COST and _PRICES. An empty `database` or `project` means none, whatever the environment says.
        """
        chosen = data or env.get("LUKASA_DATA") or folders.user_data()
        url = env.get("LUKASA_DATABASE", "") if database is None else database
        if url:
            database_url.check(url)
        return cls(
            data=Path(chosen).expanduser(),
            database=url,
            account_name=account or env.get("LUKASA_ACCOUNT") or DEFAULT_ACCOUNT,
            models=default_cache(),
            embedder=embedder or env.get("LUKASA_EMBEDDER") or "auto",
            preset=env.get("LUKASA_PRESET") or "default",
            chat=env.get("LUKASA_CHAT") or "auto",
            budget=Budget.read(env),
            project=str(project if project is not None else env.get("LUKASA_PROJECT", "")),
        )

    def __repr__(self) -> str:
        """Leave out the password of the database: a log may hold this."""
        return Struct.__repr__(replace(self, database=self.shown_database))

    @property
    def account(self) -> Path:
        """The folder of the account: its database, if that is SQLite, and the sockets of servers."""
        return self.data / "account"

    @property
    def shown_database(self) -> str:
        """The URL of the database without its password; empty if memory is in the data folder."""
        return database_url.masked(self.database)

    def embedder_status(self) -> EmbedderStatus:
        """Say whether the configured embedder is available, without loading it."""
        return embedder_status(self.embedder, self.models)

    def chat_status(self) -> ChatStatus:
        """Say whether the configured language model is available, without calling it."""
        status: ChatStatus = import_module("lukasa.providers.chat").chat_status(self.chat, os.environ)
        return status
