// The agents of each role: implementations, and definitions of them with options of their own.

import type { JSX } from "preact";
import { get } from "./api";
import { jsonText } from "./exact";
import { useLoad } from "./hooks";
import { Missing, Panel, Table } from "./parts";
import { Long, Text, visible } from "./text";
import type { Agent } from "./types";

const ROLES = [
  ["executor", "Executors", "propose the next line"],
  ["verifier", "Verifiers", "say which constraints a line breaks"],
  ["coordinator", "Coordinators", "accept a line, send it back, or reject it"],
] as const;

/** The options that an agent uses, empty ones left out. */
function Options({ agent }: { agent: Agent }): JSX.Element | null {
  const used = Object.entries(agent.options).filter(([, value]) => value !== "" && value !== null && jsonText(value) !== "[]");
  if (used.length === 0) return null;
  return (
    <details>
      <summary>Options</summary>
      <dl class="options">
        {used.map(([name, value]) => (
          <div key={name}>
            <dt>{visible(name, 80)}</dt>
            <dd>
              <code>
                <Long of={value} max={1000} />
              </code>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function Choosable({ agent }: { agent: Agent }): JSX.Element {
  if (agent.default) return <span class="badge verified">configured</span>;
  if (!agent.allowed) return <span class="muted">not allowed</span>;
  return <>{agent.refusal === null ? "can be chosen" : "cannot run"}</>;
}

export function Agents(): JSX.Element {
  const loaded = useLoad("agents", (signal) => get<{ agents: Agent[] }>("/v1/agents", signal));
  return (
    <main>
      <div class="title">
        <h1>Agents</h1>
      </div>
      <p class="muted">
        A run has one agent of each role: the configured ones, unless a request chooses others. Those that a request may choose are listed
        in <code>server.allow_executors</code>, <code>allow_verifiers</code> and <code>allow_coordinators</code>.
      </p>
      <Missing of={loaded} />
      {ROLES.map(([role, title, task]) => (
        <Panel key={role} title={`${title} ${task}`} class="agents">
          <Table name={title} columns={["Name", "What it is", "For requests"]}>
            {loaded.data?.agents
              .filter((agent) => agent.role === role)
              .map((agent) => (
                <tr key={agent.name}>
                  <th scope="row">
                    <Text of={agent.name} max={80} />
                    {agent.implementation !== agent.name && (
                      <div class="muted small">
                        a definition of <Text of={agent.implementation} max={80} />
                      </div>
                    )}
                  </th>
                  <td>
                    <Text of={agent.description} />
                    {agent.models.length > 0 && (
                      <p class="small">
                        {agent.models.length === 1 ? "Model: " : "Models: "}
                        {agent.models.map((name) => visible(name, 80)).join(", ")}
                      </p>
                    )}
                    {agent.refusal !== null && (
                      <p class="small">
                        Why it cannot run: <Text of={agent.refusal} max={400} />
                      </p>
                    )}
                    <Options agent={agent} />
                  </td>
                  <td>
                    <Choosable agent={agent} />
                  </td>
                </tr>
              ))}
          </Table>
        </Panel>
      ))}
    </main>
  );
}
