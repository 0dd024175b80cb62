// Inputs from chance: valid examples with something wrong in them, and garbage. The same chance makes the same input.

/** What readers trip over: marks of the formats that are read, numbers at the edge, texts that look like others. */
const fragments = [
  ["\u0000", "\u0007", "\u001b[2J", "\u001b]0;x\u0007", "\u007f", "\u009b31m", "\u00ad", "\u200d", "\u202e", "\u2066"],
  ["\u2028", "\u2029", "\ufeff", "\ufffd", "\ud800", "\udfff", "\ue000", "\u{e0001}", "\u{1f600}", "e\u0301", "\u00a0"],
  [
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "  ",
    "\n  ",
    "\n- ",
    "- ",
    ": ",
    ":",
    ",",
    ", ",
    "#",
    " #",
    "?",
    "? ",
    "|\n",
    ">-\n",
  ],
  [
    "&a ",
    "*a",
    "&a *a",
    "!!js/function ",
    "!!binary ",
    "!a ",
    "<<: *a",
    "%YAML 1.1\n",
    "---\n",
    "...\n",
    "~",
    "@",
    "`",
  ],
  ["{", "}", "[", "]", "[[", "{}", "[]", '"', "'", '\\"', "\\", "\\u0000", "\\ud800", "\\x1b", "null", "true", "NaN"],
  ["0", "-0", "-1", "00", "1e309", "Infinity", "65535", "65536", "4294967296", "9007199254740993", "0x7f", "٣", "１"],
  ["/", "//", "/0", "/33", "/129", "/-1", "..", "../", "%2f", "%00", "%", "%zz", ".", "-", "--", "_", "@host", "?a=b"],
  ["127.0.0.1", "0.0.0.0", "169.254.169.254", "255.255.255.255", "::", "::1", "fe80::1%0", "1.2.3", "1.2.3.4.5"],
  ["[::1]:0", ":99999", "xn--", "xn--a", "ß", "İ", "ſ", "localhost", "a.", ".a", "https://", "http://", "file:///"],
  ["__proto__", "constructor", "toString", "hasOwnProperty", "length", "then", "valueOf", "$&", "$1", "{{x}}", "; x;"],
  ["-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----", "-----BEGIN PRIVATE KEY-----", "-----", "=", "AA=="],
  ["a".repeat(64), "a".repeat(254), "1".repeat(40), "a.".repeat(130), "[".repeat(70), "\ud800".repeat(9)],
].flat();

const lengthMax = 8_192;

/** One character: of ASCII mostly, then of one byte, of two, or of any plane. */
function character(chance) {
  const kind = chance.int(0, 9);
  if (kind < 6) return String.fromCharCode(chance.int(0x20, 0x7e));
  if (kind < 8) return String.fromCharCode(chance.int(0, 0xff));
  if (kind < 9) return String.fromCharCode(chance.int(0, 0xffff));
  return String.fromCodePoint(chance.int(0x10000, 0x10ffff));
}

/** A text without a grammar. */
function garbage(chance) {
  const parts = [];
  for (let left = chance.int(0, 24); left > 0; left -= 1) {
    parts.push(chance.happens(0.5) ? chance.pick(fragments) : character(chance));
  }
  return parts.join("");
}

/** A text from an example: usually with a few things wrong, sometimes as it is. */
export function textInput(chance, examples) {
  if (chance.happens(0.2)) return garbage(chance);
  let text = chance.pick(examples);
  for (let left = chance.int(0, 5); left > 0; left -= 1) text = textEdit(chance, text, examples);
  return text.slice(0, lengthMax);
}

function textEdit(chance, text, examples) {
  const at = chance.int(0, text.length);
  const end = Math.min(text.length, at + chance.int(1, chance.happens(0.8) ? 4 : 200));
  const [before, part, after] = [text.slice(0, at), text.slice(at, end), text.slice(end)];
  switch (chance.int(0, 8)) {
    case 0:
    case 1:
      return before + chance.pick(fragments) + part + after;
    case 2:
      return before + character(chance) + after;
    case 3:
      return before + after;
    case 4:
      return before + part.repeat(chance.int(2, 8)) + after;
    case 5:
      return before;
    case 6: {
      const other = chance.pick(examples);
      return before + other.slice(chance.int(0, other.length));
    }
    case 7:
      return before + (chance.happens(0.5) ? part.toUpperCase() : part.split("").toReversed().join("")) + after;
    default:
      return replaceNumber(chance, text);
  }
}

function replaceNumber(chance, text) {
  const numbers = [...text.matchAll(/\d+/g)].slice(0, 200);
  if (numbers.length === 0) return text;
  const { 0: found, index } = chance.pick(numbers);
  const other = chance.pick(["", "0", "-1", "256", "65536", "1e9", "99999999999999999999", `0${found}`, `${found}.5`]);
  return text.slice(0, index) + other + text.slice(index + found.length);
}

/** An object from an example, as JSON could bring it, with a few things wrong. */
export function objectInput(chance, examples) {
  if (chance.happens(0.05)) return value(chance, examples, 0);
  let object = chance.pick(examples);
  for (let left = chance.int(0, 4); left > 0; left -= 1) object = objectEdit(chance, object, examples, 0);
  return object;
}

