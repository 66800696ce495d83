"""Templates and randomness, which lie around an evaluation."""

from __future__ import annotations

from octo.cel.frame import Frame
from octo.cel.functions import function
from octo.cel.values import Failure
from octo.errors import OctoError

_STEPS_OF_A_RENDERING = 10


@function("templateResource")
def template_resource(frame: Frame, name: str) -> str:
    """The text of a template, by its alias or its path below the config directory, with the variables in scope."""
    frame.step(_STEPS_OF_A_RENDERING)
    try:
        return frame.surroundings.template(name, frame.inner())
    except OctoError as error:
        raise Failure(error.message, hint=error.hint) from error


@function("uuid")
def uuid(frame: Frame) -> str:
    """A random UUID (version 4), a new one each time."""
    from uuid import UUID

    return str(UUID(bytes=frame.surroundings.random(16), version=4))
