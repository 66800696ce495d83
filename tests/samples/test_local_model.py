"""samples/local-model.yaml: an agent on a server of one's own."""

import shlex
from pathlib import Path

import octo
from octo.runtime import Runtime
from vendor.chat import ChatServer, call, reply

SAMPLE = Path(__file__).parents[2] / "samples" / "local-model.yaml"


async def ask(server: ChatServer, **environ: str) -> object:
    environ = {"LOCAL_MODEL_URL": f"{server.url}/v1", **environ}
    async with Runtime(octo.load(SAMPLE, environ=environ, cwd=SAMPLE.parent)) as runtime:
        return (await runtime.invoke("ask", {"city": "Lima"})).body


async def test_the_model_looks_up_the_weather_and_answers():
    script = [reply(calls=[call("weather", {"city": "Lima"})]), reply("Take a coat.")]
    with ChatServer(script, dialect="custom") as server:
        body = await ask(server)

    first, second = (request.json for request in server.requests)
    assert (body, server.refusals) == ("Take a coat.", [])
    assert (first["model"], first["tools"][0]["function"]["name"]) == ("qwen3", "weather")
    assert second["messages"][-1]["content"] == '{"celsius":14,"sky":"fog"}'
    assert "authorization" not in server.requests[0].headers


async def test_the_model_is_named_by_the_environment():
    with ChatServer([reply("Take a coat.")], dialect="custom") as server:
        await ask(server, LOCAL_MODEL="llama3.3")

    assert server.requests[0].json["model"] == "llama3.3"


def test_the_command_in_its_head_runs_the_sample():
    (line,) = (line for line in SAMPLE.read_text(encoding="utf-8").splitlines() if "octo invoke" in line)

    assert shlex.split(line.removeprefix("#"))[2:] == [
        "--config",
        "samples/local-model.yaml",
        "--flow",
        "ask",
        "--data",
        '{"city": "Lima"}',
    ]
