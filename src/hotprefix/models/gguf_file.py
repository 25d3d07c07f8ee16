"""Reads GGUF files and says whether they can be served. Random bytes never crash it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from hotprefix.base.errors import BrokenModelFile, UnsupportedModel

ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""Families that OpenVINO GenAI converts."""

_LONGEST_ARRAY = 1 << 22
"""No vocabulary has four million entries: a longer array is a corrupt length."""

_MATRIX_TYPES = ("F16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K")
_TABLE_TYPES = (*_MATRIX_TYPES, "F32", "BF16")
_VECTOR_TYPES = ("F32", "F16")
_READ_ERRORS = (ValueError, IndexError, KeyError, TypeError, ArithmeticError, MemoryError, OSError)


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Name, type name and extents (innermost first) of one tensor."""

    name: str
    type_name: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GgufFile:
    """Metadata and tensor list of a complete GGUF file.

    No tensor data is kept but `rope_factors`: what each rotary frequency is divided by (empty: 1).
    """

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]
    rope_factors: tuple[float, ...] = ()

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", ""))

    def text(self, key: str, default: str = "") -> str:
        """A string value; `BrokenModelFile` if it is of another type."""
        value: str = self._typed(key, str, default)
        return value

    def number(self, key: str) -> int | None:
        """An integer value, None if absent; `BrokenModelFile` if it is of another type."""
        value: int | None = self._typed(key, int, None)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """A boolean value; `BrokenModelFile` if it is of another type."""
        value: bool = self._typed(key, bool, default)
        return value

    def items(self, key: str) -> list[Any]:
        """An array value, empty if absent; `BrokenModelFile` if it is of another type."""
        value: list[Any] = self._typed(key, list, [])
        return value

    def of_family(self, key: str) -> int | None:
        """An integer value under the architecture's own prefix, e.g. `context_length`."""
        return self.number(f"{self.architecture}.{key}")

    def _typed(self, key: str, kind: type, default: Any) -> Any:
        value = self.metadata.get(key)
        if value is None:
            return default
        if type(value) is not kind:
            raise BrokenModelFile(f"{self.path}: metadata {key!r} is not of type {kind.__name__}.")
        return value


class _BoundedReader(gguf.GGUFReader):  # type: ignore[misc]
    """The library's reader with every access checked against the end of the file.

    The library reads past the end as if there were empty arrays, so that a corrupt length
    makes it loop for hours.
    """

    def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
        end = int(offset) + np.dtype(dtype).itemsize * int(count)
        if offset < 0 or end > self.data.size:
            raise EOFError(f"it needs {end} bytes and has {self.data.size}")
        return super()._get(int(offset), dtype, int(count), override_order)

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
        if int(raw_type) == gguf.GGUFValueType.ARRAY:
            length = int(self._get(orig_offs + 4, np.uint64)[0])
            if length > _LONGEST_ARRAY:
                raise ValueError(f"an array claims {length} entries")
            item = self.gguf_scalar_to_np.get(gguf.GGUFValueType(int(self._get(orig_offs, np.uint32)[0])))
            if item is not None:
                return self._scalar_array(orig_offs, length, item)
        return super()._get_field_parts(orig_offs, raw_type)

    def _scalar_array(self, offset: int, length: int, item: Any) -> Any:
        # One view instead of one object per entry.
        kind = self._get(offset, np.uint32)
        values = self._get(offset + 12, item, length)
        parts = [kind, self._get(offset + 4, np.uint64), values]
        types = [gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(int(kind[0]))]
        return 12 + int(values.nbytes), parts, [2], types


def read_gguf(path: Path) -> GgufFile:
    """Read and check a GGUF file.

    Raises `BrokenModelFile` if it is no GGUF file, truncated or corrupt, `UnsupportedModel`
    for a version or byte order that is not read.
    """
    _check_magic(path)
    try:
        with np.errstate(all="ignore"):
            reader = _BoundedReader(path)
            metadata = dict(_metadata(reader))
            tensors = {
                str(tensor.name): GgufTensor(
                    str(tensor.name), tensor.tensor_type.name, tuple(int(n) for n in tensor.shape)
                )
                for tensor in reader.tensors
            }
            factors = [t.data for t in reader.tensors if t.name == "rope_freqs.weight"]
            rope_factors = tuple(float(x) for part in factors for x in part.ravel())
    except EOFError as error:
        raise BrokenModelFile(f"{path} is truncated: {error}. Fetch the file again.") from error
    except _READ_ERRORS as error:
        raise BrokenModelFile(f"{path} is corrupt: {error}. Fetch the file again.") from error
    if not tensors:
        raise BrokenModelFile(f"{path} holds no tensors: it is a vocabulary, not a model.")
    return GgufFile(path, metadata, tensors, rope_factors)


