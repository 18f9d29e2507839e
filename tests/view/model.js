// Uses the page of a model, with sizes and a profile, and writes down what it then shows.
(async () => {
  const seen = {};
  const $ = id => document.getElementById(id);
  const settle = () => new Promise(done => setTimeout(done, 250));
  const shown = () => [...document.querySelectorAll('#world .node .head')].map(e => e.textContent);
  const press = key => $('canvas').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  const boxes = list => [...document.querySelectorAll(list)].map(e => e.getBoundingClientRect());
  const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  try {
    await settle();
    seen.function = document.querySelector('#details .kind').textContent;
    seen.first = shown();
    seen.inlineHidden = $('inline').hidden;
    press('0'); await settle();
    press('i'); press('f'); await settle();
    seen.pressed = $('inline').getAttribute('aria-pressed');
    press('0'); await settle();
    press('f'); await settle();
    for (let i = 0; i < 8 && +$('zoom').textContent.slice(0, -1) < 60; i++) press('+');
    await settle();
    seen.text = document.querySelector('#world').textContent;
    seen.inlined = shown();
    seen.labels = [...document.querySelectorAll('#world .label')].map(e => e.textContent);
    const labels = boxes('#world .label');
    seen.overlaps = labels.reduce((n, a, i) => n + labels.slice(i + 1).filter(b => !apart(a, b)).length, 0);
    // Boxes of single ops; those that hold others lie around labels.
    const leaves = [...document.querySelectorAll('#world .node')].filter(e => !e.querySelector('[data-toggle]')).map(e => e.querySelector('.box').getBoundingClientRect());
    seen.covered = labels.reduce((n, a) => n + leaves.filter(b => !apart(a, b)).length, 0);
    seen.heats = [...$('heat').options].map(o => o.value);
    seen.hot = document.querySelectorAll('#world .hot').length;
    $('heat').value = '';
    $('heat').dispatchEvent(new Event('change', { bubbles: true })); await settle();
    seen.cold = document.querySelectorAll('#world .hot').length;
    press('i'); await settle();
    seen.closed = shown();
  } catch (error) {
    seen.error = String(error && error.stack || error);
  }
  const out = document.createElement('pre');
  out.id = 'seen';
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
})();
