// The course of a trajectory over its whole length: depth as an area, rejections as marks. One column a pixel or two,
// however many steps there are.

import type { JSX } from "preact";
import { count } from "./text";
import type { Column } from "./types";

const HEIGHT = 72;

function areaOf(columns: Column[], total: number, most: number, width: number, height: number): string {
  const x = (at: number) => ((at / Math.max(1, total)) * width).toFixed(2);
  const y = (depth: number) => (height - (depth / most) * (height - 10)).toFixed(2);
  const tops = columns.map((column) => `L${x(column.from)} ${y(column.depth_max)}L${x(column.to)} ${y(column.depth_end)}`);
  return `M0 ${height}${tops.join("")}L${x(columns.at(-1)?.to ?? 0)} ${height}Z`;
}

/** The small one of the tree. */
export function Spark({ columns, steps }: { columns: Column[]; steps: number }): JSX.Element {
  const most = Math.max(1, ...columns.map((column) => column.depth_max));
  const bad = columns.filter((column) => column.retries + column.backtracks > 0);
  return (
    <svg class="spark" viewBox="0 0 96 20" preserveAspectRatio="none" aria-hidden="true">
      <path d={areaOf(columns, steps, most, 96, 20)} />
      {bad.map((column) => (
        <rect
          key={column.from}
          class={column.backtracks > 0 ? "backtrack" : "retry"}
          x={(column.from / Math.max(1, steps)) * 96}
          width={2}
          y={0}
          height={6}
        />
      ))}
    </svg>
  );
}

export function Overview(props: {
  columns: Column[];
  steps: number;
  at: number | null;
  onPick: (position: number) => void;
}): JSX.Element {
  const { columns, steps, at, onPick } = props;
  const most = Math.max(1, ...columns.map((column) => column.depth_max));
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
    <svg class="overview" viewBox={`0 0 1000 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label} onClick={pick}>
      <path class="depth" d={areaOf(columns, steps, most, 1000, HEIGHT)} />
      {columns.map((column) => {
        const { retries, backtracks, pops, flagged } = column;
        if (retries + backtracks + pops + flagged === 0) return null;
        const width = Math.max(1.5, x(column.to) - x(column.from));
        const kind = pops > 0 ? "pop" : backtracks > 0 ? "backtrack" : retries > 0 ? "retry" : "flagged";
        return <rect key={column.from} class={kind} x={x(column.from)} width={width} y={0} height={10} />;
      })}
      {at !== null && <rect class="cursor" x={x(at)} width={2} y={0} height={HEIGHT} />}
    </svg>
  );
}
