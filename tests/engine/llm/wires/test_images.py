"""octo/llm/wires/imagen.py: images as answers, on every wire that gives them."""

import base64
import json

import pytest

from octo.errors import BadRequest, ProviderError
from octo.llm.chat import ChatRequest, File, user
from octo.llm.credentials import Credentials
from octo.llm.model import HttpModel
from octo.llm.providers import PROVIDERS
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint
from vendor.gemini import GeminiServer, Picture
from vendor.gemini import reply as gemini_reply
from vendor.server import Answer, Server

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 8
DRAW = ChatRequest((user("a cat"),), system="Be bold.", output_type="image", reasoning_effort="high")


class Once(Server):
    """Gives one answer to everything."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def answer(self, request):
        return Answer(200, (("content-type", "application/json"),), (json.dumps(self.body).encode(),))


async def draw(server, provider, model, request=DRAW):
    """The answer, and what the server was asked: the path and the body."""
    with server:
        base = server.base_url if isinstance(server, GeminiServer) else server.url
        credentials = Credentials(provider, base, PROVIDERS[provider].key_header, api_key="k")
        async with Transport({}) as transport:
            answer = await HttpModel(Endpoint(credentials, model), transport).complete(request, session={})
    (request,) = server.requests
    return answer, request.path, request.json


async def test_gemini_draws_with_the_system_text_before_the_prompt():
    server = GeminiServer([gemini_reply("Here.", Picture(PNG))])
    answer, path, body = await draw(server, "googleai", "gemini-2.5-flash-image")

    assert answer.message.files == (File("image/png", PNG),)
    assert path.endswith("gemini-2.5-flash-image:generateContent")
    assert body == {
        "contents": [{"role": "user", "parts": [{"text": "Be bold.\n\n"}, {"text": "a cat"}]}],
        "generationConfig": {"responseModalities": ["TEXT", "IMAGE"]},
    }
    assert server.refusals == []


async def test_imagen_predicts():
    server = Once({"predictions": [{"mimeType": "image/png", "bytesBase64Encoded": base64.b64encode(PNG).decode()}]})
    answer, path, body = await draw(server, "googleai", "imagen-4.0-generate-001")

    assert answer.message.files == (File("image/png", PNG),)
    assert path == "/models/imagen-4.0-generate-001:predict"
    assert body == {"instances": [{"prompt": "Be bold.\n\na cat"}], "parameters": {"sampleCount": 1}}


async def test_imagen_that_gives_nothing_refuses():
    answer, _, _ = await draw(Once({}), "googleai", "imagen-4.0-generate-001")

    assert (answer.stop_reason, answer.message.parts) == ("refusal", ())


async def test_imagen_takes_no_attachments():
    request = ChatRequest((user("like this", File("image/png", PNG)),), output_type="image")

    with pytest.raises(BadRequest, match="Imagen models take no attachments"):
        await draw(Once({}), "googleai", "imagen-4.0-generate-001", request)


async def test_openrouter_draws_by_modalities_and_without_an_effort():
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    message = {"role": "assistant", "content": "Here.", "images": [{"type": "image_url", "image_url": {"url": url}}]}
    server = Once({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    answer, path, body = await draw(server, "openrouter", "google/gemini-2.5-flash-image")

    assert answer.message.files == (File("image/png", PNG),)
    assert (path, body["modalities"], "reasoning_effort" in body) == ("/chat/completions", ["image", "text"], False)


@pytest.mark.parametrize("provider", sorted(id for id, row in PROVIDERS.items() if not row.draws))
async def test_a_provider_whose_models_make_no_images_is_not_asked(provider):
    with pytest.raises(ProviderError, match=f"models of `{PROVIDERS[provider].connector}` make no images"):
        await draw(Once({}), provider, "some-model")
