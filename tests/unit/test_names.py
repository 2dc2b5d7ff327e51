"""Names of people and things, found in texts without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.model.names import NameIndex, Text, name_index


def index(*texts: str) -> NameIndex:
    return name_index(Text(str(number), text) for number, text in enumerate(texts))


def kinds(found: NameIndex) -> dict[str, str]:
    return {name.name: name.kind for name in found.names}


def test_people_and_things_of_a_project_are_told_apart() -> None:
    """What a name does, and how it is written, says whether it is a person."""
    found = kinds(
        index(
            "Ask Marta Oliveira before you change the invoice schema",
            "Jonas reviews every migration of ops/ledger.md",
            "Priya prefers short answers",
            "We run PostgreSQL behind the VPN in Frankfurt",
        )
    )
    assert {found[name] for name in ("Marta Oliveira", "Jonas", "Priya")} == {"person"}
    assert {found[name] for name in ("ops/ledger.md", "PostgreSQL", "VPN", "Frankfurt")} == {"thing"}


def test_the_first_word_of_a_sentence_is_no_name_for_its_capital_alone() -> None:
    """Memories begin with verbs, nouns and days, and none of them is somebody."""
    found = index(
        "Deploys moved to Tuesdays",
        "Prefers tea in the morning",
        "Money must never be a float",
        "Never restart anything on Mondays",
        "Conventional commits, please",
        "Yesterday the tests were slow",
    )
    assert found.names == ()


def test_a_name_at_the_beginning_counts_if_texts_name_it_elsewhere_too() -> None:
    """ "Yesterday Ada left" names Ada, who is known; and Yesterday is nobody."""
    found = kinds(index("Yesterday Ada left early", "I had lunch with Ada", "Ada and the dog went home"))
    assert found == {"Ada": "person"} or found == {"Ada": "thing"}


def test_a_first_name_joins_the_only_full_name_that_holds_it() -> None:
    """Who is called Marta in one text and Marta Oliveira in another is one person, with both texts."""
    found = index("Marta Oliveira joined in May", "Ask Marta about contracts", "We met Marta at the office")
    (marta,) = found.names
    assert (marta.name, len(marta.texts)) == ("Marta Oliveira", 3)
    assert "Marta" in marta.forms
    assert found.find("marta") == marta


def test_two_people_with_one_first_name_stay_two() -> None:
    """Nobody can say which Marta the bare name means."""
    found = index("Marta Oliveira joined", "Marta Lund left", "Ask Marta about contracts")
    assert {name.name for name in found.names} == {"Marta Oliveira", "Marta Lund", "Marta"}


def test_german_nouns_are_no_names() -> None:
    """German writes every noun with a capital; an article before it says that it is one."""
    found = kinds(
        index(
            "Der Server steht in Frankfurt und Jonas hat die Schlüssel für den Keller",
            "Die Katze von Anna frisst das Futter nicht, und der Hund auch nicht",
            "Ich mag den Kaffee nicht, und die Milch ist auch nicht mit dem Zucker",
        )
    )
    assert {"Frankfurt", "Jonas", "Anna"} <= set(found)
    assert not {"Server", "Schlüssel", "Keller", "Katze", "Futter", "Hund", "Kaffee", "Milch", "Ich"} & set(found)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("田中さんは東京で働いている", "田中"),
        ("张伟老师喜欢这本书", "张伟"),
        ("김민수 씨는 서울에 산다", "김민수"),
        ("Марина Петрова living there said so", "Марина Петрова"),
    ],
)
def test_names_of_other_scripts(text: str, name: str) -> None:
    """An honorific, or the capital of another alphabet, shows a person."""
    assert kinds(index(text))[name] == "person"


def test_scripts_without_capitals_show_names_by_repetition() -> None:
    """A word that several texts of a script without capitals share is worth a place; one that is everywhere is not."""
    texts = ["דני אוהב תה", "דני גר בחיפה", "שאל את דני", *(f"משהו אחר {number}" for number in range(30))]
    found = kinds(index(*texts))
    assert "דני" in found
    assert "משהו" not in found


def test_a_speaker_is_a_person_and_a_document_a_thing() -> None:
    """Rows know more than texts: who said it, and what it rests on."""
    found = name_index([Text("1", "I like tea", speaker="Caroline", things=("Guide to tea",))])
    assert kinds(found) == {"Caroline": "person", "Guide to tea": "thing"}
    assert [(link.one, link.other, link.texts) for link in found.links()] == [("caroline", "guide to tea", 1)]


def test_links_count_the_texts_that_name_both() -> None:
    """Who is named together more often is linked more strongly."""
    found = index("We met Ada and Luc", "I saw Ada with Luc", "They saw Ada in Porto")
    assert {(link.one, link.other): link.texts for link in found.links()} == {("ada", "luc"): 2, ("ada", "porto"): 1}
    assert found.links(["ada"]) == []


@given(st.lists(st.text(max_size=200), max_size=8))
def test_any_text_can_be_read(texts: list[str]) -> None:
    """Nobody can write a text that breaks the index, and every name leads to texts that exist."""
    found = index(*texts)
    ids = {str(number) for number in range(len(texts))}
    assert all(name.name and set(name.texts) <= ids for name in found.names)
    found.links()
