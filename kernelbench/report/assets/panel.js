// One candidate: everything that its record says, its source beside the reference, and how it came about.

const unpacked = new Map();

/** The content of a packed element. */
function unpack(id) {
  if (!unpacked.has(id)) {
    const bytes = Uint8Array.from(atob(byId(id).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    unpacked.set(id, new Response(stream).json());
  }
  return unpacked.get(id);
}

async function detailOf(row) {
  if (state.live) {
    const response = await fetch(`detail/${row.id}`);
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return response.json();
  }
  const [chunk, references] = await Promise.all([unpack(`details-${Math.floor(row.id / state.chunk)}`), unpack('references')]);
  return {...chunk[row.id % state.chunk], reference: references[row.run][row.problem]};
}

async function openPanel(row) {
  const panel = byId('panel');
  panel.dataset.id = row.id;
  let content;
  try {
    content = panelContent(row, await detailOf(row));
  } catch (error) {
    content = [el('p', {class: 'message'}, `This result could not be shown: ${error.message}`)];
  }
  if (panel.dataset.id !== String(row.id)) return; // another one was opened meanwhile
  panel.replaceChildren(panelHead(row), el('div', {class: 'content', id: 'content', tabindex: -1}, content));
  if (!panel.open) panel.showModal();
  byId('content').scrollTop = 0;
  byId('content').focus({preventScroll: true});
}

function panelHead(row) {
  return el('header', {},
    el('h2', {id: 'panel-title'}, el('span', {class: 'muted'}, row.problem), ` ${row.name || ''} `, badge(row.status)),
    el('p', {class: 'muted'}, [row.solution, row.kind, row.workload && `workload ${row.workload}`, `run ${state.overview.runs[row.run].name}`].filter(Boolean).join(' · ')),
    el('nav', {'aria-label': 'Results'},
      el('button', {type: 'button', 'aria-label': 'Previous result', onclick: () => openNeighbour(-1)}, '↑'),
      el('button', {type: 'button', 'aria-label': 'Next result', onclick: () => openNeighbour(1)}, '↓'),
      el('button', {type: 'button', id: 'close', 'aria-label': 'Close', onclick: () => byId('panel').close()}, '✕')));
}

function panelContent(row, detail) {
  const {record} = detail;
  return [
    keyFigures(row, record),
    evidence(record),
    section('Source', sources(detail, record)),
    record.log ? section('Output of compiler and process', folded('Full output', el('pre', {class: 'text', tabindex: 0}, record.log), !record.message)) : null,
    section('Timing', timings(record, detail.claims)),
    section('Speed of light', speedOfLight(row, record)),
    section('Attempts', attempts(row, detail.attempt)),
    el('div', {class: 'columns'},
      section('Correctness', correctness(record.correctness)),
      section('Conditions', conditions(record.conditions)),
      section('Build', build(record)),
      section('Environment', environment(record))),
    folded('The record as it is in the log', el('pre', {class: 'text', tabindex: 0}, JSON.stringify(record, null, 1))),
  ];
}

function section(title, content) {
  return content && (!Array.isArray(content) || content.some(Boolean)) ? el('section', {}, el('h3', {}, title), content) : null;
}

const folded = (title, content, open = false) => el('details', {open}, el('summary', {}, title), content);

function keyFigures(row, record) {
  const figures = [
    ['Speedup', speedupText(row), [row.verdict, interval(row), measured(row)].filter(Boolean).join(', ')],
    ['Speedup', row.no_speedup && 'none', row.no_speedup],
    ['All workloads', speedupText(overWorkloads(row)), isNumber(overWorkloads(row)?.geometric_mean) ? `geometric mean ${times(overWorkloads(row).geometric_mean)}` : ''],
    ['Time', time(row.ms), record.timing?.cv ? `cv ${(100 * record.timing.cv).toFixed(2)} %` : ''],
    ['Baseline', time(row.baseline), Object.keys(record.baselines || {}).find((name) => !record.baselines[name].error) || ''],
    ['of speed of light', percent(row.sol), ''],
    ['Compute', record.gflops ? `${significant(record.gflops / 1e3)} TFLOP/s` : '', ''],
    ['Traffic', record.gbps ? `${significant(record.gbps)} GB/s` : '', ''],
  ].filter(([, value]) => value);
  return figures.length ? el('div', {class: 'figures'}, figures.map(([name, value, more]) =>
    el('div', {}, el('span', {}, name), el('b', {}, value), el('small', {}, more)))) : null;
}

/** Why it is not ok: the message, and the rule with what speaks for it. */
function evidence(record) {
  const found = findings(record.integrity || {});
  if (!record.message && !record.rule && !found.length) return null;
  return el('section', {class: `verdict g-${GROUPS[record.status]}`},
    record.rule && el('p', {}, 'Integrity rule: ', el('b', {}, record.rule)),
    record.message && el('pre', {class: 'message', tabindex: 0}, record.message),
    found.length > 0 && el('div', {class: 'findings'}, el('h3', {}, 'Findings'), el('ul', {}, found.map((sentence) => el('li', {}, sentence)))));
}

/** What the source and the profile show to a reviewer, a sentence each: rule, lines and why, then whose kernels ran. */
function findings({findings: found = [], track, own_share: share, own_kernels: own, built_own: built, faster_than_direct: beyondDirect, ...others}) {
  const rules = [...new Set(found.map((finding) => finding.rule))];
  const told = rules.map((rule) => {
    const same = found.filter((finding) => finding.rule === rule);
    const places = same.flatMap(({line, code: text}, i) => [i ? ', ' : '', `line ${line} (`, el('code', {}, text), ')']);
    return [el('b', {}, rule), ` (${same[0].severity}): the source ${same[0].explanation}: `, places, '.'];
  });
  const shares = Object.entries(own || {}).sort((a, b) => b[1] - a[1])
    .flatMap(([name, part], i) => [i ? ', ' : ': ', el('code', {}, name), ` ${percent(100 * part)}`]);
  return [
    ...told,
    isNumber(share) && [share ? `${percent(100 * share)} of the GPU time is spent in kernels of its own` : 'No GPU time is spent in kernels of its own', shares, '.'],
    built === false && 'It builds nothing of its own.',
    beyondDirect && 'It is faster than the direct algorithm can be on this device: a reviewer should read how.',
    track === 'open' && 'Library kernels were allowed (track open).',
    track === 'kernels' && 'Kernels of its own were required (track kernels).',
    ...Object.entries(others).map(([name, held]) => [`${words(name)}: `, value(held)]),
  ].filter(Boolean);
}

const NO_ROOM = 'This page has no room for more sources; kb serve shows it.';

function sources({source, reference, left_out}, record) {
  const pane = (title, text, kind, missing) => el('figure', {class: 'source'}, el('figcaption', {}, title),
    text ? code(text, kind) : el('p', {class: 'muted'}, missing));
  return el('div', {class: 'sources'},
    pane(!reference || reference.kept || reference.left_out ? 'Reference' : 'Reference, as the suite has it now', reference?.source, 'py',
      reference?.left_out ? NO_ROOM : 'The problem is not in this run and not in the suite.'),
    pane(record.solution.name, source, record.solution.kind, left_out ? NO_ROOM : 'The run holds no copy of this source.'));
}

function timings(record, claims) {
  const series = [['Solution', record.timing], ...Object.entries(record.baselines || {})].filter(([, timing]) => timing);
  if (!series.length) return null;
  const timed = series.filter(([, timing]) => !timing.error);
  return [
    el('div', {class: 'timings'}, timed.filter(([, timing]) => timing.samples_ms?.length).map(([name, timing]) =>
      figure(name === 'Solution' ? name : `Baseline: ${name}`, samples(timing), {
        height: 200, note: timing.rounds ? 'Every call; line and band are median and quartiles over rounds of calls.' : null}))),
    el('div', {class: 'scroll', tabindex: 0}, el('table', {class: 'plain'},
      el('thead', {}, el('tr', {}, ['', ...STATISTICS, 'samples', 'speedup', 'stability', 'ended', 'method'].map((name) => el('th', {scope: 'col'}, name)))),
      el('tbody', {}, timed.map(([name, t]) => el('tr', {}, el('th', {scope: 'row'}, name),
        STATISTICS.map((key) => el('td', {class: 'number'}, time(t[`${key}_ms`], 4))),
        el('td', {class: 'number'}, String(t.samples ?? '')),
        el('td', {}, [speedupText(claims[name]), interval(claims[name]), claims[name]?.verdict].filter(Boolean).join(' ')), el('td', {}, t.stability || ''),
        el('td', {}, words(t.stopped || '')), el('td', {}, [words(t.method || ''), t.cache && `${t.cache} cache`].filter(Boolean).join(', '))))))),
    series.filter(([, timing]) => timing.error).map(([name, timing]) => el('p', {class: 'muted'}, `Baseline ${name} did not run: ${timing.error}`)),
    record.timing ? witnesses(record.timing) : null,
  ];
}

const STATISTICS = ['median', 'mean', 'std', 'min', 'q1', 'q3', 'max'];

/** What came of a judge's clock that is not content with the times. */
function penalty({queue_held: held, penalty_ms: ms}) {
  if (!ms) return '';
  return held ? `: ${time(ms)} were added to the times to agree` : ', launches included: the time that counts';
}

/** What else was seen of the candidate's time: the judge's own clock, and the kernels that ran. */
function witnesses({cross_check: clock, profile, launch_bound_ms: bound, queue_full: full, throttled_samples: throttled}) {
  const seen = typeof clock === 'string' ? clock : clock && `${time(clock.call_ms, 4)} a call, over ${clock.calls} in a row${penalty(clock)}`;
  return [
    terms([["judge's own clock", seen], ['host time of a call', time(bound)], ['queue kept full', full === false ? 'no: launches count' : ''],
      ['throttled samples', throttled || '']]),
    profile?.kernels?.length ? folded(`${profile.kernels.length} kernels, ${value(profile.launches)} launches a call`,
      el('div', {class: 'scroll', tabindex: 0}, el('table', {class: 'plain'},
        el('thead', {}, el('tr', {}, ['kernel', 'launches', 'time', 'grid', 'block', 'registers', 'shared memory'].map((name) => el('th', {scope: 'col'}, name)))),
        el('tbody', {}, profile.kernels.map((kernel) => el('tr', {}, el('td', {class: 'kernel', title: kernel.name}, kernel.name),
          el('td', {class: 'number'}, value(kernel.launches)), el('td', {class: 'number'}, time(kernel.ms)),
          el('td', {}, (kernel.grid || []).join(' × ')), el('td', {}, (kernel.block || []).join(' × ')),
          el('td', {class: 'number'}, value(kernel.registers)), el('td', {class: 'number'}, bytes(kernel.shared_bytes)))))))) : null,
  ];
}

function speedOfLight(row, record) {
  const sol = record.sol;
  if (!sol) return null;
  if (sol.unavailable) return el('p', {class: 'muted'}, sol.unavailable);
  const bars = [['floor', sol.t_floor_ms, 'bound'], ['t_SOL', sol.t_sol_ms, 'bound'], ['t_SOL, FP16', sol.t_sol_fp16_ms, 'bound'],
    ['solution', row.ms, 'solution'], ['baseline', row.baseline, 'baseline']]
    .filter(([, ms]) => isNumber(ms)).map(([label, ms, kind]) => ({label, ms, kind}));
  return [
    bars.length ? figure('Times', ladder(bars), {height: bars.length * 24 + 10}) : null,
    terms([['headroom g', isNumber(sol.g) ? `${significant(sol.g)} times t_SOL` : ''], ['bottleneck', sol.bottleneck],
      ['peak', sol.peak_type], ['compute reached', percent(100 * sol.compute_share)], ['bandwidth reached', percent(100 * sol.bandwidth_share)],
      ['limits of', sol.device]]),
  ];
}

/** All attempts at this problem in this run, in order; what a solver logged about them, where it did. */
function attempts(row, own) {
  const rows = state.rows.filter((other) => other.run === row.run && other.problem === row.problem);
  const logged = state.attempts.filter((attempt) => attempt.run === row.run && attempt.problem === row.problem);
  const numbers = [...new Set([...rows, ...logged].map((entry) => entry.sample))].sort((a, b) => a - b);
  if (numbers.length < 2 && !own) return null;
  const results = new Map(), logs = new Map();
  for (const other of rows) {
    if (!results.has(other.sample)) results.set(other.sample, []);
    results.get(other.sample).push(other);
  }
  for (const attempt of logged) if (!logs.has(attempt.sample)) logs.set(attempt.sample, attempt);
  const entries = numbers.flatMap((sample) => (results.get(sample) ?? [null]).map((result) => ({sample, result, log: logs.get(sample)})));
  let best = 0;
  for (const entry of entries) {
    if (entry.result?.status === 'ok' && entry.result.settled > best) {
      best = entry.result.settled;
      entry.best = true;
    }
  }
  const columns = [
    ['Attempt', (entry) => entry.result ? el('a', {href: `#result-${entry.result.id}`}, String(entry.sample)) : String(entry.sample)],
    ['Status', (entry) => entry.result ? badge(entry.result.status) : el('span', {class: 'muted'}, 'no result')],
    ['Speedup', (entry) => [speedupText(entry.result), entry.best && el('span', {class: 'best', title: 'best so far'}, ' ▲')]],
    ['Parent', (entry) => entry.log?.parent], ['Turn', (entry) => entry.log?.turn],
    ['Tokens in', (entry) => entry.log?.tokens?.prompt?.toLocaleString('en')],
    ['Tokens out', (entry) => entry.log?.tokens?.completion?.toLocaleString('en')],
    ['Cost', (entry) => isNumber(entry.log?.cost_usd) ? `$${entry.log.cost_usd.toFixed(4)}` : null],
    ['Seconds', (entry) => isNumber(entry.log?.seconds) ? significant(entry.log.seconds) : null],
    ['Solution', (entry) => entry.result?.solution],
  ].filter(([, show]) => entries.some((entry) => { const shown = show(entry); return Array.isArray(shown) ? shown.some(Boolean) : shown !== undefined && shown !== null; }));
  return [
    el('div', {class: 'scroll', tabindex: 0}, el('table', {class: 'plain attempts'},
      el('thead', {}, el('tr', {}, columns.map(([name]) => el('th', {scope: 'col'}, name)))),
      el('tbody', {}, entries.map((entry) => el('tr', {class: entry.result === row ? 'current' : null},
        columns.map(([, show]) => el('td', {}, show(entry)))))))),
    own && own.prompt?.length ? folded(`Prompt of attempt ${own.sample}`, own.prompt.map((message) =>
      el('div', {class: 'said'}, el('b', {}, message.role), el('pre', {class: 'text', tabindex: 0}, said(message.content))))) : null,
    own && own.answer ? folded(`Answer of attempt ${own.sample}`, el('pre', {class: 'text', tabindex: 0}, said(own.answer))) : null,
  ];
}

const said = (content) => (typeof content === 'string' ? content : JSON.stringify(content, null, 1));

function correctness(found) {
  if (!found) return null;
  const {trials, ...rest} = found;
  return [value(rest), Array.isArray(trials) ? el('ol', {class: 'trials'}, trials.map((trial) => el('li', {}, said(trial))))
    : isNumber(trials) ? el('p', {}, `${trials} trials`) : null];
}

function conditions(found) {
  if (!found || !Object.keys(found).length) return null;
  return terms(Object.entries(found).map(([name, held]) => [words(name),
    held && typeof held === 'object' && 'median' in held ? `${held.median} (${held.min}–${held.max})`
      : Array.isArray(held) && !held.length ? 'no' : value(held)]));
}

function build({build: made, stages_s: stages}) {
  if (!made) return null;
  const spent = Object.entries(stages || {}).map(([name, seconds]) => `${words(name)} ${significant(seconds)} s`).join(', ');
  return terms([...Object.entries(made).map(([name, held]) => [words(name), value(held)]), ['evaluation', spent]]);
}

function environment(record) {
  const sizes = Object.entries(record.workload?.sizes || {}).map(([name, size]) => `${words(name)} ${said(size)}`).join(', ');
  return terms([
    ['device', record.device?.name], ...Object.entries(record.versions || {}).map(([name, held]) => [name, value(held)]),
    ['workload', [record.workload?.name, sizes].filter(Boolean).join(': ')], ['precision', record.precision],
    ['compute capability', record.device?.compute_capability], ['memory', bytes(record.device?.memory_bytes)],
    ['L2 cache', bytes(record.device?.l2_bytes)], ['GPU', record.device?.uuid], ['started', record.started],
    ['took', isNumber(record.seconds) ? `${significant(record.seconds)} s` : ''], ['SHA-256', record.solution.sha256],
  ]);
}

/** Any JSON value. */
function value(held) {
  if (held === null || held === undefined || held === '') return '';
  if (typeof held === 'number') {
    if (Number.isInteger(held)) return String(held);
    return Math.abs(held) < 1e-3 ? held.toExponential(2) : String(+held.toPrecision(4));
  }
  if (typeof held === 'boolean') return held ? 'yes' : 'no';
  if (typeof held !== 'object') return String(held);
  if (Array.isArray(held)) {
    return held.some((item) => item && typeof item === 'object') ? el('ul', {}, held.map((item) => el('li', {}, value(item)))) : held.join(' ');
  }
  return terms(Object.entries(held).map(([name, item]) => [words(name), value(item)]));
}
