// Above the table: the figures of each run, what became of its candidates, and the charts.

const withRange = (figure, unit) => isNumber(figure?.value)
  ? [el('b', {}, figure.value.toFixed(2) + unit), el('small', {}, ` ${range(figure.low, figure.high)}`)] : '–';

function summary() {
  const {runs, problems} = state.overview;
  const headers = ['Run', 'Solved', 'fast₁', 'Geometric mean', 'Total runtime', 'Outcomes'];
  const cells = (run, index) => [
    [el('i', {class: `dot ${runColour(index)}`}), el('b', {}, run.name),
      el('small', {}, [run.device, run.torch && `PyTorch ${run.torch}`, run.workload || 'default workload', run.precision,
        (run.started || '').slice(0, 10)].filter(Boolean).join(' · '))],
    [el('b', {}, String(run.solved)), el('small', {}, ` of ${problems}`)],
    withRange(run.fast_1, ''),
    withRange(run.geometric_mean, '×'),
    withRange(run.total_runtime, '×'),
    composition(run, index),
  ];
  byId('summary').replaceChildren(el('table', {class: 'runs'},
    el('thead', {}, el('tr', {}, headers.map((label) => el('th', {scope: 'col'}, label)))),
    el('tbody', {}, runs.map((run, index) => el('tr', {}, cells(run, index).map((cell, i) => el('td', {'data-label': headers[i]}, cell)))))));
  byId('title').textContent = runs.map((run) => run.name).join(', ');
}

/** A bar of outcomes; a click on a part of it shows only those. */
function composition(run, index) {
  const parts = STATUSES.filter((status) => run.statuses[status]);
  const choose = (status) => () => choiceOf({status, run: state.overview.runs.length > 1 ? String(index) : ''});
  const label = (status) => `${run.statuses[status]} ${words(status)}`;
  return el('div', {class: 'outcomes'}, parts.map((status) => {
    const part = el('button', {type: 'button', class: `g-${GROUPS[status]}`, title: label(status),
      'aria-label': `Show ${label(status)}`, onclick: choose(status)});
    part.style.flexGrow = run.statuses[status];
    return part;
  }), el('small', {}, parts.map(label).join(' · ')));
}

function legend(runs) {
  return runs.length < 2 ? null
    : el('span', {class: 'legend'}, runs.map((run, index) => el('span', {}, el('i', {class: `dot ${runColour(index)}`}), run.name)));
}

const charts = {threshold: '1'};

function drawCharts() {
  const {runs, areas, roofs} = state.overview;
  const figures = [figure('Fast-p', fastP(runs), {controls: legend(runs), note: areaNote(runs, areas) ||
    'Share of problems with a correct solution that is more than p times as fast.'})];
  const rises = (curve) => curve.some((share) => share > curve[0]);
  if (runs.some((run) => Object.values(run.attempt_fast_p).some(rises))) figures.push(attemptsFigure(runs));
  const points = bestPoints();
  if (points.length) figures.push(figure('Roofline', roofline(points, roofs), {
    controls: legend(runs), note: 'The fastest correct solution of each problem, by the work of its reference.'}));
  byId('charts').replaceChildren(...figures);
}

function areaNote(runs, areas) {
  return areas.length ? areas.map((area) => el('span', {},
    `Signed area of ${runs[area.run].name} over ${runs[0].name}: `,
    el('b', {}, signed(area.value)), isNumber(area.low) ? ` (${signed(area.low)} to ${signed(area.high)})` : '', '. ')) : null;
}

const signed = (value) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(2)}`;

function attemptsFigure(runs) {
  const choices = Object.keys(runs[0].attempt_fast_p);
  const select = el('select', {'aria-label': 'More than p times as fast', onchange: (event) => {
    charts.threshold = event.target.value;
    drawCharts();
    byId('charts').querySelector('select').focus();
  }}, choices.map((p) => el('option', {value: p, selected: p === charts.threshold}, p === '0' ? 'correct' : `p > ${p}`)));
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
    label: `${row.problem} ${words(row.name || '')}: ${significant(row.gflops / 1e3)} TFLOP/s, ${times(row.speedup)}`}));
}
