"""The function with which `ai-embed.yaml` compares vectors."""

from math import fsum


def nearest(body, vars):
    """The notes that are most like the question, with how like they are: 1 is the same."""
    asked, *vectors = vars["embedding"]
    likeness = [round(fsum(a * b for a, b in zip(asked, vector, strict=True)), 3) for vector in vectors]
    found = sorted(zip(likeness, body["notes"], strict=True), reverse=True)
    return [{"note": note, "likeness": likeness} for likeness, note in found[: body["most"]]]
