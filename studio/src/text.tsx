// The one way in which texts of models, clients and problems are shown: as text, cut, with what
// cannot be seen or would
// change the order of what is around it made visible.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Exact, jsonText } from "./exact";
import type { Count } from "./exact";

const LENGTH_MAX = 4096;

/** Longest text that is shown where somebody asks for all of a cut one. */
const ALL_MAX = 1_000_000;

/**
 * C0, DEL, C1, and the twelve characters that control the direction of text; tab and newline stay.
 */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function sign(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

/** The first `max` characters, no half of a pair of surrogates among them. */
function start(text: string, max: number): string {
  const cut = text.slice(0, max);
  return /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut;
}

export function visible(text: string, max = LENGTH_MAX): string {
  const cut =
    text.length > max
      ? `${start(text, max)}\u2026 (${text.length.toLocaleString("en")} characters)`
      : text;
  return cut.replace(HIDDEN, sign);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined ? "none" : jsonText(value);
}

/** Text that is not ours. A block that is cut can be shown in full. */
export function Text({
  of,
  max = LENGTH_MAX,
  block,
}: {
  of: unknown;
  max?: number;
  block?: boolean;
}): JSX.Element {
  const [all, setAll] = useState("");
  const text = textOf(of);
  if (!block) return <bdi class="text">{visible(text, max)}</bdi>;
  const isCut = text.length > max && all !== text;
  return (
    <>
      <pre class="text" dir="auto" tabIndex={0}>
        {visible(text, isCut ? max : ALL_MAX)}
      </pre>
      {isCut && (
        <button type="button" class="link" onClick={() => setAll(text)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}

/**
 * A value in a line, cut; the rest is shown where it is asked for. Not for the inside of a button
 * or a link.
 */
export function Long({ of, max }: { of: unknown; max: number }): JSX.Element {
  const [all, setAll] = useState("");
  const text = textOf(of);
  const isCut = text.length > max && all !== text;
  return (
    <>
      <bdi class="text">
        {isCut ? `${visible(start(text, max), max)}\u2026` : visible(text, ALL_MAX)}
      </bdi>
      {isCut && (
        <button type="button" class="link" onClick={() => setAll(text)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}

/**
 * What a field has that cannot be seen in it, or changes the order of what is around it: its text
 * with signs.
 */
export function Hidden({ of }: { of: string }): JSX.Element | null {
  const found = of.match(HIDDEN);
  if (found === null) return null;
  return (
    <span class="hidden-characters small" role="note">
      With {found.length === 1 ? "a character" : `${count(found.length)} characters`} that cannot be
      seen: <bdi class="text">{visible(of, 400)}</bdi>
    </span>
  );
}

/** Text with parts in backticks, which are shown as code. */
export function Quoted({ text }: { text: string }): JSX.Element {
  const parts = visible(text).split("`");
  return (
    <bdi class="text">
      {parts.map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}
    </bdi>
  );
}

/** A count with separators, every digit of it. */
export function count(value: Count): string {
  if (value instanceof Exact)
    return /^-?\d+$/.test(value.text) ? BigInt(value.text).toLocaleString("en") : value.text;
  return value.toLocaleString("en", { maximumFractionDigits: 20 });
}

export function some(number: number, one: string, several = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : several}`;
}

/** A share as a percentage, which says where it is rounded. */
export function percent(share: number): string {
  const whole = Math.round(100 * share);
  return Math.abs(100 * share - whole) < 1e-9 ? `${whole} %` : `≈ ${whole} %`;
}

/**
 * A time in its two largest units, rounded to the smaller one: 119,600 ms are 2 min, not 1 min 60
 * s.
 */
export function duration(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600)
    return `${Math.floor(seconds / 60)} min${seconds % 60 === 0 ? "" : ` ${seconds % 60} s`}`;
  const minutes = Math.round(ms / 60_000);
  return `${count(Math.floor(minutes / 60))} h${minutes % 60 === 0 ? "" : ` ${minutes % 60} min`}`;
}

export function time(iso: string): string {
  const date = new Date(iso);
  const today = new Date().toDateString() === date.toDateString();
  return today
    ? date.toLocaleTimeString("en-GB")
    : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

export function words(name: string): string {
  return name.replaceAll("_", " ");
}

const OUTCOMES: Record<string, string> = {
  agreed: "agreed",
  rounds_spent: "no agreement in its rounds",
  exhausted: "every line was tried",
  stuck: "stuck",
  steps_spent: "its steps were used up",
  tokens_spent: "its tokens were used up",
  cost_spent: "its money was used up",
  completion_tokens_spent: "its completion tokens were used up",
  wall_ms_spent: "its time was used up",
  cancelled: "cancelled",
  agent_failed: "an agent failed",
};

/** How a run ended, in words. */
export function outcomeOf(outcome: string): string {
  return OUTCOMES[outcome] ?? words(visible(outcome, 60));
}
