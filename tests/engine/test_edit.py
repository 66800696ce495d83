"""octo/edit.py: files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from octo import edit
from octo.errors import OctoError, UsageError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_replaced_file_keeps_its_mode_and_nothing_else_is_left(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o640)

    edit.replace(file, b"new")

    assert (file.read_bytes(), mode(file), names(tmp_path)) == (b"new", 0o640, ["a.yaml"])


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        edit.replace(tmp_path / "a", b"new")
    finally:
        os.umask(before)

    assert mode(tmp_path / "a") == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.yaml").write_text("old", encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to("real.yaml")

    edit.replace(tmp_path / "link.yaml", b"new")

    assert (tmp_path / "link.yaml").is_symlink()
    assert (tmp_path / "real.yaml").read_bytes() == b"new"


def test_whoever_has_the_file_open_reads_the_old_content(tmp_path):
    file = tmp_path / "a"
    file.write_text("old", encoding="utf-8")

    with file.open(encoding="utf-8") as reader:
        edit.replace(file, b"new, and longer")
        assert reader.read() == "old"


def test_a_device_takes_the_content():
    edit.replace(Path("/dev/null"), b"new")

    assert not Path("/dev/null").is_file()


def test_what_cannot_be_written_is_an_error_and_the_old_content_stays(tmp_path):
    with pytest.raises(OctoError) as caught:
        edit.replace(tmp_path / "no" / "a", b"new")

    assert str(caught.value) == f"cannot write `{tmp_path / 'no' / 'a'}`: no such file or directory"


def test_what_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(UsageError) as caught:
        edit.read(tmp_path / "a")

    assert str(caught.value) == f"cannot read `{tmp_path / 'a'}`: no such file or directory"


def test_new_files_are_made_with_their_directory(tmp_path):
    edit.create(tmp_path / "x" / "y", {"a": "1", "b": "2"})

    assert {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "x" / "y").iterdir()} == {
        "a": "1",
        "b": "2",
    }


def test_nothing_is_overwritten_and_nothing_is_made_when_one_is_there(tmp_path):
    (tmp_path / "b").symlink_to("nowhere")

    with pytest.raises(UsageError) as caught:
        edit.create(tmp_path, {"a": "1", "b": "2"})

    assert str(caught.value) == f"`{tmp_path / 'b'}` is there already"
    assert names(tmp_path) == ["b"]


def test_files_that_were_made_go_when_a_later_one_fails(tmp_path):
    with pytest.raises(OctoError) as caught:
        edit.create(tmp_path, {"a": "1", "no/b": "2"})

    assert str(caught.value) == f"cannot write into `{tmp_path}`: no such file or directory"
    assert names(tmp_path) == []


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "a").write_text("", encoding="utf-8")

    with pytest.raises(UsageError) as caught:
        edit.create(tmp_path / "a", {"b": "2"})

    assert str(caught.value) == f"`{tmp_path / 'a'}` is no directory"
