"""Decrypt a value."""

import base64
from collections.abc import Iterator

from octo.block import Block, Finding
from octo.blocks.encrypt import CryptoName, Encoding
from octo.config.model import Config
from octo.connectors.crypto import Cipher, Crypto, Unsealable
from octo.fields import Expression, Text
from octo.message import Message
from octo.run import Run, RunError
from octo.values import kind_of


class Decrypt(Block, type="decrypt", group="data"):
    """Decrypt a text that `encrypt` has made; the result is text."""

    crypto: CryptoName
    """The `crypto` connector, with the same key."""

    value: Expression | None = None
    """The encrypted text; by default the body."""

    encoding: Encoding = "base64"
    """How the encrypted bytes are written."""

    target: Text | None = None
    """Variable that gets the result; by default the body."""

    def check(self, config: Config) -> Iterator[Finding]:
        connector = config.connector(self.crypto)
        if isinstance(connector, Crypto) and connector.only_encrypts:
            yield Finding(
                f'decrypt: connector "{self.crypto}" has no private key',
                ("crypto",),
                "add `privateKey` to the connector",
            )

    async def execute(self, message: Message, run: Run) -> Message:
        value = run.evaluate(self.value, message, "decrypt value") if self.value else message.body
        if not isinstance(value, str):
            raise RunError(f"decrypt value must be text, got {kind_of(value)}")
        try:
            plain = run.connector(self.crypto, Cipher).unseal(self._bytes(value))
        except (ValueError, Unsealable):
            # One text for everything: who guesses learns nothing from it.
            raise RunError("decrypt: the value cannot be decrypted") from None
        try:
            text = plain.decode("utf-8")
        except UnicodeDecodeError:
            raise RunError("decrypt: what was encrypted is not UTF-8 text") from None
        if self.target:
            message.vars[self.target] = text
        else:
            message.body = text
        return message

    def _bytes(self, text: str) -> bytes:
        if self.encoding == "hex":
            return bytes.fromhex(text)
        return base64.b64decode("".join(text.split()), validate=True)
