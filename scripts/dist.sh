#!/bin/sh
# Everything a release needs, into dist/: a wheel for every Linux of the last years, a source package that was built from once,
# the program (static, stripped, with its manual pages and completions) and both crates, packaged and verified.
set -eu
cd "$(dirname "$0")/.."
python3 scripts/version.py
cargo_target=$(sh scripts/target.sh)
venv=.venv-dist
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r scripts/requirements-dist.txt
rm -rf dist
mkdir dist

echo "== wheel"
# zig links against an old C library, whatever this machine has.
PATH="$PWD/$venv/bin:$PATH" "$venv/bin/maturin" build --release --locked --zig --compatibility manylinux_2_28 --out dist

echo "== source package, and a wheel from it"
"$venv/bin/maturin" sdist --out dist
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
CARGO_TARGET_DIR="$cargo_target/dist" "$venv/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$built" dist/matmix-*.tar.gz

echo "== program"
# Static, and so without the feature `cuda`: what is linked statically cannot look for the libraries of a GPU.
target=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS='-C target-feature=+crt-static' cargo build --quiet --release --locked -p matmix-cli --no-default-features --target "$target"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=matmix-$version-$target
folder=$built/$name
mkdir -p "$folder/man" "$folder/completions"
program=$cargo_target/$target/release/matmix
cp "$program" README.md LICENSE LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$folder"
"$program" man >"$folder/man/matmix.1"
for command in $("$program" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\+\) .*/\1/p' | grep -v '^help$'); do
    "$program" man "$command" >"$folder/man/matmix-$command.1"
done
for shell in bash elvish fish powershell zsh; do "$program" completions "$shell" >"$folder/completions/matmix.$shell"; done
tar -C "$built" -cJf "dist/$name.tar.xz" "$name"

echo "== crates"
cargo package --quiet --locked -p matmix -p matmix-cli
cp "$cargo_target/package/matmix-$version.crate" "$cargo_target/package/matmix-cli-$version.crate" dist/
ls -l dist
