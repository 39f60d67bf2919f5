"""Requests tokens for pods by TokenRequest, bound to the pod, and renews them in time.

All times are in seconds since boot. The lifetime of a token is requested and answered in seconds,
so neither our clock nor the API server's has to be right.
"""

from collections.abc import Iterable

import msgspec

from quarterdeck.api.meta import SERVICE_ACCOUNTS, Object
from quarterdeck.kube import Backoff, Client, KubeError, Retries
from quarterdeck.localcluster.node.volumes.contents import Token

RETRY_SECONDS = 5.0
RETRIES = Backoff(base=0.2, limit=RETRY_SECONDS)
"""The API server knows a pod's node a moment later than the node itself."""
FAILURES_BEFORE_TROUBLE = 5
"""The number of failed requests before the failure is reported."""


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A token from the API server, and when to renew it."""

    value: str
    renew_at: float


def issued_by(answer: Object, token: Token, share: float, now: float) -> Issued:
    """The token of an answer, to renew after this share of its lifetime.

    The API server may answer a shorter lifetime than requested. It may also grant a longer one for
    clients that never read the file again, which does not count.
    """
    life = min(int(answer["spec"].get("expirationSeconds") or token.seconds), token.seconds)
    return Issued(value=answer["status"]["token"], renew_at=now + life * share)


class Tokens:
    """The tokens of one pod."""

    def __init__(self, client: Client, *, share: float) -> None:
        self._client = client
        self._share = share
        self._issued: dict[Token, Issued] = {}
        self._retries = Retries(RETRIES)
        self.retry_after = 0.0
        """Seconds until the next request after one that failed."""
        self.trouble = ""
        """Why there is no token, after several failures."""

    @property
    def values(self) -> dict[Token, str]:
        """The present tokens."""
        return {token: issued.value for token, issued in self._issued.items()}

    @property
    def renew_at(self) -> float | None:
        """When the next token is due for renewal; None without a token."""
        return min((issued.renew_at for issued in self._issued.values()), default=None)

    async def refresh(self, pod: Object, wanted: Iterable[Token], now: float) -> bool:
        """Request tokens that are missing or due; True if there is a new one.

        A failed request raises, and the old token stays.
        """
        renewed = False
        for token in wanted:
            issued = self._issued.get(token)
            if issued is None or now >= issued.renew_at:
                if issued is not None:
                    # Do not renew again at once, whatever the answer.
                    self._issued[token] = Issued(value=issued.value, renew_at=now + RETRY_SECONDS)
                try:
                    self._issued[token] = await self._request(pod, token, now)
                except KubeError as error:
                    self.retry_after = self._retries.next()
                    lasts = self._retries.failures >= FAILURES_BEFORE_TROUBLE
                    self.trouble = str(error) if lasts else ""
                    raise
                renewed = True
        self._retries.reset()
        self.trouble = ""
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
