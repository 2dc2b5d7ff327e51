"""The documentation is true: its programs run, its links lead somewhere, and what it lists is all there is."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.index.bm25 import POSTING_BUDGET
from lukasa.model import errors
from lukasa.model.errors import LukasaError
from lukasa.providers.embed.cached import ARCTIC
from lukasa.read.fuse import Contribution
from lukasa.read.rank import Hit, Provenance, Score
from lukasa.spec import load_preset, preset_names
from tools.docs_hooks import FROM_REPOSITORY
from tools.pages import FENCE, PageRun, blocks, differences, parse, renewed, run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
PROGRAMS = [ROOT / "README.md", DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
ON_POSTGRESQL = DOCS / "how-to" / "run-on-postgresql.md"
MOVE = DOCS / "how-to" / "move-between-backends.md"
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
API = (DOCS / "reference" / "api.md").read_text("utf-8")

LINK = re.compile(r"\]\(([^)\s]+)\)")
PICTURE = re.compile(r"<(?:img|source)\b[^>]*?\bsrc(?:set)?=\"([^\"]+)\"")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


# Programs


@pytest.mark.parametrize("page", [page for page in PROGRAMS if page not in (ON_POSTGRESQL, MOVE)], ids=name)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path) -> None:
    """U1, U2: the Python and the commands of a page run in order, on an empty memory, with the model if it is there."""
    perform(page, tmp_path, "auto")


@pytest.mark.parametrize(("page", "variable"), [(ON_POSTGRESQL, "LUKASA_DATABASE"), (MOVE, "DATABASE")])
def test_a_page_about_postgresql_runs(page: Path, variable: str, tmp_path: Path, database_url: str) -> None:
    """U1, U2: its Python and its commands run on a real database, which the page has the reader set first."""
    perform(page, tmp_path, "auto", **{variable: database_url})


@pytest.mark.parametrize("page", PROGRAMS[:2], ids=name)
def test_the_first_pages_run_without_a_model(page: Path, tmp_path: Path) -> None:
    """B1: what a newcomer tries first works by keyword too."""
    perform(page, tmp_path, "none")


def perform(page: Path, tmp_path: Path, embedder: str, **more: str) -> None:
    done = run(page, tmp_path, {"LUKASA_EMBEDDER": embedder, **more})
    assert done.code == 0, done.printed
    assert [difference for _, _, difference in differences(done)] == []


@pytest.mark.parametrize("page", PROGRAMS, ids=name)
def test_every_hands_on_page_has_a_program(page: Path) -> None:
    """U1: a page that teaches by doing has something to do."""
    assert blocks(page)


def shows(*parts: tuple[str, str]) -> PageRun:
    """A run of a page that shows some outputs, each with what was printed."""
    text = "".join(f"```sh\nlukasa list\n```\n\n```output\n{shown}```\n" for shown, _ in parts)
    return PageRun(parse(text), [printed for _, printed in parts], 0, "")


ONE = "01a1f289-de48-7f9a-999b-343bf6afd4d2"
TWO = "01a1f289-eb25-7a25-af28-2928b10af477"
OTHER = "0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90"


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("stored\n", "held\n"),
        ("stored\n", "stored\nand more\n"),
        ("stored\nand more\n", "stored\n"),
        (f"stored {ONE}\n", "stored\n"),
        (f"{ONE} is {ONE}\n", f"{ONE} is {OTHER}\n"),
        (f"{ONE} and {TWO}\n", f"{OTHER} and {OTHER}\n"),
        ("said on 2026-03-02\n", "said on 2026-03-03\n"),
        ("3 of 4, 36 ms\n", "2 of 4, 40 ms\n"),
        ("a … c\n", "a b\n"),
        ("first\n…\nlast\n", "first\nlast but one\n"),
    ],
)
def test_another_output_than_the_page_shows_is_found(shown: str, printed: str) -> None:
    """Docs: what a page shows is compared, not only run."""
    assert len(list(differences(shows((shown, printed))))) == 1


def test_what_varies_may_vary() -> None:
    """Docs: ids, days of today, times, milliseconds, and what the page leaves out; the same id is the same thing."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    done = shows(
        (f"put {ONE}, 2026-11-19 06:41 UTC, 36 ms\n", f"put {OTHER}, {today} 23:59 UTC, 4 ms\n"),
        ("digest 765672bd2e7f in harbour-…\n…\nend\n", "digest 0123456789abcdef in harbour-1\nx\ny\nend\n"),
        (f"it is {ONE}\n…\n", f"it is {OTHER}\n"),
    )
    assert list(differences(done)) == []


def test_an_id_stands_for_one_thing_on_the_whole_page() -> None:
    """Docs: an id that a page shows again must be printed again."""
    done = shows((f"{ONE}\n", f"{OTHER}\n"), (f"{ONE}\n", f"{TWO}\n"))
    assert len(list(differences(done))) == 1


