"""octo_cli/differences.py: differences in colour."""

from __future__ import annotations

from octo_cli.differences import painted

RED, GREEN, CYAN, BOLD, STRONG, END = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[1m", "\x1b[1m\x1b[4m", "\x1b[0m"


def test_lines_have_the_colour_of_what_happened_to_them() -> None:
    assert list(painted(["--- a", "+++ b", "@@ -1 +1,2 @@", " same", "-gone", "+new", "+another"])) == [
        f"{BOLD}--- a{END}",
        f"{BOLD}+++ b{END}",
        f"{CYAN}@@ -1 +1,2 @@{END}",
        " same",
        f"{RED}-gone{END}",
        f"{GREEN}+new{END}",
        f"{GREEN}+another{END}",
    ]


def test_words_that_changed_in_a_line_stand_out() -> None:
    assert list(painted(["-prompt: Be very kind.", "+prompt: Be very short."])) == [
        f"{RED}-{END}{RED}prompt: Be very {END}{RED}{STRONG}kind{END}{RED}.{END}",
        f"{GREEN}+{END}{GREEN}prompt: Be very {END}{GREEN}{STRONG}short{END}{GREEN}.{END}",
    ]


def test_lines_that_have_little_in_common_are_shown_as_they_are() -> None:
    assert list(painted(["-one", "+two three"])) == [f"{RED}-one{END}", f"{GREEN}+two three{END}"]
