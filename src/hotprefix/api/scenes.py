"""Where a request belongs: its tenant, its scene, and the part of the caches that they use."""

from __future__ import annotations

from dataclasses import dataclass, replace

from starlette.datastructures import Headers
from starlette.types import Scope

from hotprefix.api.settings import ApiSettings
from hotprefix.modes.turn import TurnRequest
from hotprefix.sessions.scene import SCENE_HEADER, Scene


@dataclass(frozen=True, slots=True)
class Place:
    """`scene` is empty without one; `partition` too, unless scenes are kept apart."""

    tenant: str
    scene: str = ""
    partition: str = ""

    @property
    def cache_tenant(self) -> str:
        """Whose keys, pins and answers are used."""
        return self.partition or self.tenant

    def settle(self, turn: TurnRequest) -> TurnRequest:
        """A turn that was made for `cache_tenant`, with everything in its place."""
        return replace(turn, tenant=self.tenant, scene=self.scene, partition=self.partition)


def place_of(scope: Scope, tenant: str, session_id: str | None, settings: ApiSettings) -> Place:
    """The field goes before the header. Raises `InvalidRequest` for a badly named scene."""
    named, param = session_id, "session_id"
    if named is None:
        named, param = Headers(scope=scope).get(SCENE_HEADER), SCENE_HEADER
    if named is None:
        return Place(tenant)
    scene = Scene.parse(named, param)
    return Place(tenant, str(scene), scene.partition(tenant) if settings.isolate_scenes else "")
