"""Count tokens as a model's tokenizer does: o200k, whose vocabulary comes with the package, so no network is needed."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest


@cache
def _tokenizer() -> Any:
    return pytest.importorskip("rs_bpe", reason="make install").bpe.openai.o200k_base()


def count_tokens(text: str) -> int:
    return int(_tokenizer().count(text))
