"""How long `hotprefix lint` takes for a thousand files: requests of the tests' corpus and our own programs.

Every file is another one: a number is put into each. Run: python bench/lint.py [--files 1000]
"""

from __future__ import annotations

import json
import tempfile
from itertools import cycle, islice
from pathlib import Path
from time import process_time
from typing import Annotated

import typer
from rich.console import Console

from hotprefix.base.clock import SystemClock
from hotprefix.doctor.lint.measure import RulerBook
from hotprefix.doctor.lint.run import Linter
from hotprefix.doctor.lint.settings import make_settings
from hotprefix.doctor.lint.vendors import Vendors
from hotprefix.doctor.text_model import TextModel
from hotprefix.profiles.loader import load_profiles

ROOT = Path(__file__).resolve().parent.parent


def main(
    files: Annotated[int, typer.Option("--files", help="Half requests, half programs.")] = 1_000,
) -> None:
    """Print seconds, files and requests a second, and what was found."""
    out = Console(highlight=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = _write(folder, files)
        linter = Linter(
            make_settings({}, {}), Vendors(load_profiles()), RulerBook(TextModel(), lambda _: None)
        )
        clock = SystemClock()
        begun, computed = clock.now(), process_time()
        report = linter.check([folder])
        seconds, computed = clock.now() - begun, process_time() - computed
    out.print(
        f"{len(report.files):,} files, {size / 1e6:.1f} MB, {report.requests:,} requests: {seconds:.1f} s "
        f"({computed:.1f} s of one core), "
        f"{len(report.files) / seconds:,.0f} files a second, {len(report.findings):,} findings"
    )


def _write(folder: Path, files: int) -> int:
    corpus = sorted((ROOT / "tests" / "data" / "lint" / "corpus").glob("*.jsonl"))
    requests = [line for file in corpus for line in file.read_text(encoding="utf-8").split("\n") if line]
    programs = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "src").rglob("*.py"))]
    size = 0
    for number, text in enumerate(islice(cycle(requests), files // 2)):
        document = json.loads(text) | {"metadata": {"number": str(number)}}
        size += (folder / f"{number}.json").write_text(json.dumps(document), encoding="utf-8")
    for number, text in enumerate(islice(cycle(programs), files - files // 2)):
        # A word that makes every program worth reading.
        size += (folder / f"{number}.py").write_text(f"{text}\nMESSAGES = {number}\n", encoding="utf-8")
    return size


if __name__ == "__main__":
    typer.run(main)
