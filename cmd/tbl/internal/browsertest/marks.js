// Counts what each chart shows. A mark is a shape with some extent; a line may
// be flat, a bar may not.
(selector) => [...document.querySelectorAll(selector)].map((el) => {
  const labels = (el.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean)
    .map((id) => (document.getElementById(id) || {}).textContent || '').join(' ');
  const title = el.querySelector(':scope > title');
  const name = (labels || el.getAttribute('aria-label') || (title ? title.textContent : '')).trim();
  const marks = [...el.querySelectorAll('path,rect,circle,ellipse,line,polyline,polygon,use,[data-mark]')].filter((m) => {
    if (m.closest('defs,clipPath,marker,symbol')) return false;
    const b = m.getBoundingClientRect();
    const flat = ['path', 'line', 'polyline'].includes(m.tagName.toLowerCase());
    return flat ? b.width > 0 || b.height > 0 : b.width > 0 && b.height > 0;
  });
  const texts = [...el.querySelectorAll('text')].filter((x) => x.textContent.trim() && x.getBoundingClientRect().width > 0);
  return {name, marks: marks.length, texts: texts.length};
})
