"""Grants and kept answers of the store in dictionaries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field

from msgspec.structs import replace

from lukasa.model.answer import Answer
from lukasa.model.grant import Grant
from lukasa.storage import rules
from lukasa.storage.operations import AccessOperation, DropAnswer, ForgetAnswers, SaveAnswer, SaveGrant


@dataclass
class Grants:
    """Values are never changed in place, so a shallow copy is a snapshot."""

    grants: dict[str, Grant] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    def __copy__(self) -> Grants:
        return Grants(copy(self.grants), copy(self.answers))

    def run(self, operation: AccessOperation) -> None:
        match operation:
            case SaveGrant(grant, expect):
                current = self.grants.get(grant.id)
                rules.check_version("grant", grant.id, current.version if current else None, expect)
                created = current.created_at if current else grant.created_at
                self.grants[grant.id] = replace(grant, version=expect + 1, created_at=created)
            case SaveAnswer(new, stale):
                rules.check_answer(self.answers.get(new.key), new, stale)
                self.answers[new.key] = new
            case DropAnswer(key):
                if key in self.answers and not self.answers[key].status:
                    del self.answers[key]
            case ForgetAnswers(before):
                self.answers = {key: kept for key, kept in self.answers.items() if kept.at >= before}


class GrantReads(ABC):
    """The questions about grants, over whatever snapshot the store is at."""

    @property
    @abstractmethod
    def access_rows(self) -> Grants: ...

    def grants(self) -> list[Grant]:
        return list(self.access_rows.grants.values())

    def grant(self, id: str) -> Grant | None:
        return self.access_rows.grants.get(id)

    def answer(self, key: str) -> Answer | None:
        return self.access_rows.answers.get(key)
