"""Headless Chromium, for pages that octo writes."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any


def in_browser(folder: Path, html: str, script: str, *, patient: bool = False) -> Any:
    """What a script says when the page has been laid out. It may wait for promises if the browser is `patient`, whose
    clock is then not the real one.

    The size of the window is that of a small telephone.
    """
    probe = (
        "<script>addEventListener('load', async () => { document.body.offsetHeight;"
        f"document.documentElement.dataset.said = JSON.stringify(await (async () => {{ {script} }})())"
        "})</script></body>"
    )
    file = folder / "page.html"
    file.write_text(html.replace("</body>", probe), encoding="utf-8")
    ran = subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            *(["--virtual-time-budget=20000"] if patient else []),
            f"--user-data-dir={folder}",
            "--dump-dom",
            str(file),
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    (said,) = re.findall(r'data-said="([^"]*)"', ran.stdout)
    return json.loads(unescape(said))
