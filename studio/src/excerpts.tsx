// Where a search found its words in a run.

import type { JSX } from "preact";
import { visible } from "./text";
import type { Excerpt } from "./types";

/** Most characters of a piece: the daemon sends fewer. */
const PIECE_MAX = 200;

const PARTS: Record<Excerpt["part"], string> = {
  answer: "Answer",
  input: "Input",
  line: "Line",
  instance: "Instance",
  task: "Task",
  id: "Run",
  origin: "Origin",
};

export function Excerpts({ of }: { of: Excerpt[] }): JSX.Element | null {
  if (of.length === 0) return null;
  return (
    <ul class="excerpts small" aria-label="What was found">
      {of.map(({ part, pieces }, at) => (
        <li key={at}>
          <span class="muted">{PARTS[part]}:</span>{" "}
          <bdi>
            {pieces.map(({ text, is_match }, place) => {
              const shown = visible(text, PIECE_MAX);
              return is_match ? <mark key={place}>{shown}</mark> : shown;
            })}
          </bdi>
        </li>
      ))}
    </ul>
  );
}
