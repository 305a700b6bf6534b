// The table: all rows sorted and filtered, those in sight in the document. It scrolls with the page.

const OVERSCAN = 12; // rows above and below what is in sight

const compareText = (a, b) => String(a).localeCompare(String(b), 'en', {numeric: true});

const COLUMNS = [
  {key: 'problem', label: 'Problem', compare: (a, b) => byProblem(a, b) || a.sample - b.sample, cell: problemCell},
  {key: 'workload', label: 'Workload', cell: (row) => row.workload},
  {key: 'status', label: 'Status', cell: (row) => [badge(row.status), row.rule && el('span', {class: 'rule'}, words(row.rule))]},
  {key: 'speedup', label: 'Speedup', numeric: true, timed: true, cell: (row) => times(row.speedup)},
  {key: 'interval', label: '95 % interval', timed: true, compare: (a, b) => (a.speedup ?? 0) - (b.speedup ?? 0), cell: intervalCell},
  {key: 'all', label: 'All workloads', numeric: true, timed: true, compare: (a, b) => allOf(a) - allOf(b), cell: (row) => times(overWorkloads(row)?.speedup)},
  {key: 'ms', label: 'Time', numeric: true, timed: true, cell: (row) => time(row.ms)},
  {key: 'baseline', label: 'Baseline', numeric: true, timed: true, cell: (row) => time(row.baseline)},
  {key: 'sol', label: 'of SOL', numeric: true, timed: true, cell: (row) => percent(row.sol)},
  {key: 'kind', label: 'Kind', cell: (row) => row.kind},
  {key: 'solution', label: 'Solution', cell: (row) => el('span', {title: row.solution}, row.solution)},
  {key: 'run', label: 'Run', compare: (a, b) => a.run - b.run,
    cell: (row) => [el('i', {class: `dot ${runColour(row.run)}`}), el('span', {}, state.overview.runs[row.run].name)]},
];

/** What the solution of this row is worth on all of its workloads; undefined where it has one. */
const overWorkloads = (row) => state.overview.runs[row.run].over_workloads[`${row.problem} ${row.solution}`];
const allOf = (row) => overWorkloads(row)?.speedup ?? 0;

function problemCell(row) {
  const dot = state.overview.runs.length > 1 && el('i', {class: `dot narrow ${runColour(row.run)}`});
  return el('a', {href: `#result-${row.id}`, class: 'open'}, dot, el('b', {}, row.problem), ' ', el('span', {}, words(row.name || '')));
}

