// The table: every row is in the document, so that the browser finds and prints it. Rows lie in groups, and
// what is out of sight is neither laid out nor painted (content-visibility), so that 10,000 stay quick.

const GROUP = 50; // rows
const SLICE_MS = 12; // of building rows, before the browser has its turn

const {compare: compareText} = new Intl.Collator('en', {numeric: true});

// `track` is a column's width, `from` the width of the page in px from which it has a place of its own.
const COLUMNS = [
  {key: 'problem', label: 'Problem', track: 'minmax(200px, 3fr)', compare: (a, b) => byProblem(a, b) || a.sample - b.sample, cell: problemCell},
  {key: 'workload', label: 'Workload', track: '80px', cell: (row) => row.workload},
  {key: 'status', label: 'Status', track: '116px', cell: (row) => [badge(row.status), row.rule && el('span', {class: 'rule'}, row.rule)]},
  {key: 'speedup', label: 'Speedup', track: '178px', numeric: true, timed: true, of: (row) => row.settled, cell: speedupCell},
  {key: 'verdict', label: 'Verdict', track: '116px', timed: true, cell: verdictCell},
  {key: 'all', label: 'All workloads', track: '116px', from: 1180, numeric: true, timed: true, of: (row) => overWorkloads(row)?.settled, cell: (row) => speedupText(overWorkloads(row))},
  {key: 'ms', label: 'Time', track: '74px', numeric: true, timed: true, cell: (row) => time(row.ms)},
  {key: 'baseline', label: 'Baseline', track: '74px', from: 1180, numeric: true, timed: true, cell: (row) => time(row.baseline)},
  {key: 'sol', label: 'of SOL', track: '56px', numeric: true, timed: true, cell: (row) => percent(row.sol)},
  {key: 'label', label: 'Label', track: '104px', from: 1180, cell: (row) => row.label && el('span', {title: row.why_label}, words(row.label))},
  {key: 'held_out', label: 'Held out', track: '84px', from: 980, cell: (row) => row.held_out},
  {key: 'kind', label: 'Kind', track: '66px', from: 1180, cell: (row) => row.kind},
  {key: 'solution', label: 'Solution', track: 'minmax(150px, 2.2fr)', from: 980, cell: (row) => row.solution},
  {key: 'run', label: 'Run', track: 'minmax(110px, 1fr)', of: (row) => state.overview.runs[row.run].name, cell: (row) => [runDot(row.run), state.overview.runs[row.run].name]},
];
const WIDTHS = {wide: Infinity, middle: 1180, narrow: 980}; // below which a width of the page counts as this

const runDot = (index, extra = '') => el('i', {class: `dot ${extra} ${runColour(index)}`});

/** What the solution of this row is worth on all of its workloads; undefined where it has one. */
const overWorkloads = (row) => state.overview.runs[row.run].over_workloads[`${row.problem} ${row.solution}`];

function problemCell(row) {
  const dot = state.overview.runs.length > 1 && runDot(row.run, 'narrow');
  return el('a', {href: `#result-${row.id}`, class: 'open'}, dot, el('b', {}, row.problem), ' ', el('span', {}, row.name || ''));
}

function speedupCell(row) {
  return [el('b', {title: measured(row)}, speedupText(row)), el('small', {}, ` ${interval(row)}`)];
}

/** The verdict in a word, and the interval on a logarithmic axis from an eighth to eight, with 1 in the middle. */
function verdictCell(row) {
  const x = (value) => 25 + 24 * Math.max(-1, Math.min(1, Math.log2(Math.max(value, 1e-9)) / 3));
  const [low, high] = isNumber(row.low) && isNumber(row.high) ? [row.low, row.high] : [row.speedup, row.speedup];
  const bar = el('i', {class: 'bar', 'aria-hidden': 'true'});
  bar.style.cssText = `--from: ${Math.min(25, x(row.speedup))}px; --reach: ${Math.abs(x(row.speedup) - 25)}px; ` +
    `--low: ${x(low)}px; --wide: ${Math.max(1.2, x(high) - x(low))}px`;
  return el('span', {class: `verdict-word ${row.verdict}`}, row.verdict, bar);
}

const table = {shown: [], columns: [], groups: [], cursor: -1, sort: {key: 'problem', down: false}, shows: '', lines: new WeakMap()};

const place = (column) => column.of || ((row) => row[column.key]);

/** Columns that say something of any row, and how wide they are on a wide page and on others. */
function chooseColumns() {
  const several = new Set(state.rows.map((row) => row.workload)).size > 1;
  const says = (column) => ({
    run: state.overview.runs.length > 1, workload: several, all: state.overview.runs.some((run) => Object.keys(run.over_workloads).length),
    speedup: true, verdict: true}[column.key] ?? state.rows.some((row) => row[column.key] !== undefined));
  table.columns = COLUMNS.filter(says);
  const shows = JSON.stringify([table.columns.map((column) => column.key), state.overview.runs.map((run) => [run.name, run.over_workloads])]);
  if (shows !== table.shows) Object.assign(table, {shows, lines: new WeakMap()}); // lines that say something else are built anew
  for (const [name, width] of Object.entries(WIDTHS)) {
    const placed = table.columns.filter((column) => !(column.from >= width));
    byId('table').style.setProperty(`--${name}`, placed.map((column) => column.track).join(' '));
    byId('table').style.setProperty(`--timed-${name}`, placed.filter((column) => column.timed).length);
  }
  drawHead();
}

