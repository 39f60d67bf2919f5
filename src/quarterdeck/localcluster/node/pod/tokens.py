"""Tokens for pods: asked for by TokenRequest, bound to the pod, renewed before they expire.

All times are in seconds since boot. How long a token lives is asked for and answered in seconds,
so that neither our clock nor the API server's has to be right.
"""

from collections.abc import Iterable

import msgspec

from quarterdeck.api.meta import SERVICE_ACCOUNTS, Object
from quarterdeck.kube import Client, KubeError
from quarterdeck.localcluster.node.volumes.contents import Token

RETRY = 5.0
FIRST_RETRY = 0.1
"""Seconds; the API server learns of a pod's node a moment after the node itself."""
FAILURES_BEFORE_TROUBLE = 5
"""So many requests may fail before that is worth telling."""


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A token as the API server gave it."""

    value: str
    renew_at: float


def issued_by(answer: Object, token: Token, share: float, now: float) -> Issued:
    """The token of an answer, to be renewed when this share of its life is over.

    The API server may give it a shorter life than was asked for, and says so; and a longer one,
    for a client that never reads its file again, which is not to be relied on.
    """
    life = min(int(answer["spec"].get("expirationSeconds") or token.seconds), token.seconds)
    return Issued(value=answer["status"]["token"], renew_at=now + life * share)


class Tokens:
    """The tokens of one pod."""

    def __init__(self, client: Client, *, share: float) -> None:
        self._client = client
        self._share = share
        self._issued: dict[Token, Issued] = {}
        self._failures = 0
        self.trouble = ""
        """Why there is no token, once that has lasted."""

    @property
    def retry_after(self) -> float:
        """Seconds until the next request after one that failed."""
        return min(RETRY, FIRST_RETRY * 2.0 ** min(self._failures, 10))

    @property
    def values(self) -> dict[Token, str]:
        """The tokens that there are."""
        return {token: issued.value for token, issued in self._issued.items()}

    @property
    def renew_at(self) -> float | None:
        """When the next one is to be renewed."""
        return min((issued.renew_at for issued in self._issued.values()), default=None)

    async def refresh(self, pod: Object, wanted: Iterable[Token], now: float) -> bool:
        """Ask for what is missing or due, and say whether there is anything new.

        An old one stays when that fails, and it raises.
        """
        renewed = False
        for token in wanted:
            issued = self._issued.get(token)
            if issued is None or now >= issued.renew_at:
                if issued is not None:
                    # Whatever the answer: not again at once.
                    self._issued[token] = Issued(value=issued.value, renew_at=now + RETRY)
                try:
                    self._issued[token] = await self._request(pod, token, now)
                except KubeError as error:
                    self._failures += 1
                    self.trouble = str(error) if self._failures >= FAILURES_BEFORE_TROUBLE else ""
                    raise
                renewed = True
        self._failures, self.trouble = 0, ""
        return renewed

    async def _request(self, pod: Object, token: Token, now: float) -> Issued:
        meta = pod["metadata"]
        answer = await self._client.post(
            SERVICE_ACCOUNTS,
            pod["spec"].get("serviceAccountName") or "default",
            "token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": [token.audience] if token.audience else [],
                    "expirationSeconds": token.seconds,
                    "boundObjectRef": {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": meta["name"],
                        "uid": meta["uid"],
                    },
                },
            },
            namespace=meta["namespace"],
        )
        return issued_by(answer, token, self._share, now)
