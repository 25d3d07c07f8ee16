"""Sections for every tensor of a format, from one quantiser for keys and one for values."""

from __future__ import annotations

from hotprefix.pages.codecs.layout import require_floats, split_layers, tensors_of
from hotprefix.pages.codecs.planes import Planes, StraightPlanes, planes_for_keys
from hotprefix.pages.codecs.quantiser import Quantiser
from hotprefix.pages.codecs.sections import Lossy, Section, SectionedCodec
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary


def assemble(
    name: str,
    kv_format: KvFormat,
    rotary: Rotary | None,
    quantisers: tuple[Quantiser, Quantiser],
    exact_positions: int,
    exact_layers: frozenset[int] = frozenset(),
) -> SectionedCodec:
    """A codec with (keys', values') quantisers in all layers but `exact_layers`, which keep their words."""
    require_floats(kv_format, name)
    for_keys, for_values = quantisers
    sections = []
    for group in tensors_of(kv_format):
        for tensors, is_exact in split_layers(group, exact_layers):
            if is_exact:
                sections.append(Section(tensors, None))
                continue
            planes: Planes = StraightPlanes(tensors.head_size)
            if tensors.is_keys:
                planes = planes_for_keys(rotary, tensors.head_size, tensors.slots)
            sections.append(Section(tensors, Lossy(planes, for_keys if tensors.is_keys else for_values)))
    parts = (name, for_keys.name, for_values.name, str(exact_positions), str(sorted(exact_layers)))
    identity = "/".join((*parts, kv_format.describe())).encode() + rotary_identity(rotary)
    return SectionedCodec(name, kv_format, sections, exact_positions, identity)


def rotary_identity(rotary: Rotary | None) -> bytes:
    """Bytes that differ whenever keys would be turned differently."""
    if rotary is None:
        return b""
    return rotary.inverse_frequencies.tobytes() + bytes([rotary.is_half_split])
