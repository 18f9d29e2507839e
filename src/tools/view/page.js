'use strict';
// Shows the graphs in #data. Rows come with the data (src/tools/view/layers.rs); coordinates are computed here, as
// in place.rs, since blocks open and close. Only what is in sight is drawn, and from far away only plain boxes.
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const { model, layers } = data;
const { ops, values, blocks, functions, docs } = model;
const LETTER = 7.25, LINE = 16, PAD = 8, GAP = 22, ROW_GAP = 40, TITLE = 20, LETTERS = 44, ROUNDS = 8;
const PARTS = { compute: 'computes', control: 'control flow', call: 'call', scope: 'module', data: 'data', fused: 'subgraph', foreign: 'undeclared', constant: 'constant' };
const MANY_OPS = 400, FAR = 0.32, MANY_NODES = 1500;
const $ = id => document.getElementById(id);
const canvas = $('canvas'), world = $('world'), details = $('details'), search = $('search');

// --- words ---
const cut = text => { const t = [...text.replace(/[\n\r\t]/g, ' ')]; return t.length <= LETTERS ? t.join('') : t.slice(0, LETTERS - 1).join('') + '…'; };
const operand = v => { const op = values[v].op; return op !== undefined && ops[op].constant !== undefined ? ops[op].constant : '%' + values[v].name; };
const typed = v => '%' + values[v].name + ' : ' + (values[v].seen || values[v].type);
// --- heat: what each op took or gave, as a share of the most that one of the same function has ---
const HEATS = { time: ['time', t => t >= 1000 ? (t / 1000).toFixed(2) + ' ms' : t.toFixed(1) + ' us'],
  memory: ['bytes', n => n >= 1 << 20 ? (n / (1 << 20)).toFixed(1) + ' MB' : (n / 1024).toFixed(1) + ' kB'] };
const heats = Object.keys(HEATS).filter(name => ops.some(op => op[HEATS[name][0]] > 0));
let heat = heats[0] || '';
const own = o => heat ? ops[o][HEATS[heat][0]] || 0 : 0;
const sums = new Map();
function held(o) {
  if (!ops[o].blocks) return 0;
  const key = heat + o;
  if (!sums.has(key)) sums.set(key, ops[o].blocks.reduce((n, b) => n + blocks[b].ops.reduce((m, i) => m + Math.max(own(i), held(i)), 0), 0));
  return sums.get(key);
}
const most = {};
// A closed op stands for what is in it.
const hotness = o => {
  if (!heat) return 0;
  most[heat] ||= ops.reduce((m, op, i) => Math.max(m, op.blocks ? 0 : own(i)), 0) || 1;
  return Math.min(1, (ops[o].blocks && !closed.has(o) ? 0 : Math.max(own(o), held(o))) / most[heat]);
};
const attributes = op => (op.attributes || []).map(([name, text]) => name + '=' + text);
// A call is known by the module or function that it runs, a scope by its module.
const head = op => cut(op.part === 'call' || op.part === 'scope' ? blocks[op.blocks[0]].name : op.kind);
const second = op => cut('(' + [...op.operands.map(operand), ...attributes(op)].join(', ') + ')');
const ending = b => cut((blocks[b].owner === undefined ? 'return' : '->') + ' (' + blocks[b].outputs.map(operand).join(', ') + ')');
const width = text => [...text].length * LETTER + 2 * PAD;
const inside = op => (op.blocks || []).reduce((n, b) => n + blocks[b].ops.reduce((m, o) => m + 1 + inside(ops[o]), 0), 0);

// --- state ---
const closed = new Set();
let current = model.entry || 0, selected = null, hits = [], hitSet = new Set(), hitAt = -1, scene = null;
const view = { x: 0, y: 0, k: 1 };

// --- layout ---
function size(item, placed) {
  if (item === 'way') return [10, 0];
  if (item === 'return') return null;
  if (item.input !== undefined) return [width(cut(typed(item.input))), LINE + 2 * PAD];
  const op = ops[item.op];
  let w = Math.max(width(head(op)) + (op.blocks ? 26 : 0) + (op.effects ? 2 * LETTER : 0), width(second(op))), h = 2 * LINE + 2 * PAD;
  if (op.blocks && !closed.has(item.op)) {
    w = Math.max(w, op.blocks.reduce((n, b) => n + placed[b].w + PAD, PAD));
    h += PAD + TITLE + Math.max(...op.blocks.map(b => placed[b].h));
  } else if (op.blocks) w = Math.max(w, width(hint(op)));
  return [w, h];
}
const hint = op => op.blocks.length + (op.blocks.length === 1 ? ' block, ' : ' blocks, ') + inside(op) + ' ops inside';

