#!/bin/sh
# Installs hotcell @VERSION@ from its tarball: sh install.sh [TARBALL]
# The tarball and its .sha256 are searched beside this script, or downloaded from $HOTCELL_RELEASES (an address) if that is set.
# PREFIX says where to install: /usr/local for root, else ~/.local.
set -eu

version=@VERSION@
fail() { echo "install.sh: $*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || fail "hotcell needs Linux"
machine=$(uname -m)
case $machine in
    x86_64 | aarch64) ;;
    *) fail "there is no hotcell for $machine" ;;
esac
name=hotcell-$version-$machine-unknown-linux-gnu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tarball=${1:-}
if [ -z "$tarball" ]; then
    here=$(dirname "$0")
    if [ -f "$here/$name.tar.gz" ]; then
        tarball=$here/$name.tar.gz
    elif [ -n "${HOTCELL_RELEASES:-}" ]; then
        for file in "$name.tar.gz" "$name.tar.gz.sha256"; do
            curl -fsSL --proto '=https' -o "$work/$file" "$HOTCELL_RELEASES/$file" || fail "could not download $file"
        done
        tarball=$work/$name.tar.gz
    else
        fail "no $name.tar.gz beside this script; name it, or set HOTCELL_RELEASES"
    fi
fi
[ -f "$tarball" ] || fail "no file $tarball"
[ -f "$tarball.sha256" ] || fail "no file $tarball.sha256 to check it with"

# Nothing is unpacked before its hash is right.
expected=$(cut -d ' ' -f 1 "$tarball.sha256")
found=$(sha256sum "$tarball" | cut -d ' ' -f 1)
[ "$found" = "$expected" ] || fail "$tarball is damaged: its SHA-256 is $found and should be $expected"

if [ -z "${PREFIX:-}" ]; then
    if [ "$(id -u)" = 0 ]; then PREFIX=/usr/local; else PREFIX=$HOME/.local; fi
fi
tar -xzf "$tarball" -C "$work"
mkdir -p "$PREFIX/bin" "$PREFIX/share"
cp -R "$work/$name/share/." "$PREFIX/share/"
# Beside it first: a hotcell that runs keeps its file.
cp "$work/$name/bin/hotcell" "$PREFIX/bin/.hotcell.new"
chmod 755 "$PREFIX/bin/.hotcell.new"
mv -f "$PREFIX/bin/.hotcell.new" "$PREFIX/bin/hotcell"

echo "installed $("$PREFIX/bin/hotcell" --version) as $PREFIX/bin/hotcell"
case ":$PATH:" in
    *":$PREFIX/bin:"*) ;;
    *) echo "Add $PREFIX/bin to your PATH." ;;
esac
echo "Test the sandbox with \`hotcell doctor\`; add it to a client with \`hotcell install CLIENT\`."
