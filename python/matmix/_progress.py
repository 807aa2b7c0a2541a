"""The line that follows a fit with ``verbose=1``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class ProgressLine:
    """A line that follows a fit: tqdm where it is installed, plain text on standard error where it is not."""

    def __init__(self, verbose: int, samples: int) -> None:
        self.verbose = verbose
        self.samples = samples
        self.bar: Any = None
        self.written = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()
        if self.written:
            sys.stderr.write("\n")

    def before(self, callback: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
        """The user's callback with the line drawn first; the callback itself if nothing is to be drawn."""
        if not self.verbose:
            return callback

        def both(progress: Any) -> Any:
            self.draw(progress)
            return callback(progress) if callback is not None else None

        return both

    def draw(self, progress: Any) -> None:
        """Shows where the fit stands."""
        restart = f"restart {progress.restart + 1}/{progress.n_init}, " if progress.n_init > 1 else ""
        text = f"{restart}log-likelihood {progress.log_likelihood:.5g}"
        if progress.step is not None:
            text = f"searching: {progress.step}, K = {progress.n_components}, {text}"
        else:
            part = f"on 1/{1 / progress.share:.0f} of the samples, " if progress.share < 1 else ""
            rate = self.samples * progress.passes / progress.seconds
            text = f"{part}{text}, {progress.passes:.1f} passes at {rate:,.0f} samples/s"
        if self.bar is None and not self.written:
            try:
                from tqdm.auto import tqdm

                self.bar = tqdm(total=progress.max_iter, unit="it", file=sys.stderr)
            except ImportError:
                pass
        if self.bar is not None:
            self.bar.n = progress.iteration
            self.bar.set_description_str(text, refresh=True)
        else:
            self.written = True
            sys.stderr.write(f"\riteration {progress.iteration}/{progress.max_iter}, {text}   ")
            sys.stderr.flush()
