"""Let a model give a body another form, in one call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, ValidationInfo, field_validator

from octo.agent import attachments
from octo.agent.answer import unfenced
from octo.agent.arguments import Checker
from octo.agent.asking import Conversation, said
from octo.agent.reply import limit, remedy, unfit
from octo.block import Block, Finding
from octo.errors import OctoError
from octo.fields import BLANK_IS_ABSENT, AnyJson, Expression, Int, JsonSchema, LlmName, ResourceText, Text
from octo.llm.chat import user
from octo.refusals import refusal
from octo.values import Json, clean_text, dumps, parse

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.llm.chat import ChatMessage, ChatResponse
    from octo.message import Message
    from octo.run import Run

_ROLE: Final = (
    "You turn one JSON value into another. You are given the input as JSON; reply with the output, which is one JSON "
    "value and nothing else: no prose around it, no code fences."
)


def _example(value: Json) -> str:
    """The text of an example: JSON as it is written, anything else as JSON."""
    if not isinstance(value, str):
        return dumps(value)
    text = value.strip()
    try:
        parse(text or "null")
    except ValueError as error:
        raise refusal(
            f"expected an example, found text that is not JSON: {error}",
            f"an example that is text is written as JSON, in its own quotes: '{json.dumps(text)}'",
        ) from None
    return text


Example = Annotated[AnyJson, AfterValidator(_example)]
"""The JSON text of a value, which is given as text that holds JSON or in YAML; blank text is none."""


class AiMapping(Block, type="ai-mapping", group="ai"):
    """Let a model turn the body into one of another form, in one call without tools."""

    connector: LlmName
    """Name of a configured connector of an `llm-*` type."""

    prompt: ResourceText
    """How to map: text, or `{resource: FILE}` for a file below the config directory."""

    input: Annotated[Expression[str] | None, BLANK_IS_ABSENT] = None
    """What the model gets; without it the whole body, as JSON."""

    attachments: Annotated[Expression | None, BLANK_IS_ABSENT] = None
    """Files of the input: a list of `{mimeType, data, name}`, `data` being base64 or a data URL. Needs `input`."""

    response_media: Text = ""
    """Variable that receives the list of files that the model produces."""

    input_example: Example = ""
    """An input, as JSON text or as YAML."""

    output_example: Example = ""
    """The output for such an input, as JSON text or as YAML."""

    output_schema: Annotated[JsonSchema | None, BLANK_IS_ABSENT] = None
    """JSON Schema of the output, as a mapping or as text that holds JSON. An output that breaks it fails the block."""

    max_tokens: Int = 0
    """Most tokens of the answer; 0 leaves it to the connector."""

    @field_validator("prompt")
    @classmethod
    def _says_something(cls, prompt: ResourceText) -> ResourceText:
        return said(prompt, cls.type)

    @field_validator("max_tokens")
    @classmethod
    def _is_a_cap(cls, tokens: int) -> int:
        if tokens < 0:
            raise refusal(f"ai-mapping: `maxTokens` is at least 0, found {tokens}", "0 leaves it to the connector")
        return tokens

    @field_validator("output_schema")
    @classmethod
    def _can_be_checked(cls, schema: dict[str, Json] | None) -> dict[str, Json] | None:
        if schema is not None and (reason := Checker(schema).unusable):
            raise refusal(f"ai-mapping: `outputSchema` is not usable: {reason}")
        return schema

    @field_validator("attachments")
    @classmethod
    def _are_not_sent_twice(cls, files: Expression | None, info: ValidationInfo) -> Expression | None:
        if files is not None and info.data.get("input", files) is None:
            raise refusal(
                "ai-mapping: `attachments` requires `input`: without it the whole body is sent as JSON, and each file "
                "in the body would go out a second time as base64 text",
                "say in `input` what is mapped, for example `input: body.text`",
            )
        return files

    def check(self, config: Config) -> Iterator[Finding]:
        if self.attachments is not None:
            yield from attachments.check(self, self.connector, config)

    @cached_property
    def _checker(self) -> Checker | None:
        return None if self.output_schema is None else Checker(self.output_schema)

    async def execute(self, message: Message, run: Run) -> Message:
        talk = Conversation(
            self,
            self.connector,
            message,
            run,
            most_calls=1,
            system=self._system,
            opening=self._opening(message, run),
            max_tokens=self.max_tokens or None,
        )
        response = await talk.ask()
        name = self.response_media.strip()
        if name and response.message.files:
            message.vars[name] = attachments.with_produced(None, response.message.files)
        message.body = self._mapped(response)
        if self.output_schema is not None:
            message.body_schema = self.output_schema
        return message

    def _opening(self, message: Message, run: Run) -> ChatMessage:
        if self.input is None:
            return user(dumps(message.body))
        text = clean_text(run.evaluate(self.input, message, "ai-mapping: input"))
        files = attachments.evaluated(self, self.attachments, message, run)
        if not text and not files:
            raise OctoError("ai-mapping: `input` is empty, so there is nothing to map")
        return user(text, *files)

    def _mapped(self, response: ChatResponse) -> Json:
        """The value that the answer is. Raises OctoError when it is none, or not what the schema asks for."""
        text = unfenced(response.text)
        try:
            value = parse(text)
        except ValueError as error:
            reason = error if text else "it is empty"
            fault = unfit(f"ai-mapping: the answer is not valid JSON: {reason}", response.text)
            fault.hint = _hint(response)
            raise fault from None
        faults = self._checker.faults(value) if self._checker else []
        if faults:
            violations = "; ".join(map(str, faults))
            raise unfit(f"ai-mapping: the answer does not fit `outputSchema`: {violations}", response.text)
        return value

    @cached_property
    def _system(self) -> str:
        """What the model is told before the input; the same text in every call."""
        schema = "" if self.output_schema is None else dumps(self.output_schema)
        named = {
            "Example input": self.input_example,
            "Example output": self.output_example,
            "JSON Schema of the output": schema,
        }
        given = (f"{name}:\n{text}" for name, text in named.items() if text)
        return "\n\n".join([_ROLE, self.prompt.strip(), *given])


def _hint(response: ChatResponse) -> str | None:
    """What may help, by the reason why the model stopped."""
    if response.stop_reason == "refusal":
        return "the model refused the task"
    helps = remedy(response)
    return helps and f"{limit(response)} cut the answer off: {helps}"
