#!/bin/sh
# Builds the site into out/site, in an environment of its own, with the wheel that python/scripts/build.sh has left in the
# folder that Cargo builds into; then walks over every link in it. A warning is a failure.
set -eu
cd "$(dirname "$0")/../.."
venv=.venv-docs
target=$(sh scripts/target.sh)
ls "$target"/wheels/matmix-*.whl >/dev/null 2>&1 || sh python/scripts/build.sh
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt "$target"/wheels/matmix-*.whl
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/wheels/matmix-*.whl

# MATMIX_RUSTDOC names a folder that cargo doc has written already. Pages of what is no longer there would stay, with dead links.
rustdoc=${MATMIX_RUSTDOC:-$target/doc}
[ -n "${MATMIX_RUSTDOC:-}" ] || { rm -rf "$target/doc"; RUSTDOCFLAGS='-D warnings' cargo doc --quiet --no-deps -p matmix; }
"$venv/bin/python" docs/site/stage.py out/site-source "$rustdoc"
# Pages of what is gone would stay there, too.
rm -rf out/site
"$venv/bin/sphinx-build" --quiet -W --keep-going -j 2 -c docs/site -d out/site-doctrees -b html out/site-source out/site
"$venv/bin/python" -m pytest -q -p no:cacheprovider tests/site
echo "The site is in out/site/index.html"
