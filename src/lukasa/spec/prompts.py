"""The instructions for language models: files that a person can read, and replace by files of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lukasa.model.errors import SpecError
from lukasa.spec.decode import nearest

_SHIPPED = Path(__file__).parents[1] / "prompts"
MOST_CHARS = 100_000


def prompt_names() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in _SHIPPED.glob("*.md")))


def prompt(name: str, folder: Path | None = None, **values: str) -> str:
    """The prompt of that name: a person's own in `folder`, otherwise the shipped one.

    `{name}` is replaced by the value of that name; all other braces stay, because prompts show JSON. Own prompts are
    read at each call, so an edit applies from the next call on.
    """
    known = prompt_names()
    if name not in known:
        meant = nearest(name, known)
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise SpecError(f"no prompt {name[:60]!r}{hint}", fix=f"use one of: {', '.join(known)}")
    text = (_own(folder / f"{name}.md") if folder is not None else None) or _text(_SHIPPED / f"{name}.md")
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def own_prompts(folder: Path | None) -> tuple[str, ...]:
    """The names of the prompts that a person has replaced.

    A file that replaces no prompt has a misspelt name: an error.
    """
    if folder is None or not folder.is_dir():
        return ()
    found = tuple(sorted(file.stem for file in folder.glob("*.md")))
    _check_names(found, folder)
    return found


def _check_names(found: Iterable[str], folder: Path) -> None:
    known = prompt_names()
    for name in found:
        if name not in known:
            raise SpecError(
                f"there is no prompt {name[:60]!r} to replace",
                file=str(folder / f"{name}.md"),
                fix=f"name the file after one of: {', '.join(known)}",
            )


def _own(file: Path) -> str | None:
    try:
        text = _text(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SpecError(
            f"cannot be read: {error}", file=str(file), fix="make it readable UTF-8, or remove it"
        ) from error
    if not text or len(text) > MOST_CHARS:
        fix = f"write 1 to {MOST_CHARS:,} characters, or remove it"
        raise SpecError("the prompt is empty or too long", file=str(file), fix=fix)
    return text


def _text(file: Path) -> str:
    return file.read_text("utf-8").strip()
