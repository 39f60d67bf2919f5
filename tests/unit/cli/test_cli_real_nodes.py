"""Which state directories a cluster with real nodes takes."""

from pathlib import Path

import pytest

from quarterdeck.cli.cluster import LocalCluster
from quarterdeck.cli.local_real_nodes import check_state
from quarterdeck.cli.output import CommandFailed
from quarterdeck.localcluster.state import Layout


def test_a_cluster_never_changes_its_kind_of_nodes(tmp_path: Path) -> None:
    layout, cluster = Layout(tmp_path), LocalCluster()
    check_state(layout, 2, cluster)
    layout.etcd_data.mkdir()
    check_state(layout, None, cluster)
    with pytest.raises(CommandFailed, match=r"the node this-machine.*down --purge"):
        check_state(layout, 2, cluster)
    (tmp_path / "real-nodes").mkdir()
    check_state(layout, 2, cluster)
    with pytest.raises(CommandFailed, match="with real nodes"):
        check_state(layout, None, cluster)
