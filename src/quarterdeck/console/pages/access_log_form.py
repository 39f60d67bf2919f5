"""The form for access logs: its fields from a spec, and a spec from its fields. Pure.

The API server and HAProxy judge what is in the fields; here they only become a spec.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1.access_logging import Facility

DESTINATIONS = {
    "": "Requests are not logged",
    "Container": "Container: the sidecar of the router's pods",
    "Syslog": "Syslog: an endpoint over UDP",
}
FACILITIES = tuple(one.value for one in Facility)
EMPTY_REQUESTS = ("", "Log", "Ignore")
COOKIES = {"": "none", "Exact": "with this name", "Prefix": "whose name starts with"}
MAX_HEADERS = 20


class FieldFault(Exception):  # noqa: N818 - reads as what it is
    """A field that cannot become a part of a spec: field, value and remedy, for people."""

    def __init__(self, field: str, value: str, remedy: str) -> None:
        super().__init__(f"{field}: {value!r}: {remedy}")


class AccessLogFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the form, as text."""

    destination: str = ""
    address: str = ""
    port: str = ""
    facility: str = ""
    max_length: str = ""
    format: str = ""
    request_headers: str = ""
    response_headers: str = ""
    cookie: str = ""
    cookie_name: str = ""
    cookie_length: str = ""
    empty_requests: str = ""


def fields_of(logging: Object | None) -> AccessLogFields:
    """The fields that show a `spec.logging`."""
    access = (logging or {}).get("access") or {}
    destination = access.get("destination") or {}
    kind = str(destination.get("type") or "")
    parameters = destination.get(kind.lower()) or {}
    captured = access.get("httpCaptureHeaders") or {}
    cookie: Object = next(iter(access.get("httpCaptureCookies") or ()), {})
    return AccessLogFields(
        destination=kind,
        address=_text(parameters.get("address")),
        port=_text(parameters.get("port")),
        facility=_text(parameters.get("facility")),
        max_length=_text(parameters.get("maxLength")),
        format=_text(access.get("httpLogFormat")),
        request_headers=_headers_text(captured.get("request")),
        response_headers=_headers_text(captured.get("response")),
        cookie=_text(cookie.get("matchType")),
        cookie_name=_text(cookie.get("name") or cookie.get("namePrefix")),
        cookie_length=_text(cookie.get("maxLength")),
        empty_requests=_text(access.get("logEmptyRequests")),
    )


def fields_in(form: Mapping[str, str]) -> AccessLogFields:
    """The fields of a form that was sent."""
    return AccessLogFields(
        **{name: form.get(name, "").strip() for name in AccessLogFields.__struct_fields__}
    )


def logging_of(fields: AccessLogFields) -> Object | None:
    """The `spec.logging` of the fields; None if requests are not logged."""
    if not fields.destination:
        return None
    if fields.destination not in DESTINATIONS:
        raise FieldFault("destination", fields.destination, "choose one of the list")
    parameters: Object = {}
    if fields.destination == "Syslog":
        parameters["address"] = fields.address
        parameters["port"] = _number("port", fields.port)
        if fields.facility:
            parameters["facility"] = fields.facility
    if fields.max_length:
        parameters["maxLength"] = _number("maxLength", fields.max_length)
    access: Object = {
        "destination": {
            "type": fields.destination,
            fields.destination.lower(): parameters,
        }
    }
    if fields.format:
        access["httpLogFormat"] = fields.format
    captured = {
        side: found
        for side, text in (
            ("request", fields.request_headers),
            ("response", fields.response_headers),
        )
        if (found := _headers(side, text))
    }
    if captured:
        access["httpCaptureHeaders"] = captured
    if fields.cookie:
        access["httpCaptureCookies"] = [_cookie(fields)]
    if fields.empty_requests:
        access["logEmptyRequests"] = fields.empty_requests
    return {"access": access}


def _cookie(fields: AccessLogFields) -> Object:
    name = "namePrefix" if fields.cookie == "Prefix" else "name"
    made: Object = {"matchType": fields.cookie, name: fields.cookie_name}
    if fields.cookie_length:
        made["maxLength"] = _number("cookie's maxLength", fields.cookie_length)
    return made


def _headers(side: str, text: str) -> list[Object]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MAX_HEADERS:
        raise FieldFault(f"{side} headers", f"{len(lines)} lines", f"give at most {MAX_HEADERS}")
    found = []
    for line in lines:
        name, _, length = line.rpartition(":")
        if not name:
            raise FieldFault(f"{side} headers", line, "write a line like X-Request-Id:64")
        found.append(
            {"name": name.strip(), "maxLength": _number(f"{side} headers", length.strip())}
        )
    return found


def _headers_text(headers: Any) -> str:
    return "\n".join(f"{one.get('name')}:{one.get('maxLength')}" for one in headers or ())


def _number(field: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise FieldFault(field, text, "write a number")
    return int(text)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
