// JSON without the loss of a digit. A number that JavaScript would round is kept as its text, and
// written
// again as that text.

/** A number as it was written, because a `number` would not be the same. */
export class Exact {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text;
  }
}

export type Count = number | Exact;

const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Digits that a `number` keeps whatever they are. */
const DIGITS_SURE = 15;

/** Marks an object that stands for a number. No answer of the daemon has this field. */
const MARK = "\u0000exact";

/**
 * True if a `number` means the same: 1.0 and 1 do, 9007199254740993 and 9007199254740992 do not.
 */
function isKept(text: string): boolean {
  if (String(Number(text)) === text) return true;
  const digits = text
    .replace(/[eE].*$/, "")
    .replace(/[-.]/g, "")
    .replace(/^0+|0+$/g, "");
  const value = Number(text);
  // Neither too large for a number nor so small that it would be 0.
  return digits.length <= DIGITS_SURE && Number.isFinite(value) && (value !== 0 || digits === "");
}

/** True if a `number` is written in the same way too. */
function isSpelled(text: string): boolean {
  return String(Number(text)) === text;
}

function revived(_: string, value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  const text = (value as Record<string, unknown>)[MARK];
  return typeof text === "string" ? new Exact(text) : value;
}

/** Where the string ends that begins at a place: its closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}

/** Changes the numbers of a JSON text, and nothing in its strings, which may be long. */
function withNumbers(text: string, change: (number: string) => string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length;) {
    const quote = text.indexOf('"', at);
    const start = quote < 0 ? text.length : quote;
    parts.push(text.slice(at, start).replace(NUMBER, change));
    at = quote < 0 ? start : endOfString(text, start) + 1;
    parts.push(text.slice(start, at));
  }
  return parts.join("");
}

/**
 * Reads JSON. A number that would be rounded becomes `Exact`; with `asSpelled`, one that would be
 * written
 * differently too, as 1.0: what is sent on must be what was read.
 */
export function parseJson(text: string, asSpelled = false): unknown {
  const stays = asSpelled ? isSpelled : isKept;
  // What is not JSON is refused as it was given, so that the place in the message is right.
  const plain = JSON.parse(text) as unknown;
  let isChanged = false;
  const marked = withNumbers(text, (number) => {
    if (stays(number)) return number;
    isChanged = true;
    return `{${JSON.stringify(MARK)}:"${number}"}`;
  });
  return isChanged ? JSON.parse(marked, revived) : plain;
}

const BEYOND_ASCII = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A JSON string in which a character that cannot be seen is written as its escape. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(
    BEYOND_ASCII,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Writes JSON on one line, every number as it was read; undefined as `JSON.stringify` does: left
 * out.
 */
export function jsonText(value: unknown): string {
  if (value instanceof Exact) return value.text;
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map((item) => jsonText(item ?? null)).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const fields = Object.entries(value).filter(([, item]) => item !== undefined);
    return `{${fields.map(([name, item]) => `${quoted(name)}:${jsonText(item)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/** As `jsonText`, on several lines. */
export function prettyJson(value: unknown, margin = ""): string {
  if (value === null || typeof value !== "object" || value instanceof Exact) return jsonText(value);
  const inner = `${margin}  `;
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => prettyJson(item, inner))
    : Object.entries(value).map(([name, item]) => `${quoted(name)}: ${prettyJson(item, inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  if (items.length === 0) return `${open}${close}`;
  return `${open}\n${items.map((item) => inner + item).join(",\n")}\n${margin}${close}`;
}

/** True if two values are the same JSON, fields in the same order. */
export function sameJson(a: unknown, b: unknown): boolean {
  return a === b || jsonText(a) === jsonText(b);
}

/** As a number for arithmetic and drawing, where a rounded one does no harm. */
export function rounded(value: Count): number {
  return value instanceof Exact ? Number(value.text) : value;
}

/** A number that somebody typed, exactly; undefined where it is none. */
export function numberOf(text: string): Count | undefined {
  const typed = text.trim().replace(/^\+/, "");
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(typed)) return undefined;
  return isSpelled(typed) ? Number(typed) : new Exact(typed);
}
