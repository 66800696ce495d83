"""octo/graph/html.py: a config as an HTML page."""

from __future__ import annotations

import json
import re
from html import escape

import pytest

from browser import in_browser
from drawn import SECRET, SERVING, SHOP, named, picture
from octo.graph.html import page


def deep(levels: int) -> str:
    """A config of blocks inside blocks."""
    chain: object = [{"type": "log", "name": "x" * 40, "settings": {"message": '"' + "y" * 200 + '"'}}]
    for level in range(levels):
        chain = [{"type": "if", "name": f"level-{level}", "condition": "true", "then": {"process": chain}}]
    return json.dumps({"flows": [{"name": "f" * 60, "process": chain}]})


def test_the_page_needs_nothing_from_outside_and_runs_no_script(tmp_path):
    html = page(picture(tmp_path))

    assert re.findall(r"<script|<link|<img|<iframe|@import|url\(|https?:", html) == []
    assert (
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        in html
    )


def test_every_link_leads_to_something_on_the_page_and_no_id_is_there_twice(tmp_path):
    for flow in (None, "answer"):
        html = page(picture(tmp_path, flow=flow))
        ids = re.findall(r' id="([^"]+)"', html)

        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)


def test_names_are_shown_letter_by_letter_and_never_as_markup(tmp_path):
    html = page(picture(tmp_path, named("<b onclick='x'>&amp;", "</style><script>x</script>")))

    assert "<b onclick" not in html
    assert html.count("</style>") == 1
    assert "&lt;b onclick=&#39;x&#39;&gt;&amp;amp;" in html


def test_no_secret_is_on_the_page(tmp_path):
    html = page(picture(tmp_path))

    assert SECRET not in html
    assert "The key is ***." in html


def test_a_source_stands_at_the_head_of_its_flow(tmp_path):
    html = page(picture(tmp_path, SERVING))

    assert '<span class="type">from</span> <strong>queue</strong>' in html
    assert '<span class="word">uses</span> <a class="chip" href="#connector-0">jobs</a>' in html
    assert '<span class="word">feeds</span> <a class="chip" href="#flow-1">read</a>' in html


def test_a_call_of_a_flow_that_is_not_drawn_is_no_link(tmp_path):
    html = page(picture(tmp_path, flow="answer"))

    assert '<span class="chip">later</span>' in html


PROBE = """
    const page = frame.contentDocument.documentElement;
    const shown = [...page.querySelectorAll("summary, a")].filter(item => item.getClientRects().length);
    shown.at(-1).focus();
    return {
        fits: page.scrollWidth <= page.clientWidth,
        reached: shown.every(item => item.tabIndex >= 0) && frame.contentDocument.activeElement === shown.at(-1),
        inside: shown.every(item => item.getBoundingClientRect().right <= page.clientWidth),
    };
"""


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize(
    "config", [SHOP, deep(3), named("word " * 30), SERVING], ids=["shop", "deep", "long names", "sources"]
)
def test_the_page_fits_and_the_keyboard_reaches_everything_on_it(tmp_path, config, width):
    html = page(picture(tmp_path, config)).replace("<details>", "<details open>")
    frame = f'<body><iframe id="frame" style="width: {width}px; border: 0" srcdoc="{escape(html)}"></iframe></body>'

    assert in_browser(tmp_path, frame, PROBE) == {"fits": True, "reached": True, "inside": True}