function placeBlock(b, placed) {
  const { items, rows, edges } = layers[b];
  const r = items.map(item => { const s = size(item, placed) || [width(ending(b)), LINE + 2 * PAD]; return { x: 0, y: 0, w: s[0], h: s[1] }; });
  let y = PAD;
  for (const row of rows) {
    let x = 0, h = 0;
    for (const i of row) { r[i].x = x; r[i].y = y; x += r[i].w + GAP; h = Math.max(h, r[i].h); }
    for (const i of row) { r[i].x -= (x - GAP) / 2; if (items[i] === 'way') r[i].h = h; }
    y += h + ROW_GAP;
  }
  const near = [items.map(() => []), items.map(() => [])];
  for (const e of edges) {
    let from = e.from;
    for (const to of [...(e.via || []), e.to]) { near[1][from].push(to); near[0][to].push(from); from = to; }
  }
  for (let round = 0; round < ROUNDS; round++) {
    const up = round % 2;
    for (let step = 0; step < rows.length; step++) settle(rows[up ? rows.length - 1 - step : step], r, near[up], items);
  }
  let left = Infinity, right = -Infinity;
  for (const q of r) { left = Math.min(left, q.x); right = Math.max(right, q.x + q.w); }
  for (const q of r) q.x += PAD - left;
  return { r, w: right - left + 2 * PAD, h: Math.max(y - ROW_GAP + PAD, 2 * PAD) };
}
function settle(row, r, near, items) {
  const pools = [];
  let offset = 0;
  for (const i of row) {
    const own = r[i], others = near[i];
    let wish = own.x, weight = 0.1;
    if (others.length) {
      let sum = 0;
      for (const o of others) sum += r[o].x + r[o].w / 2;
      wish = sum / others.length - own.w / 2;
      weight = items[i] === 'way' ? 4 : 1;
    }
    pools.push({ wish: (wish - offset) * weight, weight, count: 1 });
    offset += own.w + GAP;
    while (pools.length > 1) {
      const last = pools[pools.length - 1], before = pools[pools.length - 2];
      if (before.wish / before.weight <= last.wish / last.weight) break;
      pools.pop();
      before.wish += last.wish; before.weight += last.weight; before.count += last.count;
    }
  }
  offset = 0;
  let at = 0;
  for (const pool of pools) for (let n = 0; n < pool.count; n++) {
    const q = r[row[at++]];
    q.x = pool.wish / pool.weight + offset;
    offset += q.w + GAP;
  }
}
// Everything that is drawn, in coordinates of the function: frames, nodes, edges.
function layout() {
  const root = functions[current].block, order = [], placed = {};
  const work = [root];
  while (work.length) {
    const b = work.pop();
    order.push(b);
    for (const o of blocks[b].ops) if (ops[o].blocks && !closed.has(o)) work.push(...ops[o].blocks);
  }
  for (const b of order.reverse()) placed[b] = placeBlock(b, placed);
  const nodes = [], edges = [], frames = [], byOp = new Map(), byInput = new Map();
  const open = [[root, 0, 0, 0]], tips = new Map();
  while (open.length) {
    const [b, x, y, depth] = open.pop(), p = placed[b], top = y + TITLE;
    frames.push({ b, depth, x, y, w: p.w, h: p.h + TITLE });
    layers[b].items.forEach((item, i) => {
      if (item === 'way') return;
      const q = p.r[i], node = { item, b, depth, x: q.x + x, y: q.y + top, w: q.w, h: q.h };
      if (item.op !== undefined) {
        byOp.set(item.op, node);
        const op = ops[item.op];
        if (op.blocks && !closed.has(item.op)) {
          let inner = node.x + PAD;
          for (const n of op.blocks) { open.push([n, inner, node.y + 2 * LINE + 2 * PAD, depth + 1]); inner += placed[n].w + PAD; }
        }
      } else if (item.input !== undefined) byInput.set(item.input, node);
      nodes.push(node);
    });
    let labelled = -1;
    for (const e of layers[b].edges) {
      const f = p.r[e.from], source = layers[b].items[e.from];
      const results = source.op === undefined ? [] : ops[source.op].results, many = results.length > 1;
      const part = results.length ? (results.indexOf(e.value) + 1) / (results.length + 1) : 0.5;
      let px = f.x + f.w * part + x, py = f.y + f.h + top, path = 'M' + px.toFixed(1) + ' ' + py.toFixed(1);
      const start = [px, py];
      let lo = px, hi = px, first = null;
      for (const i of [...(e.via || []), e.to]) {
        const t = p.r[i], nx = t.x + t.w / 2 + x, ny = t.y + top - (i === e.to ? 1 : 0), m = ((py + ny) / 2).toFixed(1);
        path += 'C' + px.toFixed(1) + ' ' + m + ' ' + nx.toFixed(1) + ' ' + m + ' ' + nx.toFixed(1) + ' ' + ny.toFixed(1);
        first = first || [nx, ny];
        px = nx; py = ny; lo = Math.min(lo, nx); hi = Math.max(hi, nx);
        if (i !== e.to) { py += t.h; path += 'V' + py.toFixed(1); }
      }
      // The word stands on the side that the line does not take; where an op gives several values, at the other end.
      const left = !many && first[0] > start[0] + 4, label = labelled !== e.value && source.input === undefined;
      const end = b + ' ' + (e.via ? e.via[0] : e.to), taken = tips.get(end) || 0;
      if (many && label) tips.set(end, taken + 1);
      const tip = many ? [first[0], first[1] - 15 - 10 * Math.min(taken, 2)] : start;
      edges.push({ value: e.value, depth, from: source, to: layers[b].items[e.to], path, x: lo, w: hi - lo, y: start[1], h: py - start[1],
        tip: [tip[0] + (left ? -5 : 5), tip[1] + 12], left, label, start, first });
      labelled = e.value;
    }
  }
  spread(nodes, frames, edges);
  scene = { nodes, edges, frames, byOp, byInput, w: placed[root].w, h: placed[root].h + TITLE };
}

