"""Connects to Kubernetes: credentials, the client, watches, the object cache.

connection = load_kubeconfig()          # or in_cluster(os.environ)
async with Client(connection) as client:
    cache = Cache(client, CONFIG_MAPS, own_manager="me")
"""

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.kube.auth import Anonymous, Credentials, ExecPlugin, StaticHeader, TokenFile
from quarterdeck.kube.cache import Cache
from quarterdeck.kube.client import Client, ListResult
from quarterdeck.kube.compare import covers, differences, owned_fields, unsettled
from quarterdeck.kube.connection import Connection, in_cluster
from quarterdeck.kube.errors import (
    AlreadyExists,
    ApiError,
    Cause,
    Conflict,
    ConnectionFailed,
    CredentialsError,
    Forbidden,
    Gone,
    Invalid,
    KubeconfigError,
    KubeError,
    NotFound,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnexpectedAnswer,
)
from quarterdeck.kube.kubeconfig import load_kubeconfig
from quarterdeck.kube.metrics import RequestMetrics
from quarterdeck.kube.selector import LabelRequirement, LabelSelector, parse_selector
from quarterdeck.kube.store import Change
from quarterdeck.kube.watch_events import Deleted

__all__ = [
    "AlreadyExists",
    "Anonymous",
    "ApiError",
    "Backoff",
    "Cache",
    "Cause",
    "Change",
    "Client",
    "Conflict",
    "Connection",
    "ConnectionFailed",
    "Credentials",
    "CredentialsError",
    "Deleted",
    "ExecPlugin",
    "Forbidden",
    "Gone",
    "Invalid",
    "KubeError",
    "KubeconfigError",
    "LabelRequirement",
    "LabelSelector",
    "ListResult",
    "NotFound",
    "RequestMetrics",
    "RequestTimeout",
    "Retries",
    "ServerError",
    "StaticHeader",
    "TokenFile",
    "TooManyRequests",
    "Unauthorized",
    "UnexpectedAnswer",
    "covers",
    "differences",
    "in_cluster",
    "load_kubeconfig",
    "owned_fields",
    "parse_selector",
    "unsettled",
]
