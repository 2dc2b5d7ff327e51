"""What is remembered is shown as text. It runs nothing, opens nothing and asks nothing of anybody."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.full import furnish
from tests.browser.house import House, Visit

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "\"'><b onclick=alert(1)>x",
    "javascript:alert(1)",
    "[x](javascript:alert(1))",
    "![x](http://evil.example/a.png)",
    "</textarea><iframe src=//evil.example>",
    "${alert(1)} {{alert(1)}}",
    "<style>@import 'http://evil.example'</style>",
    "<base href=http://evil.example><form action=http://evil.example><button>x</button></form>",
    "data:text/html,<script>alert(1)</script>",
    "<link rel=stylesheet href=http://evil.example/x.css><meta http-equiv=refresh content='0;url=http://evil.example'>",
    "[x](data:text/html;base64,PHNjcmlwdD4=) <object data=http://evil.example> <embed src=http://evil.example>",
]

# Everything on the page that could run, load or lead somewhere it should not.
SCAN = """() => {
  const found = [];
  const own = new Set(["/assets/js/app.js"]);
  for (const node of document.querySelectorAll("*")) {
    const tag = node.localName;
    if (["iframe", "object", "embed", "base", "style"].includes(tag)) found.push(tag);
    if (tag === "script" && !own.has(node.getAttribute("src"))) found.push("script");
    if (tag === "meta" && node.httpEquiv) found.push("meta " + node.httpEquiv);
    for (const { name, value } of node.attributes) {
      if (name.startsWith("on")) found.push(`${tag} ${name}`);
      if (name === "style" && !/^--part: [\\d.]+%;$/.test(value)) found.push(`${tag} ${value}`);
      if (["srcdoc", "formaction", "action"].includes(name)) found.push(`${tag} ${name}`);
      if (["href", "src", "xlink:href", "data"].includes(name)) {
        const exported = /^\\/v1\\/(workspaces\\/[\\w%-]+\\/)?export$/.test(value);
        const download = tag === "a" && node.hasAttribute("download") && exported;
        const ours = value.startsWith("#") || value.startsWith("/assets/") || download;
        const outside = tag === "a" && node.closest(".prose") && /^https?:/.test(value);
        if (!ours && !outside) found.push(`${tag} ${name}=${value}`);
      }
    }
  }
  return found;
}"""


@pytest.fixture(scope="module")
def views(house: House) -> list[str]:
    return furnish(house.memory, "main", PAYLOADS)


def test_a_payload_in_any_field_stays_text(visit: Visit, views: list[str]) -> None:
    """T55: in content, tag, source, owner, reason, name, note, quote, job, error, telemetry, proposal and grant."""
    for view in views:
        name, _, query = view.partition("?q=")
        visit.go(name, **({"q": query} if query else {}))
        visit.page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
        visit.settled()
        assert (view, visit.page.evaluate(SCAN)) == (view, [])
    assert visit.complaints == []


def test_payloads_are_seen_as_they_are(house: House, visit: Visit, views: list[str]) -> None:
    """T55: shown, not swallowed: what an attacker wrote is what the reader sees."""
    visit.go("browse", tier="workspace")
    for payload in (PAYLOADS[0], PAYLOADS[4], PAYLOADS[9]):
        expect(visit.main().get_by_text(payload).first).to_be_visible()
    visit.go("context")
    visit.page.get_by_label("The prompt").fill("number alert script")
    visit.press("Show the context")
    visit.says("<script>alert(1)</script>")
    assert visit.page.evaluate(SCAN) == []


def test_a_payload_in_an_answer_of_the_server_stays_text(house: House, visit: Visit) -> None:
    """T55: also in what the server says went wrong, and in what a search repeats."""
    problem = {"type": PAYLOADS[1], "title": PAYLOADS[0], "status": 422, "detail": PAYLOADS[2], "fix": PAYLOADS[3]}
    visit.page.route("**/v1/workspaces/main/review*", lambda route: route.fulfill(status=422, json=problem))
    visit.go("inbox")
    visit.says(PAYLOADS[2])
    assert visit.page.evaluate(SCAN) == []
    visit.go("browse", q=PAYLOADS[0], tag=PAYLOADS[1])
    assert visit.page.evaluate(SCAN) == []
    visit.complaints[:] = [said for said in visit.complaints if "422" not in said]


def test_hostile_drawings_and_markup_are_built_anew(visit: Visit) -> None:
    """T55: even if the server's own chart or preview were poisoned, the page takes only what it knows."""
    bad = "<script>alert(1)</script><image href='http://evil.example/a.png'/><a href='javascript:alert(1)'>x</a>"
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'>{bad}<text onclick='alert(1)'>ok</text></svg>"
    html = f"<p onclick=alert(1)>fine</p>{bad}<a href='javascript:alert(1)'>y</a><img src=//evil.example/b.png>"
    visit.page.route("**/charts/growth*", lambda route: route.fulfill(json={"svg": svg}))
    visit.page.route("**/v1/markdown", lambda route: route.fulfill(json={"html": html}))
    visit.go("overview")
    expect(visit.page.locator("svg.chart, svg").first).to_be_attached()
    assert visit.page.evaluate(SCAN) == []
    visit.go("pages/VOICE")
    visit.says("fine")
    assert visit.page.evaluate(SCAN) == []
    visit.complaints[:] = [said for said in visit.complaints if "violates the following Content Security" not in said]


def test_the_page_has_a_policy_that_holds(house: House, visit: Visit) -> None:
    """T55: the browser itself refuses inline script and anything from elsewhere, should all else fail."""
    answers: list[Any] = []
    visit.page.on("response", lambda answer: answers.append(answer))
    visit.go("overview")
    policy = next(a for a in answers if a.url.rstrip("/") == house.url).headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "img-src 'self'" in policy
    assert "unsafe" not in policy
    ran = visit.page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.body.append(script);
      script.remove();
      return window.ran === true;
    }""")
    assert ran is False
    visit.complaints[:] = [said for said in visit.complaints if "Content Security Policy" not in said]
