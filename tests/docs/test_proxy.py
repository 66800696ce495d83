"""docs/proxy.md: the clients that it shows work as they stand there, against a proxy of the config that it shows."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from proxied import proxy
from vendor import gemini
from vendor.anthropic import AnthropicServer, reply
from vendor.server import Answer, Request

PAGE = (Path(__file__).parents[2] / "docs" / "proxy.md").read_text(encoding="utf-8")
OPENAI = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "octo-tests" / "openai"
ADDRESS = "http://127.0.0.1:4180"


def shown(language: str, word: str = "") -> str:
    """The one block in a language that holds a word."""
    (found,) = (text for text in re.findall(rf"(?ms)^```{language}\n(.*?)^```$", PAGE) if word in text)
    return str(found)


class Claude(AnthropicServer):
    """Takes every version of the API that a client may name."""

    def refuse(self, request: Request) -> Answer | None:
        request.headers["anthropic-version"] = "2023-06-01"
        return super().refuse(request)


@pytest.mark.parametrize(
    ("language", "word", "program"),
    [
        ("python", "import OpenAI", [sys.executable, "-W", "ignore", "client.py"]),
        ("python", "import Anthropic", [sys.executable, "-W", "ignore", "client.py"]),
        ("js", "import OpenAI", ["node", "client.mjs"]),
    ],
    ids=["openai", "anthropic", "openai for node"],
)
async def test_a_client_is_set_up_as_shown(language: str, word: str, program: list[str], tmp_path: Path):
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "openai").symlink_to(OPENAI)
    with (
        Claude([reply("good morning")], api_key="a") as claude,
        gemini.GeminiServer([gemini.reply("good morning")]) as google,
    ):
        environ = {
            "ANTHROPIC_API_KEY": "a",
            "ANTHROPIC_BASE_URL": claude.url,
            "GEMINI_API_KEY": "g",
            "GOOGLE_GEMINI_BASE_URL": google.base_url,
        }
        async with proxy(shown("yaml"), environ=environ) as served:
            code = shown(language, word)
            assert ADDRESS in code
            (tmp_path / program[-1]).write_text(code.replace(ADDRESS, served.url), encoding="utf-8")
            process = await asyncio.create_subprocess_exec(
                *program, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
            out, err = await process.communicate()

    assert (out.decode().strip(), err.decode()) == ("good morning", "")
    assert claude.refusals + google.refusals == []
