"""A new user's first five minutes, from a wheel in an empty home, with the time that each step takes.

    python -m tools.fresh_user [PICTURE.png]

It builds the wheel, installs it into an empty environment (the only step that downloads), connects Claude Code, plays a
session through the hooks that were written, as Claude Code would, and shows that the next session and the page know
what was said. Nothing is edited by hand. With Chromium it looks at the page as a person does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
FACT = "Deploys of the ferry timetable go through the harbour-2 runner, because harbour-1 has no fonts."
SAID = f"{FACT} Please remember that, and fix the failing deploy."
MOST_SECONDS = 60.0  # of the machine, beyond downloads
PATIENCE = 60.0


class Journey:
    """An empty home, and what was done in it so far."""

    def __init__(self, home: Path) -> None:
        self.home, self.steps = home, list[tuple[str, float]]()
        self.project = home / "ferries"
        self.project.mkdir(parents=True)
        self.bin = home / "venv" / "bin"
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PIP_INDEX_URL")}
        self.env = {**kept, "HOME": str(home), "PATH": f"{self.bin}:{kept['PATH']}", "LUKASA_EMBEDDER": "auto"}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.steps.append((name, time.monotonic() - began))

    def run(self, *command: str, given: str | None = None, cwd: Path | None = None) -> str:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, env=self.env, cwd=cwd or self.project, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with code {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def hook(self, event: str, session: str, **more: Any) -> str:
        """Call the hook that Claude Code's settings name for an event, and return what it adds to the context."""
        settings = json.loads((self.home / ".claude" / "settings.json").read_text("utf-8"))
        (command,) = (hook["command"] for group in settings["hooks"][event] for hook in group["hooks"])
        given = {"session_id": session, "cwd": str(self.project), "hook_event_name": event, **more}
        said = self.run("sh", "-c", command, given=json.dumps({**given, "permission_mode": "default"}), cwd=Path("/"))
        return str(json.loads(said)["hookSpecificOutput"]["additionalContext"]) if said.strip() else ""


def transcript(journey: Journey, session: str) -> str:
    """Write the session's transcript as Claude Code does, and return its path."""
    folder = journey.home / ".claude" / "projects" / "-ferries"
    folder.mkdir(parents=True, exist_ok=True)
    common = {"sessionId": session, "cwd": str(journey.project), "version": "2.1.0", "isSidechain": False}
    answer = [{"type": "text", "text": "I moved the deploy to harbour-2, and it passes."}]
    lines = [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": SAID}},
        {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "message": {"role": "assistant", "content": answer}},
    ]
    path = folder / f"{session}.jsonl"
    stamped = [{**common, "timestamp": f"2026-11-15T10:0{n}:00.000Z", **line} for n, line in enumerate(lines)]
    path.write_text("".join(json.dumps(line) + "\n" for line in stamped), "utf-8")
    return str(path)


def play(journey: Journey) -> str:
    """Play one session and the start of the next; return what the next is told."""
    with journey.step("a session"):
        path = transcript(journey, "first")
        journey.hook("SessionStart", "first", source="startup", transcript_path=path, model="claude-x")
        journey.hook("UserPromptSubmit", "first", prompt=SAID, transcript_path=path)
        journey.hook("Stop", "first", stop_hook_active=False, transcript_path=path)
        journey.hook("SessionEnd", "first", reason="prompt_input_exit", transcript_path=path)
    with journey.step("its observation in the background"):
        observed(journey)
    with journey.step("the next session"):
        return journey.hook("SessionStart", "second", source="startup", model="claude-x")


def observed(journey: Journey) -> None:
    """Wait for the worker that the hook started."""
    workspace = journey.run("lukasa", "hook", "workspace").strip()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        jobs = json.loads(journey.run("lukasa", "-w", workspace, "jobs", "--json"))["jobs"]
        if jobs and all(job["state"] not in ("queued", "running") for job in jobs):
            return
        time.sleep(0.2)
    raise SystemExit(f"the session was not observed within {PATIENCE:.0f} seconds")


def look(journey: Journey, picture: Path | None) -> str:
    """Return the text of the page that `lukasa serve` opens."""
    command = ["lukasa", "serve", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=journey.env, cwd=journey.project) as server:
        assert server.stdout is not None
        try:
            link = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+#enter=\S+", line)))
            return _text(link, picture)
        finally:
            server.terminate()


def _text(link: str, picture: Path | None) -> str:
    browser = os.environ.get("LUKASA_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--headless"])
        page = launched.new_page(viewport={"width": 1440, "height": 900})
        page.goto(link)
        page.get_by_text("harbour-2").first.wait_for(timeout=PATIENCE * 1000)
        if picture is not None:
            page.screenshot(path=str(picture))
        text = page.inner_text("body")
        launched.close()
    return text


def main() -> None:
    picture = Path(sys.argv[1]).resolve() if sys.argv[1:] else None
    with tempfile.TemporaryDirectory() as folder:
        journey = Journey(Path(folder) / "home")
        wheels = Path(folder) / "wheels"
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(ROOT)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        (wheel,) = wheels.glob("lukasa-*.whl")
        with journey.step("download and install (not counted)"):
            journey.run(sys.executable, "-m", "venv", str(journey.home / "venv"))
            journey.run("pip", "install", "-q", f"{wheel}[server]")
        with journey.step("connect Claude Code"):
            journey.run("lukasa", "install", "claude-code", "--yes")
        told = play(journey)
        with journey.step("the page"):
            shown = look(journey, picture)
        for name, seconds in journey.steps:
            print(f"{seconds:7.1f} s  {name}")
        counted = sum(seconds for name, seconds in journey.steps if "not counted" not in name)
        print(f"{counted:7.1f} s  together")
        for what, text in (("the next session's context", told), ("the page", shown)):
            if "harbour-2" not in text:
                raise SystemExit(f"{what} does not hold the fact")
            print(f"{what} holds: {FACT}")
        if counted > MOST_SECONDS:
            raise SystemExit(f"that took longer than {MOST_SECONDS:.0f} seconds")


if __name__ == "__main__":
    main()
