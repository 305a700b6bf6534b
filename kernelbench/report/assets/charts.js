// Charts as SVG, drawn at the width that there is and again when it changes.

const MARGIN = {left: 44, right: 12, top: 10, bottom: 36};

const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

function figure(title, draw, {height = 230, controls = null, note = null} = {}) {
  const canvas = el('div', {class: 'canvas'});
  const node = el('figure', {}, el('figcaption', {}, el('h2', {}, title), controls), canvas, note && el('p', {class: 'note'}, note));
  const redraw = () => {
    const width = canvas.clientWidth;
    if (width > 0) canvas.replaceChildren(fill(
      svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title}), {}, [draw(width, height)]));
  };
  new ResizeObserver(redraw).observe(canvas);
  node.redraw = redraw;
  return node;
}

const linear = (from, to, begin, end) => (value) => begin + (end - begin) * (value - from) / ((to - from) || 1);
const logarithmic = (from, to, begin, end) => {
  const scale = linear(Math.log(from), Math.log(to), begin, end);
  return (value) => scale(Math.log(value));
};

/** Powers of a base between two values, thinned out to at most a number of them. */
function powers(base, from, to, most = 7) {
  const first = Math.ceil(Math.log(from) / Math.log(base) - 1e-9);
  const last = Math.floor(Math.log(to) / Math.log(base) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const found = [];
  for (let exponent = first; exponent <= last; exponent += step) found.push(base ** exponent);
  return found;
}

/** Round steps between two values; none where they are too near each other to tell steps between them apart. */
function steps(from, to, most = 5) {
  const rough = (to - from) / most || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((candidate) => candidate >= rough * 0.999);
  const [first, last] = [Math.ceil(from / step - 1e-9), Math.floor(to / step + 1e-6)];
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last)) return [];
  return Array.from({length: Math.max(0, last - first + 1)}, (_, index) => (first + index) * step);
}

function frame(width, height, x, y, xTicks, yTicks, xLabel, yLabel, margin = MARGIN) {
  const [right, bottom] = [width - margin.right, height - margin.bottom];
  return [
    yTicks.map(([value, label]) => [
      svg('line', {class: 'grid', x1: margin.left, x2: right, y1: y(value), y2: y(value)}),
      svg('text', {class: 'tick', x: margin.left - 6, y: y(value) + 3.5, 'text-anchor': 'end'}, label)]),
    xTicks.map(([value, label]) => [
      svg('line', {class: 'grid', x1: x(value), x2: x(value), y1: margin.top, y2: bottom}),
      svg('text', {class: 'tick', x: x(value), y: bottom + 14, 'text-anchor': 'middle'}, label)]),
    svg('line', {class: 'axis', x1: margin.left, x2: right, y1: bottom, y2: bottom}),
    svg('text', {class: 'label', x: (margin.left + right) / 2, y: height - 4, 'text-anchor': 'middle'}, xLabel),
    yLabel && svg('text', {class: 'label', x: 0, y: 0, 'text-anchor': 'middle',
      transform: `translate(10 ${(margin.top + bottom) / 2}) rotate(-90)`}, yLabel),
  ];
}

const shares = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, `${share * 100} %`]);

/** The value of a step curve at p: that of the last point that is not beyond it. */
function stepAt(curve, p) {
  let share = 0;
  for (const [at, value] of curve) {
    if (at > p) break;
    share = value;
  }
  return share;
}

