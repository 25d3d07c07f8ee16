"""Autoscaling rules against the schemas of those who read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import promql_parser
import pytest
import yaml
from prometheus_client import CollectorRegistry

from hotprefix.api.metrics import ServerMetrics
from hotprefix.doctor.plan.autoscale import COMPUTED, Deployment, adapter_rules, hpa, keda, rule_of
from hotprefix.doctor.plan.errors import PlanError
from hotprefix.doctor.plan.planner import plan_capacity
from hotprefix.doctor.plan.result import CapacityPlan
from hotprefix.doctor.plan.wish import PlanWish
from tests.doctor.plan.test_planner import LARGE, TIMES
from tests.doctor.plan.traces import apps, load

_SPEC = {
    "scaleTargetRef": dict, "pollingInterval": int, "cooldownPeriod": int, "initialCooldownPeriod": int,
    "idleReplicaCount": int, "minReplicaCount": int, "maxReplicaCount": int, "fallback": dict,
    "advanced": dict, "triggers": list,
}  # fmt: skip
"""Fields of a ScaledObject's spec, as its custom resource definition names them (keda.sh/v1alpha1)."""
_TRIGGER = {
    "type": str, "name": str, "metricType": str, "metadata": dict, "useCachedMetrics": bool,
    "authenticationRef": dict,
}  # fmt: skip
_PROMETHEUS = {
    "serverAddress", "query", "threshold", "activationThreshold", "namespace", "customHeaders",
    "ignoreNullValues", "queryParameters", "unsafeSsl", "timeout", "authModes", "cortexOrgID",
}  # fmt: skip
"""What KEDA's scaler for Prometheus reads; of these serverAddress, query and threshold are required."""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> CapacityPlan:
    """Some replicas."""
    given = load(tmp_path_factory.mktemp("plan") / "t.jsonl", apps(600), 60.0)
    return plan_capacity(given, PlanWish(0.4, (LARGE,), 1.0), TIMES)


def metrics() -> set[str]:
    registry = CollectorRegistry()
    ServerMetrics(registry, version="1", model="m")
    return {family.name + ("_total" if family.type == "counter" else "") for family in registry.collect()}


def test_the_rule_is_what_a_replica_of_the_plan_carries(plan: CapacityPlan) -> None:
    assert plan.chosen is not None
    rule = rule_of(plan, Deployment(least=2))
    assert rule.computed == int(plan.chosen.outcome.computed)
    assert (rule.least, rule.most) == (2, 2 * plan.chosen.replicas)
    # At the planned load a replica computes 1 / replicas of what the trace asks for.
    total = rule.computed * plan.chosen.replicas
    missed = plan.load.survey.tokens * (1 - plan.chosen.outcome.hit_rate) / plan.load.seconds
    assert total == pytest.approx(missed, rel=0.2)


@pytest.mark.parametrize("version", ["1.25.0", "1.33.0"])
def test_the_horizontal_pod_autoscaler_is_valid(plan: CapacityPlan, version: str) -> None:
    document = yaml.safe_load(hpa(plan, Deployment("chat", "prod")))
    kubernetes_validate.validate(document, version, strict=True)
    assert document["metadata"] == {"name": "chat", "namespace": "prod"}
    names = [metric["pods"]["metric"]["name"] for metric in document["spec"]["metrics"]]
    assert names == [rule["name"]["as"] for rule in adapter_rules()]
    broken = document | {"spec": document["spec"] | {"maxReplicas": "many"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, version, strict=True)


def test_the_rules_for_prometheus_adapter_are_in_the_heading(plan: CapacityPlan) -> None:
    heading = "\n".join(line[2:] for line in hpa(plan, Deployment()).splitlines() if line.startswith("#"))
    rules = yaml.safe_load(heading[heading.index("rules:") :])["rules"]["custom"]
    assert rules == adapter_rules()
    assert rules[0]["name"]["as"] == COMPUTED
    for rule in rules:
        query = rule["metricsQuery"].replace("<<.LabelMatchers>>", 'pod="a"').replace("<<.GroupBy>>", "pod")
        promql_parser.parse(query)
        promql_parser.parse(rule["seriesQuery"])
        assert set(re.findall(r"hotprefix_\w+", query)) <= metrics()


def test_the_scaled_object_has_what_its_definition_asks_for(plan: CapacityPlan) -> None:
    document = yaml.safe_load(keda(plan, Deployment("chat", "prod", prometheus="http://prom:9090")))
    assert (document["apiVersion"], document["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
    spec = document["spec"]
    fits(spec, _SPEC, required={"scaleTargetRef", "triggers"})
    assert spec["scaleTargetRef"] == {"name": "chat"}
    assert spec["minReplicaCount"] <= spec["maxReplicaCount"]
    fits(
        spec["fallback"],
        {"failureThreshold": int, "replicas": int},
        required={"failureThreshold", "replicas"},
    )
    for trigger in spec["triggers"]:
        fits(trigger, _TRIGGER, required={"type", "metadata"})
        assert trigger["type"] == "prometheus"
        assert trigger["metricType"] in ("Value", "AverageValue", "Utilization")
        assert all(isinstance(value, str) for value in trigger["metadata"].values())
        assert {"serverAddress", "query", "threshold"} <= set(trigger["metadata"]) <= _PROMETHEUS
        assert float(trigger["metadata"]["threshold"]) > 0
        query = trigger["metadata"]["query"]
        promql_parser.parse(query)
        assert set(re.findall(r"hotprefix_\w+", query)) <= metrics()
        assert 'namespace="prod"' in query


def test_its_behaviour_is_that_of_an_autoscaler(plan: CapacityPlan) -> None:
    """KEDA hands it on as it is, so the schema of the autoscaler holds for it."""
    behaviour = yaml.safe_load(keda(plan, Deployment()))["spec"]["advanced"]["horizontalPodAutoscalerConfig"][
        "behavior"
    ]
    document = yaml.safe_load(hpa(plan, Deployment()))
    document["spec"]["behavior"] = behaviour
    kubernetes_validate.validate(document, "1.33.0", strict=True)
    assert behaviour["scaleDown"]["stabilizationWindowSeconds"] <= 3_600
    assert all(policy["periodSeconds"] <= 1_800 for side in behaviour.values() for policy in side["policies"])


def fits(given: dict[str, Any], known: dict[str, type], required: set[str]) -> None:
    assert required <= set(given) <= set(known)
    for name, value in given.items():
        assert isinstance(value, known[name]), name


def test_without_a_plan_there_is_no_rule(tmp_path: Path) -> None:
    given = load(tmp_path / "t.jsonl", apps(200), 10.0)
    with pytest.raises(PlanError, match="no plan to scale by"):
        rule_of(plan_capacity(given, PlanWish(0.001, (LARGE,), 1.0), TIMES), Deployment())
