"""The platform's folders: the rule that is short enough to know by heart gives what `platformdirs` gives."""

from __future__ import annotations

import platformdirs
import pytest

from lukasa.providers import folders

CHOSEN = [None, "", "/srv/share", "/srv/share/", "relative/share", " /srv/share", "/with space/share", "~/share"]


@pytest.mark.parametrize("home", ["/home/ines", "/"])
@pytest.mark.parametrize("chosen", CHOSEN)
def test_as_platformdirs_has_them(monkeypatch: pytest.MonkeyPatch, chosen: str | None, home: str) -> None:
    monkeypatch.setenv("HOME", home)
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        if chosen is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, chosen)
    assert folders.user_data() == platformdirs.user_data_path("lukasa")
    assert folders.user_cache() == platformdirs.user_cache_path("lukasa")
