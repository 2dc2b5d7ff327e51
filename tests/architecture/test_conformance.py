"""The conformance page: every statement of the sources has a test that exists, and the page is of today."""

from __future__ import annotations

from tests.helpers import conformance
from tests.helpers.nodes import exists


def test_every_statement_has_a_test_or_says_that_it_has_none_yet() -> None:
    """A statement without a test is not forgotten; one that is not yet there names no test besides."""
    bare = [statement[0] for statement in conformance.listed() if len(statement) < 2]
    both = [s[0] for s in conformance.listed() if conformance.NOT_YET in s and len(s) != 2]
    assert (bare, both) == ([], [])


def test_every_named_test_exists() -> None:
    """The page names tests that are there."""
    missing = [test for one in conformance.statements() for test in one.tests if not exists(test)]
    assert missing == []


def test_no_statement_is_made_twice() -> None:
    """Each thing is asked for once in a section of a source."""
    keys = [(one.source, one.section, one.text) for one in conformance.statements()]
    assert len(keys) == len(set(keys))


def test_the_page_is_of_today() -> None:
    """`make conformance` has run since the statements changed, and every test of them passed."""
    assert conformance.PAGE.read_text("utf-8") == conformance.render({})