def test_outputs_are_written_anew_where_they_differ() -> None:
    """Docs: the command keeps what still matches, with what its writer left out."""
    text = "```sh\nlukasa a\n```\n```output\na …\n```\n\n```sh\nlukasa b\n```\n```output\nb\n```\n"
    done = PageRun(parse(text), ["a 1\n", "c\n"], 0, "")
    assert renewed(text, done) == text.replace("b\n```\n", "c\n```\n", 2).replace("lukasa c", "lukasa b")


def test_an_output_belongs_to_a_program() -> None:
    """Docs: an output after prose would be compared with nothing."""
    with pytest.raises(ValueError, match="follows nothing that runs"):
        parse("```sh\nlukasa list\n```\nIt prints:\n```output\nx\n```\n")


# Links


def anchors(page: Path) -> set[str]:
    """The headings of a page as a reader's browser names them."""
    prose = FENCE.sub("", page.read_text("utf-8"))
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    """Docs: every relative link is a file of the repository, and its anchor a heading there."""
    for target in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{name(page)} links to {target}"
        assert not anchor or anchor in anchors(file), f"{name(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pictures_are_there(page: Path) -> None:
    """Docs: every picture that a page shows is a file of the repository."""
    for target in PICTURE.findall(FENCE.sub("", page.read_text("utf-8"))):
        assert (page.parent / target).is_file(), f"{name(page)} shows {target}"


def test_the_navigation_holds_every_page_once() -> None:
    """Docs: mkdocs.yml names each page, and no page that is not there."""
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    pages = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert sorted(listed) == sorted([*pages, *FROM_REPOSITORY])


def test_home_leads_to_every_how_to() -> None:
    """Docs: the first page of the site names each how-to once, by what people want."""
    led = re.findall(
        r"\((how-to/[\w-]+\.md)\)", (DOCS / "index.md").read_text("utf-8").partition("What do you want")[2]
    )
    assert sorted(led) == sorted(f"how-to/{page.name}" for page in (DOCS / "how-to").glob("*.md"))


def test_the_glossary_is_in_order() -> None:
    """Docs: one row a word, from a to z, so that a reader finds it and nobody adds it twice."""
    table = (DOCS / "reference" / "glossary.md").read_text("utf-8").partition("| word | meaning |")[2]
    words = [re.sub(r"[^a-z0-9 ]", "", row[0].lower()) for row in _cells(table) if not row[0].startswith("---")]
    assert len(words) > 150
    assert words == sorted(set(words))


def test_the_readme_is_short() -> None:
    """U1: somebody who gives it a minute reads it to the end."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 200


def test_each_promise_of_the_readme_names_its_test() -> None:
    """Docs: a promise without a test is a wish. Whether the tests exist is asked of every page below."""
    table = (ROOT / "README.md").read_text("utf-8").partition("## Promises")[2].partition("\n## ")[0]
    _, _, *promises = _cells(table)
    assert len(promises) >= 20
    assert [row[0] for row in promises if not re.fullmatch(r"`tests/[\w/]+\.py::\w+`", row[1])] == []


def test_what_the_readme_installs_is_there() -> None:
    """U1: each extra that it names is one of the package's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for page in (ROOT / "README.md", DOCS / "tutorial.md"):
        for extras in re.findall(r"pip install '(?:lukasa|\.)\[([\w,-]+)\]'", page.read_text("utf-8")):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), name(page)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_tests_that_are_cited_exist(page: Path) -> None:
    """Docs: a promise that names a test names one that is there."""
    for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text("utf-8")):
        assert f"def {test}(" in (ROOT / file).read_text("utf-8"), f"{name(page)} cites {file}::{test}"


# Decisions


def front_matter(page: Path) -> dict[str, str]:
    head = re.match(r"---\n(.*?)\n---\n", page.read_text("utf-8"), re.DOTALL)
    assert head is not None, f"{name(page)} has no front matter"
    return dict(line.split(": ", 1) for line in head[1].splitlines())


@pytest.mark.parametrize("page", DECISIONS, ids=name)
def test_decisions_are_complete(page: Path) -> None:
    """K3: a decision has its status, its date and the four parts that make it one."""
    head = front_matter(page)
    assert head["status"] in {"proposed", "accepted", "shipped", "superseded", "deprecated", "rejected"}
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", head["date"])
    for part in ("Context", "Decision", "Consequences", "Alternatives"):
        assert f"\n## {part}\n" in page.read_text("utf-8"), f"{name(page)} has no {part}"


def test_decisions_are_numbered_once() -> None:
    """K3: numbers start at one, have no gaps and are never used twice; the title carries the number."""
    numbers = [int(page.name[:4]) for page in DECISIONS]
    assert numbers == list(range(1, len(DECISIONS) + 1))
    for page in DECISIONS:
        assert re.search(rf"^# {page.name[:4]} \S", page.read_text("utf-8"), re.MULTILINE), name(page)


