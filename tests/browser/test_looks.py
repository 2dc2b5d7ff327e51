"""How the page looks and is reached: names, headings, contrast, width, keyboard. Screenshots are kept as output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.full import furnish
from tests.browser.house import DESK, PHONE, House, Visit, visiting

TEXTS = [
    "Ada decides about releases on Mondays",
    "The deploy command is make ship, run from the root",
    "Bo prefers short answers without preamble",
    "The staging database is called lantern and lives in Stockholm, next to the old brewery by the water",
    "AWordThatIsSoLongThatItCannotBeBrokenAnywhereByAnybodyWhoWouldWantToReadItOnATelephoneInTheStreet",
    "Meetings with the Oslo team are held in English",
]

NAMELESS = """() => [...document.querySelectorAll("button, input, select, textarea, a[href], summary, [role=img]")]
  .filter((node) => node.checkVisibility())
  .filter((node) => !(node.getAttribute("aria-label") || [...(node.labels ?? [])].map((l) => l.textContent).join("")
    || (["BUTTON", "A", "SUMMARY"].includes(node.tagName) && node.textContent)).trim?.())
  .map((node) => node.outerHTML.slice(0, 120))"""

HEADINGS = """() => {
  const levels = [...document.querySelectorAll("main :is(h1, h2, h3, h4, h5, h6)")].map((n) => Number(n.tagName[1]));
  const faults = levels.filter((level) => level === 1).length === 1 ? [] : ["not one h1"];
  levels.forEach((level, i) => { if (i && level > levels[i - 1] + 1) faults.push(`h${levels[i - 1]} to h${level}`); });
  return faults;
}"""

# The contrast of every text that can be seen with what is behind it, by the formula of WCAG 2.
CONTRAST = """() => {
  const numbers = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(node).backgroundColor);
      if (a > 0.99) return [r, g, b];
    }
    return numbers(getComputedStyle(document.body).backgroundColor);
  };
  const weak = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = walk.nextNode()); ) {
    const node = text.parentElement;
    if (!text.data.trim() || !node.checkVisibility() || node.closest(".skip, .away, option, noscript")) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(numbers(node.closest("svg") ? style.fill : style.color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.add(`${node.outerHTML.slice(0, 80)}: ${ratio.toFixed(2)}`);
  }
  return [...weak];
}"""

WIDE = "() => Math.max(0, document.scrollingElement.scrollWidth - innerWidth)"


@pytest.fixture(scope="module")
def views(house: House) -> list[str]:
    return furnish(house.memory, "main", TEXTS)


@pytest.mark.parametrize("mode", ["light", "dark", "phone"])
def test_every_view_can_be_read(house: House, views: list[str], shots: Path, mode: str) -> None:
    """U5: every control has a name, headings are in order, text stands out from its ground, and nothing sticks out."""
    scheme, size = ("dark" if mode == "dark" else "light"), (PHONE if mode == "phone" else DESK)
    faults = []
    with visiting(house, size=size, color_scheme=scheme) as visit:
        for view in views:
            name, _, query = view.partition("?q=")
            visit.go(name, **({"q": query} if query else {}))
            found = {what: visit.page.evaluate(script) for what, script in _CHECKS.items()}
            faults += [(view, what, fault) for what, fault in found.items() if fault]
            file = name.partition("/")[0] + ("-one" if "/" in name else "") + ("-search" if query else "")
            visit.page.screenshot(path=shots / f"{file}-{mode}.png", full_page=True)
    assert faults == []


_CHECKS = {"name": NAMELESS, "headings": HEADINGS, "contrast": CONTRAST, "width": WIDE}


def test_signed_out_can_be_read_too(house: House, shots: Path) -> None:
    """U5: the same holds for who has no link yet."""
    for scheme in ("light", "dark"):
        with visiting(house, signed_in=False, calm=False, size=PHONE, color_scheme=scheme) as visit:
            visit.page.goto(house.url)
            expect(visit.heading("This page needs a link")).to_be_visible()
            found = {what: visit.page.evaluate(script) for what, script in _CHECKS.items()}
            visit.page.screenshot(path=shots / f"signed-out-{scheme}.png", full_page=True)
            assert not any(found.values()), found


def test_the_keyboard_reaches_everything(visit: Visit) -> None:
    """U5: a link past the navigation comes first, focus can be seen, and every view is a press of Enter away."""
    visit.go("home")
    keys = visit.page.keyboard
    visit.page.evaluate("document.activeElement.blur()")
    visit.page.locator("body").evaluate(
        "node => { node.tabIndex = -1; node.focus(); node.removeAttribute('tabindex'); }"
    )
    keys.press("Tab")
    skip = visit.page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    keys.press("Enter")
    expect(visit.page.locator("main")).to_be_focused()
    link = visit.page.get_by_role("link", name="Activity", exact=True)
    link.focus()
    visit.page.evaluate("dispatchEvent(new HashChangeEvent('hashchange'))")  # as late as it may come
    expect(link).to_be_focused()
    assert visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    keys.press("Enter")
    expect(visit.heading("Activity").first).to_be_visible()


def test_a_dialog_keeps_the_focus_and_gives_it_back(house: House, visit: Visit) -> None:
    """U5: Tab stays inside, Escape closes it and leads back to the button that opened it."""
    visit.go("access")
    opener = visit.button("New grant")
    opener.focus()
    visit.page.keyboard.press("Enter")
    dialog = visit.page.get_by_role("dialog", name="New grant")
    expect(dialog).to_be_visible()
    for _ in range(40):
        visit.page.keyboard.press("Tab")
        inside = "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        assert visit.page.evaluate(inside)
    visit.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()


def test_a_phone_has_a_menu(house: House) -> None:
    """U5: folded away at 375 pixels, and back with a press."""
    with visiting(house, size=PHONE) as visit:
        visit.go("home")
        link = visit.page.get_by_role("link", name="Activity")
        expect(link).to_be_hidden()
        visit.press("Menu")
        expect(visit.button("Menu")).to_have_attribute("aria-expanded", "true")
        link.click()
        expect(visit.heading("Activity")).to_be_visible()
        expect(link).to_be_hidden()


def test_a_scheme_can_be_chosen_and_motion_left_out(house: House) -> None:
    """U5: dark or light against the system's own, kept for the next time; nothing moves for who wants none of it."""
    with visiting(house, color_scheme="light", reduced_motion="reduce") as visit:
        visit.go("access")
        ground = "getComputedStyle(document.body).backgroundColor"
        before = visit.page.evaluate(ground)
        visit.page.get_by_label("Colour scheme").select_option("dark")
        after = visit.page.evaluate(ground)
        assert before != after
        visit.go("access")
        assert visit.page.evaluate(ground) == after
        visit.press("New grant")
        assert visit.page.locator("dialog").evaluate("node => getComputedStyle(node).animationName") == "none"


def test_times_say_how_long_ago_and_exactly_when(house: House, visit: Visit, views: list[str]) -> None:
    """U5: relative in the text, absolute in the title and for machines."""
    visit.go(next(view for view in views if view.startswith("entry/")))
    moment = visit.page.locator("time").first
    expect(moment).to_have_text(re.compile("just now|ago"))
    assert moment.get_attribute("title")
    assert (moment.get_attribute("datetime") or "").startswith("20")
