#!/usr/bin/env bash
# Fills a folder with Debian's arm64 packages of the libraries that the lean runtime and its tests link.
# The lists and the packages stay in that folder: no foreign architecture is added to the system, no root is needed.
# usage: cmake/arm64_sysroot.sh FOLDER
set -euo pipefail

packages=(libhwy-dev libhwy1 nlohmann-json3-dev libxxhash-dev libxxhash0 libcli11-dev libgtest-dev)
root=$(realpath -m "$1")
wanted="${packages[*]}"
[[ -f $root/packages && $(<"$root/packages") == "$wanted" ]] && exit 0

echo "arm64: unpacking $wanted into $root"
rm -rf "$root"
mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial"
apt=(apt-get -q -o Dir::State::lists="$root/apt/lists" -o Dir::Cache="$root/apt" -o APT::Architecture=arm64
     -o APT::Architectures::=arm64 -o APT::Sandbox::User=)
"${apt[@]}" update || echo "arm64: some package source has no arm64 list; trying with the others" >&2
(cd "$root/apt" && "${apt[@]}" download "${packages[@]}")
for package in "$root"/apt/*.deb; do dpkg -x "$package" "$root"; done
rm -rf "$root/apt"
echo "$wanted" > "$root/packages"
