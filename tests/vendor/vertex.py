"""A double of Claude models on Vertex AI: the Messages API in the form that Google gives it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from vendor.anthropic import AnthropicServer, Reply, error
from vendor.server import Answer, Json, Request

MODELS = "/v1/projects/p/locations/l/publishers/anthropic/models"


class VertexClaudeServer(AnthropicServer):
    """Serves `rawPredict` and `streamRawPredict`. Beyond what differs, the rules are those of the vendor itself."""

    @property
    def base_url(self) -> str:
        return self.url + MODELS

    def refuse(self, request: Request) -> Answer | None:
        fault = self._fault_of_form(request)
        if fault is not None:
            request.refusal = fault[1]
            return error(*fault)
        standard = _standard(request)
        refusal = super().refuse(standard)
        request.refusal = standard.refusal
        return refusal

    def render(self, reply: Reply, request: Request) -> Answer:
        return super().render(reply, _standard(request))

    def _fault_of_form(self, request: Request) -> tuple[int, str] | None:
        """Claude on Vertex AI, "Making requests": the model is in the address, the version in the body, and who calls
        in a bearer token. Error text: `model: Extra inputs are not permitted`.
        """
        address = re.fullmatch(re.escape(MODELS) + r"/([a-z0-9@.-]+):(rawPredict|streamRawPredict)", request.path)
        if address is None:
            return 404, f"Not found: {request.method} {request.path}"
        if not request.headers.get("authorization", "").startswith("Bearer "):
            return 401, "Request is missing required authentication credential."
        if request.headers.keys() & {"x-api-key", "anthropic-version"}:
            return 400, "anthropic-version and x-api-key are no headers of this API"
        if "anthropic-beta" in request.headers:
            return 400, "anthropic-beta: nothing is to be sent for it"
        body: Json = request.json
        if body.get("anthropic_version") != "vertex-2023-10-16":
            return 400, "anthropic_version: Field required"
        if "model" in body:
            return 400, "model: Extra inputs are not permitted"
        if body.get("stream", False) != (address[2] == "streamRawPredict"):
            return 400, "stream: does not match the method"
        return None


def _standard(request: Request) -> Request:
    """The request as the vendor itself would get it."""
    body: Json = {"model": request.path.rpartition("/")[2].partition(":")[0], **request.json}
    version = {"x-api-key": "token", "anthropic-version": "2023-06-01"}
    del body["anthropic_version"]
    return replace(request, path="/v1/messages", headers={**request.headers, **version}, body=json.dumps(body).encode())
