// A choice among the agents of a role that a request may name.

import type { JSX } from "preact";
import { get } from "./api";
import { useLoad } from "./hooks";
import { visible } from "./text";
import type { Agent } from "./types";

export const ROLES = ["executor", "verifier", "coordinator"] as const;
export type Role = (typeof ROLES)[number];

/** `otherwise` is what no choice means; its value is the empty one. */
export function AgentChoice(props: {
  label: string;
  role: Role;
  value: string;
  otherwise: string;
  onValue: (value: string) => void;
}): JSX.Element {
  const { data } = useLoad("agents", (signal) => get<{ agents: Agent[] }>("/v1/agents", signal));
  return (
    <label>
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onValue(event.currentTarget.value)}>
        <option value="">{props.otherwise}</option>
        {data?.agents
          .filter(({ role, allowed }) => role === props.role && allowed)
          .map(({ name }) => (
            <option key={name} value={name}>
              {visible(name, 80)}
            </option>
          ))}
      </select>
    </label>
  );
}
