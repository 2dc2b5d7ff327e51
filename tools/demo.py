"""A memory to show: the project of an invented team over two months, the same each time that it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from lukasa import Lukasa, Workspace
from lukasa.model.transcript import Quote, Role, Transcript, Utterance
from lukasa.service.entries.put import Memo
from lukasa.storage.operations import KeepUtterances, SaveTranscript

NOW = datetime(2026, 5, 22, 16, 40, tzinfo=UTC)
NAME = "payments-api"


@dataclass
class Clock:
    """A clock that stands where it is put."""

    time: datetime = field(default=NOW)

    def now(self) -> datetime:
        return self.time


# A session: days before now, the agent, its first line, and what it taught. Each lesson is what the user said, and the
# memory that was made of it; "!" before a memory makes it a rule, "@" one that holds in every project.
SESSIONS: tuple[tuple[int, str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        57,
        "claude-code",
        "Set up the repository for the new payments service",
        (
            ("we use uv here, please never pip install directly", "!Use uv, never pip install directly"),
            ("python 3.12, and ruff does the formatting", "The payments service runs on Python 3.12"),
            (
                "branches are mia/<ticket>, PRs go against develop",
                "!Work on a branch mia/<ticket>, pull request against develop",
            ),
            ("CI is Buildkite, not GitHub Actions", "Continuous integration runs on Buildkite"),
        ),
    ),
    (
        54,
        "claude-code",
        "Write the schema for accounts and balances",
        (
            (
                "right, money columns are NUMERIC(18,4), see ADR-0012",
                "Money columns are NUMERIC(18,4); floats are forbidden for amounts",
            ),
            ("Tomás owns the ledger schema, ask him before you add a column", "Tomás owns the ledger schema"),
            ("every table gets created_at and a tenant", "Every ledger table has created_at and tenant_id"),
            (
                "balances are derived, nobody writes them",
                "Ledger balances are derived from postings and never written directly",
            ),
        ),
    ),
    (
        50,
        "cursor",
        "Why does the invoice total differ by one cent?",
        (
            (
                "bankers rounding, half to even, on the line and not on the sum",
                "Invoice lines are rounded half to even, before they are summed",
            ),
            (
                "Marta from contracts told us Nokia wants net 45",
                "Marta says that Nokia's invoices are due in 45 days net",
            ),
            ("the PDF renderer is WeasyPrint", "Invoice PDFs are rendered with WeasyPrint"),
        ),
    ),
    (
        47,
        "claude-code",
        "Make the test suite fast again",
        (
            (
                "pytest -n 4, and the database fixtures are per worker",
                "Tests run with pytest -n 4; database fixtures are per worker",
            ),
            (
                "don't mock the bank, there is a sandbox container",
                "!Do not mock the bank in tests: start the sandbox container",
            ),
            (
                "the sandbox takes ten seconds to start",
                "The bank sandbox container takes ten seconds to start in tests",
            ),
        ),
    ),
    (
        44,
        "claude-code",
        "Deploy pipeline for staging",
        (
            ("deploys are every weekday at 11 UTC", "The deploy window is every weekday at 11:00 UTC"),
            ("make ship from the root, nothing else", "The deploy command is make ship, run from the root"),
            ("the staging cluster is called lantern", "The staging cluster is called lantern"),
            (
                "rollback is make unship, it takes two minutes",
                "A deploy is rolled back with make unship in two minutes",
            ),
        ),
    ),
    (
        40,
        "codex",
        "Add retries to the settlement worker",
        (
            (
                "Jonas wrote settlement, he knows why the retries are capped at five",
                "Jonas wrote the settlement worker and capped its retries at five",
            ),
            (
                "settlement runs at 23:00 and takes up to two hours",
                "The nightly settlement run starts at 23:00 and takes up to two hours",
            ),
            ("the nightly settlement run would be lost", "!Never restart ledger-worker between 23:00 and 01:00"),
        ),
    ),
    (
        37,
        "cursor",
        "Checkout form accessibility",
        (
            ("Priya does the checkout UI in Svelte", "Priya builds the checkout UI in Svelte"),
            ("all labels come from i18n/en.json", "Checkout labels come from i18n/en.json"),
            ("the card field is an iframe by Adyen", "The card field of the checkout is an iframe by Adyen"),
        ),
    ),
    (
        33,
        "claude-code",
        "Webhook signatures fail in production",
        (
            (
                "Adyen signs with HMAC-SHA256 and the raw body",
                "Adyen webhooks are signed with HMAC-SHA256 over the raw body",
            ),
            ("we keep webhooks for 30 days in webhook_inbox", "Webhooks are kept for 30 days in webhook_inbox"),
            ("replay them with bin/replay", "Webhooks are replayed with bin/replay and their id"),
        ),
    ),
    (
        30,
        "claude-code",
        "Review Priya's pull request for the refund flow",
        (
            ("refunds over 500 euros need Marta's approval", "Refunds above 500 euros need Marta's approval"),
            ("a refund is a new posting, never an update", "A refund is a posting of its own in the ledger"),
            ("please keep reviews short, no bullet lists", "@Prefers short answers without bullet lists"),
        ),
    ),
    (
        26,
        "codex",
        "Flaky tests in the settlement module",
        (
            ("freeze time with time-machine, not freezegun", "Tests freeze time with time-machine, not freezegun"),
            (
                "the flaky one is test_cutoff, it depends on the time zone",
                "test_cutoff of settlement depends on the time zone of the runner",
            ),
        ),
    ),
    (
        23,
        "claude-code",
        "On-call handover",
        (
            ("Tomás is on call until the end of May", "The on-call engineer is Tomás"),
            ("pages go to #payments-alerts, not to email", "Alerts of the payments service go to #payments-alerts"),
            ("runbooks are in ops/", "Runbooks are in ops/, one for each alert"),
        ),
    ),
    (
        19,
        "cursor",
        "Invoices in Finnish for Nokia",
        (
            ("Henrik at Nokia wants Finnish invoices", "Henrik at Nokia wants invoices in Finnish"),
            ("translations are reviewed by Marta's team", "Invoice translations are reviewed by Marta's team"),
            ("invoice numbers have no gaps, that's law", "!Invoice numbers must have no gaps: never delete one"),
        ),
    ),
    (
        15,
        "claude-code",
        "Commit messages and the changelog",
        (
            ("conventional commits, and the scope is the package", "!Conventional commits, scope is the package"),
            ("changelog is generated, never edit it", "The changelog is generated from commits; nobody edits it"),
        ),
    ),
    (
        12,
        "claude-code",
        "Load test of the ledger API",
        (
            (
                "400 requests per second is the goal, p99 under 80 ms",
                "The ledger API must answer 400 requests a second, p99 below 80 ms",
            ),
            ("k6 scripts are in load/", "Load tests of the ledger are k6 scripts in load/"),
            ("the connection pool is 20 per pod", "Each pod holds 20 connections to the database"),
        ),
    ),
    (
        8,
        "codex",
        "Migrate settlement to the new bank API",
        (
            ("the old bank API is switched off on June 30", "The old bank API is switched off on 30 June"),
            (
                "Jonas has the credentials in Vault under settlement/bank",
                "Credentials of the bank are in Vault under settlement/bank",
            ),
        ),
    ),
    (
        5,
        "cursor",
        "Dark mode for the checkout",
        (
            (
                "colours come from tokens.css, no hex values in components",
                "!Checkout colours come from tokens.css, no hex values in components",
            ),
            ("Priya tests with NVDA", "Priya tests the checkout with NVDA"),
        ),
    ),
    (
        1,
        "claude-code",
        "The deploy window moved, update the pipeline",
        (
            (
                "deploys moved to Tuesdays and Thursdays, Tomás decided that on Monday",
                "The deploy window is Tuesdays and Thursdays at 11:00 UTC",
            ),
            ("Priya takes over on call in June", "The on-call engineer is Priya"),
        ),
    ),
    (
        0,
        "claude-code",
        "Add the currency to the posting table",
        (
            (
                "right, amounts always carry their currency, EUR is not a default",
                "Postings carry their currency; EUR is not a default",
            ),
            ("ask Tomás before you touch a migration that ran", "!Ask Tomás before changing a migration that has run"),
            ("and tell me the plan before you write code", "@Wants a plan before code is written"),
        ),
    ),
)
# What the user put by hand: days before now, tier, text.
BY_HAND = (
    (52, "account", "Mia works in Lisbon, time zone Europe/Lisbon"),
    (41, "workspace", "The product is called Kestrel outside the company"),
    (36, "workspace", "Jonas is away on Fridays"),
    (28, "account", "Documents are written in British English"),
    (22, "workspace", "The ledger is audited by KPMG each October"),
    (10, "workspace", "Customers in Norway pay by Vipps"),
    (3, "account", "Reviews pull requests in the morning"),
)
# What agents noted as they worked: days before now, the agent, and one fact a line.
NOTED = (
    (
        53,
        "claude-code",
        """
        Ledger postings are append-only; a trigger refuses updates
        The ledger has one schema per tenant, named after the tenant's id
        Ledger accounts have a type: asset, liability, income or expense
        Postings always come in pairs, debit and credit
        A ledger transaction balances to zero in each currency""",
    ),
    (
        48,
        "cursor",
        """
        Invoices are numbered per tenant and year
        Invoice lines carry the VAT rate at the time of sale
        Invoice PDFs are stored for ten years in the archive bucket
        Overdue invoices get a reminder after 14 days
        Credit notes refer to the invoice that they correct""",
    ),
    (
        45,
        "claude-code",
        """
        Tests marked slow run only at night
        Test data comes from factories in tests/factories
        Snapshot tests of invoices compare text, not pixels
        Coverage below 90 percent fails the build""",
    ),
    (
        42,
        "codex",
        """
        A deploy needs one approval from somebody else
        Deploys run migrations first, then roll the pods
        Feature flags are in LaunchDarkly, prefixed with pay-
        Production has three replicas in two zones
        Helm charts for the deploy are in deploy/charts""",
    ),
    (
        39,
        "codex",
        """
        Settlement files follow ISO 20022, pain.001
        There is one file for each bank and currency
        A failed settlement is retried after 15 minutes
        Settlement cut-off is 22:30 Europe/Berlin
        The bank answers settlement files with camt.054""",
    ),
    (
        35,
        "cursor",
        """
        The checkout shows prices with VAT for consumers
        Checkout sessions expire after 30 minutes
        Checkout errors are shown beside the field, never as a toast
        The checkout supports keyboard and screen readers, WCAG 2.2 AA
        Apple Pay appears in the checkout only in Safari""",
    ),
    (
        32,
        "claude-code",
        """
        Webhook handlers are idempotent by event id
        After five failures an event goes to the dead letter queue
        Adyen retries webhooks for seven days
        Webhooks are answered before any work is done""",
    ),
    (
        27,
        "claude-code",
        """
        Refunds are paid to the original method only
        A refund needs a reason code from the list in refunds.py
        Partial refunds split VAT in proportion
        Chargebacks open a case in the finance queue""",
    ),
    (
        21,
        "codex",
        """
        Alerts about settlement page at once, those about reports wait for the morning
        The dashboard of the payments service is in Grafana, folder Money
        Logs are kept for 14 days and have no card numbers
        The error budget is 0.1 percent a month""",
    ),
    (
        13,
        "claude-code",
        """
        Paths of the ledger API begin with v2
        Requests to the API carry an Idempotency-Key
        Rate limits of the API are per tenant, 50 a second
        API errors follow RFC 9457""",
    ),
    (
        7,
        "cursor",
        """
        Secrets come from Vault and never from the environment in production
        Keys of the bank are rotated each quarter
        Access to production needs a second person""",
    ),
)
# What agents looked up lately: days and hours before now, agent, question.
ASKED = (
    (6, 7, "claude-code", "how do we deploy to staging?"),
    (6, 2, "cursor", "rounding of invoice lines"),
    (5, 5, "claude-code", "which tests are flaky?"),
    (4, 6, "codex", "settlement retries and the bank API"),
    (4, 1, "claude-code", "who owns the ledger schema?"),
    (3, 4, "claude-code", "refund approval"),
    (2, 8, "cursor", "checkout colours and labels"),
    (2, 3, "claude-code", "webhook signature of Adyen"),
    (1, 6, "claude-code", "deploy window"),
    (1, 2, "codex", "on-call engineer and alerts"),
    (0, 5, "claude-code", "money columns and currency of postings"),
    (0, 3, "claude-code", "migrations of the ledger"),
)


def furnish(memory: Lukasa, clock: Clock) -> Workspace:
    """Fill a new workspace of this memory, and return it. The clock ends at `NOW`."""
    for at, step in sorted(_steps(memory.workspace(NAME)), key=lambda one: one[0]):
        clock.time = at
        step()
    clock.time = NOW
    return memory.workspace(NAME)


def _steps(main: Workspace) -> Iterator[tuple[datetime, Callable[[], object]]]:
    for number, session in enumerate(SESSIONS):
        yield _back(session[0], 7 - number % 5), _Session(main, number, *session)
    for days, agent, text in NOTED:
        facts = [line.strip() for line in text.strip().splitlines()]
        yield _back(days, 4), partial(_note, main, agent, facts)
    for days, tier, text in BY_HAND:
        yield _back(days, 9), partial(main.put, tier, text, importance=0.7)
    for days, hours, agent, question in ASKED:
        yield _back(days, hours), partial(main.acting(agent=agent).context, question)
    yield _back(11, 5), partial(_aside, main)
    yield (
        _back(29, 2),
        lambda: _change(main, "The payments service runs on Python 3.12", "The payments service runs on Python 3.13"),
    )
    yield _back(14, 3), lambda: _forget(main, "Continuous integration runs on Buildkite", "moved to GitHub Actions")
    yield _back(14, 2), lambda: main.put("workspace", "Continuous integration runs on GitHub Actions since May")
    yield (
        _back(9, 2),
        lambda: main.edit_named(
            "VOICE", "# Voice\n\n- Short and plain; British English.\n- Amounts with their currency, always.\n"
        ),
    )


def _back(days: int, hours: int) -> datetime:
    return NOW - timedelta(days=days, hours=hours * 0.35, minutes=11)


@dataclass(frozen=True)
class _Session:
    """One recorded session, as the observer leaves it: its transcript, and a memory for each lesson with its words."""

    main: Workspace
    number: int
    days: int
    agent: str
    title: str
    lessons: tuple[tuple[str, str], ...]

    def __call__(self) -> None:
        now = self.main.ctx.now
        id = f"0199f0aa-0000-7000-8000-{self.number:012d}"
        messages = [Utterance("m0", "user", self.title, 0, now)]
        for said, _ in self.lessons:
            for role, text in (("assistant", "Anything I should know before I go on?"), ("user", said)):
                messages.append(_message(len(messages), role, text, now))  # type: ignore[arg-type]
        made = Transcript(id, id, self.agent, self.title, now, now, now, kept=len(messages), observed=len(messages))
        self.main.ctx.apply(self.main.ctx.local, SaveTranscript(made, 0), KeepUtterances(id, tuple(messages)))
        agent = self.main.acting(agent=self.agent)
        for place, (said, text) in enumerate(self.lessons):
            rule, wide = text.startswith("!"), text.startswith("@")
            quote = Quote(id, f"m{2 + place * 2}", 0, len(said))
            memo = Memo(
                text.lstrip("!@"),
                kind="procedural" if rule else "semantic",
                importance=0.85 if rule else 0.55 + (self.number + place) % 4 * 0.08,
                source=self.agent,
                evidence=(quote,),
            )
            (self.main if rule else agent).put_many("account" if wide else "workspace", [memo])


def _message(place: int, role: Role, text: str, at: datetime) -> Utterance:
    return Utterance(f"m{place}", role, text, place, at)


def _aside(main: Workspace) -> None:
    """Fill what holds in one topic, and in one conversation."""
    topic = main.create_channel("bank-migration", "Moving settlement to the new bank API")
    talk = main.start(topic.name)
    here = main.at(channel=topic.id, conversation=talk.id).acting(agent="codex")
    here.put_many("channel", [Memo(f"{what} of the bank migration {is_so}") for what, is_so in _MIGRATION])
    open_now = ("Compares the old and the new bank API side by side", "Has pain.001 samples open in the editor")
    here.put_many("conversation", [Memo(text) for text in open_now])


_MIGRATION = (
    ("The first phase", "mirrors settlement files to both banks"),
    ("The second phase", "reads statements from the new bank only"),
    ("The test account", "is DE02 1203 0000 0000 2020 51 in the sandbox"),
    ("The deadline", "is 30 June, when the old API is switched off"),
)


def _note(main: Workspace, agent: str, facts: list[str]) -> None:
    memos = [Memo(fact, source=agent, importance=0.4 + len(fact) % 5 * 0.1) for fact in facts]
    main.acting(agent=agent).put_many("workspace", memos)


def _find(main: Workspace, text: str) -> str:
    return next(hit.entry.id for hit in main.read(text, count=False) if hit.entry.content == text)


def _change(main: Workspace, old: str, new: str) -> None:
    main.update(_find(main, old), content=new)


def _forget(main: Workspace, text: str, why: str) -> None:
    main.forget(_find(main, text), why)


def fill(memory: Lukasa, count: int, name: str = "large") -> Workspace:
    """Fill a workspace with so many entries about a dozen topics, for measurements."""
    main = memory.workspace(name)
    topics = [lesson for session in SESSIONS for lesson in session[3]]
    memos = [
        Memo(f"{topics[n % len(topics)][1].lstrip('!@')} (case {n}, team {n % 37})", importance=0.3 + n % 7 / 10)
        for n in range(count)
    ]
    for start in range(0, count, 500):
        main.put_many("workspace", memos[start : start + 500])
    return main
