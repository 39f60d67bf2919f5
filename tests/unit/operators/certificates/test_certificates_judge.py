"""Which signing requests the certificate approver approves: one form, and nothing beside it."""

import base64
import copy
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.meta import Object
from quarterdeck.kube.client_certificate import SIGNER, new_key, request_object, signing_request
from quarterdeck.operators.certificates.judge import APPROVE, IGNORE, judge
from quarterdeck.operators.certificates.settings import Settings

USER = "system:quarterdeck:staleness"
OTHER = "system:kube-controller-manager"
LONGEST = timedelta(days=90)
KEY = new_key()
GOOD: Object = request_object("mine", signing_request(KEY, USER), LONGEST)
GOOD["spec"] |= {"username": USER, "groups": ["system:authenticated"]}


def changed(**spec: Any) -> Object:
    made = copy.deepcopy(GOOD)
    made["spec"] |= spec
    return made


def judged(obj: Object) -> tuple[str, str]:
    found = judge(obj, {USER}, LONGEST)
    return found.action, found.why


def for_user(user: str) -> str:
    return base64.b64encode(signing_request(KEY, user)).decode()


def test_the_renewal_by_the_user_itself_is_approved() -> None:
    assert judge(GOOD, {USER}, LONGEST) == APPROVE
    assert judge(changed(usages=["digital signature", "client auth"]), {USER}, LONGEST) == APPROVE


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"username": "admin"}, "'admin' asks for a certificate of"),
        ({"username": ""}, "'' asks"),
        ({"request": for_user(OTHER)}, "not for its own"),
        ({"request": ""}, "not for its own"),
        ({"request": GOOD["spec"]["request"][:-8]}, "not for its own"),
        ({"signerName": "kubernetes.io/kubelet-serving"}, "spec.signerName"),
        ({"signerName": f"{SIGNER}-kubelet"}, "spec.signerName"),
        ({"usages": ["client auth"]}, "spec.usages"),
        ({"usages": ["client auth", "digital signature", "server auth"]}, "spec.usages"),
        ({"usages": ["any"]}, "spec.usages"),
        ({"usages": None}, "spec.usages"),
        ({"expirationSeconds": None}, "spec.expirationSeconds"),
        ({"expirationSeconds": 90 * 86400 + 1}, "spec.expirationSeconds"),
    ],
)
def test_what_is_not_quite_a_renewal_is_left_to_a_person(spec: Object, why: str) -> None:
    action, said = judged(changed(**spec))
    assert action == "leave"
    assert why in said


def test_the_requests_of_others_are_none_of_our_business() -> None:
    assert judge(changed(username=OTHER, request=for_user(OTHER)), {USER}, LONGEST) == IGNORE
    assert judge(changed(username=OTHER, request="!"), {USER}, LONGEST) == IGNORE


@pytest.mark.parametrize("kind", ["Approved", "Denied", "Failed"])
def test_what_is_decided_stays_decided(kind: str) -> None:
    decided = changed() | {"status": {"conditions": [{"type": kind, "status": "True"}]}}
    assert judge(decided, {USER}, LONGEST) == IGNORE


def test_what_has_a_certificate_needs_no_approval() -> None:
    assert judge(changed() | {"status": {"certificate": "x"}}, {USER}, LONGEST) == IGNORE


@given(
    username=st.sampled_from([USER, OTHER, "", USER.upper(), f"{USER} "]),
    wanted=st.sampled_from([USER, OTHER, USER.upper()]),
    signer=st.sampled_from([SIGNER, "kubernetes.io/kube-apiserver-client-kubelet", "x.test/y"]),
    usages=st.lists(st.sampled_from(["client auth", "digital signature", "server auth"])),
    seconds=st.one_of(st.none(), st.integers(0, 2**31)),
    users=st.sets(st.sampled_from([USER, OTHER])),
)
def test_nobody_gets_a_name_that_he_does_not_have(
    username: str, wanted: str, signer: str, usages: list[str], seconds: int | None, users: set[str]
) -> None:
    obj = changed(
        username=username,
        request=for_user(wanted),
        signerName=signer,
        usages=usages,
        expirationSeconds=seconds,
    )
    if judge(obj, users, LONGEST) == APPROVE:
        assert username == wanted
        assert username in users
        assert signer == SIGNER
        assert set(usages) == {"client auth", "digital signature"}
        assert seconds is not None
        assert seconds <= LONGEST.total_seconds()


def test_the_users_are_a_list_with_commas() -> None:
    assert Settings(renewable_users=" a, b,,").users == {"a", "b"}
    assert Settings(renewable_users="").users == frozenset()
