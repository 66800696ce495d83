"""How many examples a property test tries: a slice of them, and all of them with OCTO_SOAK=1.

OCTO_SOAK_COUNT sets the number of a soak, for a part that is to run longer or shorter than usual.
"""

from __future__ import annotations

import os


def examples(few: int, all: int) -> int:
    if not os.environ.get("OCTO_SOAK"):
        return few
    return int(os.environ.get("OCTO_SOAK_COUNT") or all)
