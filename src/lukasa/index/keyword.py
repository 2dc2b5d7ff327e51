"""Keyword search: the rows of some partitions that hold the most of the asked terms, with the counts for BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from lukasa.index import bm25
from lukasa.index.cache import Answers
from lukasa.index.matches import KeywordMatches
from lukasa.index.postings import Postings, best_rows, occurrences, token, tokens
from lukasa.index.rows import KeywordRows, MatchedRow, Partition
from lukasa.model.selection import Selection
from lukasa.model.values import Trust

SHORT = 1000  # characters of a text that is worth keeping in memory
_Words: TypeAlias = "Mapping[str, Sequence[str]]"  # by term, its word in each partition


def partitions_of(rows: KeywordRows, selection: Selection) -> list[Partition]:
    """The partitions of a selection, from the cache if it was searched in this snapshot."""
    answers = rows.cache.snapshot("partitions", rows)
    last: tuple[Selection, list[Partition]] | None = answers.get("last")
    if last is not None and last[0] is selection:  # a question goes to several indexes, one after the other
        return last[1]
    asked = (selection.scopes, selection.visibilities, selection.owners)
    if asked not in answers:
        answers[asked] = rows.partitions(selection)
    found: list[Partition] = answers[asked]
    answers["last"] = selection, found
    return found


def last_partitions(rows: KeywordRows) -> list[Partition]:
    """The partitions that were searched last in this snapshot."""
    last: tuple[Selection, list[Partition]] | None = rows.cache.snapshot("partitions", rows).get("last")
    return last[1] if last is not None else []


def search(rows: KeywordRows, selection: Selection, terms: Sequence[str], limit: int) -> KeywordMatches:
    """The `limit` entries of a selection that match best."""
    partitions = [partition for partition in partitions_of(rows, selection) if partition.size]
    if not partitions:
        return KeywordMatches(0, 0, (0,) * len(terms))
    size, total = sum([one.size for one in partitions]), sum([one.total_terms for one in partitions])
    words = {term: [token(one.id, term) for one in partitions] for term in terms}
    if size <= bm25.POSTING_BUDGET:
        _postings(rows, words)  # gives the frequencies as well: no term of so few rows is too common to look up
    counted = _frequencies(rows, words)
    frequencies = tuple([counted[term] for term in terms])
    worth = set(bm25.rarest(terms, frequencies))
    if selection.filters.only_trust:  # a flood of words makes them common, also those of the text that is looked for
        worth |= {term for term, count in counted.items() if 0 < count <= bm25.POSTING_BUDGET}
    used = {term: bm25.idf(size, count) for term, count in counted.items() if term in worth}
    if not used:
        return KeywordMatches(size, total, frequencies)
    postings = _postings(rows, {term: words[term] for term in used})
    if selection.filters.only_trust:
        best = best_rows(postings, used, bm25.POSTING_BUDGET)
        found = _trusted(rows, best, selection, limit)
        if len(found) < limit and any(count > bm25.POSTING_BUDGET for count in counted.values()):
            asked = [word for those in words.values() for word in those]
            found = _of_a_flood(rows, best, asked, found, selection, limit)
    elif selection.filters:
        found = _filtered(rows, [word for term in used for word in words[term]], selection, limit)
    else:
        found = best_rows(postings, used, bm25.cut_size(limit, size, total))
        if len(found) > limit:
            lengths = rows.lengths(found)
            counts = occurrences(found, [postings[term] for term in used])
            found = bm25.cut_by_length(found, list(used.values()), counts, [lengths[row] for row in found], limit)
    known = matched(rows, found)
    details = [known[row] for row in found]
    candidates, lengths_of = [one.candidate for one in details], [one.length for one in details]
    return KeywordMatches(size, total, frequencies, candidates, lengths_of, _counts(found, details, terms, postings))


def matched(rows: KeywordRows, asked: Sequence[int]) -> Mapping[int, MatchedRow]:
    """Candidates and terms by row; short ones are cached."""
    answers = rows.cache.entries("matched", rows)
    unknown = [row for row in asked if row not in answers]
    if not unknown:
        return answers
    fresh = rows.matched(unknown)
    versions = rows.cache.entries("versions", rows)
    versions.update([(one.candidate.id, (one.candidate.version, row)) for row, one in fresh.items()])
    if max([len(one.terms) for one in fresh.values()], default=0) <= SHORT:
        answers.update(fresh)
        return answers
    answers.update((row, one) for row, one in fresh.items() if len(one.terms) <= SHORT)
    return {row: fresh[row] if row in fresh else answers[row] for row in asked}


def pending_words(rows: KeywordRows) -> dict[str, list[int]]:
    """The pending index rows by word, in order, each as often as it holds the word."""
    answers = rows.cache.snapshot("pending", rows)
    found: dict[str, list[int]] | None = answers.get("words")
    if found is None:
        found = answers["words"] = {}
        for row, partition, terms in rows.pending_rows():
            for word in tokens(partition, terms.split()).split():
                found.setdefault(word, []).append(row)
    return found


def _frequencies(rows: KeywordRows, words: _Words) -> dict[str, int]:
    """In how many rows each term is."""
    answers = rows.cache.entries("frequencies", rows)
    unknown = [word for those in words.values() for word in those if word not in answers]
    if unknown:
        pending = pending_words(rows)
        answers.update({word: len(set(pending.get(word, ()))) for word in unknown})
        answers.update({word: count + answers[word] for word, count in rows.frequencies(unknown)})
    return {term: sum([answers[word] for word in those]) for term, those in words.items()}


def _postings(rows: KeywordRows, words: _Words) -> dict[str, list[Postings]]:
    """The postings of each term, one for each partition. Of a very common word, only the newest rows."""
    answers = rows.cache.entries("postings", rows)
    unknown = [word for those in words.values() for word in those if word not in answers]
    if unknown:
        _look_up_postings(rows, unknown, answers, rows.cache.entries("frequencies", rows))
    return {term: [answers[word] for word in those] for term, those in words.items()}


def _look_up_postings(rows: KeywordRows, words: Sequence[str], answers: Answers, frequencies: Answers) -> None:
    pending = pending_words(rows)
    for word in words:
        if frequencies.get(word, 0) > bm25.POSTING_BUDGET:
            oldest_first = rows.newest_postings(word, bm25.POSTING_BUDGET)[::-1]
            newest = [*oldest_first, *dict.fromkeys(pending.get(word, ()))]
            answers[word] = Postings(newest[-bm25.POSTING_BUDGET :], whole=False)
    rare = [word for word in words if word not in answers]
    if rare:
        for word, indexed in rows.postings(rare):
            answers[word] = held = indexed.plus(pending[word]) if word in pending else indexed
            frequencies[word] = len(held)


def _filtered(rows: KeywordRows, words: Sequence[str], selection: Selection, limit: int) -> list[int]:
    pending = pending_words(rows)
    newest = {row for word in words for row in pending.get(word, ())}
    return rows.filtered_rows(words, newest, selection.filters, limit)


def _trusted(rows: KeywordRows, best: Sequence[int], selection: Selection, limit: int) -> list[int]:
    """The first rows of at least that trust."""
    answers = rows.cache.entries("trusts", rows)
    unknown = [row for row in best if row not in answers]
    if unknown:
        answers.update(rows.trusts(unknown))
    return [row for row in best if answers[row] >= (selection.filters.min_trust or 0)][:limit]


def _of_a_flood(
    rows: KeywordRows, best: Sequence[int], words: Sequence[str], found: list[int], selection: Selection, limit: int
) -> list[int]:
    """Ask all rows with the words, and not only the newest, if untrusted rows are most of the best."""
    answers = rows.cache.entries("trusts", rows)
    if 2 * sum([answers[row] < Trust.AGENT for row in best]) <= len(best):
        return found
    return list(dict.fromkeys([*found, *_filtered(rows, words, selection, limit)]))[:limit]


def _counts(
    found: Sequence[int],
    details: Sequence[MatchedRow],
    terms: Sequence[str],
    postings: Mapping[str, Sequence[Postings]],
) -> list[list[int]]:
    """For each term, how often it is in each row: from whole postings, or counted in the text of the row."""
    whole = {term: those for term, those in postings.items() if all(part.whole for part in those)}
    counts = dict(zip(whole, occurrences(found, whole.values()), strict=True))
    texts = None
    for term in terms:
        if term in counts:
            continue
        if not term or " " in term:  # not a word
            counts[term] = [0] * len(details)
            continue
        # Double the spaces, so that two occurrences side by side are both counted.
        texts = texts or [f" {one.terms.replace(' ', '  ')} " for one in details]
        word = f" {term} "
        counts[term] = [text.count(word) for text in texts]
    return [counts[term] for term in terms]
