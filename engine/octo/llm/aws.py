"""What AWS has of its own: frames in the place of server-sent events, signatures in the place of keys.

`botocore` lends its buffer of frames, its signer, and the chain in which the tools of AWS look for credentials. It is
an extra, and imported where it is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from octo.errors import AuthenticationFailed, ConnectorError
from octo.llm.credentials import masked
from octo.llm.framing import Damaged
from octo.llm.wire import HttpCall

if TYPE_CHECKING:
    import asyncio

    from botocore.session import Session

SERVICE: Final = "bedrock"
"""The name under which calls of Bedrock are signed."""
REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")

_SIGNATURE: Final = frozenset({"authorization", "x-amz-date", "x-amz-security-token"})


# ---------------------------------------------------------------- frames


class Frames:
    """The framing of AWS event streams: binary frames with a check sum each.

    The data of an event is `{"event": TYPE, "payload": ...}`; that of a failure has `exception` for `event`.
    """

    def __init__(self) -> None:
        from botocore.eventstream import EventStreamBuffer

        self._buffer: Any = EventStreamBuffer()  # its published types are wrong
        self._damage: Damaged | None = None

    def feed(self, chunk: bytes) -> list[str]:
        """Events that came before a damaged frame are given first; the damage is told on the next call."""
        if self._damage is not None:
            raise self._damage
        self._buffer.add_data(chunk)
        events: list[str] = []
        try:
            for message in self._buffer:
                events += _data(message.headers, message.payload)
        except Exception as error:  # botocore tells of bad bytes by errors of many kinds, some of them by accident
            reason = str(error).strip().rstrip(".")
            self._damage = Damaged(f"a frame of it is damaged: {reason[:1].lower()}{reason[1:]}")
            if not events:
                raise self._damage from error
        return events

    def finish(self) -> list[str]:
        if self._damage is not None:
            raise self._damage
        return []

    def is_stream(self, head: bytes) -> bool:
        """A frame begins with its length, which is below 32 MiB."""
        return head[:1] <= b"\x01"


def _data(headers: Mapping[str, object], payload: bytes) -> Iterator[str]:
    """The data of a frame, if it is of a kind that means something."""
    text = payload.decode("utf-8", errors="replace").strip() or "null"
    match headers.get(":message-type"):
        case "event":
            yield _named("event", headers.get(":event-type"), text)
        case "exception":
            yield _named("exception", headers.get(":exception-type"), text)
        case "error":
            words = {"message": str(headers.get(":error-message") or "")}
            yield _named("exception", headers.get(":error-code"), json.dumps(words))


def _named(kind: str, type: object, payload: str) -> str:
    return f'{{"{kind}":{json.dumps(str(type or ""))},"payload":{payload}}}'


# ---------------------------------------------------------------- credentials


@dataclass(frozen=True, slots=True)
class Keys:
    """An access key pair, with the token of its session if it has one."""

    id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


class Chain:
    """Credentials from where the tools of AWS find them: environment, profile, assumed role, web identity, machine.

    `environ` says what the environment is. Looking may take its time: files are read, and services called.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._session: Session | None = None
        self._found: Any = None

    def region(self) -> str:
        """The region of the profile; empty when it has none. Raises ConnectorError."""
        from botocore.exceptions import BotoCoreError

        try:
            return str(self._opened().get_config_variable("region") or "")
        except BotoCoreError as error:
            raise ConnectorError(f"the settings of AWS cannot be used: {_words(error)}") from error

    def keys(self) -> Keys:
        """The keys that are good now; temporary ones are renewed in time. Raises AuthenticationFailed."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            if self._found is None:
                self._found = self._resolver().load_credentials()
            keys = self._found.get_frozen_credentials() if self._found is not None else None
        except (BotoCoreError, ClientError) as error:
            raise AuthenticationFailed(f"no credentials of AWS: {_words(error)}") from error
        if keys is None:
            raise AuthenticationFailed(
                "no credentials of AWS were found",
                hint="set `apiKey`, or `awsAccessKeyId` and `awsSecretAccessKey`, or what the tools of AWS read: "
                "`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, `AWS_PROFILE`",
            )
        return Keys(keys.access_key, keys.secret_key, keys.token or "")

    def _opened(self) -> Session:
        """The session of botocore, which reads `environ` and not the process."""
        if self._session is None:
            from botocore.configprovider import BOTOCORE_DEFAUT_SESSION_VARIABLES, ConfigChainFactory, ConfigValueStore
            from botocore.session import Session

            session = Session()
            chains = ConfigChainFactory(session=session, environ=dict(self._environ))
            mapping = {
                name: chains.create_config_chain(
                    instance_name=name,
                    env_var_names=variable,
                    config_property_names=property,
                    default=default,
                    conversion_func=convert,
                )
                for name, (property, variable, default, convert) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items()
            }
            session.register_component("config_store", ConfigValueStore(mapping=mapping))
            self._session = session
        return self._session

    def _resolver(self) -> Any:
        from botocore.credentials import ContainerProvider, EnvProvider

        resolver: Any = self._opened().get_component("credential_provider")
        environ = dict(self._environ)
        for provider in (EnvProvider(environ), ContainerProvider(environ)):
            name = provider.METHOD
            if name in (other.METHOD for other in resolver.providers):
                resolver.insert_after(name, provider)
                resolver.remove(name)
        if environ.get("AWS_EC2_METADATA_DISABLED", "").strip().lower() == "true":
            resolver.remove("iam-role")
        return resolver


def _words(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return f"{text[:1].lower()}{text[1:]}"


# ---------------------------------------------------------------- signatures


class Signer:
    """Signs calls with keys that are given, else with those of the chain. What carries a key already stays as it is."""

    def __init__(self, region: str, keys: Keys | None, chain: Chain) -> None:
        self._region = region
        self._keys = keys
        self._chain = chain
        self._secrets: set[str] = set()
        self._one_at_a_time: asyncio.Lock | None = None

    async def __call__(self, call: HttpCall) -> HttpCall:
        """The call with a signature, which is good for some minutes. Raises AuthenticationFailed."""
        if any(name.lower() == "authorization" for name, _ in call.headers):
            return call
        keys = self._keys or await self._looked_up()
        self._secrets |= {secret for secret in (keys.id, keys.secret, keys.token) if secret}
        return signed(call, keys, self._region)

    async def _looked_up(self) -> Keys:
        import asyncio

        self._one_at_a_time = self._one_at_a_time or asyncio.Lock()
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._chain.keys)

    def mask(self, text: str) -> str:
        """The text without the keys: AWS quotes what it was sent when a signature is wrong."""
        return masked(text, self._secrets)


def signed(call: HttpCall, keys: Keys, region: str) -> HttpCall:
    """The call with the signature of now over all its headers and its body."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import ReadOnlyCredentials

    request = AWSRequest(method=call.method, url=call.url, data=call.body, headers=dict(call.headers))
    SigV4Auth(ReadOnlyCredentials(keys.id, keys.secret, keys.token or None), SERVICE, region).add_auth(request)
    added = tuple((name, value) for name, value in request.headers.items() if name.lower() in _SIGNATURE)
    kept = tuple((name, value) for name, value in call.headers if name.lower() not in _SIGNATURE)
    return replace(call, headers=(*kept, *added))


def region_of(setting: str, environ: Mapping[str, str], chain: Chain) -> str:
    """The region that calls go to: as set, else as the environment says, else as the profile does.

    Raises ConnectorError when nobody says it.
    """
    named = [setting.strip(), *(environ.get(name, "").strip() for name in REGION_VARIABLES)]
    region = next(filter(None, named), None) or chain.region()
    if not region:
        raise ConnectorError("no region is named", hint="set `region`, or the variable `AWS_REGION`")
    if fault := region_fault(region):
        raise ConnectorError(fault)
    return region


def region_fault(region: str) -> str | None:
    """What is wrong with the name of a region, which becomes part of an address; or None."""
    if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", region):
        return None
    return f"expected the name of a region, such as `us-east-1`, found `{region}`"
