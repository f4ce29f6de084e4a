#!/usr/bin/env bash
# Makes the pictures of README.md anew, from real runs: docs/status-light.png
# and docs/status-dark.png, the status page of a dataplane under load;
# docs/report-light.png and docs/report-dark.png, the report of a dataplane
# before and after its names were found instead of built.
#
# Needs Go and chromium. CHROMIUM names another browser of that family,
# PORT a free port (default 18080).
set -euo pipefail
cd "$(dirname "$0")/.."

CHROMIUM=${CHROMIUM:-chromium}
PORT=${PORT:-18080}
for tool in go "$CHROMIUM"; do
  command -v "$tool" >/dev/null || { echo "screenshots: no $tool on the path" >&2; exit 2; }
done
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$work"' EXIT
mkdir -p docs
go build -o "$work/tbl" ./cmd/tbl

# shoot SCHEME URL FILE WIDTH,HEIGHT
shoot() {
  local scheme=1 # light
  [ "$1" = dark ] && scheme=0
  "$CHROMIUM" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update \
    --disable-sync --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$work/profile-$1" \
    --blink-settings=preferredColorScheme=$scheme --window-size="$4" --timeout=4000 --screenshot="$3" "$2" >"$work/chromium.log" 2>&1 ||
    { cat "$work/chromium.log" >&2; exit 1; }
  echo "$3"
}

# A dataplane whose cores built their names: most writes go to another core.
"$work/tbl" serve --listen "127.0.0.1:$PORT" --seed 7 --cores 8 --fault deterministic-names 2>"$work/serve.log" &
pids+=($!)
# Its own word that it serves: on a port that is taken, another would answer.
until grep -q "http://127.0.0.1:$PORT," "$work/serve.log"; do
  kill -0 "${pids[0]}" 2>/dev/null || { echo "screenshots: no dataplane on port $PORT, PORT names another: $(cat "$work/serve.log")" >&2; exit 2; }
  sleep 0.1
done
"$work/tbl" load --target "http://127.0.0.1:$PORT" --rate 2000 --duration 60s --max-errors 100 >/dev/null 2>&1 &
pids+=($!)
sleep 3
for scheme in light dark; do
  shoot $scheme "http://127.0.0.1:$PORT/" "docs/status-$scheme.png" 1280,1500
done

kill "${pids[@]}" 2>/dev/null || true
wait
pids=()

# The same load before and after the repair, as the dataplane's log tells it.
(
  cd "$work"
  ./tbl load --count 200000 --seed 7 --fault deterministic-names --log before.log >/dev/null 2>&1 || [ $? -eq 1 ]
  ./tbl load --count 200000 --seed 7 --log after.log >/dev/null 2>&1 || [ $? -eq 1 ]
  for run in before after; do
    ./tbl stats $run.log --export $run.json >/dev/null || [ $? -eq 1 ]
  done
  ./tbl report before.json after.json -o report.html
)
for scheme in light dark; do
  shoot $scheme "file://$work/report.html" "docs/report-$scheme.png" 1000,1220
done
