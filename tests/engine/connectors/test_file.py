"""octo/connectors/file.py: a directory that its users never leave."""

import os
import stat
import subprocess
import sys
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo.connectors.file import Folder
from octo.errors import ConfigError, ConnectorError, OctoError
from octo.testing.harness import config, runtime


@pytest.fixture
def folder(tmp_path):
    """A root with files and links, and a file outside of it."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"inside")
    (root / "sub" / "b.txt").write_bytes(b"deeper")
    (tmp_path / "secret.txt").write_bytes(b"outside")
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (root / "out").symlink_to(tmp_path)
    (root / "in.txt").symlink_to("sub/b.txt")
    (root / "new-in.txt").symlink_to("sub/new.txt")
    (root / "new-out.txt").symlink_to("../new.txt")
    (root / "in").symlink_to(root / "sub")
    (root / "round").symlink_to("round")
    os.mkfifo(root / "pipe")
    return Folder(root)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def left_behind(root):
    return [path.name for path in root.rglob(".octo-*")]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("a.txt", b"inside"),
        ("./sub//b.txt", b"deeper"),
        ("sub/../a.txt", b"inside"),
        ("missing/../a.txt", b"inside"),
        ("in.txt", b"deeper"),
        ("in/b.txt", b"deeper"),
    ],
)
def test_a_path_that_stays_inside_is_read(folder, path, data):
    assert folder.read(path) == data


REFUSED = [
    ("", "path is empty"),
    (" ", "path is empty"),
    ("a\0b", "path holds a NUL character"),
    ("/etc/passwd", 'path "/etc/passwd" must be relative'),
    ("../secret.txt", 'path "../secret.txt" escapes the root'),
    ("sub/../../secret.txt", 'path "sub/../../secret.txt" escapes the root'),
    ("..", 'path ".." escapes the root'),
    ("../root/a.txt", 'path "../root/a.txt" escapes the root'),
    ("out.txt", 'path "out.txt" escapes the root through a link'),
    ("out/secret.txt", 'path "out/secret.txt" escapes the root through a link'),
    ("new-out.txt", 'path "new-out.txt" escapes the root through a link'),
    ("sub", 'path "sub": is a directory'),
    (".", 'path ".": is a directory'),
    ("sub/..", 'path "sub/..": is a directory'),
    ("out/root", 'path "out/root": is a directory'),
    ("a.txt/", 'path "a.txt/": not a directory'),
    ("a.txt/b", 'path "a.txt/b": not a directory'),
    ("missing/a.txt", 'path "missing/a.txt": no such file or directory'),
    ("pipe", 'path "pipe" is no regular file'),
]


@pytest.mark.parametrize(("path", "text"), REFUSED)
def test_a_path_that_leads_elsewhere_is_neither_read_nor_written(folder, path, text):
    for use in (folder.read, lambda path: folder.write(path, b"x")):
        with pytest.raises(OctoError) as caught:
            use(path)
        assert str(caught.value) == text

    assert (folder.root.parent / "secret.txt").read_bytes() == b"outside"
    assert not (folder.root.parent / "new.txt").exists()
    assert left_behind(folder.root) == []


STEPS = ["..", ".", "", "sub", "in", "out", "root", "a.txt", "b.txt", "in.txt", "out.txt", "secret.txt"]


@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=6).map("/".join))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_leads_out(folder, path):
    try:
        assert folder.read(path) in {b"inside", b"deeper"}
    except OctoError as error:
        assert str(error).startswith(f'path "{path}"') or str(error) == "path is empty"


def test_links_that_lead_in_a_circle_are_refused(folder):
    with pytest.raises(OctoError, match=r"circle of links|too many levels of symbolic links"):
        folder.read("round")


def test_a_missing_file_cannot_be_read_and_a_name_may_be_too_long(folder):
    for path, text in [("no.txt", "no such file or directory"), ("x" * 300, "file name too long")]:
        with pytest.raises(OctoError) as caught:
            folder.read(path)
        assert str(caught.value) == f'path "{path}": {text}'


def test_a_new_file_is_for_its_owner_and_an_old_one_keeps_its_mode(folder):
    (folder.root / "a.txt").chmod(0o640)
    folder.write("a.txt", b"1")
    folder.write("new.txt", b"2")

    assert [(path.read_bytes(), mode(path)) for path in (folder.root / "a.txt", folder.root / "new.txt")] == [
        (b"1", 0o640),
        (b"2", 0o600),
    ]


def test_writing_through_a_link_that_stays_inside_replaces_what_it_leads_to(folder):
    folder.write("in.txt", b"1")
    folder.write("new-in.txt", b"2")

    assert (folder.root / "in.txt").is_symlink()
    assert (folder.root / "sub" / "b.txt").read_bytes() == b"1"
    assert (folder.root / "sub" / "new.txt").read_bytes() == b"2"


def test_missing_directories_are_created_when_allowed(tmp_path):
    Folder(tmp_path, create_dirs=True).write("a/b/c.txt", b"x")

    assert (tmp_path / "a/b/c.txt").read_bytes() == b"x"
    assert [mode(tmp_path / name) for name in ("a", "a/b")] == [0o700, 0o700]


def test_no_directory_is_created_outside(folder):
    open_folder = Folder(folder.root, create_dirs=True)
    with pytest.raises(OctoError, match="escapes the root through a link"):
        open_folder.write("out/new/c.txt", b"x")

    assert not (folder.root.parent / "new").exists()


def test_a_reader_sees_the_old_or_the_new_content_of_parallel_writers(tmp_path):
    folder = Folder(tmp_path)
    contents = [bytes([letter]) * 200_000 for letter in b"abc"]
    folder.write("f", contents[0])
    writers = [
        threading.Thread(target=lambda content=content: [folder.write("f", content) for _ in range(30)])
        for content in contents
    ]
    for writer in writers:
        writer.start()
    seen = {folder.read("f") for _ in range(100)}
    for writer in writers:
        writer.join()

    assert seen <= set(contents)
    assert left_behind(tmp_path) == []


def test_a_write_that_fails_leaves_nothing_behind(folder):
    """A limit on the size of files stands for a full disk."""
    script = f"""
