#!/usr/bin/env bash
# Builds a release into dist/: static binaries for Linux, macOS and Windows on
# amd64 and arm64, the manual page, completions, and SHA256SUMS. The same
# commit with the same Go release gives the same bytes, wherever it is built.
# With a container engine at hand it builds the image of the Dockerfile too.
#
#   scripts/release.sh            build
#   scripts/release.sh --verify   build, build all again elsewhere from nothing, compare
#
# Variables: VERSION (default: the git tag, or what git describe says),
# COMMIT (default: HEAD), SOURCE_DATE_EPOCH (default: the commit's time),
# OUT (default: dist; a new or empty directory, or one with an earlier release,
# which goes), TARGETS (default: all six, as os/arch), IMAGE (default:
# tbl:VERSION; none: no image).
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "release: $*" >&2; exit 2; }
verify=
case ${1-} in
  '') ;;
  --verify) verify=1 ;;
  *) die "unknown argument $1: want --verify or none" ;;
esac
command -v go >/dev/null || die "no Go toolchain on the path"

git_says() { git "$@" 2>/dev/null || true; }
VERSION=${VERSION:-$(git_says describe --tags --always --dirty)}
COMMIT=${COMMIT:-$(git_says rev-parse HEAD)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git_says log -1 --format=%ct)}
[ -n "$VERSION" ] && [ -n "$COMMIT" ] && [ -n "$SOURCE_DATE_EPOCH" ] ||
  die "this is no git checkout: set VERSION, COMMIT and SOURCE_DATE_EPOCH"
[[ $VERSION =~ ^[A-Za-z0-9._+-]+$ ]] || die "VERSION $VERSION: want letters, digits, dots, dashes"
[[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] || die "SOURCE_DATE_EPOCH $SOURCE_DATE_EPOCH: want seconds since 1970"
OUT=${OUT:-dist}
TARGETS=${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
IMAGE=${IMAGE:-tbl:${VERSION//+/-}}
export SOURCE_DATE_EPOCH
built=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r "$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

# Whatever the surroundings set must not reach the binaries. The version comes
# from here, not from the toolchain's look at git: a copy of the source without
# its history gives the same.
export CGO_ENABLED=0 GOFLAGS='' GOEXPERIMENT='' GOAMD64=v1 GOARM64=v8.0 GOWORK=off
pkg=tbl/cmd/tbl/internal/app
# The command-line library's own way to write manuals, which tbl's is not: what
# it brings along would be set up at each start.
tags=urfave_cli_no_docs
ldflags="-s -w -buildid= -X $pkg.release=$VERSION -X $pkg.commit=$COMMIT -X $pkg.built=$built"
build() { # OS/ARCH FILE
  GOOS=${1%/*} GOARCH=${1#*/} go build -trimpath -buildvcs=false -tags "$tags" -ldflags "$ldflags" -o "$2" ./cmd/tbl
}
name() { # OS/ARCH
  local n=tbl_${1%/*}_${1#*/}
  case $1 in windows/*) n=$n.exe ;; esac
  echo "$n"
}
sums() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }

# Only what a release made is removed, also one that was broken off: its
# SHA256SUMS is there from the start.
if [ -e "$OUT" ] || [ -L "$OUT" ]; then
  [ -d "$OUT" ] || die "OUT $OUT is no directory: name another, or remove it"
  kept=$(find "$OUT/" -mindepth 1 -maxdepth 1 ! -name 'tbl_*' ! -name tbl.1 ! -name completions ! -name .host ! -name SHA256SUMS | head -n 1)
  if [ -n "$kept" ]; then
    die "OUT $OUT holds $kept, which no release made: name another directory, or remove it"
  fi
  if [ ! -f "$OUT/SHA256SUMS" ] && [ -n "$(ls -A "$OUT")" ]; then
    die "OUT $OUT holds no earlier release, there is no SHA256SUMS in it: name another directory, or remove it"
  fi
fi
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
rm -rf "$OUT"
mkdir -p "$OUT/completions"
: >"$OUT/SHA256SUMS"
for t in $TARGETS; do
  echo "build $t"
  build "$t" "$OUT/$(name "$t")"
done

# The manual and the completions are the commands' own; a binary that runs here
# prints them.
here=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
host=$OUT/$(name "$here")
if [ ! -f "$host" ]; then
  host=$OUT/.host
  build "$here" "$host"
fi
"$host" man >"$OUT/tbl.1"
"$host" completion bash >"$OUT/completions/tbl.bash"
"$host" completion zsh >"$OUT/completions/_tbl"
"$host" completion fish >"$OUT/completions/tbl.fish"
"$host" completion powershell >"$OUT/completions/tbl.ps1"
"$host" version
rm -f "$OUT/.host"
(cd "$OUT" && sums $(find . -type f ! -name SHA256SUMS | sed 's|^\./||' | LC_ALL=C sort) >SHA256SUMS)
# Archives made of the files carry the commit's time.
find "$OUT" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} + 2>/dev/null || true

# A tool that checks, where it is installed.
checked() { # WHAT COMMAND…
  local what=$1
  shift
  if ! command -v "$1" >/dev/null; then
    echo "not checked, no $1 here: $what"
  elif ! said=$("$@" 2>&1) || [ -n "$said" ]; then
    echo "$said" >&2
    die "$what does not pass $1"
  else
    echo "checked with $1: $what"
  fi
}
checked "manual page" mandoc -T lint -W warning "$OUT/tbl.1"
checked "bash completion" bash -n "$OUT/completions/tbl.bash"
checked "zsh completion" zsh -n "$OUT/completions/_tbl"
checked "fish completion" fish --no-execute "$OUT/completions/tbl.fish"

if [ -n "$verify" ]; then
  again=$work/again
  mkdir -p "$again/src" "$again/cache"
  git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "$again/src"
  echo "build everything again in $again, with an empty cache"
  (cd "$again/src" && VERSION=$VERSION COMMIT=$COMMIT OUT=$again/out TARGETS=$TARGETS IMAGE=none GOCACHE=$again/cache scripts/release.sh >/dev/null)
  cmp "$OUT/SHA256SUMS" "$again/out/SHA256SUMS" || die "the second build differs: $(diff "$OUT/SHA256SUMS" "$again/out/SHA256SUMS" | tr '\n' ' ')"
  echo "the same bytes twice"
fi

if [ "$IMAGE" = none ]; then
  exit 0
fi
for engine in docker podman; do
  if command -v $engine >/dev/null && $engine info >/dev/null 2>&1; then
    arch=$(go env GOHOSTARCH)
    [ -f "$OUT/tbl_linux_$arch" ] || die "the image needs linux/$arch among TARGETS"
    # From a directory with the two files that it needs: OUT can be anywhere.
    mkdir "$work/image"
    cp Dockerfile "$OUT/tbl_linux_$arch" "$work/image"
    $engine build --build-arg "BINARY=tbl_linux_$arch" --tag "$IMAGE" "$work/image"
    echo "image $IMAGE, built with $engine"
    exit 0
  fi
done
echo "no image: no container engine runs here. Where one does: docker build --build-arg BINARY=tbl_linux_amd64 --tag $IMAGE --file Dockerfile $OUT"
