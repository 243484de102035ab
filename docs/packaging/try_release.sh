#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# try_release.sh BUILD [EXTRA ...] - uploads the newest folder BUILD/dist-* to an index on this machine, as twine does to
# the real one, and installs tokmap from there by name: as it is, and with each extra [torch], which takes gigabytes.

set -Eeuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shift
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
trap 'echo "FAIL release: line $LINENO" >&2' ERR
dist=$(ls -td "$build"/dist-*/ | head -n 1)
version=$(sed -n 's/.*TOKMAP_VERSION_TEXT "\(.*\)"/\1/p' "$here/../../include/tokmap.h")
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)

python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check pypiserver twine
mkdir "$work/index"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$work/tools/bin/pypi-server" run -i 127.0.0.1 -p "$port" -P . -a . --disable-fallback -v "$work/index" >"$work/log" 2>&1 &
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
"$work/tools/bin/twine" upload --repository-url "http://127.0.0.1:$port" -u '' -p '' --disable-progress-bar \
    "$dist"*.whl "$dist"*.tar.gz >"$work/upload" || { cat "$work/upload" "$work/log"; false; }

for extra in "" "${@:-torch}"; do
    rm -rf "$work/venv"
    python3 -m venv "$work/venv"
    # From this index alone, as PyPI may have the name of somebody else. Then what it needs, from PyPI.
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --index-url "http://127.0.0.1:$port/simple/" \
        "tokmap==$version"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check "tokmap${extra:+[$extra]}==$version"
    grep -q "packages/tokmap-$version-py3-none-manylinux[0-9_]*$(uname -m).whl" "$work/log" ||
        { tail -n 5 "$work/log"; echo "tokmap was not taken from the index" >&2; false; }
    PATH="$work/venv/bin:$PATH" PYTHON="$work/venv/bin/python" bash "$here/try_installed.sh" commands python
    [ -z "$extra" ] || "$work/venv/bin/python" -c "import tokmap.$extra"
    echo "ok release_tokmap${extra:+[$extra]}"
done
