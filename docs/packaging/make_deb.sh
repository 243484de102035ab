#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make_deb.sh FOLDER TARBALL - builds the Debian packages from the source tarball, runs make check for them (not if
# DEB_BUILD_OPTIONS is nocheck), and checks them with lintian.
set -eu
folder=$1 tarball=$(realpath "$2")
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder"
tar -xzf "$tarball"
source=$(echo tokmap-*/)
version=$(sed -n 's/.*TOKMAP_VERSION_TEXT "\(.*\)"/\1/p' "$source/include/tokmap.h")
cp "$tarball" "tokmap_$version.orig.tar.gz"
cp -r "$source/docs/packaging/debian" "$source/debian"
homepage=$(sed -n 's/^HOMEPAGE := *//p' "$source/Makefile")
[ -z "$homepage" ] || sed -i "s|^Rules-Requires-Root|Homepage: $homepage\n&|" "$source/debian/control"
{
    printf '\nLicense: Unicode-3.0\n'
    sed -e '1,/^UNICODE LICENSE V3$/d' -e '/^====/,$d' -e 's/^$/./' -e 's/^/ /' "$source/THIRD_PARTY_NOTICES"
} >>"$source/debian/copyright"
cat >"$source/debian/changelog" <<END
tokmap ($version-0upstream1) unstable; urgency=medium

  * Version $version. CHANGELOG.md lists what is new.

 -- $(sed -n 's/^Maintainer: //p' "$source/debian/control")  $(date -u -R -r "$source/include/tokmap.h")
END
(cd "$source" && dpkg-buildpackage --unsigned-source --unsigned-changes)
lintian --fail-on error,warning ./*.changes
