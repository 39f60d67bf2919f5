"""`quarterdeck ingress explain` without a cluster: with a real HAProxy, and without one."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.ingress_controllers import ingress_controller, to_container, to_syslog

from quarterdeck.api.meta import Object
from quarterdeck.cli.main import cli

needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="no HAProxy here")


def explain(path: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["ingress", "explain", "--file", str(path), *options])


def written(path: Path, obj: Object) -> Path:
    file = path / "controller.yaml"
    file.write_text(yaml.safe_dump(obj))
    return file


@needs_haproxy
def test_environment_lines_and_a_line_of_a_real_haproxy(tmp_path: Path) -> None:
    access = to_syslog(
        httpLogFormat="%ci  %ST it's $(HOME) %[capture.req.hdr(0)] %CC",
        httpCaptureHeaders={"request": [{"name": "Referer", "maxLength": 8}]},
        httpCaptureCookies=[{"matchType": "Exact", "name": "foo", "maxLength": 9}],
    )
    done = explain(written(tmp_path, ingress_controller("shop", logging=access)))
    assert done.exit_code == 0, done.output
    assert "ROUTER_SYSLOG_ADDRESS=192.0.2.9:514" in done.output
    assert "log 192.0.2.9:514 len 1024 local1 info" in done.output
    assert "capture cookie 'foo=' len 9" in done.output
    assert "198.51.100.7  200 it's $(HOME) https:// foo=abc12" in done.output


@needs_haproxy
def test_every_facility_has_a_sample(tmp_path: Path) -> None:
    for facility in ("kern", "auth2", "local7"):
        access = to_syslog(httpLogFormat="%ST ok")
        access["access"]["destination"]["syslog"]["facility"] = facility
        done = explain(written(tmp_path, ingress_controller(logging=access)), "-o", "json")
        assert json.loads(done.output)["sampleLine"] == "200 ok"


@needs_haproxy
def test_a_format_that_haproxy_refuses(tmp_path: Path) -> None:
    access = to_container(httpLogFormat="%ci %zz")
    done = explain(written(tmp_path, ingress_controller(logging=access)), "--output=json")
    found = json.loads(done.output)
    assert (done.exit_code, found["admitted"], found["reason"]) == (1, False, "InvalidLogFormat")
    assert "character 5" in found["message"]
    assert (found["environment"], found["haproxyLines"]) == ({}, [])


def test_without_access_logs(tmp_path: Path) -> None:
    done = explain(written(tmp_path, ingress_controller("shop")))
    assert done.exit_code == 0, done.output
    assert "requests are not logged" in done.output
    assert "ROUTER_INGRESS_CLASS=quarterdeck-shop" in done.output


def test_without_haproxy_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    access = to_container(httpLogFormat="%ci")
    done = explain(written(tmp_path, ingress_controller(logging=access)))
    assert done.exit_code == 0, done.output
    assert "HAProxy is not installed here" in done.output
    assert "install HAProxy" in done.output


def test_a_spec_that_cannot_be_carried_out(tmp_path: Path) -> None:
    done = explain(written(tmp_path, ingress_controller(replicas=-1)))
    assert done.exit_code == 1
    assert "spec.replicas: -1: use 0 or more" in done.output


def test_a_misspelt_field_is_not_passed_over(tmp_path: Path) -> None:
    """The API server would refuse or drop it; without a word, logging would just look off."""
    done = explain(written(tmp_path, ingress_controller(loging=to_container())))
    assert done.exit_code == 0
    assert "warning: spec.loging: there is no such field; use logging\n" in done.stderr
    unknown = {"access": {"destination": {"type": "Containr"}}}
    done = explain(written(tmp_path, ingress_controller(logging=unknown)))
    assert done.exit_code == 1
    assert "'Containr': use Container or Syslog" in done.stdout
    gone = explain(tmp_path / "gone.yaml")
    assert gone.stderr == f"error: {tmp_path}/gone.yaml: No such file or directory\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a: [", "controller.yaml:2: not YAML", id="no YAML"),
        pytest.param("{}", "0 objects IngressController", id="another object"),
        pytest.param(
            yaml.safe_dump_all([ingress_controller("a"), ingress_controller("b")]),
            "2 objects",
            id="two of them",
        ),
        pytest.param(
            yaml.safe_dump(ingress_controller(replicas="many")), "$.spec.replicas", id="wrong type"
        ),
    ],
)
def test_a_file_that_cannot_be_explained(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "controller.yaml"
    file.write_text(text)
    done = explain(file)
    assert done.exit_code == 2
    assert words in done.output


def test_something_has_to_be_explained(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["ingress", "explain"])
    assert done.exit_code == 2
    assert "give the NAME of an IngressController, or a --file" in done.output
    assert explain(tmp_path / "missing").exit_code == 2


def test_control_characters_of_a_file_are_escaped(tmp_path: Path) -> None:
    done = explain(written(tmp_path, ingress_controller("a\x1b[31mb")))
    assert "\x1b[31mb" not in done.output
