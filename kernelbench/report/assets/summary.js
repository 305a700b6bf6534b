// Above the table: the figures of each run, what became of its candidates, and the charts. Below it: what was not evaluated.

/** A settled figure with its interval, and what it would be by the speedups as they were measured. */
const figureCell = (settled, raw, unit) => isNumber(settled?.value)
  ? [el('b', {}, settled.value.toFixed(2) + unit), el('small', {}, ` ${range(settled.low, settled.high)}`),
    isNumber(raw?.value) && el('small', {class: 'raw', title: RAW}, `measured ${raw.value.toFixed(2)}${unit}`)] : '–';

const RAW = 'The same figure by the speedups as they were measured: ties and unstable ones count as what the clock said.';

function summary() {
  const {runs, problems} = state.overview;
  const headers = ['Run', 'Solved', 'Settled fast₁', 'Geometric mean', 'Total runtime', 'Outcomes'];
  const cells = (run, index) => [
    [runDot(index), el('b', {}, run.name), el('small', {}, conditionsOf(run))],
    [el('b', {}, String(run.solved)), el('small', {}, ` of ${problems}`)],
    run.results ? figureCell(run.settled_fast_1, run.fast_1, '') : '–',
    [figureCell(run.geometric_mean, run.raw_geometric_mean, '×'), filteredText(run)],
    figureCell(run.total_runtime, run.raw_total_runtime, '×'),
    composition(run, index),
  ];
  byId('summary').replaceChildren(el('table', {class: 'runs'},
    el('thead', {}, el('tr', {}, headers.map((label) => el('th', {scope: 'col'}, label)))),
    el('tbody', {}, runs.map((run, index) => el('tr', {}, cells(run, index).map((cell, i) => el('td', {'data-label': headers[i]}, cell)))))));
  byId('title').textContent = runs.map((run) => run.name).join(', ');
}

/** The mean without what labels leave out, and how much that is; nothing where they leave nothing out. */
function filteredText({bands, filterings}) {
  const left = ['library_only', 'sol_ceiling', 'original_gaming', 'inherited_gaming'].filter((band) => bands[band]);
  if (!left.length) return null;
  const mean = filterings.all.geometric_mean;
  return el('small', {class: 'raw filtered'}, `filtered ${isNumber(mean) ? `${mean.toFixed(2)}×` : '–'}: without ` +
    left.map((band) => `${bands[band]} ${words(band)}`).join(', '));
}

/** How a run was made, in words. */
function conditionsOf(run) {
  const {workloads} = run;
  return [run.device, run.torch && `PyTorch ${run.torch}`,
    workloads.length && `workload${workloads.length > 1 ? 's' : ''} ${workloads.join(', ')}`, run.precision,
    run.baselines?.length && `baseline ${run.baselines.join(', ')}`, run.solver && `solver ${run.solver}`, run.model && `model ${run.model}`,
    (run.started || '').slice(0, 10)].filter(Boolean).join(' · ');
}

/** A bar of outcomes; a click on a part of it shows only those. */
function composition(run, index) {
  const parts = STATUSES.filter((status) => run.statuses[status]);
  const choose = (status) => () => choiceOf({status, run: state.overview.runs.length > 1 ? String(index) : ''});
  const label = (status) => `${run.statuses[status]} ${words(status)}${status === 'ok' ? verdictsOf(run) : ''}`;
  const left = run.unevaluated.length;
  return el('div', {class: 'outcomes'}, parts.map((status) => {
    const part = el('button', {type: 'button', class: `g-${GROUPS[status]}`, title: label(status),
      'aria-label': `Show ${label(status)}`, onclick: choose(status)});
    part.style.flexGrow = run.statuses[status];
    return part;
  }), el('small', {}, parts.map(label).join(' · '), left > 0 && [parts.length ? ' · ' : '', el('a', {href: '#unevaluated', class: 'link'}, `${left} not evaluated`)]));
}

/** How the correct results of a run compare with the baseline, as " (8 faster, 3 tie)". */
function verdictsOf({verdicts}) {
  const found = ['faster', 'tie', 'slower', 'unstable', 'without a speedup'].filter((word) => verdicts[word]);
  return found.length ? ` (${found.map((word) => `${verdicts[word]} ${word}`).join(', ')})` : '';
}

/** Candidates without a result, and files that name no problem, with the reasons. */
const MOST_UNEVALUATED = 1000; // lines, which draw at once

