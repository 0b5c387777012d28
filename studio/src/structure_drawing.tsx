// Trees and graphs as SVG. A layout depends on the structure alone, so that a node stays where it is from step to step
// as far as its tree does. What differs has an outline and a sign.

import type { JSX } from "preact";
import type { Edge, Forest, Graph, Node, Structure } from "./structures";
import { visible } from "./text";

const LABEL_MAX = 12;
const ROW = 46;
const CHARACTER = 6.4;
/** Wider than this, in pixels, the states before and after stand one above the other. */
const WIDE = 320;

interface Placed {
  id: string;
  x: number;
  y: number;
  width: number;
  node: Node;
  changed: boolean;
}

function shortened(label: string): string {
  return visible(label.length > LABEL_MAX ? `${label.slice(0, LABEL_MAX - 1)}…` : label);
}

function widthOf(label: string): number {
  return Math.max(24, shortened(label).length * CHARACTER + 12);
}

function isSame(a: Node, b: Node | undefined): boolean {
  return b !== undefined && a.label === b.label && a.here === b.here && a.done === b.done;
}

/** In words, for who does not see the drawing. */
function inWords({ node, changed }: { node: Node; changed: boolean }): string {
  const signs = [node.note ?? "", node.here ? "here" : "", changed ? "changed" : ""].filter((one) => one !== "");
  return signs.length === 0 ? node.label : `${node.label} (${signs.join(", ")})`;
}

function Vertex({ at }: { at: Placed }): JSX.Element {
  const { x, y, width, node, changed } = at;
  return (
    <g class={`vertex ${node.here ? "here" : ""} ${node.done ? "done" : ""} ${changed ? "changed" : ""}`}>
      <rect x={x - width / 2} y={y - 11} width={width} height={22} rx={node.isSquare === true ? 2 : 11} />
      <text x={x} y={y + 4}>
        {shortened(node.label)}
        {node.label.length > LABEL_MAX && <title>{visible(node.label)}</title>}
      </text>
      {changed && (
        <text class="sign" x={x + width / 2 + 4} y={y - 6}>
          ●
        </text>
      )}
    </g>
  );
}

interface Layout {
  placed: Map<string, Placed>;
  lines: { from: Placed; to: Placed }[];
  width: number;
  height: number;
}

/** Leaves side by side, a parent over the middle of its children; whatever is met twice, as in a cycle, is left out. */
function layOut(tree: Forest, other: Forest | undefined): Layout {
  const placed = new Map<string, Placed>();
  const lines: Layout["lines"] = [];
  let right = 4;
  let deepest = 0;
  const place = (id: string, depth: number): Placed | undefined => {
    const node = tree.nodes.get(id);
    if (node === undefined || placed.has(id)) return undefined;
    const width = widthOf(node.label);
    const before = other?.nodes.get(id);
    const isSameTree = isSame(node, before) && node.children.join(" ") === before?.children.join(" ");
    const changed = other !== undefined && !isSameTree;
    const at: Placed = { id, x: 0, y: depth * ROW + 18, width, node, changed };
    placed.set(id, at);
    deepest = Math.max(deepest, depth);
    const start = right;
    const below: Placed[] = [];
    for (const child of node.children) {
      if (child === null) right += 14;
      else {
        const to = place(child, depth + 1);
        if (to !== undefined) below.push(to);
      }
    }
    const [first] = below;
    const last = below.at(-1);
    if (first === undefined || last === undefined) {
      at.x = start + width / 2;
      right = Math.max(right, start + width + 8);
    } else {
      // An only child is to the left or the right.
      const lean = node.children.length === 2 && below.length === 1 ? (node.children[0] === null ? -10 : 10) : 0;
      at.x = Math.max(start + width / 2, (first.x + last.x) / 2 + lean);
      right = Math.max(right, at.x + width / 2 + 8);
    }
    for (const to of below) lines.push({ from: at, to });
    return at;
  };
  for (const root of tree.roots) {
    place(root, 0);
    right += 8;
  }
  return { placed, lines, width: right, height: deepest * ROW + 36 };
}