def test_every_dependency_is_justified() -> None:
    """K3: each package the project installs is named, with its licence, in a decision."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = [*project["dependencies"], *project["optional-dependencies"]["embed"]]
    required += project["optional-dependencies"]["server"]
    told = "\n".join(page.read_text("utf-8") for page in DECISIONS)
    for requirement in required:
        package = re.split(r"[<>=~! ]", requirement)[0]
        assert re.search(rf"^\| `{package}` \| .*(?:MIT|BSD|zlib|Apache)", told, re.MULTILINE), package


# Reference


def public(of: type) -> Iterator[tuple[str, object]]:
    """The methods and properties of a class that a caller may use."""
    for label, value in inspect.getmembers(of):
        member = inspect.isfunction(value) or inspect.ismethod(value) or isinstance(value, property)
        if member and not label.startswith("_"):
            yield label, value


METHODS = [
    pytest.param(of, *member, id=f"{of.__name__}.{member[0]}") for of in (Lukasa, Workspace) for member in public(of)
]


def section(title: str, of: type) -> str:
    """The part of the API page about one member of one class."""
    whole = re.search(rf"^## {of.__name__}\n(.*?)(?=^## |\Z)", API, re.MULTILINE | re.DOTALL)
    assert whole is not None, f"api.md has no section {of.__name__}"
    found = re.search(rf"^### `{title}\b(.*?)(?=^###? |\Z)", whole[1], re.MULTILINE | re.DOTALL)
    assert found is not None, f"api.md does not describe {of.__name__}.{title}"
    return found[1]


@pytest.mark.parametrize(("of", "label", "member"), METHODS)
def test_the_api_page_has_every_method_and_argument(of: type, label: str, member: object) -> None:
    """U1: each public method and property is described, with every argument it takes."""
    text = section(label, of)
    if callable(member):
        for argument in inspect.signature(member).parameters:
            assert argument in ("self", "cls") or re.search(rf"\b{argument}\b", text), f"{label}: {argument}"


def test_the_api_page_has_every_error() -> None:
    """Errors: the whole tree is on the page."""
    tree = [k for k, v in vars(errors).items() if isinstance(v, type) and issubclass(v, LukasaError)]
    assert len(tree) > 15
    assert [kind for kind in tree if f"`{kind}`" not in API] == []


@pytest.mark.parametrize("value", [Hit, Score, Contribution, Provenance], ids=lambda v: v.__name__)
def test_the_api_page_has_every_field_of_a_hit(value: type) -> None:
    """R8: what explains a hit is documented field by field."""
    fields = [*inspect.signature(value).parameters, *(k for k, v in public(value) if isinstance(v, property))]
    assert [field for field in fields if f"`{field}`" not in API] == []


def test_the_api_page_has_every_event() -> None:
    """X2: every action that the source writes into the log is on the page."""
    subjects = "entry|rivals|named|document|channel|conversation|note|action|workspace|transcript|job|grant|scrub"
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src" / "lukasa").rglob("*.py"))
    written = set(re.findall(rf'"((?:{subjects})\.[a-z]+)"', source)) | {"conversation.idle", "conversation.archived"}
    assert len(written) > 15
    assert sorted(action for action in written if f"`{action}`" not in API) == []


def test_the_figures_of_retrieval_are_the_ones_in_use() -> None:
    """R1, R6: weights, floor, prior, candidates and limits are told as the presets have them."""
    text = (DOCS / "explanation" / "retrieval.md").read_text("utf-8")
    spec = load_preset("default")
    retrieval = spec.retrieval
    (others,) = {load_preset(name).retrieval.candidates for name in preset_names() if name != "default"}
    told = [f"{weight:g} {signal}" for signal, weight in retrieval.weights.items()]
    told += [
        f"w = {retrieval.prior_weight:g}",
        f"({retrieval.candidates} in `default`, {others} in the other presets)",
        f"reach {POSTING_BUDGET:,};",
        f"floor is {ARCTIC.floor:g};",
    ]
    told += [f"| `{profile}` | {chosen.limit} |" for profile, chosen in spec.profiles.items()]
    flat = " ".join(text.split())
    assert [figure for figure in told if figure not in flat] == []


def test_the_readme_tells_what_was_measured() -> None:
    """Each figure of its tables stands in a row of the same name in the results, which a command writes."""
    measured = (ROOT / "README.md").read_text("utf-8").partition("## Measured")[2].partition("\n## ")[0]
    results: dict[str, set[str]] = {}
    for row, *figures in _cells((ROOT / "bench" / "RESULTS.md").read_text("utf-8")):
        results.setdefault(row, set()).update(figures)
    told = [(row, figure) for row, *figures in _cells(measured) for figure in figures if row and figure[:1].isdigit()]
    assert len(told) >= 10
    assert [figure for figure in told if figure[1] not in results.get(figure[0], ())] == []


def _cells(text: str) -> list[list[str]]:
    """The rows of all tables, each as its cells."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
