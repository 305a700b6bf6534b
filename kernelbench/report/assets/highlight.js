// Syntax colours for Python, C++ and CUDA, and for C++ within the strings of Python. Made when a candidate is opened.

const LONGEST_COLOURED = 300000; // characters; what is longer stays plain

const setOf = (text) => new Set(text.split(' '));

const PYTHON = {
  rules: [
    ['comment', /#[^\n]*/y],
    ['string', /[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$))/y],
    ['string', /[rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)/y],
    ['meta', /@[\w.]+/y],
    ['number', /(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*\.?[\d_]*(?:[eE][+-]?\d+)?)/y],
    ['word', /[A-Za-z_]\w*/y],
  ],
  keyword: setOf('and as assert async await break class continue def del elif else except finally for from global if ' +
    'import in is lambda nonlocal not or pass raise return try while with yield match case'),
  constant: setOf('True False None self'),
  type: setOf('int float str bool list dict tuple set bytes object type range len super torch nn F tl triton'),
};

const CPP = {
  rules: [
    ['comment', /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/y],
    ['string', /R"([^()\s\\]{0,16})\([^]*?(?:\)\1"|$)/y],
    ['string', /"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?/y],
    ['meta', /#[ \t]*\w+/y],
    ['number', /(?:0[xX][\da-fA-F']+|\d[\d']*\.?\d*(?:[eE][+-]?\d+)?)[uUlLfF]*/y],
    ['word', /[A-Za-z_]\w*/y],
  ],
  keyword: setOf('alignas auto break case catch class const constexpr continue default delete do else enum explicit extern ' +
    'for friend goto if inline namespace new noexcept operator private protected public return sizeof static ' +
    'static_assert static_cast reinterpret_cast const_cast struct switch template this throw try typedef typename union ' +
    'using virtual volatile while asm __global__ __device__ __host__ __shared__ __constant__ __restrict__ ' +
    '__launch_bounds__ __forceinline__ __noinline__'),
  constant: setOf('true false nullptr threadIdx blockIdx blockDim gridDim warpSize NULL INFINITY'),
  type: setOf('void bool char short int long float double unsigned signed size_t int8_t int16_t int32_t int64_t uint8_t ' +
    'uint16_t uint32_t uint64_t half half2 __half __half2 __nv_bfloat16 float2 float4 int2 int4 uint4 double2 dim3 ' +
    'cudaStream_t std torch at c10'),
};

const EMBEDDED = /__global__|#include|torch::Tensor|extern "C"/;

/** Tokens [class, text] that together are the text. */
function tokens(text, language) {
  const found = [];
  let plain = 0;
  let at = 0;
  const flush = () => { if (plain < at) found.push(['', text.slice(plain, at)]); };
  while (at < text.length) {
    let matched = null;
    for (const [kind, rule] of language.rules) {
      rule.lastIndex = at;
      matched = rule.exec(text);
      if (matched && matched[0]) {
        flush();
        for (const token of classified(kind, matched[0], language, text, rule.lastIndex)) found.push(token);
        at = plain = rule.lastIndex;
        break;
      }
      matched = null;
    }
    if (!matched) at += 1;
  }
  flush();
  return found;
}

function classified(kind, token, language, text, next) {
  if (kind === 'string' && language === PYTHON && EMBEDDED.test(token)) {
    const quotes = token.match(/^[^"']*("""|'''|"|')/)[0];
    return [['string', quotes], ...tokens(token.slice(quotes.length), CPP)];
  }
  if (kind !== 'word') return [[kind, token]];
  for (const name of ['keyword', 'constant', 'type']) if (language[name].has(token)) return [[name, token]];
  return [[text[next] === '(' ? 'call' : '', token]];
}

/** A source with line numbers and colours. */
function code(text, kind) {
  if (text.length > LONGEST_COLOURED) return el('pre', {class: 'code', tabindex: 0}, text);
  const block = el('code', {});
  let line = el('span', {class: 'line'});
  for (const [name, token] of tokens(text.replace(/\n$/, ''), kind === 'py' ? PYTHON : CPP)) {
    token.split('\n').forEach((part, index) => {
      if (index) {
        block.append(line, '\n');
        line = el('span', {class: 'line'});
      }
      if (part) line.append(name ? el('span', {class: `t-${name}`}, part) : part);
    });
  }
  block.append(line);
  return el('pre', {class: 'code', tabindex: 0}, block);
}
