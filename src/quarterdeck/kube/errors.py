"""What can go wrong between us and the API server.

    KubeError
    ├── KubeconfigError             the settings are broken; nothing was sent
    ├── CredentialsError            no token or certificate could be had; nothing was sent
    ├── ConnectionFailed            no answer; a write may or may not have happened
    │   └── RequestTimeout          no answer in time
    ├── UnexpectedAnswer            an answer that is not an object of its kind
    └── ApiError                    the server said no
        ├── Unauthorized            401
        ├── Forbidden               403
        ├── NotFound                404 by the API server itself
        ├── Conflict                409 the object changed, or a precondition failed
        │   └── AlreadyExists       409 on a create
        ├── Gone                    410 the version asked for is too old; list again
        ├── Invalid                 422 (and 400, 413), with the fields at fault
        ├── TooManyRequests         429, with the seconds to wait
        └── ServerError             5xx
    A redirect, and a 404 that a proxy made up, is an ApiError of no kind.

`str()` of each is one line with the request and the server's reason.
"""

# ruff: noqa: N818 - the names are the API server's own words

import math
import re
from collections.abc import Mapping

import msgspec

from quarterdeck.kube.redact import is_secret


class KubeError(Exception):
    """The root of the tree."""


class KubeconfigError(KubeError):
    """A kubeconfig that cannot be used; the one line says what is wrong and where."""


class CredentialsError(KubeError):
    """No credentials could be had; the one line says from where and why."""


class ConnectionFailed(KubeError):
    """No answer came; `sent` says whether the request may have reached the server."""

    def __init__(self, method: str, path: str, why: str, *, sent: bool) -> None:
        super().__init__(f"{method} {path}: {why}")
        self.method = method
        self.path = path
        self.sent = sent


class RequestTimeout(ConnectionFailed):
    """No answer came in time."""


class UnexpectedAnswer(KubeError):
    """The server answered with something that is not an object of the kind asked for."""


class Cause(msgspec.Struct, frozen=True):
    """One reason for a refusal: which field, what kind of fault, in words."""

    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: list[Cause] | None = None
    retry_after_seconds: float = 0
    uid: str = ""


class Status(msgspec.Struct, frozen=True):
    """The `Status` object that the API server answers, or sends in a watch stream."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS: msgspec.json.Decoder[Status] = msgspec.json.Decoder(Status)


class ApiError(KubeError):
    """The server refused; `code` is the HTTP status, `reason` its one-word reason."""

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
    """The server does not know who we are (401)."""


class Forbidden(ApiError):
    """We may not do that, or nobody may (403); `by_role` tells which."""

    @property
    def by_role(self) -> bool:
        """Whether a right of ours is missing, and not a quota or somebody's policy says no."""
        return _BY_ADMISSION.search(self.message) is None


class NotFound(ApiError):
    """There is no such object, or no such kind (404); the API server says so, no proxy."""


class Conflict(ApiError):
    """The object is not what the request said it is, or another manager owns a field (409)."""


class AlreadyExists(Conflict):
    """There is already an object of that name (409)."""


class Gone(ApiError):
    """The version asked for is no longer kept (410)."""


class Invalid(ApiError):
    """The object breaks a rule of its kind; `causes` has the fields at fault."""


class TooManyRequests(ApiError):
    """The server is busy; `retry_after` has the seconds that it asks for."""


class ServerError(ApiError):
    """The server failed (5xx)."""


_BY_ADMISSION = re.compile(
    r"^admission webhook "
    # An authorizer speaks of the user, and these two of rights that the user has to have.
    r'| is forbidden: (?!user "|cannot set blockOwnerDeletion|.* attempting to grant )',
    re.IGNORECASE,
)
"""How the server says that the request may be made, but not this object."""
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
_UNKNOWN_PATH = b"404 page not found"
"""What an API server answers, in place of a Status, about a kind that it does not have."""


def api_error(
    method: str, path: str, code: int, body: bytes, retry_after: str | None = None
) -> ApiError:
    """The exception for an answer; a proxy's page instead of a Status is quoted in short."""
    status = parse_status(body)
    if status is not None:
        status = msgspec.structs.replace(status, code=code)
        return error_from_status(method, path, status, retry_after)
    said = " ".join(body[:200].decode(errors="replace").split())
    if 300 <= code < 400:
        said = "redirects are not followed"
    status = Status(message=said, code=code)
    if code == 404 and body.strip() != _UNKNOWN_PATH:
        # A load balancer's page. Who would believe it would delete what is still there.
        return ApiError(method, path, status, seconds(retry_after))
    return error_from_status(method, path, status, retry_after)


def error_from_status(
    method: str, path: str, status: Status, retry_after: str | None = None
) -> ApiError:
    """The exception for a Status, as it comes in an answer or in a watch stream."""
    kind = _BY_CODE.get(status.code, ServerError if status.code >= 500 else ApiError)
    if is_secret(path) and kind in (Invalid, ServerError, ApiError):
        status = _unquoted(status)
    if kind is Conflict and status.reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(method, path, status, seconds(retry_after))


def _unquoted(status: Status) -> Status:
    """The same refusal without the server's words, which may quote the value that it refuses."""
    details = status.details
    if details is not None:
        causes = [msgspec.structs.replace(cause, message="") for cause in details.causes or ()]
        details = msgspec.structs.replace(details, causes=causes)
    said = "the server's words are left out, because they may quote the secret"
    return msgspec.structs.replace(status, message=said, details=details)


def parse_status(body: bytes | msgspec.Raw) -> Status | None:
    """The Status in an answer; None when it is something else."""
    try:
        status = _STATUS.decode(body)
    except msgspec.MsgspecError:
        return None
    return status if status.kind == "Status" else None


def seconds(retry_after: str | None) -> float:
    """The wait that a Retry-After header asks for; 0 without one (dates are not used here)."""
    try:
        wait = float(retry_after or 0)
    except ValueError:
        return 0.0
    return max(0.0, wait) if math.isfinite(wait) else 0.0


def _described(status: Status) -> str:
    """Code, reason and message on one line, without saying anything twice."""
    message = " ".join(status.message.split())
    head = " ".join(part for part in (str(status.code or ""), status.reason) if part)
    return f"{head}: {message}" if message else head


def raise_for(method: str, path: str, code: int, body: bytes, headers: Mapping[str, str]) -> None:
    """Raise the exception for an answer that is not a success."""
    if not 200 <= code < 300:
        raise api_error(method, path, code, body, headers.get("retry-after"))
