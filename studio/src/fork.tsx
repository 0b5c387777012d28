// A fork of a run after a step, with another seed, other agents, or another line in place of the step's; then both are shown
// side by side.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post, query } from "./api";
import type { ApiError } from "./api";
import { AgentChoice, ROLES } from "./agent_choice";
import type { Role } from "./agent_choice";
import { asError } from "./hooks";
import { Problem } from "./parts";
import { go, href } from "./router";
import { Hidden, count } from "./text";
import type { Run } from "./types";

export function Fork({ run, seq }: { run: Run; seq: number }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const [seed, setSeed] = useState("");
  const [line, setLine] = useState("");
  const [agents, setAgents] = useState<Partial<Record<Role, string>>>({});
  const [error, setError] = useState<ApiError>();
  const fork = async () => {
    setError(undefined);
    try {
      const path = query(`/v1/runs/${encodeURIComponent(run.id)}/fork`, { seq, seed: seed.trim() });
      const chosen = Object.fromEntries(Object.entries(agents).filter(([, name]) => name !== ""));
      const body = {
        ...(Object.keys(chosen).length > 0 && { agents: chosen }),
        ...(line.trim() !== "" && { line }),
      };
      const made = await post<Run>(path, Object.keys(body).length === 0 ? undefined : body);
      go(href(["compare"], { a: run.id, b: made.id }));
    } catch (reason) {
      setError(asError(reason));
    }
  };
  return (
    <details class="fork" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Fork the run after this step</summary>
      {isOpen && (
        <>
          <p class="muted">
            A new run that begins with everything up to event {count(seq)}, and continues with another seed or other agents. With a line, it
            begins before this step, and the line takes the place of the step's. Both runs are then shown side by side.
          </p>
          <form
            class="filters"
            onSubmit={(event) => {
              event.preventDefault();
              void fork();
            }}
          >
            <label>
              Seed
              <input size={8} inputMode="numeric" value={seed} placeholder={String(run.seed)} onInput={(event) => setSeed(event.currentTarget.value)} />
            </label>
            <label>
              Line in place of this one
              <input value={line} spellcheck={false} onInput={(event) => setLine(event.currentTarget.value)} />
              <Hidden of={line} />
            </label>
            {ROLES.map((role) => (
              <AgentChoice
                key={role}
                label={`${role[0]?.toUpperCase()}${role.slice(1)}`}
                role={role}
                task={run.task}
                value={agents[role] ?? ""}
                otherwise={`as before (${run.agents[role]})`}
                onValue={(name) => setAgents((old) => ({ ...old, [role]: name }))}
              />
            ))}
            <button class="primary">Fork</button>
          </form>
        </>
      )}
      {error && <Problem error={error} />}
    </details>
  );
}
