// The assignee of a step: shown, and changed by a button or a name.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { patch } from "./api";
import { Hidden, Text } from "./text";
import type { FlaggedStep } from "./types";

/** Longest name, as the daemon takes it. */
const NAME_MAX = 64;

/** The choices of a queue, as in its address: all steps, mine, or nobody's; with their words. */
export const WHOSE = [
  ["", "all"],
  ["me", "mine"],
  ["none", "nobody's"],
] as const;

/** Leaves a step to somebody; null is nobody. */
export function assign(run: string, seq: number, assignee: string | null): Promise<FlaggedStep> {
  return patch(`/v1/runs/${encodeURIComponent(run)}/reviews`, { seq, assignee });
}

export function Assignee({ of }: { of: FlaggedStep }): JSX.Element {
  if (of.assignee === null) return <span class="muted">nobody's</span>;
  return (
    <span class="assignee">
      for <Text of={of.assignee} max={80} />
    </span>
  );
}

/** The buttons of an assignment; keys are the caller's. */
export function Assign(props: {
  step: FlaggedStep;
  onAssign: (assignee: string | null) => void;
}): JSX.Element {
  const { step, onAssign } = props;
  const [name, setName] = useState("");
  useEffect(() => setName(""), [step]);
  return (
    <form
      class="actions assign"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() !== "") onAssign(name.trim());
      }}
    >
      <Assignee of={step} />
      <button type="button" onClick={() => onAssign("me")}>
        Take it (t)
      </button>
      <button type="button" disabled={step.assignee === null} onClick={() => onAssign(null)}>
        Leave it to nobody (o)
      </button>
      <label>
        <span class="hidden">Who is to review it</span>
        <input
          value={name}
          placeholder="name"
          size={14}
          maxLength={NAME_MAX}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <button disabled={name.trim() === ""}>Assign</button>
      <Hidden of={name} />
    </form>
  );
}
