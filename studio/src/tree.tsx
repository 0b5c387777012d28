// Rounds and trajectories.

import { Component } from "preact";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { jsonText } from "./exact";
import { Spark } from "./overview";
import { Text, count, percent, visible, words } from "./text";
import type { Tree as TreeData, TrajectoryNode } from "./types";

export function nameOf(node: TrajectoryNode): string {
  return `${node.round}.${node.trajectory}`;
}

const ENDS: Record<string, string> = {
  exhausted: "✗ tried everything",
  stuck: "✗ stuck",
  pops_spent: "✗ undid too many steps",
  steps_spent: "✗ too long",
  failed: "✗ an agent failed",
};

function Ending({
  node,
  won,
  isOver,
}: {
  node: TrajectoryNode;
  won: boolean;
  isOver: boolean;
}): JSX.Element {
  // A vote that the others cannot change any more stops them.
  if (node.end === null && isOver) return <span class="muted">■ stopped with the run</span>;
  if (node.end === null) return <span class="under-way">▶ under way</span>;
  if (node.end.end !== "answered")
    return (
      <span class="died">{ENDS[node.end.end] ?? `✗ ${words(visible(node.end.end, 40))}`}</span>
    );
  return won ? <span class="won">✓ answered, won</span> : <span class="answered">answered</span>;
}

function reason(node: TrajectoryNode): string {
  const broken = Object.entries(node.violations).sort(([, a], [, b]) => b - a);
  const most = broken.slice(0, 2).map(([name, times]) => `${visible(name, 40)} ×${count(times)}`);
  const parts = [];
  if (node.retries > 0) parts.push(`${count(node.retries)} sent back`);
  if (node.backtracks > 0) parts.push(`${count(node.backtracks)} rejected`);
  if (node.pops > 0) parts.push(`${count(node.pops)} undone`);
  if (node.flagged > 0) parts.push(`${count(node.flagged)} flagged`);
  if (node.mishaps > 0) parts.push(`${count(node.mishaps)} failed calls`);
  return [...parts, ...most].join(" · ");
}

interface NodeProps {
  node: TrajectoryNode;
  won: boolean;
  isOver: boolean;
  isSelected: boolean;
  onPick: (trajectory: string) => void;
}

/**
 * A trajectory; drawn again only when it has changed, because a run may have a thousand of them.
 */
class Node extends Component<NodeProps> {
  override shouldComponentUpdate(next: NodeProps): boolean {
    const { node, won, isOver, isSelected } = this.props;
    const isSame =
      next.node.last_seq === node.last_seq &&
      next.node.mishaps === node.mishaps &&
      next.node.end?.seq === node.end?.seq;
    return !isSame || next.won !== won || next.isOver !== isOver || next.isSelected !== isSelected;
  }

  override render({ node, won, isOver, isSelected, onPick }: NodeProps): JSX.Element {
    const name = nameOf(node);
    const why = reason(node);
    return (
      <li>
        <button class="node" aria-pressed={isSelected} onClick={() => onPick(name)}>
          <span class="name">{name}</span>
          <Spark course={node.course} steps={node.steps} />
          <span class="num">
            {count(node.depth)} committed <span class="muted">of {count(node.steps)} proposed</span>
          </span>
          <Ending node={node} won={won} isOver={isOver} />
          {why !== "" && <span class="why small">{why}</span>}
          {node.end?.failure != null && (
            <span class="why small">
              <Text of={node.end.failure} max={200} />
            </span>
          )}
        </button>
      </li>
    );
  }
}

/** More trajectories than these begin as one line each. */
const DENSE = 12;

/** A trajectory in one line: its course, its depth, and how it ended. */
class Line extends Node {
  override render({ node, won, isOver, isSelected, onPick }: NodeProps): JSX.Element {
    const name = nameOf(node);
    const why = reason(node);
    const ended =
      node.end === null
        ? isOver
          ? "stopped with the run"
          : "under way"
        : node.end.end === "answered"
          ? won
            ? "answered, won"
            : "answered"
          : words(node.end.end);
    const sign =
      node.end === null
        ? isOver
          ? "■"
          : "▶"
        : node.end.end !== "answered"
          ? "✗"
          : won
            ? "✓"
            : "=";
    const more = `committed of ${count(node.steps)} proposed; ${ended}${why === "" ? "" : `; ${why}`}`;
    const rejected = node.backtracks + node.retries;
    return (
      <li class="line">
        <button
          class="node dense"
          aria-pressed={isSelected}
          title={`${name}: ${count(node.depth)} ${more}`}
          onClick={() => onPick(name)}
        >
          <span class="name">{name}</span>
          <Spark course={node.course} steps={node.steps} />
          <span class="num">{count(node.depth)}</span>
          <span class="hidden">{more}</span>
          <span aria-hidden="true" class="num not">
            {rejected > 0 ? `${count(rejected)} ✗` : ""}
          </span>
          <span aria-hidden="true" class={sign === "✗" ? "died" : won ? "won" : "answered"}>
            {sign}
          </span>
        </button>
      </li>
    );
  }
}

interface TreeProps {
  tree: TreeData;
  isOver: boolean;
  selected: string;
  onPick: (trajectory: string) => void;
}

export function Tree({ tree, isOver, selected, onPick }: TreeProps): JSX.Element {
  const [chosen, setChosen] = useState<boolean>();
  const all = tree.rounds.reduce((sum, { trajectories }) => sum + trajectories.length, 0);
  const isDense = chosen ?? all > DENSE;
  const One = isDense ? Line : Node;
  return (
    <div
      class={isDense ? "tree dense" : "tree"}
      tabIndex={0}
      role="region"
      aria-label="All trajectories"
    >
      <label class="check small">
        <input
          type="checkbox"
          checked={isDense}
          onChange={(event) => setChosen(event.currentTarget.checked)}
        />
        one line each
      </label>
      {tree.left_out > 0 && (
        <p class="muted">{count(tree.left_out)} earlier trajectories are not shown.</p>
      )}
      {tree.rounds.map(({ round, vote, trajectories }) => {
        const winner = vote?.winner == null ? undefined : jsonText(vote.winner);
        return (
          <section key={round} aria-label={`Round ${round}`}>
            <h3>
              Round {round}
              <span class="muted small">
                {vote === null
                  ? " no vote yet"
                  : ` ${vote.votes} of ${trajectories.length} agree (${percent(vote.agreement)})`}
              </span>
            </h3>
            <ul>
              {trajectories.map((node) => (
                <One
                  key={nameOf(node)}
                  node={node}
                  won={
                    winner !== undefined &&
                    node.end?.end === "answered" &&
                    jsonText(node.end.answer) === winner
                  }
                  isOver={isOver}
                  isSelected={nameOf(node) === selected}
                  onPick={onPick}
                />
              ))}
            </ul>
          </section>
        );
      })}
    </div>
  );
}
