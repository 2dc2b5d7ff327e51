"""What the log says of an operation: spelled by hand where that is sooner, and then as an encoder would."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lukasa.model.events import Spelled, canonical_json
from lukasa.model.text import commitment
from lukasa.storage import row_rules
from lukasa.storage.operations import SaveEntry, Verdict, describe
from tests.helpers.making import make_entry

SALT = b"salt"
_FLAT = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans())
_KEYED = st.one_of(st.dictionaries(st.text(), _FLAT, max_size=3), st.dictionaries(st.integers(), _FLAT, max_size=3))
_DATA = st.dictionaries(st.text(), st.one_of(_FLAT, st.lists(_FLAT, max_size=3), _KEYED), max_size=3)
_LEDGERS = st.lists(st.builds(Verdict, st.text(), st.text(), st.text(), _DATA), max_size=4).map(tuple)


def plain_words(ledger: tuple[Verdict, ...], cause: str, by: str | None) -> str:
    entry = replace(make_entry(), superseded_by=by)
    draft = describe(SaveEntry(entry, 2, "entry.put", cause, ledger), SALT)
    assert draft is not None
    detail = {"tier": entry.scope.tier, "version": 3, "state": "active", "kind": "semantic", "trust": "author"}
    detail |= {"cause": cause, "superseded_by": by, "commitment": commitment(SALT, entry.content)}
    said = json.loads(json.dumps(detail | {"ledger": [verdict.plain() for verdict in ledger]}))
    assert row_rules.plain_text(draft.detail) == canonical_json(said)
    assert row_rules.plain_json(draft.detail) == json.loads(json.dumps(dict(draft.detail))) == said
    return type(draft.detail).__name__


@given(_LEDGERS, st.text(), st.one_of(st.none(), st.text()))
def test_an_entry_is_spelled_as_an_encoder_spells_it(ledger: tuple[Verdict, ...], cause: str, by: str | None) -> None:
    """Whatever its ledger holds: the seal is of this spelling, and whoever checks it spells what was read back."""
    plain_words(ledger, cause, by)


def test_steps_that_found_nothing_need_no_encoder() -> None:
    plain = Verdict("gate", "allow", 'says "nothing"')
    counted = Verdict("categorise", "rules", "keyword match", {"confidence": 0.5})
    listed = Verdict("resolve", "update", "later", {"targets": ["a"]})
    assert plain_words((plain, counted), "put", None) == Spelled.__name__
    assert plain_words((plain, listed), "put", None) == dict.__name__
