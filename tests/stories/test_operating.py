"""What the operator of a server sees: whether it lives and is ready, its metrics, the ids of requests, and its log."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lukasa import Lukasa
from lukasa.model.errors import StoreBusy
from lukasa.model.grant import OWNERS_ALONE, Capability
from lukasa.model.job import JobDraft
from lukasa.service.metrics import BOUNDS, Histogram, Metrics, Numbers
from lukasa.storage.operations import Enqueue
from lukasa.surfaces.http.operating import Readiness
from lukasa.surfaces.http.problems import Problem
from lukasa.surfaces.http.serving import working
from tests.fakes import FakeEmbedder
from tests.helpers.cli import COMMAND, Shell
from tests.helpers.processes import until
from tests.helpers.server import Client, Running, running

ENTRIES = "/v1/workspaces/novel/entries"
READ = "/v1/workspaces/novel/read"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Running]:
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        memory.workspace("novel")
        with running(memory) as house:
            yield house


def parsed(text: str) -> Samples:
    """The samples of an exposition, by name and labels, as the library of Prometheus reads them."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(house: Running) -> Samples:
    answer = house.granted("metrics", name="prometheus").get("/metrics")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return parsed(answer.body.decode())


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


# Health


def test_a_server_that_runs_lives_and_is_ready(house: Running) -> None:
    """U4: a load balancer asks without a credential, and learns nothing but the answer."""
    assert house.stranger().get("/live").json["status"] == "ok"
    ready = house.stranger().get("/ready")
    assert (ready.status, set(ready.json)) == (200, {"status", "version"})
    assert house.stranger().get("/ready", host="evil.com").status == 421


def test_a_server_without_its_database_lives_and_is_not_ready(house: Running) -> None:
    """U4: the answer says in words that it is the database, and names neither folder nor host."""
    house.memory.account.close()
    assert house.stranger().get("/live").status == 200
    answer = house.stranger().get("/ready")
    assert (answer.status, answer.json["type"], answer.json["part"]) == (503, "not-ready", "database")
    assert answer.json["detail"] == "the database answers with an error: store-error"
    assert str(house.memory.settings.data) not in answer.body.decode()


class StuckStore:
    """A store whose database does not answer until it is let go."""

    def __init__(self) -> None:
        self.asked = 0
        self.go = threading.Event()

    def head(self) -> tuple[int, str]:
        self.asked += 1
        assert self.go.wait(30)
        return 0, ""


def test_a_database_that_hangs_is_not_asked_again_and_again() -> None:
    """U4: each question is answered in bounded time; all wait for one thread, and the server recovers by itself."""
    store: Any = StuckStore()
    readiness = Readiness(store, patience=0.01)

    async def ask() -> None:
        for _ in range(20):
            with pytest.raises(Problem, match=r"has not answered for 0\.01 seconds"):
                await readiness.check()
        assert (store.asked, readiness.asking) == (1, True)
        store.go.set()
        while readiness.asking:
            await asyncio.sleep(0)
        await readiness.check()

    asyncio.run(ask())
    readiness.close()
    assert store.asked == 2


# Metrics


def test_metrics_need_a_capability_of_their_own(house: Running) -> None:
    """X4: no other capability opens them, they open nothing else, and the owner has them."""
    others = [one for one in Capability if one not in OWNERS_ALONE and one != "metrics"]
    assert house.stranger().get("/metrics").status == 401
    assert house.granted(*others, name="others").get("/metrics").status == 403
    scraper = house.granted("metrics", name="scraper")
    assert scraper.get("/metrics").status == 200
    assert scraper.get(ENTRIES).status == 403
    assert scraper.post(READ, {"query": "villain"}).status == 403
    assert house.owner().get("/metrics").status == 200


