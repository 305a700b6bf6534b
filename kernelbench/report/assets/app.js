// The page as a whole: its data, filters, keys, theme, and the run that it follows.

const given = JSON.parse(byId('data').textContent);
const state = {...given, words: [], facets: {status: '', verdict: '', level: '', kind: '', run: ''}};

const POLL_MS = 1000;
const haystacks = new WeakMap();

function haystack(row) {
  if (!haystacks.has(row)) {
    const fields = [row.problem, row.name, words(row.name || ''), row.solution, row.workload, row.kind, row.status, words(row.status), row.rule, row.verdict, row.no_speedup, row.message,
      state.overview.runs[row.run].name];
    haystacks.set(row, fields.filter(Boolean).join('\n').toLowerCase());
  }
  return haystacks.get(row);
}

const level = (row) => row.problem.split('/')[0];

function matches(row) {
  const {facets} = state;
  return (!facets.status || row.status === facets.status) && (!facets.verdict || row.verdict === facets.verdict) && (!facets.kind || row.kind === facets.kind) &&
    (!facets.level || level(row) === facets.level) && (!facets.run || row.run === Number(facets.run)) &&
    state.words.every((word) => haystack(row).includes(word));
}

function drawFacets() {
  const distinct = (of) => [...new Set(state.rows.map(of))].filter((option) => option !== undefined);
  const options = {
    status: STATUSES.filter((status) => state.rows.some((row) => row.status === status)).map((status) => [status, words(status)]),
    verdict: distinct((row) => row.verdict).sort().map((verdict) => [verdict, verdict]),
    level: distinct(level).sort(compareText).map((number) => [number, `level ${number}`]),
    kind: distinct((row) => row.kind).sort().map((kind) => [kind, kind]),
    run: distinct((row) => row.run).map((index) => [String(index), state.overview.runs[index].name]),
  };
  const key = JSON.stringify([options, state.facets]);
  if (byId('facets').dataset.key === key) return; // a list that somebody has opened stays open
  byId('facets').dataset.key = key;
  byId('facets').replaceChildren(...Object.entries(options).filter(([name, found]) => found.length > 1 || state.facets[name]).map(([name, found]) =>
    el('select', {id: `facet-${name}`, 'aria-label': `Show only one ${name}`, class: state.facets[name] ? 'chosen' : null,
      onchange: (event) => choiceOf({[name]: event.target.value})},
      el('option', {value: ''}, name),
      found.map(([key, label]) => el('option', {value: key, selected: key === state.facets[name]}, label)))));
}

function choiceOf(facets) {
  const focused = document.activeElement?.id;
  Object.assign(state.facets, facets);
  drawFacets();
  arrange();
  if (focused) byId(focused)?.focus();
}

function search() {
  state.words = byId('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  arrange();
}

function resetFilters() {
  byId('filter').value = '';
  state.words = [];
  choiceOf({status: '', verdict: '', level: '', kind: '', run: ''});
}

// A result that is open is in the address, so that it can be linked to and "back" closes it.

const opened = () => {
  const found = location.hash.match(/^#result-(\d+)$/);
  return found && state.rows.find((row) => row.id === Number(found[1]));
};

function route() {
  const row = opened();
  if (row) openPanel(row);
  else byId('panel').close();
}

function closed() {
  const row = opened();
  byId('panel').dataset.id = '';
  if (!row) return;
  history.replaceState(null, '', '#results');
  const index = table.shown.indexOf(row);
  if (index >= 0) moveTo(index);
}

function openNeighbour(step) {
  const index = table.shown.indexOf(opened()) + step;
  if (table.shown[index]) location.replace(`#result-${table.shown[index].id}`);
}

const KEYS = [
  [['j', 'ArrowDown'], 'next result', () => moveTo(table.cursor + 1), () => openNeighbour(1)],
  [['k', 'ArrowUp'], 'previous result', () => moveTo(table.cursor - 1), () => openNeighbour(-1)],
  [['Enter'], 'open it', () => { if (table.shown[table.cursor]) location.hash = `#result-${table.shown[table.cursor].id}`; }],
  [['Escape'], 'close it, or leave the filter', null],
  [['/'], 'filter', () => byId('filter').focus()],
  [['g', 'Home'], 'first result', () => moveTo(0)],
  [['G', 'End'], 'last result', () => moveTo(table.shown.length - 1)],
  [['t'], 'light or dark', switchTheme, switchTheme],
  [['?'], 'this help', showKeys],
];

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || byId('keys').open) return;
  const field = event.target.closest('input, select, textarea');
  if (field) {
    if (event.key === 'Escape') field.blur();
    else if (field.id === 'filter' && ['ArrowDown', 'Enter'].includes(event.key)) {
      event.preventDefault();
      moveTo(0);
    }
    return;
  }
  const inPanel = byId('panel').open;
  if (!inPanel) closed(); // a browser tells that it was closed a little later, and a key may come first
  const scrolls = event.key.startsWith('Arrow') && event.target.closest('#panel'); // arrows scroll what is open
  const found = KEYS.find(([keys]) => keys.includes(event.key));
  const action = found && found[inPanel ? 3 : 2];
  if (!action || scrolls || (event.key === 'Enter' && event.target.closest('a, button, summary'))) return;
  event.preventDefault();
  action();
}

