"""The API server as the payload engine sees it: which kinds there are, objects, writes."""

from types import TracebackType

from quarterdeck.kube import Client

FIELD_MANAGER = "quarterdeck-cluster-version"


class Cluster:
    """Follows the objects that payloads are about, while its context lasts."""

    def __init__(self, client: Client) -> None:
        """Read and write through this client, the leader's."""
        self._client = client

    async def __aenter__(self) -> "Cluster":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return
