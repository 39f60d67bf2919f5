"""A replica whose watch has fallen silent takes over after an update that it has not seen."""

from pathlib import Path

from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
)

from quarterdeck.testing.audit import AuditedRequest, writes_by
from quarterdeck.testing.fault_proxy import FaultProxy, Stall
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

ELECT = ("--leader-elect", "--lease-duration=6", "--renew-deadline=4", "--retry-period=0.5")


def test_a_new_leader_does_not_write_an_old_release_over_the_new_one(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator, tmp_path: Path
) -> None:
    """It was found writing 1.0.0 over 1.1.0 while ClusterVersion said Completed 1.1.0."""
    here = cluster.namespace
    for version, before in (("1.0.0", []), ("1.1.0", ["1.0.0"])):
        files = {"0000_10_chart_00.json": config_map("chart", here, version=version)}
        releases.write(version, files, before)
    elect = (*ELECT, f"--lease-namespace={here}")
    user = f"standby-{here}"

    def chart_writes() -> list[AuditedRequest]:
        """What the standby, which is a user of its own, has written to the release's object."""
        written = writes_by(cluster.plane.audit_log, user)
        return [one for one in written if (one.namespace, one.name) == (here, "chart")]

    with FaultProxy(cluster.plane.kubeconfig_for(user, ["system:masters"])) as proxy:
        leader = run_cvo("1.0.0", *elect)
        leader.logged("leading")
        cluster.wait_release("1.0.0")
        proxied = proxy.write_kubeconfig(tmp_path / "proxied")
        standby = run_cvo("1.0.0", *elect, f"--kubeconfig={proxied}")
        standby.logged("standing by")
        proxy.inject(Stall(), verb="watch", resource="clusterversions", times=None)
        before_cut = proxy.count(verb="watch", resource="clusterversions")
        proxy.cut_now()

        def is_silent() -> bool:
            return proxy.count(verb="watch", resource="clusterversions") > before_cut

        eventually(is_silent, "the watch of ClusterVersions opened again")
        proxy.clear()
        cluster.ask(version="1.1.0")
        cluster.wait_release("1.1.0")

        leader.kill()
        standby.logged("work begins")
        standby.logged("payload begun")
        assert chart_writes() == [], "1.1.0 is there already"
        # Done in the end, so that everything that it would do by mistake has been done before.
        cluster.apply(config_map("chart", here, version="spoilt"))

        def healed() -> bool:
            return bool(cluster.find("configmap", "chart")["data"]["version"] == "1.1.0")

        eventually(healed, "1.1.0 kept by the new leader")
        # One write heals. A write of 1.0.0 before it or on the way would be a second one.
        eventually(lambda: chart_writes() or None, "the healing write in the audit log")
        assert [(one.verb, one.code) for one in chart_writes()] == [("patch", 200)]
        assert {line["version"] for line in standby.lines("work begins")} == {"1.1.0"}
        assert cluster.status()["history"][0]["version"] == "1.1.0"
