"""The real bundles, installed from a catalog, configured, and updated hop by hop."""

from pathlib import Path

import pytest
from tests.integration.operators.subscriptions.conftest import (
    LIMIT,
    Cluster,
    RealBundle,
    write_catalog,
)

from quarterdeck.testing.waiting import eventually

CONFIG = [{"env": [{"name": "ARGS", "value": "-v=4"}]}]
KEDA = ["2.16.0", "2.16.1", "2.17.0", "2.17.1", "2.17.2", "2.18.0"]


@pytest.mark.parametrize(
    ("package", "prefix", "versions", "deployment"),
    [
        ("etcd", "etcdoperator.v", ["0.9.0", "0.9.2", "0.9.4"], "etcd-operator"),
        ("prometheus", "prometheusoperator.", ["0.47.0", "v0.65.1"], "prometheus-operator"),
        ("keda", "keda.v", KEDA, "keda-olm-operator"),
    ],
    ids=["etcd", "prometheus", "keda"],
)
def test_installed_configured_and_updated(
    cluster: Cluster,
    catalog_root: Path,
    real_bundle: RealBundle,
    package: str,
    prefix: str,
    versions: list[str],
    deployment: str,
) -> None:
    """One InstallPlan per hop; the config of the Subscription persists."""
    names = [f"{prefix}{version}" for version in versions]
    write_catalog(catalog_root / cluster.namespace, list(map(real_bundle, names)))
    cluster.catalog_source(cluster.namespace)
    cluster.subscribe(package, startingCSV=names[0], config=CONFIG)
    cluster.wait_phase(names[-1])
    assert cluster.env(deployment)["ARGS"]["value"] == "-v=4"
    eventually(lambda: len(cluster.list("csv")) == 1, "the older versions are gone", LIMIT)
    plans = cluster.list("installplan")
    assert sorted(one["spec"]["clusterServiceVersionNames"][0] for one in plans) == names
    status = cluster.status("subscription", package)
    assert status["installedCSV"] == names[-1]
