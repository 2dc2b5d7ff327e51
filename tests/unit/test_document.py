"""The curated document as text: what is a person's stays, and what is ours is added, merged and taken back."""

from __future__ import annotations

from collections import Counter
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from lukasa.curated.document import (
    LARGE,
    carried,
    category_of,
    lines,
    merged,
    one_line,
    promoted,
    section_title,
    twin,
    warning,
    with_change,
    with_line,
)
from lukasa.spec.taxonomy import load_taxonomy

DAY = date(2026, 11, 16)
PAGE = """# What we know

Kept by hand.

## Operations

- (2026-11-01) Deploys go through the gate.
  a note below it
- not dated
- (2026-11-02) Backups run at night. (×3)

## My own
"""
PIECES = st.one_of(
    st.sampled_from(
        ["", "## Operations", "## Other", "# Title", "```", "- (2026-11-01) One", "- (2026-11-01) One (×2)"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30),
)
PAGES = st.lists(PIECES, max_size=12).map("\n".join)
TEXTS = st.text(min_size=1, max_size=60).filter(lambda text: bool(text.strip()))


def test_dated_lines_are_found_with_their_section() -> None:
    """K1: sections, dates and counts; anything else is not ours."""
    assert [(d.section, d.day, d.text, d.count) for d in lines(PAGE)] == [
        ("Operations", "2026-11-01", "Deploys go through the gate.", 1),
        ("Operations", "2026-11-02", "Backups run at night.", 3),
    ]


def test_a_line_joins_its_section() -> None:
    """K1: at its end, and a new section is made at the end of the page."""
    page = with_line(PAGE, "operations", DAY, "Alerts go\nto Ines.")
    assert "(×3)\n- (2026-11-16) Alerts go to Ines.\n\n## My own" in page
    assert with_line("", "Projects", DAY, "X is due.") == "## Projects\n\n- (2026-11-16) X is due."
    assert with_line(PAGE, "My own", DAY, "Y").endswith("## My own\n\n- (2026-11-16) Y\n")


@given(PAGES, st.sampled_from(["Operations", "Other", "Projects"]), TEXTS)
def test_adding_keeps_every_line(page: str, section: str, text: str) -> None:
    """K1: whatever a person wrote stays in order, and the new line is found in its section."""
    after = with_line(page, section, DAY, text)
    rows = iter(after.split("\n"))
    assert all(any(row == other for other in rows) for row in page.split("\n") if page)
    added = Counter(d.key for d in lines(after)) - Counter(d.key for d in lines(page))
    assert [(key[2], key[3]) for key in added.elements()] == [(one_line(text), 1)]
    assert not Counter(d.key for d in lines(page)) - Counter(d.key for d in lines(after))


@given(PAGES, TEXTS)
def test_taking_out_gives_the_page_back(page: str, text: str) -> None:
    """K1: what was added can be taken out again, and nothing else goes with it."""
    after = with_line(page, "Operations", DAY, text)
    mine = twin(after, text)
    assert mine is not None
    gone = with_change(after, mine, None)
    assert len(lines(gone)) == len(lines(after)) - 1
    assert carried(after, page, after) == page


@given(PAGES, TEXTS, TEXTS)
def test_two_changes_of_one_page_both_hold(page: str, ours: str, theirs: str) -> None:
    """K1: a promotion is carried onto what a person made of the page meanwhile."""
    edited = with_line(f"{page}\n\nby hand", "Projects", DAY, theirs)
    both = carried(page, with_line(page, "Operations", DAY, ours), edited)
    assert twin(both, ours) is not None
    assert twin(both, theirs) is not None
    assert "by hand" in both


def test_a_version_is_taken_back_from_a_later_page() -> None:
    """K1: undoing an older change leaves what came after it."""
    first = with_line(PAGE, "Operations", DAY, "Alerts go to Ines.")
    second = with_line(first, "Operations", DAY, "Logs stay for a week.")
    assert carried(first, PAGE, second) == with_line(PAGE, "Operations", DAY, "Logs stay for a week.")


def test_merging_counts_and_keeps_the_fuller_text() -> None:
    """O4: text merged, count plus one."""
    old = lines(PAGE)[1]
    assert merged(PAGE, old, "backups run at night", DAY).body == PAGE.replace(
        "- (2026-11-02) Backups run at night. (×3)", "- (2026-11-16) Backups run at night. (×4)"
    )
    short = with_line("", "Other", DAY, "Deploys need approval")
    edit = merged(short, lines(short)[0], "Deploys need approval from Ines or Omar", DAY)
    assert edit.text in ("Deploys need approval", "Deploys need approval from Ines or Omar")
    assert lines(edit.body)[0].count == 2


def test_a_contradicted_line_gives_way() -> None:
    """K1: the page says one thing about one thing."""
    page = with_line("", "People and relationships", DAY, "Ines lives in Porto")
    edit = promoted(page, "People and relationships", "Ines lives in Lisbon", DAY)
    assert edit.instead_of == "Ines lives in Porto"
    assert [d.text for d in lines(edit.body)] == ["Ines lives in Lisbon"]


def test_sections_are_categories() -> None:
    """K1: titles come from the taxonomy, and lead back to it."""
    taxonomy = load_taxonomy()
    for concept in taxonomy.concepts:
        assert category_of(section_title(concept.id, taxonomy), taxonomy) == concept.id
    assert (section_title("nonsense", taxonomy), category_of("My own", taxonomy)) == ("Other", "")


def test_a_large_page_is_told() -> None:
    """K1: a warning past 200 lines."""
    page = "\n".join(f"- (2026-11-16) Line {n}" for n in range(LARGE))
    assert warning(page) == ""
    assert "201 lines" in warning(with_line(page, "Other", DAY, "one more"))
