#!/usr/bin/env bash
# Measures tbl's rate of fresh connections, and of large bodies, against wrk.
#
#   scripts/bench-load.sh [-n PAIRS] [-c COUNT] [MODE…]
#
# Modes (all of them by default):
#   graceful   one fresh connection per request, orderly close, both on the same two cores
#   apart      the same with one core for the server and one for the client
#   reset      graceful with --linger-reset
#   portable   graceful with --portable
#   bulk       bodies of 15,625 keys (565 KiB), the same again and again, by keep-alive (where tbl has --keep-alive)
#   bulkfresh  the same on a fresh connection each
#
# Each measurement has a network namespace and an nginx with one worker of its
# own, so that nobody inherits connections in TIME_WAIT. wrk and tbl take turns;
# each pair gives one ratio. Printed are the medians, with the lowest and
# highest ratio, and the project's limits for them. The server's own count must
# say that it accepted as many connections as there were requests, where they are
# to be fresh. Exits 1 when a limit or that count is missed, 2 when a tool fails
# or one of its requests does.
#
# Needs root, iproute2, nginx, wrk and python3. TBL names the binary (default:
# built from this tree).
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

pairs=7
count=200000
while getopts n:c: o; do
  case $o in
    n) pairs=$OPTARG ;;
    c) count=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- graceful apart reset portable bulk bulkfresh

for need in ip nginx wrk python3; do
  command -v "$need" >/dev/null || { echo "bench-load: $need is needed" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "bench-load: network namespaces need root" >&2; exit 2; }

dir=$(mktemp -d)
ns=tblbench$$
trap 'rm -rf "$dir"' EXIT

tbl=${TBL:-}
if [ -z "$tbl" ]; then
  tbl=$dir/tbl
  go build -o "$tbl" ./cmd/tbl
fi

body=$dir/body
python3 - "$body" <<'PY'
import sys, uuid
open(sys.argv[1], "w").write("".join(str(uuid.uuid4()) + "\n" for _ in range(15625)))
PY
cat >"$dir/post.lua" <<LUA
local f = io.open("$body", "rb")
wrk.method = "POST"
wrk.body = f:read("*a")
f:close()
LUA
cat >"$dir/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $dir/nginx.pid; error_log /dev/null;
events { worker_connections 8192; }
http {
  access_log off; server_tokens off; keepalive_requests 1000000000; client_max_body_size 64m;
  client_body_temp_path $dir; proxy_temp_path $dir; fastcgi_temp_path $dir; uwsgi_temp_path $dir; scgi_temp_path $dir;
  default_type text/plain;
  server {
    listen 127.0.0.1:80 backlog=8192;
    location = /status { stub_status; }
    location = /info { return 200 "tmm=0 total_tmms=1\n"; }
    location = /whoami { return 200 "tmm 0 subtable localdb_tmm_0_1 total_tmms 1 writes 0 entries 0\n"; }
    location = /reset { return 200 "tmm=0 deleted=0\n"; }
    location = /bulk_load { return 200 "tmm=0 subtable=localdb_tmm_0_1 written=15625 elapsed_clicks=150000 clicks_per_write=9\n"; }
    location / { return 200 "tmm=0 subtable=localdb_tmm_0_1 key=\$arg_key\n"; }
  }
}
CONF

# accepted prints how many connections the server has accepted so far.
accepted() {
  ip netns exec $ns python3 -c '
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1/status").read().split(b"\n")[2].split()[0].decode())'
}

# cleanup ends what one began.
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  ip netns del $ns 2>/dev/null || true
}

# one TOOL MODE prints "requests seconds cpu_seconds accepted". It runs in a
# shell of its own.
one() {
  server=
  trap cleanup EXIT
  local tool=$1 mode=$2 pin_server= pin_client=
  if [ "$mode" = apart ]; then
    pin_server="taskset -c 0" pin_client="taskset -c 1"
  fi
  ip netns add $ns
  ip -n $ns link set lo up
  ip netns exec $ns $pin_server nginx -c "$dir/nginx.conf" -e /dev/null &
  server=$!
  until ip netns exec $ns bash -c ': </dev/tcp/127.0.0.1/80' 2>/dev/null; do :; done
  local before
  before=$(accepted)
  local out=$dir/out base=http://127.0.0.1 cmd
  case $tool-$mode in
    wrk-bulk) cmd=(wrk -t1 -c16 -d4s -s "$dir/post.lua" $base/bulk_load) ;;
    wrk-bulkfresh) cmd=(wrk -t1 -c16 -d4s -s "$dir/post.lua" -H "Connection: close" $base/bulk_load) ;;
    wrk-*) cmd=(wrk -t1 -c64 -d4s -H "Connection: close" "$base/load?key=loadkey_0000012345&val=1") ;;
    tbl-bulk*) cmd=("$tbl" bulk-post --target $base --num-posts $((count / 5)) --workers 16 --reuse-bodies) ;;
    tbl-*) cmd=("$tbl" load --target $base --count "$count" --workers 64) ;;
  esac
  case $tool-$mode in
    tbl-bulk) ! "$tbl" bulk-post --help | grep -q -e --keep-alive || cmd+=(--keep-alive) ;;
    tbl-reset) cmd+=(--linger-reset) ;;
    tbl-portable) cmd+=(--portable) ;;
  esac
  [ "$tool" != tbl ] || cmd+=(--format json --quiet)
  # python3 measures the child's own time: wall, user and system.
  ip netns exec $ns $pin_client python3 - "$out" "${cmd[@]}" <<'PY' >"$dir/time"
