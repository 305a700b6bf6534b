// Elements. Text enters the document as text nodes only: nothing that a candidate wrote is ever parsed as HTML.

const SVG = 'http://www.w3.org/2000/svg';

const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {  // one by one: a call has only so many arguments
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** A list of terms and what they are; without those that are missing. */
function terms(pairs) {
  const present = pairs.filter(([, value]) => value !== undefined && value !== null && value !== '');
  return el('dl', {class: 'terms'}, present.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

const runColour = (index) => `c${index % 6}`;
