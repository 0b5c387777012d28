// Rounds and trajectories.

import type { JSX } from "preact";
import { Spark } from "./overview";
import { Text, count, visible, words } from "./text";
import type { Tree as TreeData, TrajectoryNode } from "./types";

export function nameOf(node: TrajectoryNode): string {
  return `${node.round}.${node.trajectory}`;
}

function Ending({ node, winner, isOver }: { node: TrajectoryNode; winner: unknown; isOver: boolean }): JSX.Element {
  // A vote that the others cannot change any more stops them.
  if (node.end === null && isOver) return <span class="muted">■ stopped with the run</span>;
  if (node.end === null) return <span class="under-way">▶ under way</span>;
  if (node.end.end !== "answered") return <span class="died">✗ {words(visible(node.end.end, 40))}</span>;
  const won = winner != null && JSON.stringify(winner) === JSON.stringify(node.end.answer);
  return won ? <span class="won">✓ answered, won</span> : <span class="answered">answered</span>;
}

function reason(node: TrajectoryNode): string {
  const broken = Object.entries(node.violations).sort(([, a], [, b]) => b - a);
  const most = broken.slice(0, 2).map(([name, times]) => `${visible(name, 40)} ×${count(times)}`);
  const parts = [];
  if (node.retries > 0) parts.push(`${count(node.retries)} retries`);
  if (node.backtracks > 0) parts.push(`${count(node.backtracks)} rejected`);
  if (node.pops > 0) parts.push(`${count(node.pops)} popped`);
  if (node.flagged > 0) parts.push(`${count(node.flagged)} flagged`);
  if (node.mishaps > 0) parts.push(`${count(node.mishaps)} failed calls`);
  return [...parts, ...most].join(" · ");
}

interface TreeProps {
  tree: TreeData;
  isOver: boolean;
  selected: string;
  onPick: (trajectory: string) => void;
}

export function Tree({ tree, isOver, selected, onPick }: TreeProps): JSX.Element {
  return (
    <div class="tree">
      {tree.left_out > 0 && <p class="muted">{count(tree.left_out)} earlier trajectories are not shown.</p>}
      {tree.rounds.map(({ round, vote, trajectories }) => (
        <section key={round} aria-label={`Round ${round}`}>
          <h3>
            Round {round}
            <span class="muted small">
              {vote === null
                ? " not voted yet"
                : ` ${vote.votes} of ${trajectories.length} votes, agreement ${Math.round(100 * vote.agreement)} %`}
            </span>
          </h3>
          <ul>
            {trajectories.map((node) => {
              const name = nameOf(node);
              return (
                <li key={name}>
                  <button class="node" aria-pressed={name === selected} onClick={() => onPick(name)}>
                    <span class="name">{name}</span>
                    <Spark columns={node.columns} steps={node.steps} />
                    <span class="num">
                      depth {count(node.depth)} <span class="muted">/ {count(node.steps)} steps</span>
                    </span>
                    <Ending node={node} winner={vote?.winner} isOver={isOver} />
                    {reason(node) !== "" && <span class="why small">{reason(node)}</span>}
                    {node.end?.failure != null && (
                      <span class="why small">
                        <Text of={node.end.failure} max={200} />
                      </span>
                    )}
                  </button>
                </li>
              );
            })}
          </ul>
        </section>
      ))}
    </div>
  );
}
