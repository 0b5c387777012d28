// A fork of a run after a step, with another seed or other agents; then both are shown side by side.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post, query } from "./api";
import { AgentChoice, ROLES } from "./agent_choice";
import type { Role } from "./agent_choice";
import { go, href } from "./router";
import type { Run } from "./types";

export function Fork(props: { run: Run; seq: number | null; act: (work: () => Promise<void>) => Promise<void> }): JSX.Element {
  const { run, seq, act } = props;
  const [seed, setSeed] = useState("");
  const [agents, setAgents] = useState<Partial<Record<Role, string>>>({});
  const fork = () =>
    act(async () => {
      const path = query(`/v1/runs/${encodeURIComponent(run.id)}/fork`, { seq: seq ?? undefined, seed: seed.trim() });
      const chosen = Object.fromEntries(Object.entries(agents).filter(([, name]) => name !== ""));
      const made = await post<Run>(path, Object.keys(chosen).length === 0 ? undefined : { agents: chosen });
      go(href(["compare"], { a: run.id, b: made.id }));
    });
  return (
    <form
      class="inline fork"
      onSubmit={(event) => {
        event.preventDefault();
        void fork();
      }}
    >
      <label>
        Seed
        <input size={6} inputMode="numeric" value={seed} placeholder={String(run.seed)} onInput={(event) => setSeed(event.currentTarget.value)} />
      </label>
      <details>
        <summary>Other agents</summary>
        {ROLES.map((role) => (
          <AgentChoice
            key={role}
            label={`${role[0]?.toUpperCase()}${role.slice(1)}`}
            role={role}
            value={agents[role] ?? ""}
            otherwise="the same"
            onValue={(name) => setAgents((old) => ({ ...old, [role]: name }))}
          />
        ))}
      </details>
      <button disabled={seq === null} title={seq === null ? "Choose a step first" : `A new run with the events up to ${seq}`}>
        Fork after this step
      </button>
    </form>
  );
}
