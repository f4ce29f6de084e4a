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
# median of the ratios of the pairs. The limits are those of the project.
# Exits 1 when one is missed.
#
# Needs grep, rg, zcat, pigz and zstd; what is missing is left out. TBL names
# the binary (default: built from this tree, as a release is).
set -euo pipefail
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
if [ -z "${TBL:-}" ]; then
  TBL=$work/tbl
  CGO_ENABLED=0 go build -trimpath -tags urfave_cli_no_docs -ldflags "-s -w" -o "$TBL" ./cmd/tbl
fi

for log in all one; do
  share=1
  [ $log = one ] && share=0.01
  f=$dir/$log-$bytes.log
  [ -s "$f" ] || "$work/genlog" -seed 1 -bytes "$bytes" -share $share >"$f"
  ln -sf "$f" "$work/$log.log"
  if command -v pigz >/dev/null; then
    [ -s "$f.gz" ] || pigz -c "$f" >"$f.gz"
    ln -sf "$f.gz" "$work/$log.gz"
  fi
  if command -v zstd >/dev/null; then
    [ -s "$f.zst" ] || zstd -q -c "$f" >"$f.zst"
    ln -sf "$f.zst" "$work/$log.zst"
  fi
  cat "$f" "$f".* >/dev/null 2>&1 || true # warm
done
cd "$work"

# once COMMAND: "wall cpu" in seconds. The output goes through cat: grep stops
# at the first match when it writes to /dev/null.
TIMEFORMAT='%R %U %S'
once() {
  { time bash -c "$1" 2>/dev/null | cat >out; } 2>time.txt
  awk '{ printf "%.3f %.3f\n", $1, $2 + $3 }' time.txt
}

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

missed=0
# pair NAME LIMIT OURS THEIRS: OURS may take LIMIT times what THEIRS takes.
pair() {
  local name=$1 limit=$2 ours=$3 theirs=$4
  : >a.txt
  : >b.txt
  : >ratio.txt
  for _ in $(seq "$rounds"); do
    local a b
    a=$(once "$ours")
    b=$(once "$theirs")
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
  pair "$log: grep -c" $limit "$TBL stats $log.log" "grep -c sampled $log.log"
  if command -v rg >/dev/null; then pair "$log: rg -c" 1 "$TBL stats $log.log" "rg -c sampled $log.log"; fi
  pair "$log: wc -l" 99 "$TBL stats $log.log" "wc -l $log.log"
  pair "$log: cat | grep -c" 1 "cat $log.log | $TBL stats" "cat $log.log | grep -c sampled"
  if [ -e $log.gz ]; then
    pair "$log: zcat | grep -c" 0.40 "$TBL stats $log.gz" "zcat $log.gz | grep -c sampled"
    pair "$log: pigz -dc" 1.25 "$TBL stats $log.gz" "pigz -dc $log.gz"
  fi
  if [ -e $log.zst ]; then pair "$log: zstd -dc" 1.25 "$TBL stats $log.zst" "zstd -dcf $log.zst"; fi
done

# Memory, by the kernel's count of the largest resident set.
if [ -x /usr/bin/time ]; then
  "./genlog" -seed 2 -bytes "$bytes" -cores 256 >many.log
  for f in all.log all.gz one.zst many.log; do
    [ -e "$f" ] || continue
    /usr/bin/time -f '%M' -o rss.txt "$TBL" stats "$f" >/dev/null 2>&1 || true
    printf '%-28s %7.1f MiB resident\n' "$f" "$(tail -1 rss.txt | awk '{ print $1 / 1024 }')"
  done
fi
exit $missed