import os, resource, subprocess, sys, time
with open(sys.argv[1], "wb") as out:
    start = time.monotonic()
    rc = subprocess.run(sys.argv[2:], stdout=out, stderr=subprocess.STDOUT).returncode
    wall = time.monotonic() - start
u = resource.getrusage(resource.RUSAGE_CHILDREN)
# A verdict is none about the speed: what counts is that no request failed.
if rc not in (0, 1, 3):
    print("bench-load: %s: exit %d\n%s" % (sys.argv[2], rc, open(sys.argv[1]).read()[-500:]), file=sys.stderr)
    sys.exit(2)
print(wall, u.ru_utime + u.ru_stime)
PY
  local after
  after=$(accepted)
  kill "$server"
  wait "$server" 2>/dev/null || true
  server=
  ip netns del $ns
  # One accepted connection is the count's own, on each side.
  python3 - "$tool" "$mode" "$count" "$out" "$((after - before - 1))" $(cat "$dir/time") <<'PY'
import re, sys
tool, mode, count, out, accepted, wall, cpu = sys.argv[1:]
text = open(out).read()
def bad(what):
    print(f"bench-load: {tool} {mode}: {what}\n{text[-500:]}", file=sys.stderr)
    sys.exit(2)
if tool == "wrk":
    m = re.search(r"(\d+) requests in ([\d.]+)(m?)s", text)
    if not m or re.search(r"Socket errors|Non-2xx", text):
        bad("had errors")
    n, wall = int(m[1]), float(m[2])
else:
    n = int(count) if mode[:4] != "bulk" else int(count) // 5
    m = re.search(r'"ok"\s*:\s*(\d+)', text)
    if not m or int(m[1]) != n:
        bad(f"{m[1] if m else 'none'} of {n} requests succeeded")
print(n, wall, cpu, accepted)
PY
}

missed=0
for mode in "$@"; do
  case $mode in
    graceful | apart | reset | portable | bulk | bulkfresh) ;;
    *) echo "bench-load: unknown mode $mode" >&2; exit 2 ;;
  esac
  : >"$dir/pairs"
  for _ in $(seq "$pairs"); do
    theirs=$(one wrk "$mode")
    ours=$(one tbl "$mode")
    echo "$theirs $ours" >>"$dir/pairs"
  done
  rc=0
  python3 - "$mode" "$dir/pairs" <<'PY' || rc=$?
import statistics, sys
mode, path = sys.argv[1:]
rows = [list(map(float, l.split())) for l in open(path)]
med = statistics.median
wr = [r[0] / r[1] for r in rows]; tr = [r[4] / r[5] for r in rows]
wc = [r[2] / r[0] * 1e5 for r in rows]; tc = [r[6] / r[4] * 1e5 for r in rows]
rate = [t / w for t, w in zip(tr, wr)]; cpu = [t / w for t, w in zip(tc, wc)]
print(f"{mode:10} {len(rows)} pairs   wrk {med(wr):9,.0f}/s {med(wc):6.2f} CPU-s per 100,000   "
      f"tbl {med(tr):9,.0f}/s {med(tc):6.2f} CPU-s per 100,000")
missed = False
def held(ok):
    global missed
    missed |= not ok
    return "ok" if ok else "MISSED"
# Limits: the least rate, the most CPU per request, both in those of wrk.
least, most = {"graceful": (1.05, 0.85), "apart": (1.25, None), "reset": (1.35, 0.65), "portable": (0.75, None), "bulk": (0.9, None)}.get(mode, (None, None))
rate_limit = f" >= {least} {held(med(rate) >= least)}" if least else ""
cpu_limit = f" <= {most} {held(med(cpu) <= most)}" if most else ""
print(f"{'':10} rate {med(rate):.2f} × wrk ({min(rate):.2f}–{max(rate):.2f}){rate_limit}   CPU per request {med(cpu):.2f} × wrk ({min(cpu):.2f}–{max(cpu):.2f}){cpu_limit}")
if mode.startswith("bulk"):
    size = 15625 * 37
    print(f"{'':10} wrk {med(wr) * size / 2**30:.2f} GiB/s, tbl {med(tr) * size / 2**30:.2f} GiB/s")
if mode != "bulk":
    short = [(int(r[4]), int(r[7])) for r in rows if abs(r[7] - r[4]) > 50]
    print(f"{'':10} connections accepted for tbl's requests: " + ("as many" if held(not short) == "ok" else f"NOT AS MANY {short}"))
sys.exit(1 if missed else 0)
PY
  case $rc in
    0) ;;
    1) missed=1 ;;
    *) exit 2 ;;
  esac
done
exit $missed