/** The interval of the speedup on a logarithmic axis from an eighth to eight, with 1 in the middle. */
function intervalCell(row) {
  if (!isNumber(row.speedup)) return '';
  const x = (value) => 50 + 48 * Math.max(-1, Math.min(1, Math.log2(Math.max(value, 1e-9)) / 3));
  const [low, high] = isNumber(row.low) && isNumber(row.high) ? [row.low, row.high] : [row.speedup, row.speedup];
  const side = row.verdict || (low > 1 ? 'faster' : high < 1 ? 'slower' : 'tie');
  return el('span', {class: 'interval', title: [range(row.low, row.high, 3), side].filter(Boolean).join(', ')},
    svg('svg', {class: side, viewBox: '0 0 100 16', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
      svg('line', {class: 'unit', x1: 50, x2: 50, y1: 0, y2: 16}),
      svg('rect', {class: 'reach', x: Math.min(50, x(row.speedup)), width: Math.abs(x(row.speedup) - 50), y: 5, height: 6}),
      svg('rect', {class: 'whisker', x: x(low), width: Math.max(1.2, x(high) - x(low)), y: 2, height: 12})),
    el('span', {class: 'digits'}, range(row.low, row.high, row.high < 10 ? 3 : 1)));
}

const table = {shown: [], columns: [], merged: 1, first: -1, last: -1, cursor: -1, sort: {key: 'problem', down: false}};

/** Columns that say something of any row. */
function chooseColumns() {
  const several = state.overview.runs.some((run) => Object.keys(run.over_workloads).length);
  const says = (column) => column.key === 'run' ? state.overview.runs.length > 1
    : ['workload', 'all'].includes(column.key) ? several
    : column.key === 'interval' ? state.rows.some((row) => isNumber(row.low)) : state.rows.some((row) => row[column.key] !== undefined);
  table.columns = COLUMNS.filter(says);
  byId('head').replaceChildren(...table.columns.map((column) => el('th', {
    scope: 'col', class: `k-${column.key}${column.numeric ? ' number' : ''}`,
    'aria-sort': table.sort.key === column.key ? (table.sort.down ? 'descending' : 'ascending') : null,
  }, el('button', {type: 'button', onclick: () => sortBy(column)}, column.label))));
  byId('sort').replaceChildren(...table.columns.map((column) =>
    el('option', {value: column.key, selected: column.key === table.sort.key}, `by ${column.label.toLowerCase()}`)));
}

function sortBy(column) {
  const down = table.sort.key === column.key ? !table.sort.down : Boolean(column.numeric || column.key === 'interval');
  table.sort = {key: column.key, down};
  chooseColumns();
  arrange();
  byId('head').querySelector('[aria-sort] button')?.focus();
}

/** Filter and sort; the row at the cursor stays there if it is still shown. */
function arrange() {
  const current = table.shown[table.cursor];
  const {key, down} = table.sort;
  const column = COLUMNS.find((candidate) => candidate.key === key);
  const compare = column.compare || ((a, b) => column.numeric ? a[key] - b[key] : compareText(a[key], b[key]));
  const missing = (row) => (key === 'interval' ? row.speedup : key === 'all' ? overWorkloads(row)?.speedup : row[key]) === undefined;
  table.shown = state.rows.filter(matches).sort((a, b) =>
    missing(a) - missing(b) || (missing(a) ? 0 : (down ? -1 : 1) * compare(a, b)) || byProblem(a, b) || a.id - b.id);
  table.cursor = current ? table.shown.indexOf(current) : -1;
  byId('table').setAttribute('aria-rowcount', table.shown.length + 1);
  byId('table').hidden = !table.shown.length;
  byId('empty').hidden = table.shown.length > 0;
  const all = state.rows.length;
  byId('count').textContent = table.shown.length === all ? `${all.toLocaleString('en')} results`
    : `${table.shown.length.toLocaleString('en')} of ${all.toLocaleString('en')}`;
  table.first = -1;
  paint();
}

const rowHeight = () => parseFloat(getComputedStyle(byId('table')).getPropertyValue('--row'));

/** Put the rows in sight into the document. */
function paint() {
  const body = byId('body');
  const height = rowHeight();
  const top = -body.getBoundingClientRect().top;
  const first = Math.max(0, Math.floor(top / height) - OVERSCAN);
  const last = Math.min(table.shown.length, Math.ceil((top + innerHeight) / height) + OVERSCAN);
  if (first === table.first && last === table.last) return;
  table.merged = table.columns.filter((column, i) => column.timed && getComputedStyle(byId('head').cells[i]).display !== 'none').length || 1;
  const focused = body.contains(document.activeElement);
  [table.first, table.last] = [first, last];
  body.replaceChildren(
    spacer(first * height), ...table.shown.slice(first, last).map((row, i) => line(row, first + i)),
    spacer((table.shown.length - last) * height));
  if (focused) focusCursor();
}

const spacer = (height) => {
  const node = el('tr', {class: 'spacer', 'aria-hidden': 'true'}, el('td'));
  node.style.height = `${height}px`;
  return node;
};

function line(row, index) {
  const failed = !isNumber(row.speedup);
  const cells = [];
  for (const column of table.columns) {
    if (failed && column.timed) {
      if (!cells.some((cell) => cell.className === 'k-message')) {
        cells.push(el('td', {class: 'k-message', colspan: table.merged, title: row.message}, row.message || time(row.ms)));
      }
      continue;
    }
    cells.push(el('td', {class: `k-${column.key}${column.numeric ? ' number' : ''}`}, column.cell(row)));
  }
  return el('tr', {'aria-rowindex': index + 2, 'data-id': row.id, class: index === table.cursor ? 'current' : null}, cells);
}

function moveTo(index) {
  if (!table.shown.length) return;
  table.cursor = Math.max(0, Math.min(table.shown.length - 1, index));
  const height = rowHeight();
  const top = byId('body').getBoundingClientRect().top + table.cursor * height;
  const head = byId('head').offsetHeight;
  if (top < head + height) scrollBy(0, top - head - height);
  else if (top + 2 * height > innerHeight) scrollBy(0, top + 2 * height - innerHeight);
  table.first = -1;
  paint();
  focusCursor();
}

function focusCursor() {
  byId('body').querySelector('tr.current a')?.focus({preventScroll: true});
}
