#!/usr/bin/env bash
# gpu.sh [options] - one command that builds tokmap, tests it on a GPU and measures it there, in
# less than nine minutes: the steps of bench/gpu/, a result file, and tables at the end.
# Without a device it says so and ends well. See gpu.sh --help.

python=${PYTHON:-python3}
command -v "$python" >/dev/null || {
    echo "gpu.sh: $python not found: set PYTHON" >&2
    exit 2
}
if [ -n "${TOKMAP_DEPS-}" ]; then
    deps=$(cd "$TOKMAP_DEPS" 2>/dev/null && pwd) || {
        echo "gpu.sh: TOKMAP_DEPS: there is no folder $TOKMAP_DEPS" >&2
        exit 2
    }
    export CPPFLAGS="-I$deps/include ${CPPFLAGS-}" LDFLAGS="-L$deps/lib ${LDFLAGS-}"
    # For the command and the shared library, where the folder has a shared libxxhash.
    export LD_LIBRARY_PATH="$deps/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
export PYTHONDONTWRITEBYTECODE=1
unset MAKEFLAGS MFLAGS MAKELEVEL
exec "$python" "$(dirname "$0")/gpu/run.py" "$@"
