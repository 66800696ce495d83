"""The function that `python-tool.yaml` gives to its agent."""

from datetime import date, timedelta


def due_date(body, vars):
    """Called with the message body and, because it has a parameter of that name, with the variables."""
    due = date.fromisoformat(body["issued"]) + timedelta(days=body["days"])
    return {"due": due.isoformat(), "tool": vars["toolName"]}