def _check_magic(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise BrokenModelFile(f"{path} can't be read: {error.strerror or error}.") from error
    if head[:4] != b"GGUF":
        raise BrokenModelFile(f"{path} is not a GGUF file: it does not start with 'GGUF'.")
    if len(head) < 8:
        raise BrokenModelFile(f"{path} is truncated: it has only {len(head)} bytes. Fetch the file again.")
    version = int.from_bytes(head[4:8], "little")
    if version not in (2, 3):
        hint = " It is big-endian." if version & 0xFFFF == 0 else ""
        raise UnsupportedModel(f"{path} is GGUF version {version}; versions 2 and 3 are read.{hint}")


def _metadata(reader: gguf.GGUFReader) -> Iterator[tuple[str, Any]]:
    for name, field in reader.fields.items():
        kinds = field.types
        if not kinds or name.startswith("GGUF."):
            continue
        if kinds[0] == gguf.GGUFValueType.STRING:
            yield name, bytes(field.parts[field.data[0]]).decode("utf-8")
        elif kinds[0] != gguf.GGUFValueType.ARRAY:
            yield name, field.parts[field.data[0]].tolist()[0]
        elif len(kinds) < 2:
            yield name, []
        elif kinds[1] == gguf.GGUFValueType.STRING:
            yield name, [bytes(field.parts[index]).decode("utf-8") for index in field.data]
        elif kinds[1] in reader.gguf_scalar_to_np:
            yield name, field.parts[field.data[0]].tolist()


def check_convertible(file: GgufFile) -> None:
    """Raise `UnsupportedModel`, naming what is served, unless the converter takes this file."""
    arch = file.architecture
    if arch not in ARCHITECTURES:
        raise UnsupportedModel(
            f"{file.path} has architecture {arch or 'unknown'!r}; served are {', '.join(ARCHITECTURES)}. "
            "For others, export the model to an OpenVINO folder (optimum-intel) and give its path."
        )
    if (file.number("split.count") or 1) > 1:
        raise UnsupportedModel(
            f"{file.path} is one part of a split model; join the parts with `llama-gguf-split --merge`."
        )
    if file.of_family("expert_count"):
        raise UnsupportedModel(
            f"{file.path} is a mixture of experts; only dense models are served from GGUF."
        )
    _check_sizes(file)
    _check_rope(file)
    _check_tensors(file)


def head_size(file: GgufFile) -> int:
    """Elements of one attention head."""
    explicit = file.of_family("attention.key_length")
    if explicit:
        return explicit
    heads = file.of_family("attention.head_count") or 0
    return (file.of_family("embedding_length") or 0) // heads if heads else 0


def rope_base(file: GgufFile) -> float:
    """Base of the rotary frequencies."""
    value = file.metadata.get(f"{file.architecture}.rope.freq_base", 10_000.0)
    if type(value) is not float or not 1.0 < value < math.inf:
        raise BrokenModelFile(f"{file.path}: metadata 'rope.freq_base' is {value!r}.")
    return value


def _check_sizes(file: GgufFile) -> None:
    for key in ("block_count", "attention.head_count", "embedding_length"):
        if not file.of_family(key):
            raise BrokenModelFile(f"{file.path}: metadata '{file.architecture}.{key}' is missing or zero.")
    if file.number("general.file_type") is None:
        raise UnsupportedModel(
            f"{file.path}: metadata 'general.file_type' is missing; quantise the file anew."
        )
    if type(file.metadata.get(f"{file.architecture}.attention.layer_norm_rms_epsilon")) is not float:
        raise BrokenModelFile(f"{file.path}: metadata 'layer_norm_rms_epsilon' is missing or not a number.")


def _check_rope(file: GgufFile) -> None:
    rope_base(file)
    if not all(factor > 0 for factor in file.rope_factors):
        raise BrokenModelFile(f"{file.path}: 'rope_freqs.weight' holds numbers that are not positive.")
    size = head_size(file)
    rotated = file.of_family("rope.dimension_count") or size
    if rotated != size:
        raise UnsupportedModel(
            f"{file.path} rotates {rotated} of {size} elements per head; only full rotation is served "
            "from GGUF."
        )


def _check_tensors(file: GgufFile) -> None:
    for name in _required_tensors(file):
        if name not in file.tensors:
            raise BrokenModelFile(f"{file.path}: tensor {name!r} is missing.")
    plain = file.number("general.file_type") in (0, 1)
    for tensor in file.tensors.values():
        allowed = _allowed_types(tensor.name)
        if tensor.type_name not in allowed:
            raise UnsupportedModel(
                f"{file.path}: tensor {tensor.name!r} is {tensor.type_name}; the converter reads "
                f"{', '.join(allowed)}. Files quantised as F16, Q8_0, Q4_0, Q4_1 or Q4_K_M work."
            )
        if plain and tensor.type_name.startswith("Q"):
            raise UnsupportedModel(
                f"{file.path}: 'general.file_type' says F32 or F16 but {tensor.name!r} is {tensor.type_name}."
            )


def _required_tensors(file: GgufFile) -> Iterator[str]:
    yield from ("token_embd.weight", "output_norm.weight")
    parts = ("attn_norm", "ffn_norm", "attn_q", "attn_k", "attn_v", "attn_output")
    for layer in range(min(file.of_family("block_count") or 0, len(file.tensors) + 1)):
        for part in (*parts, "ffn_gate", "ffn_up", "ffn_down"):
            yield f"blk.{layer}.{part}.weight"


def _allowed_types(name: str) -> tuple[str, ...]:
    if name in ("token_embd.weight", "output.weight"):
        return _TABLE_TYPES
    if name.endswith((".bias", "norm.weight")):
        return _VECTOR_TYPES
    if name == "rope_freqs.weight":
        return ("F32",)
    return _MATRIX_TYPES
