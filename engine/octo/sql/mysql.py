"""MySQL and MariaDB databases, through PyMySQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pymysql
from pymysql.constants import FIELD_TYPE, SERVER_STATUS
from pymysql.converters import conversions

from octo.errors import did_you_mean
from octo.sql.connection import DatabaseError, Result, Scalar, Wanted, left_open, one_line
from octo.sql.values import records

_OPTIONS: dict[str, Callable[[str], object]] = {
    "charset": str,
    "connect_timeout": int,
    "ssl_ca": str,
    "ssl_cert": str,
    "ssl_key": str,
    "ssl_verify_identity": lambda text: text == "true",
    "unix_socket": str,
}
"""What may stand in the query of a DSN."""
_FORM = "write `mysql://user@host:3306/database`"


def options(dsn: str, password: str | None) -> tuple[dict[str, Any], bool]:
    """The connection options of a DSN, and whether the password replaced one that was in it.

    Raises DatabaseError, which shows of the DSN at most the name of an option.
    """
    try:
        url = urlsplit(dsn)
        port = url.port
    except ValueError:
        raise DatabaseError("`dsn` cannot be read", hint=_FORM) from None
    if url.scheme not in {"mysql", "mariadb"}:
        raise DatabaseError("`dsn` is no URL of a MySQL database", hint=_FORM)
    found: dict[str, Any] = {"host": url.hostname or "localhost", "port": port or 3306, "connect_timeout": 10}
    if url.username:
        found["user"] = unquote(url.username)
    if url.path.strip("/"):
        found["database"] = unquote(url.path.strip("/"))
    for name, value in parse_qsl(url.query, keep_blank_values=True):
        if name not in _OPTIONS:
            raise DatabaseError(f"`dsn` has an unknown option `{name}`", hint=did_you_mean(name, _OPTIONS))
        try:
            found[name] = _OPTIONS[name](value)
        except ValueError:
            raise DatabaseError(f"option `{name}` of `dsn` is no number", hint=_FORM) from None
    own = unquote(url.password) if url.password is not None else None
    found["password"] = (own or "") if password is None else password
    return found, password is not None and own is not None


class MysqlConnection:
    """A connection in which every query is a transaction of its own, and times are in UTC."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._raw: Any = None
        try:
            self._raw = self._connect()
        except (pymysql.Error, OSError) as error:
            raise DatabaseError(f"cannot connect: {_reason(error)}") from error

    def execute(self, query: str, args: Sequence[Scalar], wanted: Wanted) -> Result:
        try:
            with self._raw.cursor() as cursor:
                if args:
                    self._prepare(cursor, query, args)
                else:
                    cursor.execute(query)
                result = _result(cursor, wanted)
            if self._in_transaction():
                raise left_open()
        except (pymysql.Error, OSError) as error:
            raise DatabaseError(_reason(error)) from error
        finally:
            if self._in_transaction():
                self._roll_back()
        return result

    @property
    def lost(self) -> bool:
        return not self._raw.open

    def alive(self) -> bool:
        try:
            self._raw.ping(reconnect=False)
        except (pymysql.Error, OSError):
            return False
        return True

    def interrupt(self) -> None:
        try:
            other = self._connect()
            with other, other.cursor() as cursor:
                cursor.execute(f"KILL QUERY {self._raw.thread_id()}")
        except (pymysql.Error, OSError):
            pass  # the query ends by itself, or with the connection

    def close(self) -> None:
        try:
            self._raw.close()
        except (pymysql.Error, OSError):
            pass  # it is closed already

    def _connect(self) -> pymysql.Connection[Any]:
        settings: dict[str, Any] = {
            "charset": "utf8mb4",
            "autocommit": True,
            "init_command": "SET time_zone = '+00:00'",
            "conv": conversions | {FIELD_TYPE.TIME: str, FIELD_TYPE.NEWDECIMAL: float, FIELD_TYPE.DECIMAL: float},
        }
        return pymysql.connect(**(settings | dict(self._options)))

    def _prepare(self, cursor: Any, query: str, args: Sequence[Scalar]) -> None:
        """Let the server bind the arguments to the `?` of the query.

        They go there as variables of the session, text in hexadecimal digits, so that nothing is ever quoted.
        """
        names = [f"@octo_{index}" for index in range(len(args))]
        values = ", ".join(f"{name} = {_literal(value)}" for name, value in zip(names, args, strict=True))
        cursor.execute(f"SET @octo_query = {_literal(query)}, {values}")
        cursor.execute("PREPARE octo FROM @octo_query")
        cursor.execute(f"EXECUTE octo USING {', '.join(names)}")

    def _in_transaction(self) -> bool:
        return bool(self._raw.open and self._raw.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def _roll_back(self) -> None:
        try:
            self._raw.rollback()
        except (pymysql.Error, OSError):
            self.close()


def _literal(value: Scalar) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return f"{value!r}e0" if "e" not in repr(value) else repr(value)
    return f"_utf8mb4 X'{value.encode().hex()}'"


def _result(cursor: Any, wanted: Wanted) -> Result:
    affected = max(cursor.rowcount, 0)
    if cursor.description is None or wanted == "none":
        return Result([], affected)
    names = [column[0] for column in cursor.description]
    return Result(records(names, cursor.fetchmany(1) if wanted == "first" else cursor.fetchall()), affected)


def _reason(error: Exception) -> str:
    """The text of an error, without its number."""
    return one_line(str(error.args[1] if len(error.args) > 1 else error) or "the connection is lost")
