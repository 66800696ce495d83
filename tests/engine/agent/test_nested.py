"""octo/agent/nested.py, octo/agent/value.py: an agent as a tool of another agent."""

from textwrap import dedent

from octo.testing import harness

NESTED = """
connectors:
  - name: outer
    type: llm-scripted
    settings:
      turns:
        - calls: [{ name: research, args: { user_message: What is Oslo? } }]
        - text: { done: true }
  - name: inner
    type: llm-scripted
    settings:
      turns:
        - calls: [{ name: lookup, args: { city: Oslo } }]
        - text: It is a city.
flows:
  - name: f
    process:
      - type: ai-agent
        name: lead
        connector: outer
        prompt: Do it.
        tools:
          - name: research
            agent:
              description: Finds things out.
              connector: inner
              prompt: Find it out.
              tools:
                - name: lookup
                  process: [{ type: set-variable, settings: { name: seen, value: body.city } }]
"""


async def test_an_agent_works_for_another_one():
    async with harness.runtime(dedent(NESTED)) as runtime:
        message = await runtime.invoke("f", {})

    assert (message.body, message.vars["seen"]) == ({"done": True}, "Oslo")
