"""octo/testing/harness.py: configs and runtimes from YAML text, as tests of plug-ins use them."""

from __future__ import annotations

import pytest

from octo.errors import ConfigError
from octo.observe import FlowEnded
from octo.testing import harness

CONFIG = """
    env: [ { name: CITY, default: Oslo } ]
    resources: { templates: [ { resource: hello.txt } ] }
    flows:
      - name: main
        process: [ { type: template-resource, settings: { id: hello.txt } } ]
"""
FILES = {"hello.txt": "Hello {{ env.CITY }}, {{ body.name }}"}


class Endings:
    kinds = (FlowEnded,)

    def __init__(self):
        self.outcomes = []

    def notify(self, event):
        self.outcomes.append(event.outcome)


async def test_a_runtime_has_an_environment_files_and_observers_of_its_own():
    endings = Endings()

    async with harness.runtime(CONFIG, environ={"CITY": "Moss"}, files=FILES, observers=[endings]) as octo:
        message = await octo.invoke("main", {"name": "Ada"})

    assert (message.body, endings.outcomes) == ("Hello Moss, Ada", ["completed"])


def test_a_config_that_is_wrong_is_refused():
    with pytest.raises(ConfigError, match=r'config\.yaml:1:31: block "nothing" not registered'):
        harness.config("flows: [ { process: [ { type: nothing } ], name: a } ]")