def test_requests_are_counted_by_route(house: Running) -> None:
    """U4: by template, method and status, whatever the path held; each is timed once."""
    client = house.granted("read", "write")
    made = client.post(ENTRIES, {"content": "The villain is called Malachar"}).json
    for _ in range(2):
        assert client.get(f"{ENTRIES}/{made['id']}").status == 200
    assert client.get("/v1/workspaces/secret-plans/entries").status == 404
    assert client.get("/nowhere/secret-plans").status == 404
    found = scraped(house)
    entries, entry = (f"/v1/workspaces/{{workspace}}/entries{rest}" for rest in ("", "/{id}"))
    count = "lukasa_http_requests_total"
    assert value(found, count, route=entries, method="POST", status="201") == 1
    assert value(found, count, route=entry, method="GET", status="200") == 2
    assert value(found, count, route=entries, method="GET", status="404") == 1
    assert value(found, count, route="(none)", method="GET", status="404") == 1
    seconds = "lukasa_http_request_duration_seconds"
    assert value(found, f"{seconds}_count", route=entry, method="GET") == 2
    assert value(found, f"{seconds}_bucket", route=entry, method="GET", le="+Inf") == 2
    assert (value(found, f"{seconds}_sum", route=entry, method="GET") or 0) > 0
    assert value(found, "lukasa_http_requests_in_progress") == 1


def test_memory_operations_are_counted_by_outcome(house: Running) -> None:
    """U4: a put through HTTP, one through the library and one that is refused are three of one operation."""
    house.granted("write").post(ENTRIES, {"content": "The villain is called Malachar"})
    world = house.memory.existing("novel")
    world.put("workspace", "The harbour freezes in January")
    with pytest.raises(ValueError, match="NUL"):
        world.put("workspace", "a\0b")
    found = scraped(house)
    count = "lukasa_memory_operations_total"
    assert value(found, count, operation="memory.put", outcome="ok") == 2
    assert value(found, count, operation="memory.put", outcome="invalid-content") == 1
    assert value(found, "lukasa_memory_operation_duration_seconds_count", operation="memory.put") == 3


def test_jobs_are_counted_over_all_workspaces(house: Running) -> None:
    """U4: the depth of the queue is the account's; a series for each workspace would never end."""
    for name, count in (("novel", 2), ("diary", 3)):
        ctx = house.memory.workspace(name).ctx
        ctx.apply(ctx.local, *(Enqueue(JobDraft("unknown", f"unknown:{n}")) for n in range(count)))
    found = scraped(house)
    assert value(found, "lukasa_jobs", state="queued") == 5
    assert value(found, "lukasa_jobs", state="dead") == 0


def test_runs_of_the_worker_beside_the_server_are_counted(house: Running) -> None:
    """U4: by kind and outcome."""
    ctx = house.memory.existing("novel").ctx
    ctx.apply(ctx.local, Enqueue(JobDraft("tidy", "tidy:now")))
    with working(house.memory, house.server, lambda said: None):
        until(lambda: value(scraped(house), "lukasa_job_runs_total", kind="tidy", outcome="done") == 1)
    assert value(scraped(house), "lukasa_job_run_duration_seconds_count", kind="tidy") == 1


def test_errors_of_the_database_are_counted_once(house: Running) -> None:
    """U4: by class, although the verb and the request both see the error."""
    house.memory.existing("novel").ctx.local.close()
    assert house.granted("read").post(READ, {"query": "villain"}).status == 500
    assert value(scraped(house), "lukasa_store_errors_total", error="store-error") == 1


def test_metrics_answer_when_the_database_does_not() -> None:
    """U4: the numbers of this process are there, and those that the database would have told are left out."""
    metrics = Metrics("1.2.3")
    metrics.failed(StoreBusy("locked"))
    found = parsed(metrics.text(None))
    assert value(found, "lukasa_store_errors_total", error="store-busy") == 1
    assert not [name for name, _ in found if name == "lukasa_jobs"]


def test_metrics_hold_no_names_and_no_words(house: Running) -> None:
    """T61: neither what is remembered or asked, nor an id, a workspace or a grant."""
    client = house.granted("read", "write", name="zanzibar")
    made = client.post(ENTRIES, {"content": "The villain is called Malachar"}).json
    client.post(READ, {"query": "Malachar"})
    client.get(f"{ENTRIES}/{made['id']}")
    client.ask("MALACHAR", ENTRIES)
    told = house.granted("metrics", name="prometheus").get("/metrics").body.decode().lower()
    world = house.memory.existing("novel")
    assert [word for word in ("malachar", "zanzibar", "novel", made["id"], world.id) if word in told] == []


