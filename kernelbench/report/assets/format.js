// Numbers as people read them.

function significant(value, digits = 3) {
  if (value === 0) return '0';
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  if (magnitude >= digits) return Math.round(value).toLocaleString('en');
  const places = Math.max(0, digits - 1 - magnitude);
  return places > 100 ? '0' : value.toFixed(places); // more a number cannot show
}

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

function time(ms, digits = 3) {
  if (!isNumber(ms)) return '';
  if (ms >= 1000) return `${significant(ms / 1000, digits)} s`;
  return ms >= 1 ? `${significant(ms, digits)} ms` : `${significant(ms * 1000, digits)} µs`;
}

function times(value, digits = 2) {
  return isNumber(value) ? `${value >= 100 ? Math.round(value) : value.toFixed(digits)}×` : '';
}

function range(low, high, digits = 2) {
  return isNumber(low) && isNumber(high) ? `[${low.toFixed(digits)}, ${high.toFixed(digits)}]` : '';
}

/** Digits at which the ends of a speedup's interval differ, and neither of a faster or slower one reads as 1. */
function digitsOf({low, high, verdict}) {
  if (!isNumber(low) || !isNumber(high)) return 2;
  const tells = (digits) => low.toFixed(digits) !== high.toFixed(digits) &&
    (!['faster', 'slower'].includes(verdict) || ![low, high].some((end) => Number(end.toFixed(digits)) === 1));
  return [2, 3].find(tells) || 4;
}

const interval = (claim) => (isNumber(claim?.low) ? range(claim.low, claim.high, claim.low >= 100 ? 0 : digitsOf(claim)) : '');

/** A speedup as what it counts as: the ratio, 1 for a tie, and none where it is unstable. */
function speedupText(claim) {
  if (!claim?.verdict) return '';
  if (claim.verdict === 'unstable') return 'unstable';
  return claim.verdict === 'tie' ? `${times(claim.settled)} (tie)` : times(claim.settled, digitsOf(claim));
}

/** What the clock said, where that is not what the speedup counts as. */
const measured = ({speedup, settled}) => (isNumber(speedup) && speedup !== settled ? `measured: ${times(speedup, 4)}` : null);

function percent(value) {
  return isNumber(value) ? `${value >= 10 ? Math.round(value) : value.toFixed(1)} %` : '';
}

function bytes(value) {
  if (!isNumber(value)) return '';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(value, 1)) / 3)));
  return `${significant(value / 1000 ** step)} ${units[step]}`;
}

const words = (text) => text.replace(/_/g, ' ');

/** Statuses by what went wrong: a colour each. */
const GROUPS = {
  ok: 'ok', rejected: 'rejected',
  wrong_shape: 'wrong', wrong_dtype: 'wrong', wrong_value: 'wrong', nonfinite: 'wrong',
  build_error: 'broken', load_error: 'broken',
  runtime_error: 'failed', timeout: 'failed', out_of_memory: 'failed', crashed: 'failed',
};
const STATUSES = Object.keys(GROUPS);

const badge = (status) => el('span', {class: `status g-${GROUPS[status] || 'failed'}`}, words(status));

/** Level and number as one number, kept with the row: sorting asks for it often. */
function orderOf(row) {
  if (row.order === undefined) {
    const [level, number] = row.problem.split('/').map(Number);
    row.order = level * 1e6 + number;
  }
  return row.order;
}

const byProblem = (a, b) => orderOf(a) - orderOf(b);
