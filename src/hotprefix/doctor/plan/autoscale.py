"""Autoscaling rules for Kubernetes: a HorizontalPodAutoscaler, or a ScaledObject of KEDA.

What is scaled by is work, not its sum of symptoms: prompt tokens that a replica has to compute in a second,
which follows the load at once and knows what the cache saves. The waiting line is the second metric, for
what the first does not see. Both take the larger of what their metrics ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import yaml

from hotprefix.doctor.plan.errors import PlanError
from hotprefix.doctor.plan.result import CapacityPlan
from hotprefix.doctor.plan.words import seconds, size

COMPUTED = "hotprefix_computed_tokens_per_second"
"""The name that the rule for prometheus-adapter gives to the first metric."""
_ASKED, _FOUND = "hotprefix_prefix_cache_queries_total", "hotprefix_prefix_cache_hits_total"
_WAITING = "hotprefix_num_requests_waiting"
_WINDOW = "2m"
_MOST = 2


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is scaled. `prometheus` is the server's address, for KEDA."""

    name: str = "hotprefix"
    namespace: str = ""
    least: int = 1
    most: int | None = None
    prometheus: str = "http://prometheus-server.monitoring.svc:80"


@dataclass(frozen=True, slots=True)
class ScalingRule:
    """What a replica of the plan carries: computed tokens a second, and requests waiting."""

    computed: int
    waiting: int
    least: int
    most: int
    planned: int


def rule_of(plan: CapacityPlan, deployment: Deployment) -> ScalingRule:
    """At the plan's load. Raises `PlanError` without a plan, or if the plan does not fit the limits."""
    chosen = plan.chosen
    if chosen is None:
        raise PlanError("There is no plan to scale by: the target can't be met.")
    most = deployment.most or max(_MOST * chosen.replicas, deployment.least)
    if most < max(chosen.replicas, deployment.least):
        raise PlanError(
            f"The plan has {chosen.replicas} replicas and --least-replicas is {deployment.least}, but "
            f"--most-replicas is {most}: raise it."
        )
    mean_wait = float(chosen.outcome.waits.mean())
    line = plan.load.qps / chosen.replicas * mean_wait
    return ScalingRule(
        max(1, floor(chosen.outcome.computed)),
        max(1, ceil(2 * line)),
        deployment.least,
        most,
        chosen.replicas,
    )


def hpa(plan: CapacityPlan, deployment: Deployment) -> str:
    """A HorizontalPodAutoscaler (autoscaling/v2) as YAML, with the rules that prometheus-adapter needs."""
    rule = rule_of(plan, deployment)
    document = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(deployment),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.name},
            "minReplicas": rule.least,
            "maxReplicas": rule.most,
            "metrics": [_pods(COMPUTED, rule.computed), _pods(_WAITING, rule.waiting)],
            "behavior": _behavior(),
        },
    }
    return _heading(plan, adapter_rules()) + _yaml(document)


def keda(plan: CapacityPlan, deployment: Deployment) -> str:
    """A ScaledObject (keda.sh/v1alpha1) as YAML."""
    rule = rule_of(plan, deployment)
    only = f'{{namespace="{deployment.namespace}"}}' if deployment.namespace else ""
    computed = f"sum(rate({_ASKED}{only}[{_WINDOW}])) - sum(rate({_FOUND}{only}[{_WINDOW}]))"
    document = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": _metadata(deployment),
        "spec": {
            "scaleTargetRef": {"name": deployment.name},
            "pollingInterval": 15,
            "minReplicaCount": rule.least,
            "maxReplicaCount": rule.most,
            "fallback": {"failureThreshold": 3, "replicas": rule.planned},
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior()}},
            "triggers": [
                _trigger("computed-tokens", computed, rule.computed, deployment),
                _trigger("waiting", f"sum({_WAITING}{only})", rule.waiting, deployment),
            ],
        },
    }
    return _heading(plan, None) + _yaml(document)


def adapter_rules() -> list[dict[str, Any]]:
    """Rules for prometheus-adapter that give the HorizontalPodAutoscaler its metrics."""
    resources = {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}}
    rates = [
        f"sum(rate({name}{{<<.LabelMatchers>>}}[{_WINDOW}])) by (<<.GroupBy>>)" for name in (_ASKED, _FOUND)
    ]
    return [
        {
            "seriesQuery": f'{_ASKED}{{namespace!="",pod!=""}}',
            "resources": resources,
            "name": {"as": COMPUTED},
            "metricsQuery": " - ".join(rates),
        },
        {
            "seriesQuery": f'{_WAITING}{{namespace!="",pod!=""}}',
            "resources": resources,
            "name": {"as": _WAITING},
            "metricsQuery": f"sum({_WAITING}{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)",
        },
    ]


def _metadata(deployment: Deployment) -> dict[str, str]:
    return {"name": deployment.name} | ({"namespace": deployment.namespace} if deployment.namespace else {})


def _pods(name: str, value: int) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": str(value)}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def _trigger(name: str, query: str, value: int, deployment: Deployment) -> dict[str, Any]:
    metadata = {"serverAddress": deployment.prometheus, "query": query, "threshold": str(value)}
    return {"type": "prometheus", "name": name, "metricType": "AverageValue", "metadata": metadata}


def _behavior() -> dict[str, Any]:
    """Up at once; down slowly, for a replica that goes takes its cache along, and those that stay have to
    compute again what it knew."""
    return {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 60}],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 600,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 300}],
        },
    }


def _heading(plan: CapacityPlan, rules: list[dict[str, Any]] | None) -> str:
    chosen, wish = plan.chosen, plan.wish
    assert chosen is not None
    lines = [
        f"From hotprefix plan: {plan.load.qps:g} requests/s, p{100 * wish.share:g} of the time to first",
        f"token within {seconds(wish.target)}: {chosen.replicas} replicas with {size(chosen.memory)} for "
        "keys and values",
        f"each, routing {chosen.routing.value}. Scaled by the prompt tokens that a replica computes in a",
        "second, and by its waiting line. Down goes slowly: a replica that goes takes its cache along.",
    ]
    if rules is not None:
        lines += ["", "prometheus-adapter has to know both metrics:", ""]
        lines += _yaml({"rules": {"custom": rules}}).splitlines()
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _yaml(document: dict[str, Any]) -> str:
    class _Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return yaml.dump(document, Dumper=_Plain, sort_keys=False, width=1000)
