// A state as a picture where it has a known form, else as a tree of its fields. What differs from
// the other state has
// an outline and a sign, so that colour alone tells nothing.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Bars } from "./bars";
import { jsonText, sameJson as same } from "./exact";
import { StructureDrawing } from "./structure_drawing";
import { structureOf } from "./structures";
import { Long, count, visible } from "./text";
import { CHANGED, Changed, Items, More, scalar } from "./values";

type Json = unknown;

/** Fields of an object that are shown at first; ten times as many come at each request. */
const FIELDS = 100;

/**
 * Numbers that a drawing shows as they are: all are finite, and none had to be kept as its text.
 */
function isNumbers(value: Json): value is number[] {
  return (
    Array.isArray(value) &&
    value.length > 1 &&
    value.length <= 256 &&
    value.every((item) => typeof item === "number")
  );
}

function rows(name: string, value: Json): Json[][] | undefined {
  if (typeof value === "string" && name === "grid") {
    const side = Math.sqrt(value.length);
    const cells = [...value];
    if (Number.isInteger(side) && side > 1)
      return Array.from({ length: side }, (_, at) => cells.slice(at * side, (at + 1) * side));
  }
  if (!Array.isArray(value) || value.length < 2 || value.length > 64) return undefined;
  if (
    value.every(
      (row) =>
        typeof row === "string" &&
        row.length > 1 &&
        row.length === (value[0] as string).length &&
        row.length <= 64,
    )
  ) {
    return name === "grid" || name === "maze" || name === "board"
      ? (value as string[]).map((row) => [...row])
      : undefined;
  }
  const [first] = value as Json[];
  const isBoard = (row: Json): row is Json[] =>
    Array.isArray(row) &&
    row.length === (first as Json[]).length &&
    row.length > 1 &&
    row.length <= 64 &&
    row.every(scalar);
  return (value as Json[]).every(isBoard) ? (value as Json[][]) : undefined;
}

function cellText(cell: Json): string {
  return typeof cell === "string" ? cell : jsonText(cell);
}

function Board({
  cells,
  other,
  name,
}: {
  cells: Json[][];
  other?: Json[][];
  name: string;
}): JSX.Element {
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
    <svg
      class="pegs"
      viewBox={`0 0 ${width * value.length} ${height}`}
      role="img"
      aria-label={visible(
        value.map((peg, at) => `peg ${at}: ${peg.join(" ") || "empty"}`).join("; "),
        20_000,
      )}
    >
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
                <rect
                  key={level}
                  x={x - half}
                  width={2 * half}
                  y={height - 18 - (level + 1) * row}
                  height={row - 2}
                  rx={3}
                />
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

function Queens({
  value,
  size,
  other,
}: {
  value: number[];
  size: number;
  other: Json;
}): JSX.Element {
  const cells = (queens: Json[]) =>
    Array.from({ length: size }, (_, row) =>
      Array.from({ length: size }, (_, column) => (queens[row] === column ? "♛" : "")),
    );
  return (
    <Board
      cells={cells(value)}
      other={Array.isArray(other) ? cells(other as Json[]) : undefined}
      name="board"
    />
  );
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

function Tree({
  value,
  other,
  depth = 0,
}: {
  value: Json;
  other?: { is: Json };
  depth?: number;
}): JSX.Element {
  const [shown, setShown] = useState(FIELDS);
  const changed = other !== undefined && !same(other.is, value);
  if (scalar(value) || depth > 5) {
    const was =
      changed && other?.is !== undefined && scalar(other.is) && scalar(value) ? other : undefined;
    return (
      <Changed is={changed}>
        {was !== undefined && (
          <>
            <span class="was">
              <Long of={jsonText(was.is)} max={120} />
            </span>
            <span aria-label="became"> → </span>
          </>
        )}
        <Long of={jsonText(value)} max={400} />
      </Changed>
    );
  }
  const short = jsonText(value);
  if (short.length <= 60 && Object.values(value as object).every(scalar))
    return <Changed is={changed}>{visible(short)}</Changed>;
  const before =
    other !== undefined && typeof other.is === "object" && other.is !== null
      ? (other.is as Record<string, Json>)
      : undefined;
  if (Array.isArray(value) && value.every(scalar)) return <Items items={value} other={before} />;
  const entries = Object.entries(value as Record<string, Json>);
  return (
    <ul class="json">
      {entries.slice(0, shown).map(([name, item]) => (
        <li key={name}>
          <span class="name">{visible(name, 60)}</span>{" "}
          <Tree value={item} other={before && { is: before[name] }} depth={depth + 1} />
        </li>
      ))}
      {entries.length > shown && (
        <li>
          <More
            left={entries.length - shown}
            step={10 * FIELDS}
            onMore={() => setShown(shown + 10 * FIELDS)}
          />
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
  /** True if there is little room. */
  isLow: boolean;
}

function Field({ name, value, other, all, task, input, isDrawn, isLow }: FieldProps): JSX.Element {
  const before = other?.is;
  const isPegs =
    name === "pegs" &&
    Array.isArray(value) &&
    value.every((peg) => Array.isArray(peg) && peg.every((disc) => typeof disc === "number"));
  if (isPegs) return <Pegs value={value as number[][]} other={before} />;
  if (name === "queens" && task.startsWith("n-queens") && Array.isArray(value)) {
    const n = (input as { n?: unknown } | null | undefined)?.n;
    const size =
      typeof n === "number"
        ? n
        : Math.max(4, value.length, ...(value as number[]).map((column) => column + 1));
    if (size <= 24) return <Queens value={value as number[]} size={size} other={before} />;
  }
  if (name === "tape" && typeof value === "string" && typeof all["head"] === "number") {
    return <Tape tape={value} head={all["head"]} other={before} />;
  }
  if (isNumbers(value) && !isDrawn)
    return <Bars value={value} other={before} name={name} isLow={isLow} />;
  const cells = rows(name, value);
  if (cells !== undefined) return <Board cells={cells} other={rows(name, before)} name={name} />;
  return <Tree value={value} other={other} />;
}

/** A state, with the input of its run where that is known; what differs from `other` is marked. */
export function State(props: {
  value: Json;
  other?: Json;
  task: string;
  input: Json;
  isLow?: boolean;
}): JSX.Element {
  const { value, other, task, input, isLow = false } = props;
  if (scalar(value) || Array.isArray(value))
    return <Tree value={value} other={other === undefined ? undefined : { is: other }} />;
  const fields = value as Record<string, Json>;
  const before =
    other !== null && typeof other === "object" ? (other as Record<string, Json>) : undefined;
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
          <div
            key={name}
            class={`${scalar(item) && String(item).length < 40 ? "scalar" : ""} ${changed ? "changed" : ""}`}
          >
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
