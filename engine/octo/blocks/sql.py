"""Run SQL on a database."""

from collections.abc import Iterator, Sequence
from typing import Self

from pydantic import model_validator

from octo.block import Block, Finding
from octo.config.model import Config
from octo.connectors.database import PLACEHOLDERS, Database
from octo.errors import OctoError
from octo.fields import Bool, ConnectorName, Expression, Text
from octo.message import Message
from octo.refusals import Refusals
from octo.run import Run, RunError
from octo.sql.connection import Scalar
from octo.sql.pool import Pool
from octo.sql.values import bound
from octo.values import Json, kind_of

_MARKS = {"postgres": "$", "mysql": "?", "sqlite": "?$:@"}
"""How a place for an argument begins."""


class DatabaseName(ConnectorName):
    """The name of a configured `database` connector."""

    __slots__ = ()
    type = "database"


class Sql(Block, type="sql", group="integration"):
    """Run SQL; the body becomes the rows that it gives, or what it changed.

    Each block is a transaction of its own: its SQL happens as a whole or, when it fails, not at all.
    """

    connector: DatabaseName
    """The `database` connector."""

    query: Text
    """The SQL. Arguments stand in it as `?` (SQLite, MySQL) or as `$1`, `$2` (PostgreSQL)."""

    args: tuple[Expression, ...] = ()
    """The arguments, in order: text, numbers, booleans or null. They are bound, never put into the text."""

    exec: Bool = False
    """The SQL gives no rows: the body becomes `{"rowsAffected": n}`."""

    single: Bool = False
    """The body becomes the first row, or null when there is none, in place of the list of rows."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        if not self.query.strip():
            refusals.add("expected SQL, found blank text", "query")
        elif "\0" in self.query:
            refusals.add("the SQL holds a NUL character", "query")
        refusals.raise_if_any()
        return self

    def check(self, config: Config) -> Iterator[Finding]:
        if self.single and self.exec:
            yield Finding("`single` has no effect with `exec`", ("single",), "leave one of them out", warning=True)
        connector = config.connector(self.connector)
        if isinstance(connector, Database) and self.args and not set(_MARKS[connector.driver]) & set(self.query):
            hint = f"with driver `{connector.driver}` arguments stand as {PLACEHOLDERS[connector.driver]}"
            yield Finding("`query` has no place for `args`", ("args",), hint, warning=True)

    async def execute(self, message: Message, run: Run) -> Message:
        args = [self._argument(index, message, run) for index in range(len(self.args))]
        pool = run.connector(self.connector, Pool)
        try:
            result = await pool.execute(self.query, args, "none" if self.exec else "first" if self.single else "all")
        except OctoError as error:
            raise RunError(f"sql {'exec' if self.exec else 'query'}: {error.message}", hint=error.hint) from error
        message.body = self._body(result.rows, result.affected)
        return message

    def _argument(self, index: int, message: Message, run: Run) -> Scalar:
        value = run.evaluate(self.args[index], message, f"sql args[{index}]")
        if isinstance(value, (list, dict)):
            raise RunError(
                f"sql args[{index}] must be text, a number, a boolean or null, got {kind_of(value)}",
                hint="`toJson(…)` makes text of it",
            )
        argument: Scalar = value
        return bound(argument)

    def _body(self, rows: Sequence[dict[str, Json]], affected: int) -> Json:
        if self.exec:
            return {"rowsAffected": float(affected)}
        if self.single:
            return rows[0] if rows else None
        return rows
