// Contrast of every visible text with what is painted behind it: relative
// luminance and ratio as WCAG 2.2 defines them, on computed styles.
(() => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const paint = canvas.getContext('2d', {willReadFrequently: true});
  const known = new Map();
  // Any CSS colour as red, green, blue in 0…255 and opacity in 0…1.
  const rgba = (css) => {
    if (!known.has(css)) {
      paint.clearRect(0, 0, 1, 1);
      paint.fillStyle = css;
      paint.fillRect(0, 0, 1, 1);
      const d = paint.getImageData(0, 0, 1, 1).data;
      known.set(css, [d[0], d[1], d[2], d[3] / 255]);
    }
    return known.get(css);
  };
  const over = (top, below) => {
    const a = top[3] + below[3] * (1 - top[3]);
    if (a === 0) return [0, 0, 0, 0];
    return [0, 1, 2].map((i) => (top[i] * top[3] + below[i] * below[3] * (1 - top[3])) / a).concat(a);
  };
  const luminance = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const opacity = (el) => {
    let o = 1;
    for (let e = el; e; e = e.parentElement) o *= parseFloat(getComputedStyle(e).opacity);
    return o;
  };
  const isShape = (el) => el instanceof SVGGeometryElement;
  const isSVGText = (el) => el instanceof SVGTextContentElement;
  // What an element paints under the texts that lie over it.
  const ground = (el) => {
    const s = getComputedStyle(el);
    if (isShape(el)) {
      if (s.fill === 'none' || s.fill.startsWith('url')) return [0, 0, 0, 0];
      const c = rgba(s.fill).slice();
      c[3] *= parseFloat(s.fillOpacity) * opacity(el);
      return c;
    }
    if (el instanceof SVGElement && !(el instanceof SVGSVGElement)) return [0, 0, 0, 0];
    const c = rgba(s.backgroundColor).slice();
    c[3] *= opacity(el);
    return c;
  };
  const sheet = document.createElement('div');
  sheet.style.cssText = 'position:absolute;width:0;height:0;background:Canvas';
  document.body.append(sheet);
  // What the browser paints where the page paints nothing.
  const blank = rgba(getComputedStyle(sheet).backgroundColor);
  sheet.remove();

  const behind = (el, x, y) => {
    let stack = document.elementsFromPoint(x, y);
    const at = stack.indexOf(el);
    if (at >= 0) {
      stack = stack.slice(at);
    } else {
      stack = [];
      for (let e = el; e; e = e.parentElement) stack.push(e);
    }
    let c = [0, 0, 0, 0];
    for (const e of stack) {
      if (isSVGText(e)) continue;
      c = over(c, ground(e));
      if (c[3] >= 0.999) return c;
    }
    return over(c, blank);
  };
  const text = (c) => 'rgb(' + c.slice(0, 3).map(Math.round).join(' ') + ')';
  const path = (el) => {
    const names = [];
    for (let e = el; e && names.length < 3; e = e.parentElement) {
      names.unshift(e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + (e.getAttribute('class') ? '.' + e.getAttribute('class').trim().split(/\s+/).join('.') : ''));
    }
    return names.join(' > ');
  };

  let texts = 0;
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const el = n.parentElement;
    const words = n.data.trim();
    if (!words || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE'].includes(el.tagName)) continue;
    if (el instanceof SVGElement && !isSVGText(el)) continue; // title, desc
    if (!el.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    const range = document.createRange();
    range.selectNodeContents(n);
    let box = range.getClientRects()[0];
    if (!box || box.width < 1 || box.height < 1) continue;
    const own = el.getBoundingClientRect();
    if (own.width <= 1 || own.height <= 1) continue; // for screen readers only
    if (box.top < 0 || box.bottom > innerHeight || box.left < 0 || box.right > innerWidth) {
      el.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
      box = range.getClientRects()[0];
    }
    texts++;
    const s = getComputedStyle(el);
    const ink = rgba(isSVGText(el) ? s.fill : s.color).slice();
    ink[3] *= opacity(el) * (isSVGText(el) ? parseFloat(s.fillOpacity) : 1);
    const under = behind(el, box.left + box.width / 2, box.top + box.height / 2);
    const shown = over(ink, under);
    const [dark, light] = [luminance(shown), luminance(under)].sort((a, b) => a - b);
    const ratio = (light + 0.05) / (dark + 0.05);
    // Large: 18 pt, or 14 pt in bold; a point is 4/3 CSS pixels.
    const size = parseFloat(s.fontSize);
    const want = size >= 24 || size >= 18.66 && parseInt(s.fontWeight, 10) >= 700 ? 3 : 4.5;
    if (ratio < want) {
      low.push({text: words.slice(0, 60), element: path(el), color: text(shown), background: text(under), ratio, want});
    }
  }
  scrollTo(0, 0);
  return {texts, low};
})()
