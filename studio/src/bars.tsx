// An array of numbers as bars, with every value in full.

import type { JSX } from "preact";
import { sameJson as same } from "./exact";
import { visible } from "./text";
import { CHANGED, Items } from "./values";

type Json = unknown;

/** Widest drawing of an array that is not scaled down in a column of the page, in pixels. */
const WIDTH_MAX = 560;
/** The width of a digit in a label, and the height of a line of it. */
const DIGIT = 6;
const LINE = 11;

/** Height of the bars of an array, where there is room and where there is little. */
const BARS = 84;
const BARS_LOW = 40;

/**
 * Where the labels of bars go: below them, below them on end, or, where there is no room for
 * either, in a list.
 */
function labelling(texts: string[]): {
  width: number;
  height: number;
  mode: "flat" | "upright" | "list";
} {
  const longest = Math.max(...texts.map((text) => text.length)) * DIGIT;
  const room = WIDTH_MAX / texts.length;
  if (longest + 6 <= room)
    return { width: Math.max(longest + 6, Math.min(26, room)), height: LINE + 4, mode: "flat" };
  if (LINE + 2 <= room)
    return { width: Math.min(26, Math.max(LINE + 2, room)), height: longest + 6, mode: "upright" };
  return { width: Math.max(2, room), height: 2, mode: "list" };
}

export function Bars({
  value,
  other,
  name,
  isLow,
}: {
  value: number[];
  other: Json;
  name: string;
  isLow: boolean;
}): JSX.Element {
  const before = Array.isArray(other) ? (other as Json[]) : undefined;
  const low = Math.min(0, ...value);
  const high = Math.max(0, ...value);
  // Bars of equal values tell nothing: the values do.
  if (value.every((one) => one === value[0])) return <Items items={value} other={before} />;
  const span = high - low || 1;
  const texts = value.map(String);
  const { width, height: labels, mode } = labelling(texts);
  const height = isLow ? BARS_LOW : BARS;
  const y = (of: number) => 12 + height - ((of - low) / span) * height;
  const changed = (at: number) => before !== undefined && !same(before[at], value[at]);
  const text = value.map((item, at) => (changed(at) ? `${item} (changed)` : item)).join(", ");
  const bottom = height + 14;
  return (
    <>
      <svg
        class="bars"
        viewBox={`0 0 ${value.length * width} ${bottom + labels}`}
        role="img"
        aria-label={visible(`${name}: ${text}`, 20_000)}
        style={{
          maxWidth: `${value.length * width}px`,
          minWidth: `${0.75 * value.length * width}px`,
        }}
      >
        {value.map((item, at) => (
          <g key={at} class={`${changed(at) ? "changed" : ""} ${item < 0 ? "negative" : ""}`}>
            <rect
              x={at * width + 0.1 * width}
              width={0.8 * width}
              y={Math.min(y(item), y(0))}
              height={Math.abs(y(item) - y(0))}
            />
            {mode === "flat" && (
              <text x={(at + 0.5) * width} y={bottom + LINE}>
                {texts[at]}
              </text>
            )}
            {mode === "upright" && (
              <text
                class="upright"
                transform={`translate(${(at + 0.5) * width + 3} ${bottom + 2}) rotate(90)`}
              >
                {texts[at]}
              </text>
            )}
            {changed(at) && (
              <text class="sign" x={(at + 0.5) * width} y={9}>
                {CHANGED}
              </text>
            )}
          </g>
        ))}
        <line class="zero" x1={0} x2={value.length * width} y1={y(0)} y2={y(0)} />
      </svg>
      {mode === "list" && <Items items={value} other={before} />}
    </>
  );
}