/** Changes one place of a value, and nothing of the value that it is given. */
function objectEdit(chance, object, examples, depth) {
  if (typeof object !== "object" || object === null || depth > 40 || chance.happens(0.06)) {
    if (typeof object === "string" && chance.happens(0.7)) return textInput(chance, [object, ...words]);
    return value(chance, examples, 0);
  }
  if (Array.isArray(object)) {
    if (object.length === 0) return [value(chance, examples, 0)];
    const at = chance.int(0, object.length - 1);
    switch (chance.int(0, 9)) {
      case 0:
        return object.toSpliced(at, 1);
      case 1:
        return object.toSpliced(at, 0, ...Array.from({ length: chance.int(1, 5) }, () => object[at]));
      case 2:
        return [...object, value(chance, examples, 0)];
      default:
        return object.with(at, objectEdit(chance, object[at], examples, depth + 1));
    }
  }
  const entries = Object.entries(object);
  if (entries.length === 0) return { [chance.pick(words)]: value(chance, examples, 0) };
  const at = chance.int(0, entries.length - 1);
  const [key, held] = entries[at];
  switch (chance.int(0, 14)) {
    case 0:
      return Object.fromEntries(entries.toSpliced(at, 1));
    case 1:
      return Object.fromEntries([...entries, [textInput(chance, words), value(chance, examples, 0)]]);
    case 2:
      return Object.fromEntries(entries.with(at, [textInput(chance, [key]), held]));
    default:
      return Object.fromEntries(entries.with(at, [key, objectEdit(chance, held, examples, depth + 1)]));
  }
}

const words = [
  "name",
  "namespace",
  "metadata",
  "spec",
  "status",
  "items",
  "kind",
  "data",
  "__proto__",
  "then",
  "10.0.0.0/8",
];

/** Any value that JSON can say. */
function value(chance, examples, depth) {
  switch (chance.int(0, 11)) {
    case 0:
      return null;
    case 1:
      return chance.happens(0.5);
    case 2:
      return chance.pick([0, -0, -1, 1.5, 1e308, -1e308, 2 ** 31, 2 ** 53, 65_536, 5e-324]);
    case 3:
      return chance.int(-10, 100_000);
    case 4:
      return chance.pick(fragments);
    case 5:
    case 6:
      return garbage(chance);
    case 7:
      return depth > 3 ? [] : Array.from({ length: chance.int(0, 5) }, () => value(chance, examples, depth + 1));
    case 8:
      return depth > 3
        ? {}
        : Object.fromEntries(
            Array.from({ length: chance.int(0, 5) }, () => [
              chance.happens(0.5) ? chance.pick(words) : garbage(chance),
              value(chance, examples, depth + 1),
            ]),
          );
    case 9:
      return nested(chance.int(1, 90), chance.happens(0.5));
    case 10:
      return chance.pick(examples);
    default:
      return Array.from({ length: chance.int(1, 300) }, () => chance.pick(fragments));
  }
}

function nested(levels, isList) {
  let inner = "x";
  for (let level = 0; level < levels; level += 1) inner = isList ? [inner] : { a: inner };
  return inner;
}

/** Inputs of any size that repeat what an input holds once: what a reader that is not linear is found with. */
export function pumpedText(chance, examples) {
  const text = textInput(chance, examples);
  const at = chance.int(0, text.length);
  const end = Math.min(text.length, at + chance.int(1, 40));
  const part = at === end || chance.happens(0.3) ? chance.pick(fragments) : text.slice(at, end);
  const [before, after] = [text.slice(0, at), text.slice(end)];
  return (size) => before + part.repeat(Math.ceil(size / part.length)) + after;
}

/** The same for objects: a list with an item many times, an object with many keys, or a long text. */
export function pumpedObject(chance, examples) {
  const object = objectInput(chance, examples);
  const steps = Array.from({ length: 12 }, () => chance.random());
  const part = chance.pick(fragments);
  return (size) => pump(object, steps, part, size);
}

function pump(object, [step = 0, ...steps], part, size) {
  if (typeof object === "string") return object + part.repeat(Math.ceil(size / part.length));
  if (typeof object !== "object" || object === null) return part.repeat(Math.ceil(size / part.length));
  const entries = Object.entries(object);
  const isHere = steps.length === 0 || entries.length === 0 || step < 0.15;
  const [key, held] = entries[Math.floor(step * entries.length)] ?? ["k", part];
  if (!isHere) {
    const inner = pump(held, steps, part, size);
    if (Array.isArray(object)) return object.with(Number(key), inner);
    return Object.fromEntries(entries.map(([name, each]) => [name, name === key ? inner : each]));
  }
  const count = Math.ceil(size / (JSON.stringify(held)?.length ?? 8));
  if (Array.isArray(object)) return [...object, ...Array.from({ length: count }, () => held)];
  return Object.fromEntries([...entries, ...Array.from({ length: count }, (_, index) => [`${key}${index}`, held])]);
}
