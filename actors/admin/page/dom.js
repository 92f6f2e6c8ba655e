// Elements are made here and nowhere else. What comes from outside is text, whatever it looks like.

const svgSpace = "http://www.w3.org/2000/svg";

/** el makes an element: attributes, "class", "on" (listeners by event) and children, which are nodes or text. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** svg is el for drawings. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(svgSpace, tag), attributes, children);
}

function fill(node, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }

  for (const [event, listener] of Object.entries(on)) node.addEventListener(event, listener);

  node.append(...children.filter((child) => child != null));

  return node;
}

/** put sets a text, and touches nothing where it is there already. */
export function put(node, text) {
  text = String(text);
  if (node.textContent !== text) node.textContent = text;
}

/** set sets an attribute, or takes it away where the value is null. */
export function set(node, name, value) {
  if (value == null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** show hides a node or does not. */
export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

export const byId = (id) => document.getElementById(id);
