"""The errors of requests to the API server.

    KubeError
    ├── KubeconfigError         the settings are broken; nothing was sent
    ├── CredentialsError        there is no token or certificate; nothing was sent
    ├── ConnectionFailed        no answer; a write may or may not have happened
    │   └── RequestTimeout      no answer in time
    ├── UnexpectedAnswer        an answer that is not an object of its kind
    └── ApiError                the server refused
        ├── Unauthorized        401
        ├── Forbidden           403, and each denial by a policy or webhook that is not `Invalid`
        ├── NotFound            404 from the API server itself
        ├── Conflict            409 the object changed, or a precondition failed
        │   └── AlreadyExists   409 on a create
        ├── Gone                410 the requested version is too old; list again
        ├── Invalid             422 (and 400, 413), with the invalid fields
        ├── TooManyRequests     429, with the seconds to wait
        └── ServerError         5xx

A redirect, or a 404 from a proxy, is a plain ApiError.

`str()` of each is one line with the request and the server's reason.
"""

# ruff: noqa: N818 - the names are the API server's own words

import math
import re
from collections.abc import Mapping

import msgspec

from quarterdeck.kube.redact import is_secret, names_secret


class KubeError(Exception):
    """The root of the tree."""


class KubeconfigError(KubeError):
    """A kubeconfig cannot be used; the message says what is wrong and where, in one line."""


class CredentialsError(KubeError):
    """There are no credentials; the message says why, in one line."""


class ConnectionFailed(KubeError):
    """No answer arrived; `sent` is whether the request may have reached the server."""

    def __init__(self, method: str, path: str, why: str, *, sent: bool) -> None:
        super().__init__(f"{method} {path}: {why}")
        self.method = method
        self.path = path
        self.sent = sent


class RequestTimeout(ConnectionFailed):
    """No answer arrived in time."""


class UnexpectedAnswer(KubeError):
    """The answer is not an object of the requested kind."""


class Cause(msgspec.Struct, frozen=True):
    """One reason of a refusal: the field, the kind of fault, and a message."""

    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: list[Cause] | None = None
    retry_after_seconds: float = 0
    uid: str = ""


class Status(msgspec.Struct, frozen=True):
    """The `Status` object that the API server answers, or sends in a watch."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS: msgspec.json.Decoder[Status] = msgspec.json.Decoder(Status)


class ApiError(KubeError):
    """The server refused the request; `code` is the HTTP status, `reason` its one-word reason."""

    def __init__(self, method: str, path: str, status: Status, retry_after: float = 0) -> None:
        super().__init__(f"{method} {path}: {_described(status)}")
        self.method = method
        self.path = path
        self.code = status.code
        self.reason = status.reason
        self.message = status.message
        details = status.details or _Details()
        self.causes: list[Cause] = list(details.causes or ())
        self.retry_after = retry_after or details.retry_after_seconds


class Unauthorized(ApiError):
    """The server does not accept our credentials (401)."""


class Forbidden(ApiError):
    """The request is not allowed (403); `by_role` is whether a right is missing.

    A policy or webhook that denies the request chooses the code of the answer, 404 or 409 for
    example. That code says nothing about the object, so such a denial is a `Forbidden` too.
    """

    @property
    def by_role(self) -> bool:
        """Whether we lack a right; False if a quota, a policy or a webhook forbids the request."""
        return _BY_ADMISSION.search(self.message) is None


class NotFound(ApiError):
    """There is no such object or no such kind (404), according to the API server, not a proxy."""


class Conflict(ApiError):
    """The object has changed, a precondition failed, or another manager owns a field (409)."""


class AlreadyExists(Conflict):
    """There is already an object of that name (409)."""


class Gone(ApiError):
    """The server no longer has the requested version (410)."""


class Invalid(ApiError):
    """The object violates a rule of its kind; `causes` has the invalid fields."""


class TooManyRequests(ApiError):
    """The server is busy; `retry_after` is the seconds to wait."""


class ServerError(ApiError):
    """The server failed (5xx)."""


_BY_ADMISSION = re.compile(
    r"^admission webhook "
    # An authorizer names the user; the other two are about rights that the user lacks.
    r'| is forbidden: (?!user "|cannot set blockOwnerDeletion|.* attempting to grant )',
    re.IGNORECASE,
)
"""Matches the message if admission, not authorization, forbids the request."""
_DENIED = re.compile(
    r'^admission webhook "[^"]*" denied the request\b'
    # The name of an object has no quotes and no spaces, and neither has its resource.
    r"|^\S+ \"[^\"]*\" is forbidden: ValidatingAdmissionPolicy '[^']*'.* denied request\b",
    re.DOTALL,
)
"""Matches the message if a policy or webhook denies the request.

