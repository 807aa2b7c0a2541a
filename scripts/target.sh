#!/bin/sh
# Prints the folder that Cargo builds into: what CARGO_TARGET_DIR or a configuration file says, or target/.
set -eu
cd "$(dirname "$0")/.."
cargo metadata --quiet --format-version 1 --no-deps --offline | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