// Gives each label a place where it lies over no box and no other label; one without such a place is shown only when its op
// is chosen. Rectangles are found by cells of a grid, so that large graphs take linear time.
const SMALL = 6.1, CELL = 64;
function spread(nodes, frames, edges) {
  const cells = new Map();
  const each = (q, visit) => {
    for (let i = Math.floor(q.x / CELL); i <= Math.floor((q.x + q.w) / CELL); i++)
      for (let j = Math.floor(q.y / CELL); j <= Math.floor((q.y + q.h) / CELL); j++) if (visit(i * 4194304 + j)) return true;
    return false;
  };
  const none = [];
  const free = q => !each(q, key => (cells.get(key) || none).some(r => q.x < r.x + r.w && q.x + q.w > r.x && q.y < r.y + r.h && q.y + q.h > r.y));
  const take = q => { each(q, key => { const list = cells.get(key); list ? list.push(q) : cells.set(key, [q]); }); };
  for (const q of nodes) {
    const open = q.item.op !== undefined && ops[q.item.op].blocks && !closed.has(q.item.op);
    take(open ? { x: q.x, y: q.y, w: q.w, h: 2 * LINE + 2 * PAD } : q);
  }
  for (const f of frames) take({ x: f.x, y: f.y, w: f.w, h: TITLE });
  for (const e of edges) {
    if (!e.label) continue;
    const w = [...cut(typed(e.value))].length * SMALL, h = 11, [sx, sy] = e.start, [fx, fy] = e.first;
    const rect = ([x, y, left]) => ({ x: left ? x - w : x, y: y - 9, w, h });
    const middle = [(sx + fx) / 2, (sy + fy) / 2 + 4];
    const tries = [[...e.tip, e.left], [sx + 5, sy + 12, false], [sx - 5, sy + 12, true], [sx + 5, sy + 23, false], [sx - 5, sy + 23, true],
      [middle[0] + 5, middle[1], false], [middle[0] - 5, middle[1], true], [fx + 5, fy - 6, false], [fx - 5, fy - 6, true],
      [sx + 5, sy + 34, false], [sx - 5, sy + 34, true]];
    const found = tries.find(place => free(rect(place)));
    if (!found) { e.label = false; continue; }
    take(rect(found));
    e.tip = [found[0], found[1]]; e.left = found[2];
  }
}