function fastP(runs) {
  const curves = runs.map((run) => run.fast_p);
  const speedups = curves.flat().map(([p]) => p).filter((p) => p > 0);
  const from = speedups.reduce((least, p) => Math.min(least, p), 0.5) / 1.15;  // a spread of many ends the script
  const to = speedups.reduce((most, p) => Math.max(most, p), 2) * 1.15;
  // the speed of light may lie far beyond all runs
  const steppedFrom = (curve) => [[from, stepAt(curve, from)], ...curve.filter(([p]) => p > from && p <= to)];
  return (width, height) => {
    const x = logarithmic(from, to, MARGIN.left, width - MARGIN.right);
    const y = linear(0, 1, height - MARGIN.bottom, MARGIN.top);
    const path = (curve) => steppedFrom(curve).map(([p, share], i) =>
      i ? `H${x(p)}V${y(share)}` : `M${x(p)} ${y(share)}`).join('') + `H${x(to)}`;
    return [
      frame(width, height, x, y, powers(2, from, to).map((p) => [p, `${+p.toPrecision(3)}`]), shares, 'p: times as fast as the baseline', null),
      svg('line', {class: 'unit', x1: x(1), x2: x(1), y1: MARGIN.top, y2: height - MARGIN.bottom}),
      runs.length === 2 && between(...curves.map(steppedFrom), to).map(([begin, end, first, second]) => svg('rect', {
        class: second > first ? 'above' : 'below', x: x(begin), width: Math.max(0, x(end) - x(begin)),
        y: y(Math.max(first, second)), height: Math.abs(y(first) - y(second))})),
      curves.map((curve, i) => svg('path', {class: `curve ${runColour(runs[i].index)}`, d: path(curve)})),
      runs.filter((run) => differs(run.filtered_fast_p, run.fast_p)).map((run) =>
        svg('path', {class: `curve filtered ${runColour(run.index)}`, d: path(run.filtered_fast_p)})),
      runs.filter((run) => run.sol_fast_p).slice(0, 1).map((run) => svg('path', {class: 'curve limit', d: path(run.sol_fast_p)})),
    ];
  };
}

const differs = (one, other) => JSON.stringify(one) !== JSON.stringify(other);

/** Pieces [begin, end, first share, second share] on which two step curves are constant. */
function between(first, second, to) {
  const cuts = [...new Set([...first, ...second].map(([p]) => p)), to].sort((a, b) => a - b);
  return cuts.slice(1).map((end, i) => [cuts[i], end, stepAt(first, cuts[i]), stepAt(second, cuts[i])]);
}

function attemptFastP(runs, threshold) {
  const longest = Math.max(1, ...runs.map((run) => run.attempt_fast_p[threshold].at(-1)?.[0] ?? 1));
  return (width, height) => {
    const x = linear(1, Math.max(2, longest), MARGIN.left, width - MARGIN.right);
    const y = linear(0, 1, height - MARGIN.bottom, MARGIN.top);
    const ticks = [...new Set([1, ...steps(1, longest).filter((value) => Number.isInteger(value) && value >= 1)])];
    return [
      frame(width, height, x, y, ticks.map((value) => [value, value]), shares, 'attempts', null),
      runs.map((run) => {
        const curve = run.attempt_fast_p[threshold];
        if (!curve.length) return null;
        const path = curve.map(([attempt, share], i) => (i ? `H${x(attempt)}V${y(share)}` : `M${x(attempt)} ${y(share)}`)).join('');
        return svg('path', {class: `curve ${runColour(run.index)}`, d: `${path}H${x(longest)}`});
      }),
    ];
  };
}

/** Points {x: FLOPs a byte, y: TFLOP/s, run, label, href} under the roofs of their devices. */
function roofline(points, roofs) {
  const peaks = roofs.flatMap((roof) => Object.entries(roof.tflops).filter(([, peak]) => peak)
    .map(([name, peak]) => ({name: roofs.length > 1 ? `${roof.device} ${name}` : name, peak, gbps: roof.gbps})));
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const xFrom = least(xs) / 2;
  const xTo = most([...xs, ...peaks.map((roof) => 2 * roof.peak * 1e3 / roof.gbps)]) * 2;
  const yFrom = least(ys) / 2;
  const yTo = most([...ys, ...peaks.map((roof) => roof.peak)]) * 2;
  const margin = {...MARGIN, right: peaks.length ? 16 + 6 * Math.max(...peaks.map((roof) => roof.name.length + 5)) : MARGIN.right};
  return (width, height) => {
    const x = logarithmic(xFrom, xTo, margin.left, width - margin.right);
    const y = logarithmic(yFrom, yTo, height - MARGIN.bottom, MARGIN.top);
    let lowest = -Infinity; // label so far: the next one keeps off it
    const label = (value) => (value >= 1 ? value.toLocaleString('en') : String(+value.toPrecision(2)));
    return [
      frame(width, height, x, y, powers(10, xFrom, xTo).map((v) => [v, label(v)]), powers(10, yFrom, yTo, 6).map((v) => [v, label(v)]),
        'FLOPs a byte', 'TFLOP/s', margin),
      [...peaks].sort((a, b) => b.peak - a.peak).map(({name, peak, gbps}) => {
        const ridge = peak * 1e3 / gbps;
        const begin = Math.max(xFrom, yFrom * 1e3 / gbps);
        return [
          svg('path', {class: 'roof', d: `M${x(begin)} ${y(begin * gbps / 1e3)}L${x(ridge)} ${y(peak)}H${x(xTo)}`}),
          svg('text', {class: 'tick', x: width - margin.right + 6, y: lowest = Math.max(y(peak) + 4, lowest + 12)}, `${name} ${significant(peak)}`),
        ];
      }),
      points.map((point) => svg('a', {href: point.href, tabindex: -1},
        svg('circle', {class: `point ${runColour(point.run)}`, cx: x(point.x), cy: y(point.y), r: 3.5}, svg('title', {}, point.label)))),
    ];
  };
}

