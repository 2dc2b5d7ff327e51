"""Messages that are no message of the protocol: every one that expects an answer gets one, and a short one."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from pydantic import ValidationError

_SURROGATE = "a text in it holds a lone surrogate, which is not text\nfix: decode it with the right encoding first"
_NOT_JSON = "the message is not JSON\nfix: send one JSON-RPC 2.0 message, encoded as UTF-8"
_NO_REQUEST = "the message is no request of the protocol\nfix: send JSON-RPC 2.0, with a method that MCP has"
_LONGEST = 200  # characters of an id or the name of a method


def refusal(raw: str | bytes) -> types.JSONRPCError | None:
    """Return the answer to a message that cannot be taken; None if it can be, or if it expects no answer."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(raw, by_name=False)
    except ValidationError:
        return _answer(raw)
    long = any(len(str(getattr(message, name, ""))) > _LONGEST for name in ("id", "method"))
    return _answer(raw) if long else None  # the package would repeat it


def _answer(raw: str | bytes) -> types.JSONRPCError | None:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return _error(None, types.PARSE_ERROR, _NOT_JSON)
    if isinstance(data, dict) and "method" in data and "id" not in data:
        return None  # a notification: whoever sends one waits for nothing
    id = _id(data)
    if not _is_text(data):
        return _error(id, types.INVALID_PARAMS, _SURROGATE)
    return _error(id, types.INVALID_REQUEST, _NO_REQUEST)


def _id(data: Any) -> int | str | None:
    given = data.get("id") if isinstance(data, dict) else None
    if isinstance(given, str) and len(given) <= _LONGEST and _is_text(given):
        return given
    return given if isinstance(given, int) and not isinstance(given, bool) and abs(given) < 1 << 53 else None


def _is_text(data: Any) -> bool:
    try:
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _error(id: int | str | None, code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=message))
