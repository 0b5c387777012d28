// A state as a picture where it has a known form, else as a tree of its fields. What differs from the other state has
// an outline and a sign, so that colour alone tells nothing.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Exact, jsonText, sameJson as same } from "./exact";
import { StructureDrawing } from "./structure_drawing";
import { structureOf } from "./structures";
import { Long, count, visible } from "./text";

type Json = unknown;

/** Items of a list, and fields of an object, that are shown at first, and more at each request. */
const ITEMS = 400;
const FIELDS = 100;

/** Widest drawing of an array that is not scaled down in a column of the page, in pixels. */
const WIDTH_MAX = 560;
/** Of a digit in a label, and the height of a line of it. */
const DIGIT = 6;
const LINE = 11;

/** Height of the bars of an array, where there is room and where there is little. */
const BARS = 84;
const BARS_LOW = 40;

/** The sign of what differs from the state before. */
export const CHANGED = "\u25cf";

/** Numbers that a drawing shows as they are: all are finite, and none had to be kept as its text. */
function isNumbers(value: Json): value is number[] {
  return Array.isArray(value) && value.length > 1 && value.length <= 256 && value.every((item) => typeof item === "number");
}

export function scalar(value: Json): boolean {
  return value === null || typeof value !== "object" || value instanceof Exact;
}

function rows(name: string, value: Json): Json[][] | undefined {
  if (typeof value === "string" && name === "grid") {
    const side = Math.sqrt(value.length);
    const cells = [...value];
    if (Number.isInteger(side) && side > 1) return Array.from({ length: side }, (_, at) => cells.slice(at * side, (at + 1) * side));
  }
  if (!Array.isArray(value) || value.length < 2 || value.length > 64) return undefined;
  if (value.every((row) => typeof row === "string" && row.length > 1 && row.length === (value[0] as string).length && row.length <= 64)) {
    return name === "grid" || name === "maze" || name === "board" ? (value as string[]).map((row) => [...row]) : undefined;
  }
  const [first] = value as Json[];
  const isBoard = (row: Json): row is Json[] =>
    Array.isArray(row) && row.length === (first as Json[]).length && row.length > 1 && row.length <= 64 && row.every(scalar);
  return (value as Json[]).every(isBoard) ? (value as Json[][]) : undefined;
}

/** Where the labels of bars go: below them, below them on end, or, where there is no room for either, in a list. */
function labelling(texts: string[]): { width: number; height: number; mode: "flat" | "upright" | "list" } {
  const longest = Math.max(...texts.map((text) => text.length)) * DIGIT;
  const room = WIDTH_MAX / texts.length;
  if (longest + 6 <= room) return { width: Math.max(longest + 6, Math.min(26, room)), height: LINE + 4, mode: "flat" };
  if (LINE + 2 <= room) return { width: Math.min(26, Math.max(LINE + 2, room)), height: longest + 6, mode: "upright" };
  return { width: Math.max(2, room), height: 2, mode: "list" };
}

