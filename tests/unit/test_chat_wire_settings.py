"""What a chat setting means, where it may send, and what it never shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from lukasa.model.errors import ChatRefused, InvalidInput
from lukasa.ports import Message
from lukasa.providers.chat import AnthropicChat, ChatStatus, OpenAIChat, chat_status, open_chat
from lukasa.providers.chat.anthropic_chat import DEFAULT_URL as ANTHROPIC
from lukasa.providers.chat.endpoint import Endpoint, checked_url
from lukasa.providers.chat.openai_chat import DEFAULT_URL as OPENAI
from tests.helpers.chat_server import KEY, ChatServer

LOCAL = "http://127.0.0.1:11434/v1"


@pytest.mark.parametrize("setting", ["", "none", " none ", "auto"])
def test_without_a_provider_there_is_no_chat(setting: str) -> None:
    """B1: no key and no setting means no model, and no error."""
    assert open_chat(setting, {}) is None
    status = chat_status(setting, {})
    assert (status.name, status.available) == ("none", False)
    assert status.reason
    assert status.fix


@pytest.mark.parametrize("setting", ["gpt", "openai", "openai:", "anthropic:", "auto:x", "none:x", ":x", "litellm:x"])
def test_an_unknown_setting_is_refused(setting: str) -> None:
    """U1: a setting that means nothing is told with all that may be said instead."""
    for use in (open_chat, chat_status):
        with pytest.raises(InvalidInput, match="none, auto, openai:<model>, anthropic:<model>"):
            use(setting, {})


@pytest.mark.parametrize(
    ("setting", "env", "name", "host"),
    [
        ("openai:m", {"OPENAI_API_KEY": "k"}, "openai:m", "api.openai.com"),
        ("openai:m", {"LUKASA_CHAT_URL": LOCAL}, "openai:m", "127.0.0.1:11434"),
        ("openai:m", {"OPENAI_BASE_URL": LOCAL}, "openai:m", "127.0.0.1:11434"),
        ("openai:m", {"OPENAI_BASE_URL": "https://a.example", "LUKASA_CHAT_URL": LOCAL}, "openai:m", "127.0.0.1:11434"),
        ("openai:llama3:8b", {"LUKASA_CHAT_URL": LOCAL}, "openai:llama3:8b", "127.0.0.1:11434"),
        ("anthropic:m", {"ANTHROPIC_API_KEY": "k"}, "anthropic:m", "api.anthropic.com"),
        ("anthropic:m", {"ANTHROPIC_API_KEY": "k", "LUKASA_CHAT_URL": LOCAL}, "anthropic:m", "api.anthropic.com"),
        ("auto", {"ANTHROPIC_API_KEY": "k", "LUKASA_CHAT_MODEL": "m"}, "anthropic:m", "api.anthropic.com"),
        ("auto", {"OPENAI_API_KEY": "k", "LUKASA_CHAT_MODEL": "m"}, "openai:m", "api.openai.com"),
        (
            "auto",
            {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "LUKASA_CHAT_MODEL": "m"},
            "anthropic:m",
            "api.anthropic.com",
        ),
        (
            "auto",
            {"ANTHROPIC_API_KEY": "k", "LUKASA_CHAT_URL": LOCAL, "LUKASA_CHAT_MODEL": "m"},
            "openai:m",
            "127.0.0.1:11434",
        ),
    ],
)
def test_what_a_setting_opens(setting: str, env: Mapping[str, str], name: str, host: str) -> None:
    """U1: setting and environment decide the model and the one host it sends to; the status tells both beforehand."""
    chat = open_chat(setting, env)
    assert chat is not None
    assert chat.name == name
    assert chat_status(setting, env) == ChatStatus(name, True, host=host)
    assert repr(chat) == f"<{name} at {host}>"


@pytest.mark.parametrize("env", [{"ANTHROPIC_API_KEY": "k"}, {"OPENAI_API_KEY": "k"}, {"LUKASA_CHAT_MODEL": "m"}])
def test_auto_needs_a_provider_and_a_model(env: Mapping[str, str]) -> None:
    """B1: a key that lies about for other programs is not enough to send anything."""
    assert open_chat("auto", env) is None


@pytest.mark.parametrize(
    ("setting", "variable"), [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY")]
)
def test_a_missing_key_is_named(setting: str, variable: str) -> None:
    """U1: a provider that needs a key says which variable holds it; an empty one is none."""
    with pytest.raises(ChatRefused, match=variable):
        open_chat(setting, {variable: " "})
    assert variable in chat_status(setting, {}).reason


def test_the_key_meant_for_lukasa_comes_first() -> None:
    """T50: a key set for Lukasa's server is sent there, and the one for OpenAI is not."""
    with ChatServer(key="for-lukasa") as server:
        env = {"LUKASA_CHAT_URL": server.openai_url, "LUKASA_CHAT_KEY": "for-lukasa", "OPENAI_API_KEY": KEY}
        chat = open_chat("openai:fake", env)
        assert chat is not None
        assert chat.reply([Message("user", "hi")]).text == "ok"
        assert server.asked[0].key == "for-lukasa"


def test_the_test_environment_opens_both() -> None:
    """U1: one environment serves both formats."""
    with ChatServer() as server:
        for setting in ("openai:fake", "anthropic:fake"):
            chat = open_chat(setting, server.env)
            assert chat is not None
            assert chat.reply([Message("user", "hi")]).text == "ok"
        assert [asked.style for asked in server.asked] == ["openai", "anthropic"]