function showKeys() {
  const name = (key) => ({ArrowDown: '↓', ArrowUp: '↑'}[key] || key);
  byId('keys').replaceChildren(el('h2', {id: 'keys-title'}, 'Keys'), el('dl', {class: 'terms'}, KEYS.map(([keys, what]) =>
    el('div', {}, el('dt', {}, keys.map((key) => el('kbd', {}, name(key)))), el('dd', {}, what)))),
    el('form', {method: 'dialog'}, el('button', {}, 'Close')));
  byId('keys').showModal();
}

function remembered(theme) {
  try {
    if (theme) localStorage.setItem('kernelbench-theme', theme);
    return localStorage.getItem('kernelbench-theme');
  } catch {
    return theme; // a page from disk may have no storage
  }
}

function switchTheme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark';
  document.documentElement.dataset.theme = remembered(dark ? 'light' : 'dark') || (dark ? 'light' : 'dark');
}

// A run that is still going: new rows come once a second, and those that count no more go.

function receive(update) {
  if (update.reset) state.rows = [];
  const gone = new Set(update.gone);
  Object.assign(state, {rows: [...state.rows.filter((row) => !gone.has(row.id)), ...update.rows], overview: update.overview, attempts: update.attempts, generation: update.generation, count: update.count,
    unevaluated: update.unevaluated});
  draw();
}

async function follow() {
  const live = byId('live');
  live.hidden = false;
  try {
    const response = await fetch(`data?since=${state.count}&unevaluated=${state.unevaluated}&generation=${state.generation}`);
    const update = response.status === 200 ? await response.json() : null;
    if (update?.error) throw new Error(update.error);
    if (update) receive(update);
    live.className = 'live';
    live.textContent = 'following';
  } catch (error) {
    live.className = 'live gone';
    live.textContent = error instanceof TypeError ? 'the server has stopped' : error.message;
  }
  setTimeout(follow, POLL_MS);
}

function draw() {
  chooseColumns();
  drawFacets();
  summary();
  drawCharts();
  drawUnevaluated();
  arrange();
}

const theme = remembered();
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
draw();
route();
byId('filter').addEventListener('input', search);
byId('reset').addEventListener('click', resetFilters);
byId('sort').addEventListener('change', (event) => sortBy(COLUMNS.find((column) => column.key === event.target.value)));
byId('theme').addEventListener('click', switchTheme);
byId('help').addEventListener('click', showKeys);
byId('panel').addEventListener('close', closed);
byId('panel').addEventListener('click', (event) => { if (event.target === byId('panel')) byId('panel').close(); });
byId('table').addEventListener('click', (event) => {
  const row = event.target.closest('tr[data-id]');
  if (row && !event.target.closest('a') && !getSelection().toString()) location.hash = `#result-${row.dataset.id}`;
});
addEventListener('beforeprint', () => fillGroups(0, Infinity));
addEventListener('hashchange', route);
addEventListener('keydown', pressed);
if (state.live) follow();
