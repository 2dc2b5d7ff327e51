"""What a backend must write is on one page, and nothing else."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from lukasa.storage import commit
from lukasa.storage.backend import Rows
from lukasa.storage.memory.memory_rows import MemoryRows
from lukasa.storage.operations import DropWorkspace, KeepRevisions, Operation, Scrub
from lukasa.storage.port import Store
from lukasa.storage.postgres.postgres_rows import PostgresRows
from lukasa.storage.reads import PlainReads
from lukasa.storage.sqlite.sqlite_rows import SqliteRows
from tests.architecture.test_layers import ROOT

PAGE = (ROOT / "docs" / "reference" / "backend.md").read_text("utf-8")


def methods(of: type) -> set[str]:
    """The public methods of a class and of its bases."""
    return {name for name in dir(of) if not name.startswith("_") and callable(getattr(of, name))}


def told(section: str) -> set[str]:
    """The names in the first column of a section's table."""
    _, _, text = PAGE.partition(f"## {section}")
    return set(re.findall(r"^\| `(\w+)`", text.partition("\n## ")[0], flags=re.MULTILINE))


def test_the_page_has_every_method_of_a_transaction() -> None:
    assert told("`Rows`: one transaction") == methods(Rows)


def test_the_page_has_every_method_of_a_store_that_plain_tables_do_not_answer() -> None:
    assert told("The store") == methods(Store) - methods(PlainReads)


def test_plain_reads_answer_the_port_and_nothing_else() -> None:
    assert methods(PlainReads) <= methods(Store)
    assert f"the {len(methods(PlainReads))} questions of the port" in PAGE


@pytest.mark.parametrize("rows", [MemoryRows, SqliteRows, PostgresRows])
def test_every_backend_has_all_rows(rows: type) -> None:
    assert methods(Rows) <= methods(rows)


def test_every_operation_is_committed() -> None:
    """No operation falls through: each has its change, but for those that the log goes around."""
    assert set(commit._CHANGES) | {Scrub, DropWorkspace, KeepRevisions} == set(get_args(Operation))
