"""The staleness checker's delivered static pod, and as it is in a local cluster."""

import yaml

from quarterdeck.localcluster.definitions import definitions_directory
from quarterdeck.localcluster.node.static_pods.manifest import parse_manifest
from quarterdeck.localcluster.operators import find_operator, local_static_pod, pod_name

DELIVERED = (definitions_directory().parent / "staleness" / "static-pod.yaml").read_bytes()


def test_the_delivered_manifest_is_a_static_pod_of_the_local_connection() -> None:
    """At the document's interval, on the host's network, with no account of the cluster."""
    pod = parse_manifest(DELIVERED, "this-machine")
    assert pod["metadata"]["name"] == pod_name(find_operator("staleness"))
    assert pod["spec"]["hostNetwork"] is True
    assert "--interval=10m" in pod["spec"]["containers"][0]["args"]


def test_a_local_cluster_changes_only_address_interval_and_certificate() -> None:
    delivered = yaml.safe_load(DELIVERED)
    pod = local_static_pod(delivered, find_operator("staleness").local.args)
    assert "hostNetwork" not in pod["spec"]
    arguments = pod["spec"]["containers"][0]["args"]
    assert set(arguments) - set(delivered["spec"]["containers"][0]["args"]) == {"--interval=60s"}
    # The certificate is issued again at each start.
    gone = set(delivered["spec"]["containers"][0]["args"]) - set(arguments)
    assert gone == {"--interval=10m", "--renew-certificate=90d"}
    pod["spec"]["containers"][0]["args"] = delivered["spec"]["containers"][0]["args"]
    pod["spec"]["hostNetwork"] = True
    assert pod == delivered
