#!/bin/sh
# Prints the folder that Cargo builds into: what CARGO_TARGET_DIR or a configuration file says, or target/.
set -eu
cd "$(dirname "$0")/.."
metadata=$(cargo metadata --quiet --format-version 1 --no-deps --offline)
folder=$(printf '%s\n' "$metadata" | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
[ -n "$folder" ] || { echo "cargo metadata names no target_directory" >&2; exit 1; }
printf '%s\n' "$folder"