# --- where it may send ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (OPENAI, OPENAI),
        (ANTHROPIC, ANTHROPIC),
        ("https://host.example/a/v1/", "https://host.example/a/v1"),
        ("http://localhost:8080/v1", "http://localhost:8080/v1"),
        ("http://127.1.2.3/v1", "http://127.1.2.3/v1"),
        ("http://[::1]:9/v1", "http://[::1]:9/v1"),
        (" https://HOST.example ", "https://host.example"),
    ],
)
def test_urls_that_may_be_used(url: str, kept: str) -> None:
    """T50: https anywhere, plain http on this machine."""
    assert checked_url(url) == kept


@pytest.mark.parametrize(
    "url",
    [
        "http://host.example/v1",
        "http://localhost.example/v1",
        "http://10.0.0.1/v1",
        "http://0.0.0.0/v1",
        "http://[::ffff:10.0.0.1]/v1",
        "http://127.0.0.1@host.example/v1",
        "http://127.0.0.1\\@host.example/v1",
        "http://127.0.0.1 .host.example/v1",
        "https://user:secret@host.example/v1",
        "https://host.example/v1?key=secret",
        "https://host.example/v1#secret",
        "https://host.example:port/v1",
        "https://host.example:99999/v1",
        "https://[::1/v1",
        "https:///v1",
        "https://host.example/a b",
        "ftp://host.example",
        "file:///etc/passwd",
        "host.example/v1",
        "",
    ],
)
def test_urls_that_may_not_be_used(url: str) -> None:
    """T50: nothing in the clear to other machines, no secrets inside a URL, nothing that can be read in two ways."""
    with pytest.raises(InvalidInput) as caught:
        checked_url(url)
    assert "secret" not in str(caught.value)


def test_plain_http_can_be_allowed() -> None:
    """T50: whoever owns the network may say so, and only with the very value that says it."""
    env = {"LUKASA_CHAT_URL": "http://10.0.0.1/v1"}
    status = chat_status("openai:m", env)
    assert (status.available, "unencrypted" in status.reason) == (False, True)
    for value in ("0", "", "no"):
        with pytest.raises(InvalidInput, match="LUKASA_CHAT_INSECURE"):
            open_chat("openai:m", {**env, "LUKASA_CHAT_INSECURE": value})
    assert open_chat("openai:m", {**env, "LUKASA_CHAT_INSECURE": "1"}) is not None


def test_a_chat_made_by_hand_is_held_to_the_same() -> None:
    """T50: the rule is in the adapters, not only in the setting."""
    with pytest.raises(InvalidInput):
        OpenAIChat("http://host.example/v1", "m", "k")
    with pytest.raises(InvalidInput):
        AnthropicChat("m", "k", "http://host.example")


# --- what it never shows -------------------------------------------------------------------------------------


def test_no_representation_shows_the_key() -> None:
    """T50: neither a chat nor anything it is made of prints its key."""
    endpoint = Endpoint("https://host.example", KEY)
    env = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    shown = [repr(endpoint), str(endpoint)]
    for setting in ("openai:m", "anthropic:m"):
        chat = open_chat(setting, env)
        shown += [repr(chat), str(chat), repr(vars(chat)), repr(chat_status(setting, env))]
    assert not [text for text in shown if KEY in text]


# --- cheap, and without the extra ----------------------------------------------------------------------------


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def test_importing_loads_no_client() -> None:
    """B1: importing the package, asking for a status and opening a chat load no HTTP client."""
    program = (
        "import sys\n"
        "from lukasa.providers.chat import chat_status, open_chat\n"
        "chat_status('openai:m', {}), open_chat('openai:m', {'OPENAI_API_KEY': 'k'})\n"
        "print([name for name in ('httpx2', 'httpx', 'httpcore2') if name in sys.modules])"
    )
    assert run(program) == "[]"


def test_without_the_extra() -> None:
    """B1: without the client `auto` means none, and a named model says what to install."""
    program = (
        "import sys; sys.modules['httpx2'] = None\n"
        "from lukasa.providers.chat import chat_status, open_chat\n"
        "from lukasa.model.errors import ChatRefused\n"
        "env = {'OPENAI_API_KEY': 'k', 'LUKASA_CHAT_MODEL': 'm'}\n"
        "print(open_chat('auto', env), chat_status('openai:m', env).fix)\n"
        "try: open_chat('openai:m', env)\n"
        "except ChatRefused as error: print(error)\n"
    )
    install = "pip install 'lukasa[openai]'"
    assert run(program) == f"None {install}\nhttpx2 is not installed ({install})"


def test_a_model_in_this_process_sends_nothing(tmp_path: Path) -> None:
    """U1, B1: a file is named or the extra brings one; what is missing is told, and there is no host in any case."""
    for setting in ("local", f"local:{tmp_path / 'absent.gguf'}", "local: "):
        status = chat_status(setting, {})
        assert (status.name.partition(":")[0], status.host) == ("local", "")
        if not status.available:
            assert status.reason
            assert status.fix
            with pytest.raises(ChatRefused):
                open_chat(setting, {})
    assert not chat_status(f"local:{tmp_path / 'absent.gguf'}", {}).available
