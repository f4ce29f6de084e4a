#!/usr/bin/env bash
# Reading logs: tbl stats against grep, ripgrep, zcat, pigz and zstd, on two
# logs made by scripts/genlog with a fixed seed: samples only ("all"), and 1 %
# samples among other lines ("one").
#
#   scripts/bench-logs.sh [-b BYTES] [-r ROUNDS] [-d DIR]
#
# Each pair runs in turn, ROUNDS times (7), on a warm file of BYTES (1 GiB) in
# DIR (a temporary one, removed at the end; one that is named is kept and used
# again). Printed are the medians of wall and CPU time in seconds, and the
# median of the ratios of the pairs; then the largest resident set. The limits
# are those of the project.
#
# Every run, timed or not, has to end well and to count the samples that grep
# counts. Exits 1 when a limit is missed, 2 when a command fails or counts
# otherwise, 3 when everything else held but something was skipped, for want of
# rg, zcat, pigz, zstd or GNU time. TBL names the binary (default: built from
# this tree, as a release is).
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

bytes=$((1 << 30)) rounds=7 dir=
while getopts b:r:d: o; do
  case $o in
    b) bytes=$OPTARG ;;
    r) rounds=$OPTARG ;;
    d) dir=$OPTARG ;;
    *) exit 2 ;;
  esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$dir" ]; then dir=$work; else mkdir -p "$dir"; fi
go build -o "$work/genlog" ./scripts/genlog
if [ -n "${TBL:-}" ]; then
  TBL=$(command -v "$TBL") || { echo "bench-logs: $TBL is no command" >&2; exit 2; }
  TBL=$(realpath "$TBL")
else
  TBL=$work/tbl
  CGO_ENABLED=0 go build -trimpath -tags urfave_cli_no_docs -ldflags "-s -w" -o "$TBL" ./cmd/tbl
fi

for log in all one; do
  share=1
  [ $log = one ] && share=0.01
  f=$dir/$log-$bytes.log
  [ -s "$f" ] || "$work/genlog" -seed 1 -bytes "$bytes" -share $share >"$f"
  ln -sf "$f" "$work/$log.log"
  if gzip=$(type -P pigz || type -P gzip); then
    [ -s "$f.gz" ] || "$gzip" -c "$f" >"$f.gz"
    ln -sf "$f.gz" "$work/$log.gz"
  fi
  if command -v zstd >/dev/null; then
    [ -s "$f.zst" ] || zstd -q -c "$f" >"$f.zst"
    ln -sf "$f.zst" "$work/$log.zst"
  fi
  cat "$f" "$f".* >/dev/null 2>&1 || true # warm
done
cd "$work"

# run COMMAND: its output in out, its wall and CPU seconds in time.txt. The
# output goes through cat: grep stops at the first match when it writes to
# /dev/null.
TIMEFORMAT='%R %U %S'
run() {
  local rc=0
  { time bash -o pipefail -c "$1" 2>errors.txt | cat >out; } 2>time.txt || rc=$?
  [ $rc = 0 ] && return
  echo "bench-logs: exit $rc: $1" >&2
  cat errors.txt >&2
  exit 2
}

# counted COMMAND SAMPLES: that what run left in out is this many; none: there is
# nothing to count.
counted() {
  local got
  case $1 in
    *" stats"*) got=$(sed -n 's/^Total: \([0-9,]*\) samples.*/\1/p' out | tr -d ,) ;;
    *) got=$(head -c 100 out) ;;
  esac
  [ -z "$2" ] || [ "$got" = "$2" ] && return
  echo "bench-logs: ${got:-nothing} counted in place of $2: $1" >&2
  exit 2
}

# once COMMAND SAMPLES: "wall cpu" in seconds.
once() {
  run "$1"
  counted "$1" "$2"
  awk '{ printf "%.3f %.3f\n", $1, $2 + $3 }' time.txt
}

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

missed=0
skipped=0
# skip NAME TOOL: says that NAME is not measured for want of TOOL.
skip() {
  printf '%-28s skipped: no %s\n' "$1" "$2"
  skipped=1
}

