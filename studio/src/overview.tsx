// The course of a trajectory over its whole length: depth as an area, rejections as marks. One column a pixel or two,
// however many steps there are.

import type { JSX } from "preact";
import { count } from "./text";
import type { Column, Course } from "./types";

const HEIGHT = 56;

function areaOf(parts: Course[], total: number, most: number, width: number, height: number): string {
  const x = (at: number) => ((at / Math.max(1, total)) * width).toFixed(2);
  const y = (depth: number) => (height - (depth / most) * (height - 10)).toFixed(2);
  const tops = parts.map((part, at) => `L${x(parts[at - 1]?.to ?? 0)} ${y(part.depth_max)}L${x(part.to)} ${y(part.depth_end)}`);
  return `M0 ${height}${tops.join("")}L${x(parts.at(-1)?.to ?? 0)} ${height}Z`;
}

const depthOf = (parts: Course[]): number => Math.max(1, ...parts.map(({ depth_max }) => depth_max));

/** The small one of the tree. Its marks are one path, because there are many of it. */
export function Spark({ course, steps }: { course: Course[]; steps: number }): JSX.Element {
  const marks = (isMarked: (part: Course) => boolean) => {
    const from = (at: number) => (((course[at - 1]?.to ?? 0) / Math.max(1, steps)) * 96).toFixed(1);
    return course.map((part, at) => (isMarked(part) ? `M${from(at)} 0h2v6h-2z` : "")).join("");
  };
  return (
    <svg class="spark" viewBox="0 0 96 20" preserveAspectRatio="none" aria-hidden="true">
      <path class="depth" d={areaOf(course, steps, depthOf(course), 96, 20)} />
      <path class="retry" d={marks(({ retries, backtracks }) => retries > 0 && backtracks === 0)} />
      <path class="backtrack" d={marks(({ backtracks }) => backtracks > 0)} />
    </svg>
  );
}

/** What the marks of a course mean, as far as there are any. */
function Legend({ columns }: { columns: Column[] }): JSX.Element {
  const sum = (of: (column: Column) => number) => columns.reduce((total, column) => total + of(column), 0);
  const kinds = [
    ["backtrack", "rejected", sum(({ backtracks }) => backtracks)],
    ["retry", "sent back to be tried again", sum(({ retries }) => retries)],
    ["pop", "committed steps undone", sum(({ pops }) => pops)],
    ["flagged", "asks for review", sum(({ flagged }) => flagged)],
  ] as const;
  const found = kinds.filter(([, , times]) => times > 0);
  return (
    <p class="legend small muted">
      <span>
        <i class="area" /> height: committed steps
      </span>
      {found.map(([kind, meaning, times]) => (
        <span key={kind}>
          <i class={kind} /> {meaning}: {count(times)}
        </span>
      ))}
      {found.length === 0 && columns.length > 0 && <span>no step was rejected</span>}
    </p>
  );
}

export function Overview(props: {
  columns: Column[];
  steps: number;
  at: number | null;
  onPick: (position: number) => void;
}): JSX.Element {
  const { columns, steps, at, onPick } = props;
  const most = depthOf(columns);
  const x = (position: number) => (position / Math.max(1, steps)) * 1000;
  const sum = (of: (column: Column) => number) => columns.reduce((total, column) => total + of(column), 0);
  const pick = (event: MouseEvent & { currentTarget: SVGSVGElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const near = Math.min(steps - 1, Math.max(0, Math.floor(share * steps)));
    // A column with a rejected step stands for that step.
    const column = columns.find(({ from, to }) => from <= near && near < to);
    onPick(column !== undefined && column.worst_at !== null && column.to - column.from > 1 ? column.worst_at : near);
  };
  const label = `Depth over ${count(steps)} steps, at most ${count(most)}; ${count(sum((c) => c.retries))} retries, ${count(sum((c) => c.backtracks))} backtracks, ${count(sum((c) => c.pops))} states popped`;
  return (
    <>
    <svg class="overview" viewBox={`0 0 1000 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label} onClick={pick}>
      <path class="depth" d={areaOf(columns, steps, most, 1000, HEIGHT)} />
      {columns.map((column) => {
        const { retries, backtracks, pops } = column;
        if (retries + backtracks + pops === 0) return null;
        const width = Math.max(1.5, x(column.to) - x(column.from));
        const kind = pops > 0 ? "pop" : backtracks > 0 ? "backtrack" : "retry";
        return <rect key={column.from} class={kind} x={x(column.from)} width={width} y={0} height={10} />;
      })}
      {columns.map(({ from, to, flagged }) =>
        // Below the others, which would hide them.
        flagged === 0 ? null : <rect key={from} class="flagged" x={x(from)} width={Math.max(1.5, x(to) - x(from))} y={12} height={8} />,
      )}
      {at !== null && <rect class="cursor" x={x(at)} width={2} y={0} height={HEIGHT} />}
    </svg>
    <Legend columns={columns} />
    </>
  );
}
