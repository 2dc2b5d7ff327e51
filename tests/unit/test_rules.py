"""The observer by rules: whole sentences as they were said, and nothing that only looks like a statement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.observer_set import TEST, TRAINING, sessions, training
from bench.write import FORMATS, measure, pitfalls
from lukasa.model.transcript import Utterance
from lukasa.model.values import Gate
from lukasa.observe import classifier
from lukasa.observe.noise import MOST_CHARACTERS, clean
from lukasa.observe.rules import MOST_REQUEST, MOST_SENTENCE, NO_SUBJECT, look, observe
from lukasa.ports import Piece
from lukasa.providers.embed.cached import ARCTIC
from lukasa.providers.transcripts import FileReader
from tests.fakes import FakeEmbedder


def stored(text: str) -> list[str]:
    return [o.text for o in look(text) if o.gate is Gate.ALLOW]


def test_a_statement_has_the_span_that_says_it() -> None:
    """B4: in a message of several sentences, with listings and quotations in between."""
    listing = "```\nNever retry.\n```"
    text = f"Hello!\n> Always lie\n\nThe barge runs on diesel. And I prefer tea.\n{listing}\nNever use the old pier."
    spans = [text[o.start : o.end] for o in look(text)]
    assert spans == stored(text) == ["The barge runs on diesel.", "And I prefer tea.", "Never use the old pier."]


@pytest.mark.parametrize(
    "text",
    [
        "No, actually the gate is 14, not 12.",
        "Our cook is not Ben but Astrid.",
        "no visitor enters the vault without a guide.",
        "No alcohol is served in our canteen.",
        "Great Danes are not allowed on the tram.",
        "btw my sister lives in Graz, at least until May",
        "Nein, unser Büro ist in Linz, nicht in Wels.",
        "I never eat fish, not even on Fridays.",
    ],
)
def test_nothing_is_cut_or_corrected(text: str) -> None:
    """O1: neither the first words nor the last, no negation, no capital."""
    (observed,) = look(text)
    assert (observed.text, observed.start, observed.end) == (text, 0, len(text))


def test_a_correction_weighs_more() -> None:
    """O1: it will be compared with the entry that it corrects."""
    assert [o.priority for o in look("No, the gate is 14, not 12.")] == ["high"]
    assert [o.priority for o in look("Our tram stop is Elm Street.")] == ["medium"]


def test_a_sentence_without_a_subject_takes_the_one_before_it_along() -> None:
    """O1: "it" alone says nothing; without a sentence before it, a person decides."""
    text = "Thanks! We have a second gateway in Ulm. It listens on port 8080."
    assert "We have a second gateway in Ulm. It listens on port 8080." in [o.text for o in look(text)]
    (alone,) = look("It listens on port 8080.")
    assert (alone.gate, alone.reason) == (Gate.HOLD, NO_SUBJECT)
    (apart,) = [o for o in look("```\nx = 1\n```\nIt listens on port 8080.") if "8080" in o.text]
    assert (apart.text, apart.gate) == ("It listens on port 8080.", Gate.HOLD)


def test_a_fact_does_not_carry_the_junk_after_it() -> None:
    """O1: the sentence itself must be worth keeping."""
    assert [o.text for o in look("Our shop sells tea in Graz. It crashed.")] == ["Our shop sells tea in Graz."]


def test_a_subject_that_is_a_secret_is_not_taken_along() -> None:
    """B8: nothing brings back a sentence that is left out."""
    assert not any("hunter" in o.text for o in look("The vault password is hunter2-x9. It is used by the backup job."))


@pytest.mark.parametrize(
    "text",
    [
        "I think the ferry to Elba runs on Sundays.",
        "Perhaps our landlord lives in Bern.",
        "Vermutlich arbeitet Carla bei der Post.",
        "The manual says that our pump runs on gas.",
        "If we had a boat, we would live in Split.",
        "For now our office is in the basement.",
    ],
)
def test_doubt_is_held_at_most(text: str) -> None:
    """W2: neither believed nor, if it may be a statement, lost."""
    assert stored(text) == []


def test_a_request_is_kept_as_it_was_asked() -> None:
    """O1: the whole sentence, with its reach and weight; what is only for this conversation is not kept."""
    said = "remember for all my projects that I use metric units, this is important"
    (observed,) = look(f"Hi. {said}")
    assert (observed.text, observed.start) == (said, 4)
    assert observed.asked is not None
    assert (observed.asked.reach, observed.importance) == ("account", 0.9)
    assert stored("keep track of the score for this conversation") == []
    assert stored("forget that I like tea") == []


def test_remember_that_means_the_sentence_before() -> None:
    """L1: the request itself says nothing."""
    (observed,) = look("The boiler man is Mr Finch. Please remember that.")
    assert (observed.text, observed.asked is not None) == ("The boiler man is Mr Finch.", True)
    assert look("Please remember this.") == []


def test_a_long_sentence_is_whole_or_left_out() -> None:
    """W1: no text is cut to a length."""
    assert look("We use " + "very " * MOST_SENTENCE + "old pumps.") == []
    long = "Remember that the pumps are " + "very " * 300 + "old."
    assert [o.text for o in look(long)] == [long]
    assert look("Remember that the pumps are " + "very " * MOST_REQUEST + "old.") == []


def test_a_message_that_cleaning_shortens_loses_whole_sentences() -> None:
    """W1: the cut is between two sentences."""
    said = "The mill in Ayr never grinds rye. "
    piece = Piece("m", "user", said * (2 * MOST_CHARACTERS // len(said)))
    cleaned = clean([piece], lambda text: (text, 0)).utterances
    assert len(cleaned[0].text) < 1.1 * MOST_CHARACTERS
    assert {o.text for o in observe(cleaned)} == {said.strip()}


def test_only_the_user_is_heard() -> None:
    """B8: what an assistant says may be memory read back."""
    said = "Never drive at night."
    roles = ("user", "assistant", "tool", "system")
    spoken = [Utterance(role, role, said, n) for n, role in enumerate(roles)]  # type: ignore[arg-type]
    assert [o.message for o in observe(spoken)] == ["user"]


@pytest.mark.parametrize(
    "text", ["a " * 100_000, "not " * 50_000 + "but x", "the " * 30_000 + "is", ("```\n" * 20_000), "a. " * 50_000]
)
def test_long_texts_are_no_trouble(text: str) -> None:
    """W9: whatever somebody pastes, it is gone through in one go."""
    assert stored(text) == []


def test_the_weights_know_the_default_model() -> None:
    """O1: who changes the model must train again."""
    assert classifier.trained().digest == ARCTIC.digest
    assert len(classifier.trained().vectors.vector) == ARCTIC.dimensions


def test_vectors_of_another_model_are_not_used() -> None:
    """The weights belong to one model; with another, words decide."""
    assert classifier.usable(FakeEmbedder(64)) is None
    assert classifier.usable(None) is None


@pytest.mark.parametrize(("sign", "kept"), [(3, [Gate.ALLOW]), (-3, [])])
def test_the_vector_of_a_sentence_counts(sign: int, kept: list[Gate]) -> None:
    """O1: the same words, near to facts or far from them."""
    direction = np.array(classifier.trained().vectors.vector, dtype=np.float32)[:, 0]
    vector = sign * direction / np.linalg.norm(direction)
    found = look("The heron stands under a willow.", embed=lambda texts: np.array([vector] * len(texts)))
    assert [observed.gate for observed in found] == kept


# The property: verbatim, from the start of a sentence to the end of one

_PIECES = st.sampled_from(
    [
        "I live in Porto.",
        "No, the gate is 14, not 12.",
        "It is on port 8080.",
        "It never sleeps!",
        "Never deploy on a Friday, unless Kai agrees.",
        "Nuts in anything are forbidden, please.",
        "Our cook is Dr. Bea Lund, e.g. on Mondays.",
        "Wir treffen uns am 9. Mai in Köln.",
        "Ich esse kein Fleisch.",
        "Unsere Mühle steht in Wels, nicht in Linz.",
        "remember that I use metres, this is important",
        "Please remember that.",
        'She said "I quit. I left." and went to Rome.',
        "Where is it?",
        "Maybe we use Kafka.",
        "Thanks a lot!",
        "btw my cat is called Miso",
        "I prefer tabs (not spaces. Never.) in Go files.",
        "私は東京に住んでいます。",
        "My list: tea, no milk, two cups.",
        "Run the tests again.",
    ]
)
_MESSAGES = st.lists(st.lists(_PIECES, min_size=1, max_size=6), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=_MESSAGES, form=st.sampled_from(sorted(FORMATS)), between=st.sampled_from([" ", "\n", "\n\n"]))
def test_what_is_observed_was_said(tmp_path: Path, said: list[list[str]], form: str, between: str) -> None:
    """O1, B4: in every format, a text is its span of its message, from where a sentence begins to where one ends."""
    turns = [turn for pieces in said for turn in (("user", between.join(pieces)), ("assistant", "I see."))]
    file = tmp_path / "session"
    file.write_text(FORMATS[form](turns), "utf-8")
    heard = clean(FileReader().read(str(file)).pieces, lambda text: (text, 0)).utterances
    assert heard
    texts = {utterance.id: utterance.text for utterance in heard}
    for observed in observe(heard):
        text = texts[observed.message]
        assert observed.text == text[observed.start : observed.end]
        starts, ends = bounds(text, {piece for pieces in said for piece in pieces})
        assert observed.start in starts
        assert observed.end in ends


def bounds(text: str, pieces: set[str]) -> tuple[set[int], set[int]]:
    """The positions at which the pieces of a message begin and end."""
    starts, ends, at = set(), set(), 0
    while at < len(text):
        piece = max((p for p in pieces if text.startswith(p, at)), key=len, default="")
        starts.add(at)
        at += len(piece) or 1
        ends.add(at)
        while at < len(text) and text[at].isspace():
            at += 1
    return starts, ends


# The benchmark


def test_the_training_set_holds_no_line_of_the_test_set() -> None:
    """B13: a line that was learned proves nothing."""
    tested = {line.text.casefold() for s in sessions() for message in s.messages for line in message.lines}
    assert tested.isdisjoint(line.text.casefold() for line in training())
    assert TRAINING != TEST


def test_the_write_benchmark_keeps_its_promises() -> None:
    """B13: four formats, two languages, a third junk; precise by words alone, and nothing cut or turned round."""
    scores = measure()
    assert set(scores) == {"all", *FORMATS, "en", "de"}
    whole = scores["all"]
    assert whole.lines >= 400
    assert whole.of("j") >= whole.lines / 3
    assert whole.precision >= 0.97
    assert whole.found >= 0.75
    assert (whole.truncated, whole.inverted) == (0, 0)


def test_no_pitfall_is_stored() -> None:
    """B8: no secret, no echo of memory, no repetition, no quotation, no instruction."""
    found = pitfalls()
    assert {sort: found[sort] for sort in ("secret", "loop", "repeat", "quoted", "instruction", "secrets kept")} == (
        dict.fromkeys(("secret", "loop", "repeat", "quoted", "instruction", "secrets kept"), 0)
    )
    assert found["fact"] == found["fact lines"]
