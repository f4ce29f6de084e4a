
'use strict';
(() => {
  const body = document.body;
  const top = Number(body.dataset.top), bottom = Number(body.dataset.bottom), width = Number(body.dataset.width);
  const byId = (id) => document.getElementById(id);
  const status = byId('status'), pause = byId('pause');
  const whole = new Intl.NumberFormat('en-US', {maximumFractionDigits: 0});
  const tenth = new Intl.NumberFormat('en-US', {minimumFractionDigits: 1, maximumFractionDigits: 1});
  const number = (v) => (v < 10 && !Number.isInteger(v) ? tenth : whole).format(v);
  const put = (el, text) => { if (el && el.textContent !== text) el.textContent = text; };
  const span = (ns) => {
    const s = ns / 1e9;
    if (s < 60) return tenth.format(s) + ' s';
    if (s < 3600) return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
    return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  };

  // What stays the same is looked up once: there may be hundreds of cores.
  const charts = [...document.querySelectorAll('figure > svg.chart')].map((svg) => {
    const bars = new Map();
    for (const r of svg.querySelectorAll('rect[data-core]')) {
      const core = Number(r.dataset.core);
      if (!bars.has(core)) bars.set(core, []);
      bars.get(core).push(r);
    }
    return {bars, most: svg.querySelector('.most'), desc: svg.querySelector('desc')};
  });
  const cells = new Map();
  for (const tr of document.querySelectorAll('tr[data-core]')) {
    cells.set(Number(tr.dataset.core), [...tr.querySelectorAll('td')]);
  }

  const draw = (chart, cores) => {
    let most = 0, at = -1;
    for (const c of cores) {
      const sum = (chart.bars.get(c.core) || []).reduce((n, r) => n + c[r.dataset.key], 0);
      if (sum > most) { most = sum; at = c.core; }
    }
    put(chart.most, number(most));
    put(chart.desc, at < 0 ? 'no core has any' : 'the highest is core ' + at + ' with ' + number(most));
    for (const c of cores) {
      let y = bottom;
      for (const r of chart.bars.get(c.core) || []) {
        const h = most > 0 ? c[r.dataset.key] / most * (bottom - top) : 0;
        y -= h;
        r.setAttribute('y', y.toFixed(2));
        r.setAttribute('height', h.toFixed(2));
      }
    }
  };

  const share = (local, remote, when) => {
    const all = local + remote;
    const percent = Math.floor(local / all * 1000) / 10;
    byId('share-all').setAttribute('class', 'bar second');
    byId('share-local').setAttribute('width', (local / all * width).toFixed(2));
    put(byId('share-text'), percent.toFixed(1) + ' % of the writes ' + when + ' were local, ' + (100 - percent).toFixed(1) + " % went to other cores' storage.");
  };

  const show = (s) => {
    const sum = (key) => s.cores.reduce((n, c) => n + c[key], 0);
    const localRate = sum('writes_local_per_s'), remoteRate = sum('writes_remote_per_s');
    const totals = {'Writes per second': number(localRate + remoteRate), 'Entries': number(sum('entries')), 'Bytes': number(sum('bytes')), 'Connections': number(sum('connections'))};
    if (s.server) {
      totals['Open connections'] = whole.format(s.server.open);
      totals['Requests'] = whole.format(s.server.requests);
    }
    for (const [name, text] of Object.entries(totals)) put(document.querySelector('[data-total="' + name + '"]'), text);
    if (localRate + remoteRate > 0) {
      share(localRate, remoteRate, 'lately');
    } else if (sum('writes_local') + sum('writes_remote') > 0) {
      share(sum('writes_local'), sum('writes_remote'), 'since the start');
    }
    for (const c of charts) draw(c, s.cores);
    for (const c of s.cores) for (const td of cells.get(c.core) || []) put(td, number(c[td.dataset.key]));
    put(byId('uptime'), span(s.uptime_ns));
    put(byId('window'), span(s.window_ns));
  };

  let source = null, paused = false, again = 0;
  const close = () => {
    clearTimeout(again);
    if (source) source.close();
    source = null;
  };
  const open = () => {
    if (source || paused || document.hidden) return;
    source = new EventSource(body.dataset.events);
    source.onmessage = (e) => {
      show(JSON.parse(e.data));
      put(status, 'Live: renewed every second.');
      body.dataset.seen = String(Number(body.dataset.seen || 0) + 1);
    };
    source.onerror = () => {
      put(status, 'The connection is lost, the numbers are old. Trying again.');
      // The browser tries again by itself, unless it was refused.
      if (source && source.readyState === EventSource.CLOSED) {
        close();
        again = setTimeout(open, 5000);
      }
    };
  };
  // Who doesn't look at the page asks for nothing.
  document.addEventListener('visibilitychange', () => { if (document.hidden) close(); else open(); });
  pause.hidden = false;
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.textContent = paused ? 'Go on' : 'Pause';
    if (paused) { close(); put(status, 'Paused.'); } else { open(); }
  });
  open();
})();
