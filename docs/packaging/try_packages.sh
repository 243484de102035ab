#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# try_packages.sh BUILD [wheel|tarball|bookworm|trixie|container|torch ...] - installs what is in the folder BUILD (source
# archive, wheel, Debian packages) in clean environments, and uses it there. Without names: all but torch, whose image
# has PyTorch (6 GB). The last four need root: Debian roots are made by debootstrap, images by buildah without a registry.

set -Eeuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shift
work=$build/try
version=$(sed -n 's/.*TOKMAP_VERSION_TEXT "\(.*\)"/\1/p' "$here/../../include/tokmap.h")
storage=(--root "$work/images" --runroot "$work/images-run" --storage-driver vfs)
trap 'echo "FAIL $name: line $LINENO" >&2' ERR

clean() # command ...: without variables of this shell
{
    env -i HOME="$work" LANG=C.UTF-8 PATH=/usr/bin:/bin "$@"
}

unpack() # folder: the source archive
{
    rm -rf "$1" && mkdir -p "$1"
    tar -C "$1" --strip-components=1 -xzf "$build/tokmap-$version.tar.gz"
}

try_wheel()
{
    unpack "$work/wheel-source"
    python3 -m venv --clear "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check "$build/tokmap-$version"-py3-none-manylinux*_"$(uname -m)".whl
    clean PATH="$work/venv/bin:/usr/bin:/bin" bash "$work/wheel-source/docs/packaging/try_installed.sh" commands python
}

try_tarball()
{
    local tree=$work/tarball stage=$work/stage
    unpack "$tree"
    rm -rf "$stage"
    clean make -C "$tree" -j"$(nproc)"
    clean TOKMAP_TIMEOUT=1800 make -C "$tree" check
    clean make -C "$tree" install DESTDIR="$stage" PREFIX=/usr >"$work/install.log"
    clean PATH="$stage/usr/bin:/usr/bin:/bin" MANPATH="$stage/usr/share/man" LD_LIBRARY_PATH="$stage/usr/lib" \
        PKG_CONFIG_SYSROOT_DIR="$stage" PKG_CONFIG_PATH="$stage/usr/lib/pkgconfig" \
        bash "$tree/docs/packaging/try_installed.sh" commands library manuals
}

bare_root() # suite: in $work/SUITE
{
    rm -rf --one-file-system "$work/$1"
    # In a name space of its own: what it mounts does not stay if it is killed.
    unshare --mount debootstrap --variant=minbase "$1" "$work/$1" >"$work/$1.log" || tail -n 3 "$work/$1.log"
}

inside() # suite, shell command: with /proc
{
    clean PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
        unshare --mount --pid --fork --mount-proc="$work/$1/proc" chroot "$work/$1" bash -ec "$2"
}

try_debian() # suite
{
    local packages="gcc libc6-dev man-db pkg-config /debs/*.deb"
    bare_root "$1"
    unpack "$work/$1/src"
    mkdir "$work/$1/debs"
    cp "$build"/deb/{libtokmap0,libtokmap-dev,tokmap,python3-tokmap}_*.deb "$work/$1/debs"
    inside "$1" "apt-get -qq update && apt-get -qq install -y --no-install-recommends $packages" >"$work/$1.log" 2>&1
    inside "$1" "useradd --create-home user && su user -c 'bash /src/docs/packaging/try_installed.sh commands library python manuals'"
}
try_bookworm() { try_debian bookworm; }
try_trixie() { try_debian trixie; }

# The base image is a bare root.
build_image() # suite, tag, file, folder
{
    local base
    bare_root "$1"
    base=$(buildah "${storage[@]}" from scratch)
    buildah "${storage[@]}" add -q "$base" "$work/$1" /
    buildah "${storage[@]}" commit -q --rm "$base" localhost/base
    buildah "${storage[@]}" build --pull-never --isolation chroot --build-arg BASE=localhost/base -t "$2" -f "$3" "$4" \
        >"$work/$2.log" 2>&1
}

in_image() # tag, command ...: with the source in /src
{
    local container
    container=$(buildah "${storage[@]}" from --pull-never "$1")
    buildah "${storage[@]}" run --isolation chroot -v "$work/container-source:/src:ro" "$container" "${@:2}"
    buildah "${storage[@]}" rm "$container" >/dev/null
}

try_container()
{
    local source=$work/container-source
    unpack "$source"
    build_image bookworm tokmap "$source/docs/packaging/Containerfile" "$source"
    in_image tokmap bash /src/docs/packaging/try_installed.sh commands python
    in_image tokmap sh -c 'test "$(id -un)" = tokmap'
}

try_torch()
{
    local source=$work/container-source
    unpack "$source"
    build_image trixie tokmap-torch "$source/docs/packaging/Containerfile.torch" "$build"
    in_image tokmap-torch sh -ec 'cd /tmp; tokmap pack -q /src/docs/*.md -o train
        for n_steps in 3 2; do python /src/docs/examples/nanogpt.py train $n_steps; done' >"$work/nanogpt.log"
    grep -q "^step 1: samples 32 to 39," "$work/nanogpt.log"
}

mkdir -p "$work"
[ $# != 0 ] || set -- wheel tarball bookworm trixie container
for name; do
    if [[ $name =~ ^(bookworm|trixie|container|torch)$ && $(id -u) != 0 ]]; then
        echo "skip $name: needs root"
        continue
    fi
    echo "==== $name"
    "try_$name"
    echo "==== $name: ok"
done
