#!/bin/sh
# Runs the report's browser tests in an environment of their own. Without a browser they are left out, and this says so;
# on CI (the variable CI is set) a missing browser is a failure.
set -eu
cd "$(dirname "$0")/../.."

has() { for name in "$@"; do command -v "$name" >/dev/null 2>&1 && return 0; done; return 1; }

if [ -z "${CI:-}" ]; then
    if ! has chromium chromium-browser google-chrome chrome || ! has chromedriver chromium.chromedriver; then
        echo "The report's browser tests were LEFT OUT: no Chromium with its driver here."
        echo "hint: on Debian, apt-get install chromium chromium-driver"
        exit 0
    fi
fi
if [ ! -x .venv-browser/bin/pytest ]; then
    python3 -m venv .venv-browser
    .venv-browser/bin/pip install --quiet -r tests/browser/requirements.txt
fi
# The reports are made before the tests: a build takes longer than a test may. The features of `make test-rust`, whose build is used again.
if [ -z "${MATMIX_GALLERY:-}" ]; then
    MATMIX_GALLERY=$(mktemp -d)
    export MATMIX_GALLERY
    trap 'rm -rf "$MATMIX_GALLERY"' EXIT
    cargo run --quiet --features matmix/ndarray --example report_gallery -- "$MATMIX_GALLERY"
fi
.venv-browser/bin/pytest --quiet tests/browser "$@"