# pair NAME LIMIT TOOL OURS THEIRS: OURS may take LIMIT times what THEIRS takes,
# which is TOOL's work. Both count $samples, but for a THEIRS that only copies.
pair() {
  local name=$1 limit=$2 tool=$3 ours=$4 theirs=$5 count=$samples
  if ! command -v "$tool" >/dev/null; then
    skip "$name" "$tool"
    return
  fi
  case $theirs in *sampled*) ;; *) count= ;; esac
  : >a.txt
  : >b.txt
  : >ratio.txt
  for _ in $(seq "$rounds"); do
    local a b
    a=$(once "$ours" "$samples")
    b=$(once "$theirs" "$count")
    echo "$a" >>a.txt
    echo "$b" >>b.txt
    echo "$a $b" | awk '{ print $1 / ($3 > 0 ? $3 : 0.001) }' >>ratio.txt
  done
  local ratio verdict=ok
  ratio=$(median <ratio.txt)
  if awk -v r="$ratio" -v l="$limit" 'BEGIN { exit !(r > l) }'; then
    verdict=MISSED
    missed=1
  fi
  printf '%-28s %7.3f %7.3f   %7.3f %7.3f   %6.2f   <= %4.2f  %s\n' "$name" \
    "$(cut -d' ' -f1 a.txt | median)" "$(cut -d' ' -f2 a.txt | median)" \
    "$(cut -d' ' -f1 b.txt | median)" "$(cut -d' ' -f2 b.txt | median)" "$ratio" "$limit" "$verdict"
}

echo "$(nproc) cores, $bytes bytes, median of $rounds pairs; load $(cut -d' ' -f1-3 /proc/loadavg)"
printf '%-28s %7s %7s   %7s %7s   %6s\n' "" "tbl s" "cpu s" "other s" "cpu s" ratio
for log in all one; do
  limit=0.35
  [ $log = one ] && limit=0.40
  samples=$(grep -c sampled $log.log)
  pair "$log: grep -c" $limit grep "$TBL stats $log.log" "grep -c sampled $log.log"
  pair "$log: rg -c" 1 rg "$TBL stats $log.log" "rg -c sampled $log.log"
  pair "$log: wc -l" 99 wc "$TBL stats $log.log" "wc -l $log.log"
  pair "$log: cat | grep -c" 1 cat "cat $log.log | $TBL stats" "cat $log.log | grep -c sampled"
  if [ -e $log.gz ]; then
    pair "$log: zcat | grep -c" 0.40 zcat "$TBL stats $log.gz" "zcat $log.gz | grep -c sampled"
    pair "$log: pigz -dc" 1.25 pigz "$TBL stats $log.gz" "pigz -dc $log.gz"
  else
    skip "$log: gzip" "pigz or gzip"
  fi
  if [ -e $log.zst ]; then
    pair "$log: zstd -dc" 1.25 zstd "$TBL stats $log.zst" "zstd -dcf $log.zst"
  else
    skip "$log: zstd -dc" zstd
  fi
done

# resident FILE CORES: the largest resident set, by the kernel's count, may be
# 64 MiB and 0.25 MiB per core and kept run, of which there is one.
resident() {
  local f=$1 cores=$2 limit verdict=ok
  if [ ! -e "$f" ]; then
    skip "$f: memory" "${f##*.} file"
    return
  fi
  samples=$(grep -c sampled "${f%.*}.log")
  run "'$gnutime' -f %M -o rss.txt $TBL stats $f"
  counted "$TBL stats $f" "$samples"
  limit=$(awk -v c="$cores" 'BEGIN { print 64 + 0.25 * c }')
  if awk -v l="$limit" 'END { exit !($1 > l * 1024) }' rss.txt; then
    verdict=MISSED
    missed=1
  fi
  printf '%-28s %7.1f MiB resident   <= %g  %s\n' "$f" "$(awk 'END { print $1 / 1024 }' rss.txt)" "$limit" "$verdict"
}

if gnutime=$(type -P time); then
  "./genlog" -seed 2 -bytes "$bytes" -cores 256 >many.log
  resident all.log 4
  resident all.gz 4
  resident one.zst 4
  resident many.log 256
else
  skip memory "GNU time"
fi
[ $missed = 0 ] || exit 1
[ $skipped = 0 ] || exit 3