/** Samples in the order in which they were taken, with median and quartiles, and how often which time occurred. */
function samples(timing) {
  const values = timing.samples_ms;
  const margin = {...MARGIN, left: 62};
  const sorted = [...values].sort((a, b) => a - b);
  const quantile = (share) => sorted[Math.min(sorted.length - 1, Math.round(share * (sorted.length - 1)))];
  const [q1, median, q3] = [timing.q1_ms ?? quantile(0.25), timing.median_ms ?? quantile(0.5), timing.q3_ms ?? quantile(0.75)];
  const pad = Math.max((sorted[sorted.length - 1] - sorted[0]) * 0.06, sorted[0] * 1e-6) || 1;
  const [low, high] = [sorted[0] - pad, sorted[sorted.length - 1] + pad];
  return (width, height) => {
    const split = margin.left + (width - margin.left - margin.right) * 0.7;
    const x = linear(0.5, values.length + 0.5, margin.left, split);
    const y = linear(low, high, height - margin.bottom, margin.top);
    const bins = Math.max(6, Math.min(24, Math.round(Math.sqrt(values.length) * 2)));
    const counts = new Array(bins).fill(0);
    for (const value of values) counts[Math.min(bins - 1, Math.floor((value - low) / (high - low) * bins))] += 1;
    const bar = linear(0, Math.max(...counts), 0, width - margin.right - split - 10);
    const unit = high >= 1000 ? [1e-3, 's'] : high >= 1 ? [1, 'ms'] : [1e3, 'µs'];
    const ticks = steps(low, high, 4);
    const digits = ticks.length > 1 ? Math.min(100, Math.max(0, -Math.floor(Math.log10((ticks[1] - ticks[0]) * unit[0]) + 1e-9))) : 2;
    return [
      svg('rect', {class: 'quartiles', x: margin.left, width: width - margin.left - margin.right, y: y(q3), height: Math.max(1, y(q1) - y(q3))}),
      frame(width, height, x, y, steps(1, values.length, 5).filter((v) => Number.isInteger(v) && v > 0).map((v) => [v, v]),
        ticks.map((v) => [v, `${(v * unit[0]).toFixed(digits)} ${unit[1]}`]), 'sample', null, margin),
      svg('line', {class: 'median', x1: margin.left, x2: width - margin.right, y1: y(median), y2: y(median)}),
      values.map((value, i) => svg('circle', {class: 'sample', cx: x(i + 1), cy: y(value), r: values.length > 150 ? 1.5 : 2.5},
        svg('title', {}, `${i + 1}: ${time(value)}`))),
      counts.map((count, i) => count > 0 && svg('rect', {class: 'bar', x: split + 10, width: bar(count),
        y: y(low + (i + 1) * (high - low) / bins) + 0.5, height: Math.max(1, (height - margin.top - margin.bottom) / bins - 1)},
        svg('title', {}, `${count}`))),
    ];
  };
}

/** Times as bars from nought, each {label, ms, of}: what is possible beside what was measured. */
function ladder(bars) {
  const longest = Math.max(...bars.map((bar) => bar.ms));
  return (width) => {
    const x = linear(0, longest, 92, width - 76);
    return bars.map(({label, ms, kind}, i) => [
      svg('text', {class: 'label', x: 84, y: i * 24 + 16, 'text-anchor': 'end'}, label),
      svg('rect', {class: `ladder ${kind}`, x: 92, width: Math.max(1.5, x(ms) - 92), y: i * 24 + 6, height: 14, rx: 2}),
      svg('text', {class: 'tick', x: x(ms) + 6, y: i * 24 + 17}, time(ms)),
    ]);
  };
}
