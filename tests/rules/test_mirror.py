"""The tests mirror the tree: every module is tested in the mirrored place, or named by a test file."""

from pathlib import Path

import octo
import octo_cli

TESTS = Path(__file__).parents[1]
ROOTS = {"engine": Path(octo.__file__).parent, "cli": Path(octo_cli.__file__).parent}


def test_every_module_is_mirrored_or_named_in_the_docstring_of_a_test_file():
    first_lines = [
        path.read_text(encoding="utf-8").partition('"""')[2].partition('"""')[0] for path in TESTS.rglob("test_*.py")
    ]
    untested = []
    for area, root in ROOTS.items():
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root)
            if path.stem == "__init__" or path.stem == "__main__":
                continue
            mirror = TESTS / area / inside.parent / f"test_{path.stem.rstrip('_')}.py"
            named = any(str(Path(root.name) / inside) in line for line in first_lines)
            if not mirror.exists() and not named:
                untested.append(str(Path(root.name) / inside))

    assert not untested, "\n".join(untested)
