"""Settings from environment variables."""

from pathlib import Path

import pytest

from quarterdeck.localcluster.binaries.errors import BinariesUnavailable
from quarterdeck.localcluster.binaries.settings import KUBERNETES_URL, BinarySettings


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param(
            {"QUARTERDECK_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"},
            "/a/quarterdeck",
            id="our own variable comes first",
        ),
        pytest.param(
            {"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/quarterdeck", id="then the desktop's"
        ),
        pytest.param({"HOME": "/c"}, "/c/.cache/quarterdeck", id="then the home directory"),
        pytest.param(
            {"QUARTERDECK_CACHE": "", "HOME": "/c"}, "/c/.cache/quarterdeck", id="empty is unset"
        ),
    ],
)
def test_cache_directory(env: dict[str, str], expected: str) -> None:
    assert BinarySettings.from_environment(env).cache == Path(expected)


def test_defaults() -> None:
    settings = BinarySettings.from_environment({"HOME": "/c"})
    assert settings.assets is None
    assert settings.kubernetes_url == KUBERNETES_URL
    assert (settings.download, settings.build) == (True, True)
    assert settings.connect_timeout == 5.0
    assert settings.machine


def test_everything_can_be_set() -> None:
    env = {
        "HOME": "/c",
        "KUBEBUILDER_ASSETS": "/assets",
        "QUARTERDECK_KUBERNETES_URL": "http://m/k/",
        "QUARTERDECK_ETCD_URL": "http://m/e",
        "QUARTERDECK_KWOK_URL": "http://m/w",
        "QUARTERDECK_DOWNLOAD": "off",
        "QUARTERDECK_BUILD": "False",
        "QUARTERDECK_CONNECT_TIMEOUT": "0.5",
        "QUARTERDECK_STALL_TIMEOUT": "7",
        "GOPROXY": "http://m/go",
    }
    settings = BinarySettings.from_environment(env)
    assert settings.assets == Path("/assets")
    assert settings.kubernetes_url == "http://m/k"
    assert (settings.etcd_url, settings.kwok_url) == ("http://m/e", "http://m/w")
    assert (settings.download, settings.build) == (False, False)
    assert (settings.connect_timeout, settings.stall_timeout) == (0.5, 7.0)
    assert settings.environment["GOPROXY"] == "http://m/go"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("QUARTERDECK_DOWNLOAD", "maybe", id="a switch that is neither on nor off"),
        pytest.param("QUARTERDECK_ETCD_URL", "mirror/etcd", id="an address without a scheme"),
        pytest.param("QUARTERDECK_CONNECT_TIMEOUT", "soon", id="a time-out that is no number"),
        pytest.param("QUARTERDECK_CONNECT_TIMEOUT", "-1", id="a negative time-out"),
        pytest.param("QUARTERDECK_STALL_TIMEOUT", "nan", id="a time-out that is not a number"),
    ],
)
def test_bad_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(BinariesUnavailable, match=f"{name}={value} is .*(set|write) it "):
        BinarySettings.from_environment({"HOME": "/c", name: value})
