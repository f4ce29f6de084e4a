#!/usr/bin/env bash
# Writes per second of bulk-post through HTTP on loopback against redis-server
# fed by redis-benchmark with pipelines of 1,000: the same machine, the same
# run, the same number of 36-byte keys with a 1-byte value, in turn.
#
#   scripts/bench-redis.sh [-r ROUNDS] [-p POSTS]
#
# Each post is 15,625 keys; 320 posts (the default) are 5,000,000. Printed are
# each round, the medians and their ratio. Both stores are emptied before each
# round, and what was written is checked in both. Redis counts 10-digit random
# numbers in 100,000,000, so that it writes some keys twice. Exits 1 when the
# ratio is below the project's limit of 2, 2 when something fails or too little
# was written.
#
# Needs redis-server and redis-tools. TBL names the binary (default: built from
# this tree).
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

rounds=5
posts=320
while getopts r:p: o; do
  case $o in
    r) rounds=$OPTARG ;;
    p) posts=$OPTARG ;;
    *) exit 2 ;;
  esac
done
keys=$((posts * 15625))

for need in redis-server redis-benchmark redis-cli; do
  command -v "$need" >/dev/null || { echo "bench-redis: $need is needed" >&2; exit 2; }
done

dir=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$dir"
}
trap cleanup EXIT

tbl=${TBL:-}
if [ -z "$tbl" ]; then
  tbl=$dir/tbl
  go build -o "$tbl" ./cmd/tbl
fi

port=$((20000 + $$ % 20000))
"$tbl" serve --listen "127.0.0.1:$port" >"$dir/serve.txt" 2>&1 &
pids+=($!)
redis-server --port $((port + 1)) --save "" --appendonly no --dir "$dir" >"$dir/redis.txt" 2>&1 &
pids+=($!)
up=
for _ in $(seq 100); do
  if redis-cli -p $((port + 1)) ping >/dev/null 2>&1 && "$tbl" info --target "http://127.0.0.1:$port" >/dev/null 2>&1; then
    up=1
    break
  fi
  sleep 0.1
done
[ -n "$up" ] || { echo "bench-redis: no server within 10 s" >&2; cat "$dir/serve.txt" "$dir/redis.txt" >&2; exit 2; }

now() { date +%s.%N; }
per_second() { awk -v n="$keys" -v a="$1" -v b="$2" 'BEGIN { printf "%d\n", n / (b - a) }'; }
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : int((v[NR / 2] + v[NR / 2 + 1]) / 2) }'; }

printf '%-7s %15s %15s %8s\n' round tbl/s redis/s ratio
for i in $(seq "$rounds"); do
  "$tbl" reset --target "http://127.0.0.1:$port" >"$dir/reset.txt" 2>&1 || { cat "$dir/reset.txt" >&2; exit 2; }
  a=$(now)
  "$tbl" bulk-post --target "http://127.0.0.1:$port" --num-posts "$posts" --quiet >"$dir/bulk.txt" 2>&1 || true # what it stored is what counts
  b=$(now)
  wrote=$("$tbl" reset --target "http://127.0.0.1:$port" --requests 200 | sed -n 's/.*Total entries removed (first-hit): //p' | tr -d ,)
  [ "$wrote" = "$keys" ] || { echo "bench-redis: tbl stored $wrote of $keys keys" >&2; cat "$dir/bulk.txt" >&2; exit 2; }
  ours=$(per_second "$a" "$b")

  redis-cli -p $((port + 1)) flushall >/dev/null
  a=$(now)
  redis-benchmark -p $((port + 1)) -q -P 1000 -n "$keys" -r 100000000 SET abcdefghijklmnopqrstuvwx__rand_int__ 1 >/dev/null
  b=$(now)
  wrote=$(redis-cli -p $((port + 1)) dbsize)
  [ "$wrote" -gt $((keys / 2)) ] || { echo "bench-redis: redis stored $wrote keys" >&2; exit 2; }
  theirs=$(per_second "$a" "$b")

  echo "$ours" >>"$dir/ours"
  echo "$theirs" >>"$dir/theirs"
  printf '%-7s %15s %15s %8s\n' "$i" "$ours" "$theirs" "$(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.2f", a / b }')"
done
ours=$(median <"$dir/ours")
theirs=$(median <"$dir/theirs")
ratio=$(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.2f", a / b }')
verdict=ok
awk -v r="$ratio" 'BEGIN { exit !(r < 2) }' && verdict=MISSED
printf '%-7s %15s %15s %8s   >= 2.00  %s\n' median "$ours" "$theirs" "$ratio" "$verdict"
[ $verdict = ok ]