// --- drawing ---
const make = (name, attrs, text) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (text !== undefined) e.textContent = text;
  return e;
};
let waiting = false;
// A page in the background gets no frames, hence the second way.
function draw() { if (!waiting) { waiting = true; requestAnimationFrame(paint); setTimeout(paint, 100); } }
function paint() {
  if (!waiting) return;
  waiting = false;
  const box = canvas.getBoundingClientRect(), m = 60 / view.k;
  const seen = { x: -view.x / view.k - m, y: -view.y / view.k - m, w: box.width / view.k + 2 * m, h: box.height / view.k + 2 * m };
  const sees = q => q.x < seen.x + seen.w && q.x + q.w > seen.x && q.y < seen.y + seen.h && q.y + q.h > seen.y;
  const nodes = scene.nodes.filter(sees), frames = scene.frames.filter(sees), edges = scene.edges.filter(sees), out = [];
  if (view.k < FAR || nodes.length > MANY_NODES) paintFar(nodes, frames, edges, out); else paintNear(nodes, frames, edges, out);
  world.setAttribute('transform', `translate(${view.x} ${view.y}) scale(${view.k})`);
  world.replaceChildren(...out);
  $('zoom').textContent = Math.round(view.k * 100) + '%';
}
// One path for all edges and one for each colour of boxes: a handful of elements for any number of ops.
function paintFar(nodes, frames, edges, out) {
  for (const f of frames) out.push(frame(f));
  out.push(make('path', { class: 'far', d: edges.map(e => e.path).join('') }));
  const paths = {}, hot = {};
  const rect = q => `M${q.x.toFixed(0)} ${q.y.toFixed(0)}h${q.w.toFixed(0)}v${q.h.toFixed(0)}h${(-q.w).toFixed(0)}z`;
  for (const q of nodes) {
    const op = q.item.op;
    if (op !== undefined && ops[op].blocks && !closed.has(op)) continue;
    const part = op === undefined ? 'constant' : ops[op].part;
    paths[part] = (paths[part] || '') + rect(q);
    const share = op === undefined ? 0 : Math.ceil(hotness(op) * 5);
    if (share > 0) hot[share] = (hot[share] || '') + rect(q);
  }
  for (const part in paths) out.push(make('path', { class: 'boxes', d: paths[part], style: `fill:var(--${part})` }));
  if (heat) out.push(make('path', { class: 'boxes', d: Object.values(paths).join(''), style: 'fill:var(--panel)' }));
  for (const share in hot) out.push(make('path', { class: 'boxes', d: hot[share], style: `fill:var(--heat);fill-opacity:${share / 5}` }));
  let marked = '';
  for (const q of nodes) if (hitSet.has(q.item.op)) marked += rect(q);
  out.push(make('path', { d: marked, style: `fill:var(--hit);stroke:var(--text);stroke-width:${2 / view.k}` }));
  const own = scene.byOp.get(selected);
  if (own) out.push(make('path', { d: rect(own), style: `fill:none;stroke:var(--accent);stroke-width:${4 / view.k}` }));
}
const frame = f => make('rect', { class: 'frame', x: f.x, y: f.y, width: f.w, height: f.h, rx: 6 });
// What lies in a block is drawn over the op that holds the block.
function paintNear(nodes, frames, edges, out) {
  const levels = [], labels = [];
  const level = q => (levels[q.depth] ||= [[], [], []]);
  for (const f of frames) level(f)[0].push(frame(f), make('text', { class: 'soft', x: f.x + PAD, y: f.y + 14 }, cut(blocks[f.b].name || 'graph')));
  for (const e of edges) {
    const on = selected !== null && (e.from.op === selected || e.to.op === selected);
    level(e)[1].push(make('path', { class: on ? 'edge on' : 'edge', d: e.path }));
    if (e.label || on && e.from.input === undefined) labels.push(make('text', { class: 'label' + (on ? ' on' : '') + (e.left ? ' left' : ''), x: e.tip[0], y: e.tip[1] }, cut(typed(e.value))));
  }
  for (const q of nodes) level(q)[2].push(node(q));
  for (const parts of levels) if (parts) out.push(...parts.flat());
  out.push(...labels);
}
function node(q) {
  const { item } = q, g = make('g', { class: 'node' });
  const box = part => g.append(make('rect', { class: 'box', x: q.x, y: q.y, width: q.w, height: q.h, rx: 4 }),
    make('rect', { x: q.x, y: q.y, width: 4, height: q.h, rx: 2, style: `fill:var(--${part})` }));
  const text = (cls, line, s) => g.append(make('text', { class: cls, x: q.x + PAD + 2, y: q.y + PAD + 11 + line * LINE }, s));
  if (item.op === undefined) {
    box('constant');
    text('', 0, item === 'return' ? ending(q.b) : cut(typed(item.input)));
    return g;
  }
  const op = ops[item.op];
  g.dataset.op = item.op;
  if (item.op === selected) g.classList.add('selected');
  if (hitSet.has(item.op)) g.classList.add('hit');
  box(op.part);
  const share = hotness(item.op);
  if (share > 0.01) g.append(make('rect', { class: 'hot', x: q.x + 4, y: q.y, width: q.w - 4, height: q.h, rx: 4, style: `fill:var(--heat);fill-opacity:${(share * 0.75).toFixed(2)}` }));
  text('head', 0, head(op) + (op.effects ? ' !' : ''));
  text('soft', 1, op.blocks && closed.has(item.op) ? hint(op) : second(op));
  if (op.blocks) {
    const t = make('g', { 'data-toggle': item.op }), x = q.x + q.w - 22, y = q.y + 6;
    t.append(make('rect', { class: 'toggle', x, y, width: 16, height: 16, rx: 4 }), make('text', { x: x + 4.4, y: y + 12 }, closed.has(item.op) ? '+' : '−'));
    g.append(t);
  }
  return g;
}