function ForestDrawing({ tree, other }: { tree: Forest; other?: Forest }): JSX.Element {
  const { placed, lines, width, height } = layOut(tree, other);
  const below = (at: Placed) => lines.filter(({ from }) => from === at).map(({ to }) => to.node.label);
  const words = [...placed.values()].map((at) => {
    const children = below(at);
    return children.length === 0 ? inWords(at) : `${inWords(at)} over ${children.join(", ")}`;
  });
  return (
    <>
      <svg class={width > WIDE ? "structure wide" : "structure"} role="img"
        viewBox={`0 0 ${width} ${height}`} style={{ width: `${width}px` }}
        aria-label={visible(`Tree: ${words.join("; ")}`, 2000)}>
        {lines.map(({ from, to }) => (
          <line key={to.id} x1={from.x} y1={from.y + 11} x2={to.x} y2={to.y - 11} />
        ))}
        {[...placed.values()].map((at) => (
          <Vertex key={at.id} at={at} />
        ))}
      </svg>
      {tree.outside > 0 && <p class="muted small">{tree.outside} more in no tree yet.</p>}
    </>
  );
}

/** An edge, bent to the right of its direction so that both directions are seen, and its arrow. */
function Arc({ edge, ends, centre }: { edge: Edge; ends: [Placed, Placed]; centre: number }): JSX.Element {
  const [from, to] = ends;
  let [controlX, controlY] = [0, 0];
  let [startX, startY, endX, endY] = [from.x, from.y, to.x, to.y];
  if (from === to) {
    const length = Math.hypot(from.x - centre, from.y - centre) || 1;
    const [outX, outY] = [(from.x - centre) / length, (from.y - centre) / length];
    [controlX, controlY] = [from.x + outX * 58, from.y + outY * 58];
    [startX, startY, endX, endY] = [from.x - outY * 9, from.y + outX * 9, from.x + outY * 9, from.y - outX * 9];
  } else {
    const bend = 0.14;
    [controlX, controlY] = [(from.x + to.x) / 2 - (to.y - from.y) * bend, (from.y + to.y) / 2 + (to.x - from.x) * bend];
  }
  const length = Math.hypot(endX - controlX, endY - controlY) || 1;
  const [alongX, alongY] = [(endX - controlX) / length, (endY - controlY) / length];
  // Where the edge meets the box of its end.
  const short = Math.min(to.width / 2 / Math.max(Math.abs(alongX), 0.01), 11 / Math.max(Math.abs(alongY), 0.01));
  const [tipX, tipY] = [endX - alongX * short, endY - alongY * short];
  const wing = (side: number) =>
    `${tipX - alongX * 7 + alongY * 3.5 * side} ${tipY - alongY * 7 - alongX * 3.5 * side}`;
  return (
    <g>
      <path class="edge" d={`M ${startX} ${startY} Q ${controlX} ${controlY} ${tipX} ${tipY}`} />
      <path class="arrow" d={`M ${tipX} ${tipY} L ${wing(1)} L ${wing(-1)} Z`} />
      {edge.label !== "" && (
        <text class="edge-label" x={(startX + 2 * controlX + tipX) / 4} y={(startY + 2 * controlY + tipY) / 4 + 3}>
          {shortened(edge.label)}
        </text>
      )}
    </g>
  );
}

function GraphDrawing({ graph, other }: { graph: Graph; other?: Graph }): JSX.Element {
  const { nodes, edges } = graph;
  const radius = Math.max(70, nodes.length * 9 + 20);
  const centre = radius + 52;
  const size = 2 * centre;
  const placed = nodes.map((node, at): Placed => {
    const angle = (2 * Math.PI * at) / nodes.length - Math.PI / 2;
    const changed = other !== undefined && !isSame(node, other.nodes[at]);
    const [x, y] = [centre + radius * Math.cos(angle), centre + radius * Math.sin(angle)];
    return { id: String(at), x, y, width: widthOf(node.label), node, changed };
  });
  const by = (label: string) => (label === "" ? "" : ` by ${label}`);
  const words = edges.map(({ from, to, label }) => `${nodes[from]?.label} to ${nodes[to]?.label}${by(label)}`);
  return (
    <svg class={size > WIDE ? "structure wide" : "structure"} role="img"
      viewBox={`0 0 ${size} ${size}`} style={{ width: `${size}px` }}
      aria-label={visible(`Graph: ${placed.map(inWords).join(", ")}; ${words.join("; ")}`, 2000)}>
      {edges.map((edge, at) => {
        const [from, to] = [placed[edge.from], placed[edge.to]];
        return from && to && <Arc key={at} edge={edge} ends={[from, to]} centre={centre} />;
      })}
      {placed.map((at) => (
        <Vertex key={at.id} at={at} />
      ))}
    </svg>
  );
}

export function StructureDrawing({ of, other }: { of: Structure; other?: Structure }): JSX.Element {
  if (of.kind === "forest") return <ForestDrawing tree={of} other={other?.kind === "forest" ? other : undefined} />;
  return <GraphDrawing graph={of} other={other?.kind === "graph" ? other : undefined} />;
}