import pathlib, resource, signal
from octo.connectors.file import Folder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
Folder(pathlib.Path({str(folder.root)!r})).write("a.txt", bytes(5000))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.stderr.splitlines()[-1] == 'octo.errors.OctoError: path "a.txt": file too large'
    assert (folder.root / "a.txt").read_bytes() == b"inside"
    assert left_behind(folder.root) == []


def test_a_link_that_is_put_in_the_way_meanwhile_is_not_followed(folder):
    """One thread swaps a directory and a link that leads outside, as fast as it can."""
    (folder.root / "swap").mkdir()
    (folder.root / "swap" / "secret.txt").write_bytes(b"inside")
    done = threading.Event()

    def swap():
        place, aside, link = (folder.root / name for name in ("swap", "aside", "out"))
        while not done.is_set():
            place.rename(aside)
            link.rename(place)
            place.rename(link)
            aside.rename(place)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    for _ in range(2000):
        try:
            seen.add(folder.read("swap/secret.txt"))
            folder.write("swap/secret.txt", b"inside")
        except OctoError as error:
            seen.add(type(error))
    done.set()
    swapping.join()

    assert seen <= {b"inside", OctoError}
    assert (folder.root.parent / "secret.txt").read_bytes() == b"outside"


def test_a_root_that_was_replaced_is_picked_up(folder):
    folder.root.rename(folder.root.parent / "old")
    folder.root.mkdir()
    (folder.root / "a.txt").write_bytes(b"replaced")

    assert folder.read("a.txt") == b"replaced"


def yaml(root: str) -> str:
    return f"connectors: [{{ name: files, type: file, settings: {{ root: '{root}' }} }}]"


async def test_a_relative_root_lies_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    async with runtime(yaml("data")) as opened:
        monkeypatch.chdir("/")

        assert opened.live("files", Folder).root == tmp_path / "data"


@pytest.mark.parametrize(("name", "problem"), [("missing", "does not exist"), ("file", "is no directory")])
async def test_a_root_that_is_no_directory_stops_the_start(tmp_path, name, problem):
    (tmp_path / "file").touch()
    with pytest.raises(ConnectorError) as caught:
        async with runtime(yaml(str(tmp_path / name))):
            pass

    assert str(caught.value) == f'connector "files" (file): root `{tmp_path / name}` {problem}'


@pytest.mark.parametrize(
    ("settings", "message"),
    [("{}", "connector of type `file` requires `root`"), ("{ root: ' ' }", "expected a directory, found blank text")],
    ids=["missing", "blank"],
)
def test_a_root_is_required(settings, message):
    with pytest.raises(ConfigError) as caught:
        config(f"connectors: [{{ name: files, type: file, settings: {settings} }}]")

    assert [problem.message for problem in caught.value.problems] == [message]