// --- moving about ---
function zoomTo(k, x, y) {
  k = Math.min(3, Math.max(0.01, k));
  const box = canvas.getBoundingClientRect();
  x = x ?? box.width / 2; y = y ?? box.height / 2;
  view.x = x - (x - view.x) * k / view.k; view.y = y - (y - view.y) * k / view.k; view.k = k;
  draw();
}
function fit(start) {
  const box = canvas.getBoundingClientRect();
  let k = Math.min(1, (box.width - 40) / scene.w, (box.height - 40) / scene.h);
  // At first what is there shall be readable; the rest of a large graph lies below.
  if (start) k = Math.max(k, Math.min(0.75, Math.max(0.5, (box.width - 40) / scene.w)));
  view.k = k; view.x = (box.width - scene.w * k) / 2; view.y = Math.max(20, (box.height - scene.h * k) / 2);
  if (scene.h * k > box.height - 40) view.y = 20;
  if (start && scene.w * k > box.width - 40) {
    const first = scene.nodes[0];
    if (first) view.x = box.width / 2 - (first.x + first.w / 2) * k;
  }
  draw();
}
function center(q) {
  const box = canvas.getBoundingClientRect();
  if (view.k < 0.6) view.k = 1;
  view.x = box.width / 2 - (q.x + q.w / 2) * view.k;
  view.y = box.height / 2 - (q.y + Math.min(q.h, box.height / view.k / 2) / 2) * view.k;
}
function inSight(q) {
  const box = canvas.getBoundingClientRect();
  const x = q.x * view.k + view.x, y = q.y * view.k + view.y;
  return view.k >= 0.6 && x > 10 && y > 10 && x + q.w * view.k < box.width - 10 && y + Math.min(q.h, 60) * view.k < box.height - 10;
}
// Keeps an op where it is on the screen while blocks around it open and close.
function relayout(anchor) {
  const before = scene.byOp.get(anchor);
  layout();
  const after = scene.byOp.get(anchor);
  if (before && after) { view.x += (before.x - after.x) * view.k; view.y += (before.y - after.y) * view.k; }
  draw();
}
function toggle(op, to) {
  if (!ops[op].blocks) return;
  const close = to ?? !closed.has(op);
  close ? closed.add(op) : closed.delete(op);
  relayout(op);
  say(ops[op].kind + (close ? ' closed' : ' opened'));
  if (selected === op) describe();
}
function all(close) {
  for (let o = 0; o < ops.length; o++) if (ops[o].blocks) close ? closed.add(o) : closed.delete(o);
  // What is selected may lie in a closed block now; the op that holds it stands for it.
  if (close && selected !== null) { let o = selected; while (blocks[ops[o].block].owner !== undefined) o = blocks[ops[o].block].owner; select(o, false); }
  layout(); fit(true);
  say(close ? 'all blocks closed' : 'all blocks open');
}
// Shows what calls run in their place, or hides it again.
const calls = ops.flatMap((op, o) => op.part === 'call' || op.part === 'scope' ? [o] : []);
function inline() {
  const open = calls.some(o => closed.has(o));
  for (const o of calls) open ? closed.delete(o) : closed.add(o);
  $('inline').setAttribute('aria-pressed', open);
  if (!open) selected = null;
  layout(); fit(true);
  say(open ? 'methods are shown where they are called' : 'calls are closed');
}
function functionOf(o) {
  let b = ops[o].block;
  while (blocks[b].owner !== undefined) b = ops[blocks[b].owner].block;
  return functions.findIndex(f => f.block === b);
}
// Shows an op: its function, the blocks around it, its place.
function reveal(o) {
  if (ops[o].constant !== undefined) { const user = firstUser(o); if (user !== null) o = user; }
  const f = functionOf(o);
  let changed = f !== current && f >= 0;
  if (changed) { current = f; $('function').value = f; }
  for (let b = ops[o].block; blocks[b].owner !== undefined; b = ops[blocks[b].owner].block)
    changed = closed.delete(blocks[b].owner) || changed;
  if (changed) layout();
  select(o, true);
}
function select(o, move) {
  selected = o;
  const q = scene.byOp.get(o);
  if (q && move && !inSight(q)) center(q);
  describe();
  draw();
  if (o !== null) say(ops[o].kind + ' ' + second(ops[o]) + (ops[o].results.length ? ' gives ' + ops[o].results.map(typed).join(', ') : ''));
}
const say = text => { $('live').textContent = text; };

