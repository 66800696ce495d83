"""The page at `/`: which connectors there are, and what to paste into a client."""

from __future__ import annotations

from typing import Final

from octo.proxy.gateway import Gateway

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>octo proxy</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
:root { color-scheme: light dark }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884 }
pre { background: #8881; padding: .8rem; overflow: auto }
</style>
<h1>octo proxy</h1>
<table>
<tr><th>connector</th><th>type</th><th>model</th><th>name in a client</th></tr>
{%- for one in connectors %}
<tr><td>{{ one.name }}</td><td><code>{{ one.type }}</code></td><td>{{ one.default_model or "none by default" }}</td>\
<td><code>{{ one.name }}/{{ one.default_model or "MODEL" }}</code></td></tr>
{%- endfor %}
</table>
<p>All models: <a href="/v1/models">/v1/models</a></p>
<h2>Clients of OpenAI</h2>
<pre>export OPENAI_BASE_URL={{ url }}/v1 OPENAI_API_KEY={{ key }}</pre>
<h2>Clients of Anthropic</h2>
<pre>export ANTHROPIC_BASE_URL={{ url }} ANTHROPIC_API_KEY={{ key }}</pre>
<h2>By hand</h2>
<pre>curl {{ url }}/v1/chat/completions -H 'content-type: application/json'{{ auth }} \\
  -d '{"model": "{{ example }}", "messages": [{"role": "user", "content": "hello"}]}'</pre>
</html>
"""


def page(gateway: Gateway, url: str, *, with_token: bool) -> str:
    """The page, for a proxy that is called at an address."""
    from jinja2 import Environment

    connectors = list(gateway.connectors.values())
    first = connectors[0]
    return (
        Environment(autoescape=True)
        .from_string(_PAGE)
        .render(
            connectors=connectors,
            url=url,
            key="TOKEN" if with_token else "none",
            auth=" -H 'authorization: Bearer TOKEN'" if with_token else "",
            example=f"{first.name}/{first.default_model or 'MODEL'}",
        )
    )
