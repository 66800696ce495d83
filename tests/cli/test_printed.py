"""octo_cli/printed.py: what the Python code of a config prints is no part of the answer."""

from __future__ import annotations

import io
import json
from threading import Thread

from octo_cli.printed import to_standard_error
from octo_cli.session import Session

TOOLS = """
import sys
from threading import Thread

print("imported")


def shout(body):
    print("key", "s3cret-key", 1)
    print("half", end="")
    sys.stdout.buffer.write("é\\n".encode())
    thread = Thread(target=print, args=("from a thread",))
    thread.start()
    thread.join()
    return body


async def later(body):
    print("later")
    sys.stdout.write("not ended")
    return body
"""
APP = """
env: [ { name: KEY, secret: true } ]
flows:
  - name: main
    process:
      - { type: python, file: tools.py, function: shout }
      - { type: python, file: tools.py, function: later }
"""


def test_what_python_code_prints_is_on_standard_error_without_secrets(octo, tmp_path):
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "app.yaml").write_text(APP, encoding="utf-8")

    args = ("invoke", "--config", "app.yaml", "--flow", "main", "--data", "7")
    outcome = octo(*args, environ={"KEY": "s3cret-key"})

    assert json.loads(outcome.stdout)["body"] == 7
    assert outcome.stderr == "imported\nkey *** 1\nhalfé\nfrom a thread\nlater\nnot ended"
    assert outcome.status == 0


def test_what_is_printed_while_a_config_is_checked_is_no_part_of_the_report(octo, tmp_path):
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "app.yaml").write_text(APP, encoding="utf-8")

    outcome = octo("validate", "--config", "app.yaml", "--json", environ={"KEY": "s3cret-key"})

    assert json.loads(outcome.stdout)["problems"] == []
    assert outcome.stderr == "imported\n"


def test_lines_of_threads_are_not_mixed():
    def work(name):
        for _ in range(200):
            print(name, name, name)  # noqa: T201  (the subject of the test)

    screen = io.StringIO()
    with to_standard_error(Session({}, err=screen)):
        threads = [Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(screen.getvalue().splitlines()) == ["a a a"] * 200 + ["b b b"] * 200 + ["c c c"] * 200


def test_a_question_is_shown_before_its_line_ends():
    screen = io.StringIO()
    with to_standard_error(Session({}, err=screen)):
        print("go on? ", end="", flush=True)  # noqa: T201  (the subject of the test)
        shown = screen.getvalue()

    assert (shown, screen.getvalue()) == ("go on? ", "go on? ")