// --- details ---
const users = values.map(() => []);
ops.forEach((op, o) => op.operands.forEach(v => { if (users[v][users[v].length - 1] !== o) users[v].push(o); }));
blocks.forEach(b => b.outputs.forEach(v => { if (b.owner !== undefined) users[v].push(b.owner); }));
const firstUser = o => { for (const v of ops[o].results) if (users[v].length) return users[v][0]; return null; };
function html(name, attrs, ...children) {
  const e = document.createElement(name);
  for (const k in attrs || {}) e.setAttribute(k, attrs[k]);
  e.append(...children);
  return e;
}
function link(o, text, small) {
  const b = html('button', { type: 'button', class: 'link', 'data-go': o }, text);
  if (small) b.append(html('small', {}, ' ' + small));
  b.addEventListener('click', () => reveal(o));
  return b;
}
function describe() {
  const out = [];
  const dl = html('dl');
  const row = (name, ...content) => { if (content.length) dl.append(html('dt', {}, name), ...content.map(c => html('dd', {}, c))); };
  const code = text => html('code', {}, text);
  if (selected === null) {
    const f = functions[current], count = inside({ blocks: [f.block] });
    out.push(html('p', { class: 'kind' }, f.name || 'graph'));
    row('Ops', String(count));
    if (f.schema) row('Schema', code(f.schema));
    row('Takes', ...blocks[f.block].inputs.map(v => code(typed(v))));
    row('Gives', ...blocks[f.block].outputs.map(v => code(typed(v))));
    dl.append(html('dt', {}, 'Help'), html('dd', {}, 'Choose an op to see what it is. Press ? for the keys.'));
  } else {
    const op = ops[selected];
    const kind = html('p', { class: 'kind', style: `--part:var(--${op.part})` }, op.part === 'scope' ? head(op) : op.kind);
    out.push(kind);
    row('Gives', ...op.results.map(v => code(typed(v))));
    row('Takes', ...op.operands.map(v => { const d = values[v].op; return d !== undefined && ops[d].constant === undefined ? link(d, typed(v), 'from ' + ops[d].kind) : code(d === undefined ? typed(v) : typed(v) + ' = ' + ops[d].constant); }));
    const next = [...new Set(op.results.flatMap(v => users[v]))];
    row('Used by', ...next.slice(0, 60).map(o => link(o, ops[o].kind, second(ops[o]))), ...(next.length > 60 ? [`and ${next.length - 60} more`] : []));
    if (op.time !== undefined) row('Time', HEATS.time[1](op.time));
    if (op.bytes !== undefined) row('Memory', HEATS.memory[1](op.bytes));
    row('Attributes', ...attributes(op).map(code));
    if (op.effects) row('Effects', 'does more than compute its results');
    if (op.scope) row('Scope', code(op.scope));
    if (op.location) row('Source', code(op.location));
    if (op.blocks) {
      const b = html('button', { type: 'button', id: 'toggle' }, closed.has(selected) ? 'Open' : 'Close');
      const own = selected;
      b.addEventListener('click', () => toggle(own));
      row('Blocks', hint(op), b);
    }
    const owner = blocks[op.block].owner;
    if (owner !== undefined) row('Inside of', link(owner, ops[owner].kind, blocks[op.block].name));
    row('Operator', ...(docs[op.kind] || (op.part === 'foreign' ? ['no dialect declares it'] : op.part === 'scope' ? ['ops that stand next to each other and came from this module'] : [])).slice(0, 12).map(code));
  }
  out.push(dl);
  details.replaceChildren(...out);
  details.scrollTop = 0;
}

