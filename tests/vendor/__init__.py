"""Loopback doubles of LLM vendors: they speak the wire, check requests as strictly, and can fail."""

from vendor import faults as faults
from vendor.anthropic import AnthropicServer as AnthropicServer
from vendor.anthropic import Redacted as Redacted
from vendor.anthropic import call as call
from vendor.anthropic import error as error
from vendor.anthropic import error_event as error_event
from vendor.anthropic import overloaded as overloaded
from vendor.anthropic import pings as pings
from vendor.anthropic import rate_limited as rate_limited
from vendor.anthropic import reply as reply
from vendor.server import Answer as Answer
from vendor.server import Request as Request
