"""The submit boundary in the inbox: what an agent submits to the corpus, as a person decides about it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.house import House, Visit


def submitted(house: House, document: str) -> tuple[str, str, str]:
    """A document, and a change of it that an agent submits: the ids of the submission and of its two memories."""
    main = house.main
    main.save_document(document, "# Deploys\n\nRun make.\n\n## Staging\n\nThe port is 80.\n\n## Prod\n\nAsk Ada.\n")
    port = main.put("workspace", f"In {document}, the port of staging is 8443").id
    leave = main.put("workspace", f"The owner of {document} is on leave").id
    made = main.acting(agent="claude").submit(
        document,
        "The port is 8443.",
        memories=[port, leave],
        replaces="The port is 80.",
        derivable=[port],
        note="People ask for it every week.",
    )
    return made.id, port, leave


def test_a_submission_is_accepted_in_the_inbox(house: House, visit: Visit, shots: Path) -> None:
    """K5: the change by words, what it rests on, a choice of memories to retire; the entry's page undoes it."""
    main = house.main
    _, port, leave = submitted(house, "deploys")
    visit.go("inbox")
    card = visit.page.locator("li.card", has_text="Change of deploys")
    for said in ("People ask for it every week", "by claude", "canonical", "is on leave", "in place of"):
        expect(card).to_contain_text(said)
    expect(card.locator("del")).to_have_text("80.")
    expect(card.locator("ins")).to_have_text("8443.")
    boxes = card.get_by_label("retire it")
    assert [box.is_checked() for box in boxes.all()] == [True, False]
    visit.page.screenshot(path=shots / "inbox-submission.png", full_page=True)
    card.get_by_role("button", name="Accept", exact=True).click()
    expect(visit.page.locator(".toast")).to_contain_text("Accepted: document deploys, version 2")
    expect(card).to_have_count(0)
    assert "The port is 8443." in main.get_document("deploys").body
    assert [str(main.get(id).state) for id in (port, leave)] == ["archived", "active"]
    visit.go(f"entry/{port}")
    visit.says("its content is in document deploys, version 2")
    panel = visit.page.locator("section.panel", has_text="Submitted to the corpus")
    expect(panel).to_contain_text("deploys, version 2")
    expect(panel).to_contain_text("accepted")
    visit.page.screenshot(path=shots / "entry-submitted.png", full_page=True)
    panel.get_by_role("button", name="Take it back").click()
    expect(panel).to_contain_text("open")
    assert "The port is 80." in main.get_document("deploys").body
    assert str(main.get(port).state) == "active"


def test_a_submission_whose_document_has_changed_is_accepted_by_editing(
    house: House, visit: Visit, shots: Path
) -> None:
    """K5: the card shows what changed since, does not offer to accept, and an edit goes into the new version."""
    main = house.main
    submitted(house, "moves")
    main.save_document("moves", main.get_document("moves").body.replace("Ask Ada.", "Ask Bo."))
    visit.go("inbox")
    card = visit.page.locator("li.card", has_text="Change of moves")
    expect(card).to_contain_text("What has changed in the document since")
    expect(card.locator("details del")).to_have_text("Ada.")
    expect(card.get_by_role("button", name="Accept", exact=True)).to_be_disabled()
    visit.page.screenshot(path=shots / "inbox-submission-moved.png", full_page=True)
    card.get_by_role("button", name="Edit and accept").click()
    dialog = visit.page.get_by_role("dialog")
    expect(dialog).to_contain_text("It goes into version 2 of the document.")
    dialog.get_by_label("Text").fill("The port is 8443 since May.")
    dialog.get_by_role("button", name="Accept this").click()
    expect(visit.page.locator(".toast")).to_contain_text("Accepted: document moves, version 3")
    body = main.get_document("moves").body
    assert "8443 since May" in body
    assert "Ask Bo." in body


def test_a_submission_is_rejected_in_the_inbox(house: House, visit: Visit) -> None:
    """K5: the document and the memories stay as they are, and the submission is kept."""
    id, port, _ = submitted(house, "refusals")
    visit.go("inbox")
    card = visit.page.locator("li.card", has_text="Change of refusals")
    card.get_by_role("button", name="Reject").click()
    expect(card).to_have_count(0)
    assert house.main.get_submission(id).state == "rejected"
    assert house.main.get_document("refusals").version == 1
    assert str(house.main.get(port).state) == "active"