def test_every_label_survives_the_format() -> None:
    """U4: quotes, backslashes and line breaks come back from the parser of Prometheus as they were."""
    numbers = Numbers("odd_total", 'What is "odd"\nand \\ more', "label")
    texts = ['"', "\\", "\n", 'a"b\\n\n', "", "ü€"]
    for count, text in enumerate(texts, 1):
        numbers.add(text, by=count)
    lines = ["# HELP odd_total x", "# TYPE odd_total counter", *numbers.samples()]
    found = parsed("\n".join(lines) + "\n")
    assert [value(found, "odd_total", label=text) for text in texts] == [1, 2, 3, 4, 5, 6]


def test_buckets_hold_what_is_at_most_their_bound() -> None:
    """U4: a duration on a bound belongs to it, and each bucket counts those before it."""
    histogram = Histogram("x_seconds", "x", "label")
    for seconds in (0.005, 0.006, 0.1, 11.0):
        histogram.observe(seconds, "a")
    found = parsed("\n".join(["# TYPE x_seconds histogram", *histogram.samples()]) + "\n")
    buckets = {le: value(found, "x_seconds_bucket", label="a", le=le) for le in ("0.005", "0.01", "0.1", "10", "+Inf")}
    assert buckets == {"0.005": 1, "0.01": 2, "0.1": 3, "10": 3, "+Inf": 4}
    assert value(found, "x_seconds_sum", label="a") == pytest.approx(11.111)
    assert list(BOUNDS) == sorted(BOUNDS)


def test_every_family_says_what_it_is(house: Running) -> None:
    """U4: a help text and a type that fits the name, for the tools that show them; and the version that runs."""
    text = house.granted("metrics", name="prometheus").get("/metrics").body.decode()
    families = list(text_string_to_metric_families(text))
    assert all(family.documentation.endswith(".") or ";" in family.documentation for family in families)
    assert {family.type for family in families} == {"counter", "gauge", "histogram"}
    (build,) = (family for family in families if family.name == "lukasa_build_info")
    assert build.samples[0].labels["version"] == house.stranger().get("/live").json["version"]


# Ids of requests


def test_a_request_keeps_the_id_that_it_came_with(house: Running) -> None:
    """U4: the id of a proxy is in the answer, so that its log and ours are about one request."""
    assert house.stranger().get("/live", x_request_id="proxy-7.a_B").headers["x-request-id"] == "proxy-7.a_B"


@pytest.mark.parametrize("given", ["", "a b", "a" * 65, "-a", "a;b", "ü", "a=b"])
def test_an_id_that_does_not_belong_in_a_log_is_replaced(house: Running, given: str) -> None:
    """T61: what would break a line or be long gets an id of the server's own, as a request without one does."""
    made = house.stranger().get("/live", x_request_id=given).headers["x-request-id"]
    assert made != given
    assert made != house.stranger().get("/live").headers["x-request-id"]


def test_a_problem_names_its_request(house: Running) -> None:
    """U4: wherever the request was refused: by the guard, without a credential, by a verb, or at MCP."""
    for answer in (
        house.stranger().get("/live", host="evil.com"),
        house.stranger().get(ENTRIES),
        house.granted("read").get(f"{ENTRIES}/nonsense"),
        house.granted("read").get("/nowhere"),
        house.stranger().post("/mcp/", {}),
    ):
        assert answer.status >= 400
        assert answer.json["request_id"] == answer.headers["x-request-id"]


class Breaking(FakeEmbedder):
    """Fails at questions in a way that nobody foresaw, with a message that quotes."""

    def embed_query(self, text: str) -> Any:
        raise ZeroDivisionError("the password is hunter2")