function drawUnevaluated() {
  const {runs} = state.overview;
  const lines = runs.flatMap((run) => run.unevaluated.map((entry) => ({run: run.name, ...entry})));
  const columns = [['Problem', (entry) => [entry.problem, entry.problem_name].filter(Boolean).join(' ')], ['Solution', (entry) => entry.solution],
    ['Workload', (entry) => entry.workload], ['Run', (entry) => runs.length > 1 && entry.run], ['Reason', (entry) => entry.reason]]
    .filter(([, show]) => lines.some(show));
  const shown = lines.slice(0, MOST_UNEVALUATED), more = lines.length - shown.length;
  byId('unevaluated').hidden = !lines.length;
  byId('unevaluated').replaceChildren(el('h2', {}, `Not evaluated (${lines.length.toLocaleString('en')})`),
    el('p', {class: 'note'}, 'These have no result, for a reason that is not the candidate’s. An evaluation with --resume tries them again.'),
    el('table', {class: 'plain whole'},
      el('thead', {}, el('tr', {}, columns.map(([name]) => el('th', {scope: 'col'}, name)))),
      el('tbody', {}, shown.map((entry) => el('tr', {}, columns.map(([, show]) => el('td', {}, show(entry) || '')))))),
    more ? el('p', {class: 'note'}, `And ${more.toLocaleString('en')} more, in unevaluated.jsonl of the runs.`) : '');
}

function legend(runs) {
  return state.overview.runs.length < 2 ? null
    : el('span', {class: 'legend'}, runs.map((run) => el('span', {}, runDot(run.index), run.name)));
}

const charts = {threshold: '1'};

/** Charts of the runs that have results; none where no run has any. */
function drawCharts() {
  const {areas, roofs} = state.overview;
  const runs = state.overview.runs.map((run, index) => ({...run, index})).filter((run) => run.results);
  byId('charts').hidden = !runs.length;
  if (!runs.length) return byId('charts').replaceChildren();
  const figures = [figure('Fast-p', fastP(runs), {controls: legend(runs), note: areaNote(areas) ||
    'Share of problems with a settled speedup of at least p. Dotted: without what labels leave out. Dashed: at the speed of light with FP16.'})];
  const rises = (curve) => curve.some(([, share]) => share > curve[0][1]);
  if (runs.some((run) => Object.values(run.attempt_fast_p).some(rises))) figures.push(attemptsFigure(runs));
  const points = bestPoints();
  if (points.length) figures.push(figure('Roofline', roofline(points, roofs), {
    controls: legend(runs), note: 'The fastest correct solution of each problem, by the work of its reference.'}));
  return byId('charts').replaceChildren(...figures);
}

function areaNote(areas) {
  const {runs} = state.overview;
  const drawn = areas.filter((area) => runs[area.run].results && runs[0].results);
  return drawn.length ? drawn.map((area) => el('span', {},
    `Signed area of ${runs[area.run].name} over ${runs[0].name}: `,
    el('b', {}, signed(area.value)), isNumber(area.low) ? ` [${signed(area.low)}, ${signed(area.high)}]` : '', '. ')) : null;
}

const signed = (value) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(2)}`;

function attemptsFigure(runs) {
  const choices = Object.keys(runs[0].attempt_fast_p);
  const select = el('select', {'aria-label': 'At least p times as fast', onchange: (event) => {
    charts.threshold = event.target.value;
    drawCharts();
    byId('charts').querySelector('select').focus();
  }}, choices.map((p) => el('option', {value: p, selected: p === charts.threshold}, p === '0' ? 'correct' : `p ≥ ${p}`)));
  return figure('Attempt-Fast-p', attemptFastP(runs, charts.threshold), {
    controls: [legend(runs), select], note: 'Share of problems with a solution that good within the first attempts.'});
}

function bestPoints() {
  const best = new Map();
  for (const row of state.rows) {
    if (row.status !== 'ok' || !row.gflops || !row.intensity) continue;
    const key = `${row.run} ${row.problem}`;
    if (!best.has(key) || row.gflops > best.get(key).gflops) best.set(key, row);
  }
  return [...best.values()].map((row) => ({x: row.intensity, y: row.gflops / 1e3, run: row.run, href: `#result-${row.id}`,
    label: `${row.problem} ${row.name || ''}: ${significant(row.gflops / 1e3)} TFLOP/s, ${speedupText(row)}`}));
}
