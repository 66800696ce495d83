"""Render a text template."""

from collections.abc import Iterator

from pydantic import model_validator

from octo.block import Block, Finding
from octo.config.model import Config
from octo.config.templates import NOT_FOUND
from octo.errors import OctoError, did_you_mean
from octo.fields import Bool, Name, Text
from octo.message import Message
from octo.refusals import Refusals
from octo.run import Run


class TemplateResource(Block, type="template-resource", group="integration"):
    """Render a text template of the config; the text becomes the body, or a variable."""

    id: Name
    """The template: its alias under `resources.templates`, or the path of a file below the config directory."""

    target: Text | None = None
    """Variable that takes the text; without it the body becomes the text."""

    raw_body: Bool = False
    """Make the text raw content that an HTTP response writes verbatim."""

    content_type: Text | None = None
    """MIME type of the raw content."""

    @model_validator(mode="after")
    def _raw_needs_a_type_and_the_body(self) -> "TemplateResource":
        refusals = Refusals()
        if self.raw_body and not self.content_type:
            refusals.add(
                "template-resource requires `contentType` with `rawBody`", "rawBody", hint="add `contentType:`"
            )
        if self.raw_body and self.target:
            refusals.add(
                "template-resource: `rawBody` makes the text the body, so it takes no `target`",
                "target",
                hint="remove one of them",
            )
        refusals.raise_if_any()
        return self

    def check(self, config: Config) -> Iterator[Finding]:
        try:
            known = self.id in config.templates
        except OctoError as error:
            yield Finding(error.message, ("id",))
            return
        if not known:
            is_there = config.templates.fault(self.id) != NOT_FOUND
            text = f"template `{self.id}` is no regular file" if is_there else f"there is no template `{self.id}`"
            hint = did_you_mean(self.id, config.templates) or f"templates are looked for below `{config.root}`"
            yield Finding(text, ("id",), hint, warning=True)
        if self.content_type and not self.raw_body:
            yield Finding(
                "`contentType` has no effect without `rawBody`", ("contentType",), "add `rawBody: true`", warning=True
            )

    async def execute(self, message: Message, run: Run) -> Message:
        text = run.render(self.id, message)
        if self.target:
            message.vars[self.target] = text
        elif self.raw_body:
            message.set_raw(self.content_type or "", text)
        else:
            message.body = text
        return message