def test_a_crash_is_found_by_its_request_and_quotes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """T61: the client gets the id, the log has the id with the frames, and neither has the message."""
    with Lukasa.open(tmp_path, embedder=Breaking()) as memory:
        memory.workspace("novel").put("workspace", "The villain is called Malachar")
        with running(memory) as house:
            answer = house.granted("read").post(READ, {"query": "Malachar"}, x_request_id="proxy-8")
            assert house.granted("read").get(ENTRIES).status == 200
    assert (answer.status, answer.json["type"], answer.json["request_id"]) == (500, "unexpected", "proxy-8")
    logged = capsys.readouterr().err
    place = "method=POST route=/v1/workspaces/{workspace}/read"
    assert logged.splitlines()[0] == f"lukasa serve: unexpected ZeroDivisionError request_id=proxy-8 {place}"
    assert "in embed_query" in logged
    told = logged + answer.body.decode()
    assert [word for word in ("hunter2", "Malachar") if word in told] == []


def test_a_crash_in_a_tool_is_found_by_its_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """U3, U4: MCP answers with a result, and the line on stderr has the id of the request that the header names."""
    call = {"name": "memory_read", "arguments": {"query": "Malachar", "workspace": "novel"}}
    with Lukasa.open(tmp_path, embedder=Breaking()) as memory:
        memory.workspace("novel").put("workspace", "The villain is called Malachar")
        with running(memory) as house:
            answer = house.granted("read").post(
                "/mcp/",
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
                accept="application/json, text/event-stream",
                x_request_id="proxy-9",
            )
    assert (answer.status, answer.headers["x-request-id"]) == (200, "proxy-9")
    assert answer.json["result"]["isError"]
    assert "ZeroDivisionError at test_operating.py" in (said := capsys.readouterr().err)
    assert said.rstrip().endswith("request_id=proxy-9")


# The log


@contextmanager
def served(shell: Shell, *args: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--no-open", "--no-worker", *args],
        env=shell.environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline().split(":")[2].partition("/")[0])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def logged(shell: Shell, *args: str, **env: str) -> tuple[list[str], str]:
    """What a server logs of three requests, and the token of their client."""
    with served(shell, *args, **env) as (process, port):
        token = shell.json("grant", "create", "claude", "--can", "read,write")["token"]
        client = Client(port, {"authorization": f"Bearer {token}"})
        path = "/v1/workspaces/main/entries"
        assert client.post(path, {"content": "Malachar"}, x_request_id="first").status == 201
        assert client.get(f"{path}?q=Malachar", x_request_id="second").status == 200
        assert Client(port).get("/Malachar", x_request_id="third").status == 401
        process.send_signal(signal.SIGTERM)
        lines = process.communicate(timeout=10)[1].splitlines()
        assert process.returncode == 0
    return lines, token


ROUTE = "/v1/workspaces/{workspace}/entries"


def test_the_log_is_one_json_document_for_each_request(tmp_path: Path) -> None:
    """U4, T61: id, method, route, status and duration; no query, no token, no word of a memory."""
    lines, token = logged(Shell(tmp_path), "--log", "json")
    told = [json.loads(line) for line in lines]
    assert [(one["request_id"], one["method"], one["route"], one["status"]) for one in told] == [
        ("first", "POST", ROUTE, 201),
        ("second", "GET", ROUTE, 200),
        ("third", "GET", "(none)", 401),
    ]
    keys = {"at", "level", "event", "request_id", "method", "route", "status", "duration_ms"}
    assert all(set(one) == keys for one in told)
    assert [word for word in ("Malachar", "main", token) if word in "\n".join(lines)] == []


def test_the_log_as_text_by_the_environment(tmp_path: Path) -> None:
    """U4: the same for people, and set where a service manager sets things."""
    lines, token = logged(Shell(tmp_path), LUKASA_LOG="text")
    parts = [line.split() for line in lines]
    assert [" ".join(part[1:-1]) for part in parts] == [
        f"request request_id=first method=POST route={ROUTE} status=201",
        f"request request_id=second method=GET route={ROUTE} status=200",
        "request request_id=third method=GET route=(none) status=401",
    ]
    assert token not in "\n".join(lines)


def test_a_server_is_quiet_unless_told_otherwise(tmp_path: Path) -> None:
    """U4: no log of requests is kept by default."""
    assert logged(Shell(tmp_path))[0] == []
