"""Cutting documents into passages: nothing is lost, sizes hold, and cuts fall where they cost least."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lukasa.corpus.split import DEFAULT, Sizes, split
from lukasa.model.corpus import ParsedDocument, Part, Passage
from lukasa.model.errors import InvalidInput

SMALL = Sizes(most=120, overlap=30)


def document(*parts: Part, language: str = "") -> ParsedDocument:
    return ParsedDocument("T", "text/plain", parts, language)


def passages(text: str, sizes: Sizes = SMALL, language: str = "") -> tuple[Passage, ...]:
    return split(document(Part(text, ("H",), line=1), language=language), document_id="d", version=3, sizes=sizes)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Texts of all forms. Each word and each ideogram is there once, so that a passage has one place in the text."""
    count = 0
    out: list[str] = []
    for form, size in draw(
        st.lists(st.tuples(st.sampled_from("prose fence table list wide long blank".split()), st.integers(1, 30)))
    ):
        words = [f"w{count + n}" for n in range(size)]
        count += size
        if form == "prose":
            ends = draw(st.sampled_from([". ", " ", "\n", "! "]))
            out.append(ends.join(words) + draw(st.sampled_from(["\n", "\n\n", " "])))
        elif form == "fence":
            out.append("\n```\n" + "\n".join(words) + draw(st.sampled_from(["\n```\n", "\n"])))
        elif form == "table":
            out.append("\n" + "\n".join(f"| {word} | x |" for word in words) + "\n")
        elif form == "list":
            out.append("\n" + "\n".join(f"- {word}\n  more{word}" for word in words) + "\n")
        elif form == "wide":
            out.append("".join(chr(0x4E00 + count + n) for n in range(5 * size)) + "。")
            count += 5 * size
        elif form == "long":
            out.append(f"L{count}" + "".join(f"{n:03d}" for n in range(count, count + 3 * size)))
            count += 3 * size
        else:
            out.append("\n" * size + " " * size)
    return "".join(out)


@settings(max_examples=300, deadline=None)
@given(text=texts(), most=st.integers(50, 300), share=st.integers(0, 33), language=st.sampled_from(["", "python"]))
def test_all_text_is_in_passages_in_order(text: str, most: int, share: int, language: str) -> None:
    """K4: no character is lost, passages are no larger than asked for, and repeat no more than asked for."""
    sizes = Sizes(most=most, overlap=most * share // 100)
    covered = begun = 0
    for number, one in enumerate(passages(text, sizes, language)):
        assert one.number == number
        assert 0 < len(one.text) <= most
        assert one.text.strip()
        place = text.find(one.text, max(begun, covered - sizes.overlap))  # a short end may be there twice
        assert place >= 0
        assert not text[covered:place].strip()
        assert covered - place <= sizes.overlap
        assert place + len(one.text) > covered
        assert one.line == 1 + text.count("\n", 0, place)
        begun, covered = place + 1, place + len(one.text)
    assert not text[covered:].strip()


def test_a_passage_has_one_page_and_one_path_of_headings() -> None:
    """K4: a passage is cited by its page and its section, so it never spans two."""
    parts = (Part("one", ("A",), 1), Part("two", ("A",), 2), Part("three", ("A", "B"), 2))
    found = split(document(*parts), document_id="d", version=3)
    assert [(p.text, p.headings, p.page) for p in found] == [(p.text, p.headings, p.page) for p in parts]
    assert {(p.document, p.version) for p in found} == {("d", 3)}


def test_a_table_that_fits_is_kept_whole() -> None:
    """K4: a table moves into the next passage, rather than being cut."""
    table = "\n".join(f"| row {n} | value {n} |" for n in range(5))
    found = passages(f"{'Some words before the table. ' * 2}\n\n{table}\n\nAnd after.", Sizes(most=150, overlap=40))
    assert any(table in one.text for one in found)


def test_a_fence_that_fits_is_kept_whole() -> None:
    """K4: empty lines within a fence are no place to cut."""
    fence = "```python\nfirst = 1\n\n\nsecond = 2\n```"
    found = passages(f"{'Words before it. ' * 5}\n\n{fence}\n\n{'Words after it. ' * 5}")
    assert any(fence in one.text for one in found)


def test_sentences_stay_whole_where_they_can() -> None:
    """K4: prose is cut between sentences, also where an abbreviation has a full stop."""
    text = " ".join(f"Sentence {n} says e.g. something." for n in range(20))
    found = passages(text, Sizes(most=120, overlap=40))
    assert all(one.text.startswith("Sentence") and one.text.endswith("something.") for one in found)


def test_a_script_without_spaces_is_cut_between_sentences() -> None:
    """K4: a text without spaces has sentences too, and an ideographic full stop ends one."""
    text = "".join(f"これは{n}番目の文章です。" for n in range(40))
    assert all(one.text.endswith("。") for one in passages(text))


def test_code_is_cut_between_lines() -> None:
    """K4: a line of code is whole, with its indentation, and the passage knows its number."""
    lines = [f"    value_{n} = compute({n})" for n in range(60)]
    found = passages("def f():\n" + "\n".join(lines), language="python")
    source = ["def f():", *lines]
    assert len(found) > 5
    for one in found:
        rows = one.text.split("\n")
        assert one.line is not None
        assert rows == source[one.line - 1 : one.line - 1 + len(rows)]


def test_short_definitions_share_a_passage() -> None:
    """K4: code names itself, so short neighbours are one passage under the heading that they share, with its lines."""
    parts = (Part("def a(): ...", ("class C", "a"), line=3), Part("def b(): ...", ("class C", "b"), line=6))
    (one,) = split(document(*parts, language="python"), document_id="d", version=1)
    assert (one.text, one.headings, one.line) == ("def a(): ...\n\n\ndef b(): ...", ("class C",), 3)


def test_time_grows_with_the_text_only() -> None:
    """K4: a large text in one part, and one without a place to cut, are cut without going over them again and again."""
    assert len(passages("word " * 400_000, DEFAULT)) > 1_800
    assert len(passages("x" * 2_000_000, DEFAULT)) > 1_800
    assert len(passages("- item\n" * 200_000, DEFAULT)) > 1_200


@pytest.mark.parametrize(("most", "overlap"), [(10, 0), (300, 150), (300, -1)])
def test_impossible_sizes_are_refused(most: int, overlap: int) -> None:
    with pytest.raises(InvalidInput, match="cannot overlap"):
        Sizes(most=most, overlap=overlap)
