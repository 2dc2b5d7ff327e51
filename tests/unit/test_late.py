"""What is loaded or compiled at its first use is then what it stands for."""

from __future__ import annotations

import colorsys
import re
import subprocess
import sys

from lukasa.model.late import late, pattern


def test_a_module_is_loaded_by_its_first_name() -> None:
    code = (
        "import sys; from lukasa.model.late import late\n"
        "found = late('colorsys'); before = 'colorsys' in sys.modules\n"
        "print(before, found.rgb_to_hls(0.0, 0.0, 0.0), 'colorsys' in sys.modules, found)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False (0.0, 0.0, 0.0) True <late module 'colorsys'>\n"


def test_what_changes_in_a_module_is_seen() -> None:
    found = late("colorsys")
    assert found.ONE_THIRD == colorsys.ONE_THIRD
    assert found.rgb_to_hsv is colorsys.rgb_to_hsv


def test_a_pattern_is_the_compiled_one() -> None:
    late_one, one = pattern(r"(\w+)=(\d)", re.ASCII), re.compile(r"(\w+)=(\d)", re.ASCII)
    for text in ("a=1 bc=2", "ä=1", ""):
        assert late_one.findall(text) == one.findall(text)
        assert late_one.sub("x", text) == one.sub("x", text)
    assert (late_one.pattern, late_one.flags, late_one.groups) == (one.pattern, one.flags, one.groups)