function Bars({ value, other, name, isLow }: { value: number[]; other: Json; name: string; isLow: boolean }): JSX.Element {
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
      <svg class="bars" viewBox={`0 0 ${value.length * width} ${bottom + labels}`} role="img"
        aria-label={visible(`${name}: ${text}`, 20_000)} style={{ maxWidth: `${value.length * width}px`, minWidth: `${0.75 * value.length * width}px` }}>
        {value.map((item, at) => (
          <g key={at} class={`${changed(at) ? "changed" : ""} ${item < 0 ? "negative" : ""}`}>
            <rect x={at * width + 0.1 * width} width={0.8 * width} y={Math.min(y(item), y(0))} height={Math.abs(y(item) - y(0))} />
            {mode === "flat" && (
              <text x={(at + 0.5) * width} y={bottom + LINE}>
                {texts[at]}
              </text>
            )}
            {mode === "upright" && (
              <text class="upright" transform={`translate(${(at + 0.5) * width + 3} ${bottom + 2}) rotate(90)`}>
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

function cellText(cell: Json): string {
  return typeof cell === "string" ? cell : jsonText(cell);
}

function Board({ cells, other, name }: { cells: Json[][]; other?: Json[][]; name: string }): JSX.Element {
  return (
    <table class="board" aria-label={name}>
      <tbody>
        {cells.map((row, y) => (
          <tr key={y}>
            {row.map((cell, x) => {
              const changed = other !== undefined && !same(other[y]?.[x], cell);
              return (
                <td key={x} class={changed ? "changed" : ""}>
                  {visible(cellText(cell), 400)}
                  {changed && <span class="hidden"> (changed)</span>}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Pegs({ value, other }: { value: number[][]; other: Json }): JSX.Element {
  const before = Array.isArray(other) ? (other as Json[]) : undefined;
  const discs = value.flat();
  const largest = Math.max(1, ...discs);
  const most = Math.max(discs.length, 1);
  const row = Math.max(6, Math.min(16, 160 / most));
  const width = 120;
  const height = most * row + 24;
  return (
    <svg class="pegs" viewBox={`0 0 ${width * value.length} ${height}`} role="img"
      aria-label={visible(value.map((peg, at) => `peg ${at}: ${peg.join(" ") || "empty"}`).join("; "), 20_000)}>
      {value.map((peg, at) => {
        const x = at * width + width / 2;
        const changed = before !== undefined && !same(before[at], peg);
        return (
          <g key={at} class={changed ? "changed" : ""}>
            <line x1={x} x2={x} y1={4} y2={height - 18} />
            <line x1={x - 54} x2={x + 54} y1={height - 17} y2={height - 17} />
            {peg.map((disc, level) => {
              const half = 10 + (disc / largest) * 42;
              return (
                <rect key={level} x={x - half} width={2 * half} y={height - 18 - (level + 1) * row} height={row - 2} rx={3} />
              );
            })}
            <text x={x} y={height - 3}>
              {changed ? `${CHANGED} ${at}` : at}
            </text>
          </g>
        );
      })}
    </svg>
  );
}

function Queens({ value, size, other }: { value: number[]; size: number; other: Json }): JSX.Element {
  const cells = (queens: Json[]) =>
    Array.from({ length: size }, (_, row) => Array.from({ length: size }, (_, column) => (queens[row] === column ? "♛" : "")));
  return <Board cells={cells(value)} other={Array.isArray(other) ? cells(other as Json[]) : undefined} name="board" />;
}

/** Cells of a tape around its head; the others are named, and shown on request. */
function Tape({ tape, head, other }: { tape: string; head: number; other: Json }): JSX.Element {
  const [all, setAll] = useState(false);
  const cells = [...tape];
  const from = all ? 0 : Math.max(0, Math.min(head - 20, cells.length - 41));
  const to = all ? cells.length : Math.min(cells.length, from + 41);
  const before = typeof other === "string" ? [...other] : undefined;
  return (
    <>
      <ol class="tape" aria-label={visible(`tape ${tape}, head at ${head}`, 500)}>
        {cells.slice(from, to).map((cell, at) => {
          const changed = before !== undefined && before[from + at] !== cell;
          return (
            <li key={at} class={`${from + at === head ? "head" : ""} ${changed ? "changed" : ""}`}>
              {visible(cell, 4)}
            </li>
          );
        })}
      </ol>
      {to - from < cells.length && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          Cells {count(from)} to {count(to - 1)}: show all {count(cells.length)}
        </button>
      )}
    </>
  );
}

/** What follows a list that is shown in part. */
function More({ left, step, onMore }: { left: number; step: number; onMore: () => void }): JSX.Element | null {
  if (left <= 0) return null;
  return (
    <button type="button" class="link" onClick={onMore}>
      Show {left <= step ? `the other ${count(left)}` : `${count(step)} of the other ${count(left)}`}
    </button>
  );
}

function Changed({ is, children }: { is: boolean; children: ComponentChildren }): JSX.Element {
  return (
    <span class={is ? "leaf changed" : "leaf"}>
      {is && <span class="sign" title="differs from the state before">{CHANGED} </span>}
      {children}
    </span>
  );
}

/** A list of plain values in a few lines. */
function Items({ items, other }: { items: Json[]; other?: Json[] | Record<string, Json> }): JSX.Element {
  const [shown, setShown] = useState(ITEMS);
  const before = other as Record<string, Json> | undefined;
  return (
    <span class="leaf">
      [
      {items.slice(0, shown).map((item, at) => {
        const changed = before !== undefined && !same(before[String(at)], item);
        return (
          <span key={at}>
            {at > 0 && ", "}
            {changed ? (
              <Changed is>
                <Long of={jsonText(item)} max={400} />
              </Changed>
            ) : (
              <Long of={jsonText(item)} max={400} />
            )}
          </span>
        );
      })}
      {items.length > shown && ", … "}
      <More left={items.length - shown} step={10 * ITEMS} onMore={() => setShown(shown + 10 * ITEMS)} />]
    </span>
  );
}

function Tree({ value, other, depth = 0 }: { value: Json; other?: { is: Json }; depth?: number }): JSX.Element {
  const [shown, setShown] = useState(FIELDS);
  const changed = other !== undefined && !same(other.is, value);
  if (scalar(value) || depth > 5) {
    const was = changed && other?.is !== undefined && scalar(other.is) && scalar(value) ? other : undefined;
    return (
      <Changed is={changed}>
        {was !== undefined && (
          <>
            <span class="was"><Long of={jsonText(was.is)} max={120} /></span>
            <span aria-label="became"> → </span>
          </>
        )}
        <Long of={jsonText(value)} max={400} />
      </Changed>
    );
  }
  const short = jsonText(value);
  if (short.length <= 60 && Object.values(value as object).every(scalar)) return <Changed is={changed}>{visible(short)}</Changed>;
  const before = other !== undefined && typeof other.is === "object" && other.is !== null ? (other.is as Record<string, Json>) : undefined;
  if (Array.isArray(value) && value.every(scalar)) return <Items items={value} other={before} />;
  const entries = Object.entries(value as Record<string, Json>);
  return (
    <ul class="json">
      {entries.slice(0, shown).map(([name, item]) => (
        <li key={name}>
          <span class="name">{visible(name, 60)}</span> <Tree value={item} other={before && { is: before[name] }} depth={depth + 1} />
        </li>
      ))}
      {entries.length > shown && (
        <li>
          <More left={entries.length - shown} step={10 * FIELDS} onMore={() => setShown(shown + 10 * FIELDS)} />
        </li>
      )}
    </ul>
  );
}

interface FieldProps {
  name: string;
  value: Json;
  other?: { is: Json };
  all: Record<string, Json>;
  task: string;
  input: Json;
  /** A drawing of the whole state says what its arrays do. */
  isDrawn: boolean;
  /** Whether there is little room. */
  isLow: boolean;
}

function Field({ name, value, other, all, task, input, isDrawn, isLow }: FieldProps): JSX.Element {
  const before = other?.is;
  const isPegs = name === "pegs" && Array.isArray(value) && value.every((peg) => Array.isArray(peg) && peg.every((disc) => typeof disc === "number"));
  if (isPegs) return <Pegs value={value as number[][]} other={before} />;
  if (name === "queens" && task.startsWith("n-queens") && Array.isArray(value)) {
    const n = (input as { n?: unknown } | null | undefined)?.n;
    const size = typeof n === "number" ? n : Math.max(4, value.length, ...(value as number[]).map((column) => column + 1));
    if (size <= 24) return <Queens value={value as number[]} size={size} other={before} />;
  }
  if (name === "tape" && typeof value === "string" && typeof all["head"] === "number") {
    return <Tape tape={value} head={all["head"]} other={before} />;
  }
  if (isNumbers(value) && !isDrawn) return <Bars value={value} other={before} name={name} isLow={isLow} />;
  const cells = rows(name, value);
  if (cells !== undefined) return <Board cells={cells} other={rows(name, before)} name={name} />;
  return <Tree value={value} other={other} />;
}

/** A state, with the input of its run where that is known; what differs from `other` is marked. */
export function State(props: { value: Json; other?: Json; task: string; input: Json; isLow?: boolean }): JSX.Element {
  const { value, other, task, input, isLow = false } = props;
  if (scalar(value) || Array.isArray(value)) return <Tree value={value} other={other === undefined ? undefined : { is: other }} />;
  const fields = value as Record<string, Json>;
  const before = other !== null && typeof other === "object" ? (other as Record<string, Json>) : undefined;
  const structure = structureOf(task, value, input);
  return (
    <dl class="state">
      {structure && (
        <div>
          <dt>{structure.kind === "forest" ? "As a tree" : "As a graph"}</dt>
          <dd>
            <StructureDrawing of={structure} other={before && structureOf(task, before, input)} />
          </dd>
        </div>
      )}
      {Object.entries(fields).map(([name, item]) => {
        const changed = before !== undefined && !same(before[name], item);
        return (
          <div key={name} class={`${scalar(item) && String(item).length < 40 ? "scalar" : ""} ${changed ? "changed" : ""}`}>
            <dt>
              {visible(name, 60)}
              {changed && <span class="hidden"> (changed)</span>}
            </dt>
            <dd>
              <Field
                name={name}
                value={item}
                other={before && { is: before[name] }}
                all={fields}
                task={task}
                input={input}
                isDrawn={structure !== undefined}
                isLow={isLow}
              />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
