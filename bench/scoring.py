"""Scores of a ranking: mean over questions, by category and overall.

recall@k is the share of a question's evidence among the first k, hit@k whether any of it is there, nDCG@10 has binary
gains. For questions with a stale fact, `fresh_first` says that the current one stands above every stale one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

CUTS = (5, 10, 20)
Row = dict[str, float]


def score_one(ranked: Sequence[str], evidence: Sequence[str], stale: Sequence[str] = ()) -> Row:
    gold, old = set(evidence), set(stale)
    places = [place for place, id in enumerate(ranked) if id in gold]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(gold))))
    row = {f"recall@{k}": sum(p < k for p in places) / len(gold) for k in CUTS}
    row["hit@10"] = float(any(p < 10 for p in places))
    row["nDCG@10"] = sum(1 / math.log2(p + 2) for p in places if p < 10) / ideal
    row["MRR"] = 1 / (places[0] + 1) if places else 0.0
    if old:
        stale_places = [place for place, id in enumerate(ranked) if id in old]
        row["fresh_first"] = float(bool(places) and (not stale_places or places[0] < stale_places[0]))
    return row


def score(queries: Sequence[Mapping[str, Any]], ranking: Mapping[str, Sequence[str]]) -> dict[str, Row]:
    """Means by category, and over all under `ALL`; `n` is the number of questions."""
    seen: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for query in queries:
        row = score_one(ranking.get(query["id"], ()), query["evidence"], query.get("stale", ()))
        for category in (query["category"], "ALL"):
            seen[category]["n"].append(1.0)
            for name, value in row.items():
                seen[category][name].append(value)
    return {
        category: {name: sum(v) if name == "n" else sum(v) / len(v) for name, v in columns.items()}
        for category, columns in seen.items()
    }
