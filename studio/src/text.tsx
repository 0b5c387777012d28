// The one way in which texts of models, clients and problems are shown: as text, cut, with what cannot be seen or would
// change the order of what is around it made visible.

import type { JSX } from "preact";

const LENGTH_MAX = 4096;

/** C0, DEL, C1, and the twelve characters that control the direction of text; tab and newline stay. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function sign(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

export function visible(text: string, max = LENGTH_MAX): string {
  const cut = text.length > max ? `${text.slice(0, max)}\u2026 (${text.length.toLocaleString("en")} characters)` : text;
  return cut.replace(HIDDEN, sign);
}

/** Text that is not ours. */
export function Text({ of, max, block }: { of: unknown; max?: number; block?: boolean }): JSX.Element {
  const text = visible(typeof of === "string" ? of : (JSON.stringify(of) ?? "none"), max);
  return block ? <pre class="text" dir="auto" tabIndex={0}>{text}</pre> : <bdi class="text">{text}</bdi>;
}

/** Text with parts in backticks, which are shown as code. */
export function Quoted({ text }: { text: string }): JSX.Element {
  const parts = visible(text).split("`");
  return <bdi class="text">{parts.map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</bdi>;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

export function duration(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min ${Math.round((ms % 60_000) / 1000)} s` : `${(ms / 3_600_000).toFixed(1)} h`;
}

export function time(iso: string): string {
  const date = new Date(iso);
  const today = new Date().toDateString() === date.toDateString();
  return today ? date.toLocaleTimeString("en-GB") : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

export function words(name: string): string {
  return name.replaceAll("_", " ");
}