It matches from the start: the message of a conflict quotes the names of field managers, and
anybody can choose such a name.
"""
_FIELD = re.compile(r"(?<!\S)(\.?[\w-]+(?:[.\[][\w\]-]*)*): ")
"""A field before a colon: `.spec.password: expected string`."""
_NAMES = re.compile(r"[.\[\]]+")
_BY_CODE: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: Invalid,
    422: Invalid,
    429: TooManyRequests,
}
_ABOUT_OBJECT = (Unauthorized, NotFound, Conflict, Gone)
"""Errors that say something about the object or the caller, if the API server itself sends them."""
_UNKNOWN_PATH = b"404 page not found"
"""The API server's answer, in place of a Status, for a kind that it does not serve."""


def api_error(
    method: str, path: str, code: int, body: bytes, retry_after: str | None = None
) -> ApiError:
    """The exception for an answer; of a proxy's page in place of a Status it quotes the start."""
    status = parse_status(body)
    if status is not None:
        status = msgspec.structs.replace(status, code=code)
        return error_from_status(method, path, status, retry_after)
    message = " ".join(body[:200].decode(errors="replace").split())
    if 300 <= code < 400:
        message = "redirects are not followed"
    status = Status(message=message, code=code)
    if code == 404 and body.strip() != _UNKNOWN_PATH:
        # A load balancer's page. A cache that took it for a NotFound would drop existing objects.
        return ApiError(method, path, status, seconds(retry_after))
    return error_from_status(method, path, status, retry_after)


def error_from_status(
    method: str, path: str, status: Status, retry_after: str | None = None
) -> ApiError:
    """The exception for a Status in an answer or in a watch."""
    kind = _BY_CODE.get(status.code, ServerError if status.code >= 500 else ApiError)
    if kind in _ABOUT_OBJECT and denied_by_policy(status.message):
        kind = Forbidden
    quotes = kind in (Invalid, ServerError, ApiError)
    if quotes and (is_secret(path) or _is_about_secret(status)):
        status = _unquoted(status)
    if kind is Conflict and status.reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(method, path, status, seconds(retry_after))


def denied_by_policy(message: str) -> bool:
    """Whether an admission policy or webhook denies the request, according to the message."""
    return _DENIED.search(message) is not None


def _is_about_secret(status: Status) -> bool:
    """Whether a field that is refused has the name of a secret."""
    causes = status.details.causes if status.details else None
    fields = [cause.field for cause in causes or ()]
    if not fields:
        # An apply that does not fit its schema is refused in words alone.
        fields = [found[1] for found in _FIELD.finditer(status.message)]
    return any(names_secret(name) for field in fields for name in _NAMES.split(field) if name)


def _unquoted(status: Status) -> Status:
    """The Status without the server's messages, which may quote the refused value."""
    details = status.details
    if details is not None:
        causes = [msgspec.structs.replace(cause, message="") for cause in details.causes or ()]
        details = msgspec.structs.replace(details, causes=causes)
    message = "the server's message is left out, because it may quote the secret"
    return msgspec.structs.replace(status, message=message, details=details)


def parse_status(body: bytes | msgspec.Raw) -> Status | None:
    """The Status in an answer; None if it is something else."""
    try:
        status = _STATUS.decode(body)
    except msgspec.MsgspecError:
        return None
    return status if status.kind == "Status" else None


def seconds(retry_after: str | None) -> float:
    """The seconds in a Retry-After header; 0 without one, or for a date."""
    try:
        wait = float(retry_after or 0)
    except ValueError:
        return 0.0
    return max(0.0, wait) if math.isfinite(wait) else 0.0


def _described(status: Status) -> str:
    """Code, reason and message on one line."""
    message = " ".join(status.message.split())
    head = " ".join(part for part in (str(status.code or ""), status.reason) if part)
    return f"{head}: {message}" if message else head


def raise_for(method: str, path: str, code: int, body: bytes, headers: Mapping[str, str]) -> None:
    """Raise the exception for an answer that is not a success."""
    if not 200 <= code < 300:
        raise api_error(method, path, code, body, headers.get("retry-after"))
