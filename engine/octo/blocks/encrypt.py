"""Encrypt a value."""

import base64
from typing import Annotated, Literal

from octo.block import Block
from octo.connectors.crypto import Cipher
from octo.errors import OctoError
from octo.fields import ConnectorName, Expression, Text, one_of
from octo.message import Message
from octo.run import Run, RunError
from octo.values import clean_text, render

Encoding = Annotated[Literal["base64", "hex"], one_of("base64", "hex")]


class CryptoName(ConnectorName):
    """The name of a configured `crypto` connector."""

    __slots__ = ()
    type = "crypto"


class Encrypt(Block, type="encrypt", group="data"):
    """Encrypt a value with the key of a `crypto` connector."""

    crypto: CryptoName
    """The `crypto` connector."""

    value: Expression[str] | None = None
    """What is encrypted; by default the body. Anything but text is encrypted as JSON."""

    encoding: Encoding = "base64"
    """How the encrypted bytes are written."""

    target: Text | None = None
    """Variable that gets the result; by default the body."""

    async def execute(self, message: Message, run: Run) -> Message:
        plain = run.evaluate(self.value, message, "encrypt value") if self.value else render(message.body)
        try:
            sealed = run.connector(self.crypto, Cipher).seal(clean_text(plain).encode())
        except OctoError as error:
            raise RunError(f"encrypt: {error.message}", hint=error.hint) from error
        text = sealed.hex() if self.encoding == "hex" else base64.b64encode(sealed).decode("ascii")
        if self.target:
            message.vars[self.target] = text
        else:
            message.body = text
        return message