// --- search ---
const texts = ops.map(op => [op.kind, head(op), ...op.operands.map(operand), ...op.results.map(typed), ...attributes(op), op.constant || '', op.scope || '', op.location || ''].join(' ').toLowerCase());
function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  hits = [];
  if (words.length) ops.forEach((_, o) => { if (words.every(w => texts[o].includes(w))) hits.push(o); });
  hitSet = new Set(hits);
  hitAt = -1;
  $('count').textContent = words.length ? (hits.length === 1 ? '1 match' : hits.length + ' matches') : '';
  draw();
}
function step(by) {
  if (!hits.length) return;
  hitAt = hitAt < 0 ? (by > 0 ? 0 : hits.length - 1) : (hitAt + by + hits.length) % hits.length;
  $('count').textContent = `${hitAt + 1} of ${hits.length}`;
  reveal(hits[hitAt]);
}

// --- events ---
function neighbour(key) {
  const shown = o => o !== null && o !== undefined && ops[o].constant === undefined;
  if (selected === null) return blocks[functions[current].block].ops.find(shown);
  const op = ops[selected], own = blocks[op.block].ops, at = own.indexOf(selected);
  if (key === 'ArrowUp') return op.operands.map(v => values[v].op).find(shown) ?? blocks[op.block].owner;
  if (key === 'ArrowDown') return op.results.flatMap(v => users[v]).find(shown);
  const by = key === 'ArrowRight' ? 1 : -1;
  for (let i = at + by; i >= 0 && i < own.length; i += by) if (shown(own[i])) return own[i];
}
function key(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target.matches('input, select, textarea');
  if (e.target === search) {
    if (e.key === 'Enter') { step(e.shiftKey ? -1 : 1); e.preventDefault(); }
    if (e.key === 'Escape') { search.value = ''; find(); canvas.focus(); }
    return;
  }
  if (typing || $('keys').open) return;
  const onButton = e.target.matches('button');
  const acts = {
    '/': () => search.focus(), f: () => fit(false), '0': () => zoomTo(1), '+': () => zoomTo(view.k * 1.25), '=': () => zoomTo(view.k * 1.25),
    '-': () => zoomTo(view.k / 1.25), e: () => all(false), c: () => all(true), t: theme, i: inline, '?': () => $('keys').showModal(),
    Escape: () => select(null, false), n: () => step(1), N: () => step(-1),
  };
  for (const arrow of ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'])
    acts[arrow] = () => { const o = neighbour(arrow); if (o !== undefined && o !== null) reveal(o); };
  if (!onButton) acts.Enter = acts[' '] = () => selected !== null && toggle(selected);
  if (acts[e.key]) { e.preventDefault(); acts[e.key](); }
}
function theme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
}
document.addEventListener('keydown', key);
search.addEventListener('input', find);
$('next').addEventListener('click', () => step(1));
$('prev').addEventListener('click', () => step(-1));
$('inline').addEventListener('click', inline);
$('heat').addEventListener('change', e => { heat = e.target.value; draw(); });
$('expand').addEventListener('click', () => all(false));
$('collapse').addEventListener('click', () => all(true));
$('in').addEventListener('click', () => zoomTo(view.k * 1.25));
$('out').addEventListener('click', () => zoomTo(view.k / 1.25));
$('zoom').addEventListener('click', () => zoomTo(1));
$('fit').addEventListener('click', () => fit(false));
$('theme').addEventListener('click', theme);
$('help').addEventListener('click', () => $('keys').showModal());
$('function').addEventListener('change', e => { current = Number(e.target.value); selected = null; layout(); describe(); fit(true); });
canvas.addEventListener('wheel', e => {
  e.preventDefault();
  const box = canvas.getBoundingClientRect();
  zoomTo(view.k * Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015)), e.clientX - box.left, e.clientY - box.top);
}, { passive: false });
const fingers = new Map();
let moved = false;
canvas.addEventListener('pointerdown', e => { fingers.set(e.pointerId, e); moved = false; });
canvas.addEventListener('pointermove', e => {
  const last = fingers.get(e.pointerId);
  if (!last) return;
  if (fingers.size === 2) {
    const [other] = [...fingers.values()].filter(f => f.pointerId !== e.pointerId);
    const gap = f => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY);
    const box = canvas.getBoundingClientRect();
    zoomTo(view.k * gap(e) / Math.max(1, gap(last)), other.clientX - box.left, other.clientY - box.top);
  } else {
    if (!moved && Math.hypot(e.clientX - last.clientX, e.clientY - last.clientY) < 4) return;
    if (!moved) canvas.setPointerCapture(e.pointerId);
    view.x += e.clientX - last.clientX; view.y += e.clientY - last.clientY;
    canvas.classList.add('drag');
    draw();
  }
  moved = true;
  fingers.set(e.pointerId, e);
});
const up = e => { fingers.delete(e.pointerId); canvas.classList.remove('drag'); };
canvas.addEventListener('pointerup', up);
canvas.addEventListener('pointercancel', up);
// From far away there are no elements to click on, so the place decides.
function at(e) {
  const box = canvas.getBoundingClientRect(), x = (e.clientX - box.left - view.x) / view.k, y = (e.clientY - box.top - view.y) / view.k;
  let found = null;
  for (const q of scene.nodes) if (q.item.op !== undefined && x >= q.x && x <= q.x + q.w && y >= q.y && y <= q.y + q.h && (!found || q.w * q.h < found.w * found.h)) found = q;
  return found && found.item.op;
}
canvas.addEventListener('click', e => {
  if (moved) return;
  const t = e.target.closest('[data-toggle]');
  if (t) toggle(Number(t.dataset.toggle)); else select(at(e), false);
});
canvas.addEventListener('dblclick', e => { const o = at(e); if (o !== null && !e.target.closest('[data-toggle]')) toggle(o); });
new ResizeObserver(draw).observe(canvas);

// --- start ---
document.title = data.title;
$('title').textContent = data.title;
$('title').title = data.title;
functions.forEach((f, i) => $('function').append(html('option', { value: i }, f.name || 'graph')));
$('function').closest('label').hidden = functions.length < 2;
const parts = new Set(ops.filter(op => op.constant === undefined).map(op => op.part));
for (const part in PARTS) if (parts.has(part)) $('legend').append(html('li', {}, html('i', { style: `background:var(--${part})` }), PARTS[part]));
$('function').value = current;
$('inline').hidden = !calls.length;
heats.forEach(name => $('heat').append(html('option', { value: name }, name)));
if (heats.length) $('heat').append(html('option', { value: '' }, 'none'));
$('heat').closest('label').hidden = !heats.length;
for (const o of calls) closed.add(o);
if (ops.length > MANY_OPS) ops.forEach((op, o) => { if (op.blocks) closed.add(o); });
if (functions.length) { layout(); describe(); fit(true); } else details.textContent = 'The module has no functions.';
})();