function drawHead() {
  byId('head').replaceChildren(...table.columns.map((column) => el('th', {
    scope: 'col', class: `k-${column.key}${column.numeric ? ' number' : ''}`,
    'aria-sort': table.sort.key === column.key ? (table.sort.down ? 'descending' : 'ascending') : null,
  }, el('button', {type: 'button', onclick: () => sortBy(column)}, column.label))));
  byId('sort').replaceChildren(...table.columns.map((column) =>
    el('option', {value: column.key, selected: column.key === table.sort.key}, `by ${column.label.toLowerCase()}`)));
}

function sortBy(column) {
  const down = table.sort.key === column.key ? !table.sort.down : Boolean(column.numeric);
  table.sort = {key: column.key, down};
  drawHead();
  arrange();
  byId('head').querySelector('[aria-sort] button')?.focus();
}

/** Filter and sort; the row at the cursor stays there if it is still shown. */
function arrange() {
  const current = table.shown[table.cursor];
  const {key, down} = table.sort;
  const column = COLUMNS.find((candidate) => candidate.key === key);
  const of = place(column);
  const compare = column.compare || ((a, b) => column.numeric ? of(a) - of(b) : compareText(of(a), of(b)));
  const missing = (row) => (of(row) !== undefined ? 0 : row.verdict ? 1 : 2); // an unstable speedup comes behind those that count
  table.shown = state.rows.filter(matches).sort((a, b) =>
    missing(a) - missing(b) || (missing(a) ? 0 : (down ? -1 : 1) * compare(a, b)) || byProblem(a, b) || a.id - b.id);
  table.cursor = current ? table.shown.indexOf(current) : -1;
  const all = state.rows.length;
  byId('table').hidden = !table.shown.length;
  byId('toolbar').hidden = !all;
  byId('empty').hidden = table.shown.length > 0;
  byId('none').textContent = all ? 'No result matches.' : state.live ? 'There are no results yet.' : 'This run has no results.';
  byId('reset').hidden = !all;
  byId('count').textContent = table.shown.length === all ? `${all.toLocaleString('en')} results`
    : `${table.shown.length.toLocaleString('en')} of ${all.toLocaleString('en')}`;
  regroup();
}

/** Put groups for all rows into the document, and fill them: those in sight at once, the others as time allows. */
function regroup() {
  const focused = document.activeElement?.closest('#table tbody');
  const height = GROUP * parseFloat(getComputedStyle(byId('table')).getPropertyValue('--row'));
  const inSight = Math.max(0, Math.floor(-byId('table').getBoundingClientRect().top / height));
  table.groups = [];
  for (let first = 0; first < table.shown.length; first += GROUP) {
    const node = el('tbody', {class: 'waiting'});
    node.style.setProperty('--rows', Math.min(GROUP, table.shown.length - first));
    table.groups.push(node);
  }
  byId('table').replaceChildren(byId('head').parentNode, ...table.groups);
  clearTimeout(table.filling);
  fillGroup(inSight);
  fillGroup(inSight + 1);
  fillGroups(0);
  if (focused) focusCursor();
}

function fillGroups(next, budget = SLICE_MS) {
  const end = performance.now() + budget;
  let index = next;
  do fillGroup(index++); while (index < table.groups.length && performance.now() < end);
  if (index < table.groups.length) table.filling = setTimeout(fillGroups, 0, index);
}

function fillGroup(index) {
  const node = table.groups[index];
  if (!node?.classList.contains('waiting')) return;
  node.append(...table.shown.slice(index * GROUP, (index + 1) * GROUP).map(lineOf));
  node.classList.remove('waiting');
}

function lineOf(row) {
  if (!table.lines.has(row)) table.lines.set(row, line(row));
  const node = table.lines.get(row);
  node.classList.toggle('current', row === table.shown[table.cursor]);
  return node;
}

function line(row) {
  const failed = !isNumber(row.speedup);
  const cells = [];
  for (const column of table.columns) {
    const merged = failed && (row.status === 'ok' ? ['speedup', 'verdict'].includes(column.key) : column.timed);
    if (!merged) cells.push(el('td', {class: `k-${column.key}${column.numeric ? ' number' : ''}`}, column.cell(row) || ''));
    else if (column.key === 'speedup') cells.push(reasonCell(row));
  }
  return el('tr', {'data-id': row.id}, cells);
}

/** Instead of a speedup: why there is none. */
function reasonCell(row) {
  if (row.status === 'ok') return el('td', {class: 'k-why', colspan: 2, title: row.no_speedup}, `no speedup: ${row.no_speedup}`);
  return el('td', {class: 'k-message', colspan: table.columns.filter((column) => column.timed).length, title: row.message}, row.message || '');
}

function moveTo(index) {
  if (!table.shown.length) return;
  table.lines.get(table.shown[table.cursor])?.classList.remove('current');
  table.cursor = Math.max(0, Math.min(table.shown.length - 1, index));
  fillGroup(Math.floor(table.cursor / GROUP));
  const node = lineOf(table.shown[table.cursor]);
  node.scrollIntoView({block: 'nearest'});
  focusCursor();
}

function focusCursor() {
  table.lines.get(table.shown[table.cursor])?.querySelector('a').focus({preventScroll: true});
}
