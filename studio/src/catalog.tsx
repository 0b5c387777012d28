// What a daemon offers: agents, engines, tasks.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { get, getText } from "./api";
import { useLoad } from "./hooks";
import { Missing, Panel, Table } from "./parts";
import { href, setQuery, usePlace } from "./router";
import { Text, count } from "./text";
import type { Agent, Task } from "./types";

export function Agents(): JSX.Element {
  const loaded = useLoad("agents", (signal) => get<{ agents: Agent[] }>("/v1/agents", signal));
  const { data } = loaded;
  return (
    <main>
      <div class="title">
        <h1>Agents</h1>
      </div>
      <Missing of={loaded} />
      {["executor", "verifier", "coordinator"].map((role) => (
        <Panel key={role} title={`${role[0]?.toUpperCase()}${role.slice(1)}s`}>
          <Table name={`${role}s`} columns={["Name", "What it is", "A request may choose it"]}>
            {data?.agents
              .filter((agent) => agent.role === role)
              .map((agent) => (
                <tr key={agent.name}>
                  <th scope="row">
                    <Text of={agent.name} max={80} />
                    {agent.default && <span class="badge verified">configured</span>}
                    {agent.implementation !== agent.name && (
                      <div class="muted small">
                        <Text of={agent.implementation} max={80} />
                      </div>
                    )}
                  </th>
                  <td>
                    <Text of={agent.description} />
                  </td>
                  <td>{agent.allowed ? "yes" : <span class="muted">no: server.allow_{role}s</span>}</td>
                </tr>
              ))}
          </Table>
        </Panel>
      ))}
    </main>
  );
}

/** The samples of Prometheus' text format that have a label `engine`: engine, then metric. */
export function engineSamples(text: string): Map<string, Map<string, number>> {
  const engines = new Map<string, Map<string, number>>();
  for (const line of text.split("\n")) {
    const match = /^(prime_engine_\w+)\{engine="([^"]*)"\} (\S+)/.exec(line);
    if (match === null) continue;
    const [, metric = "", engine = "", value = ""] = match;
    const samples = engines.get(engine) ?? new Map<string, number>();
    samples.set(metric, Number(value));
    engines.set(engine, samples);
  }
  return new Map([...engines].sort(([a], [b]) => a.localeCompare(b)));
}

type Samples = Map<string, Map<string, number>>;

/** Generated tokens a second between the last two looks, by engine. */
function useRates(engines: Samples | undefined): Map<string, string> {
  const last = useRef({ engines: undefined as Samples | undefined, at: 0, rates: new Map<string, string>() });
  const before = last.current;
  if (engines === undefined || engines === before.engines) return before.rates;
  const at = performance.now();
  const rates = new Map<string, string>();
  for (const [engine, samples] of engines) {
    const now = samples.get("prime_engine_generated_tokens_total");
    const then = before.engines?.get(engine)?.get("prime_engine_generated_tokens_total");
    // After a restart, the daemon counts from 0 again.
    if (now === undefined || then === undefined || now < then) continue;
    rates.set(engine, ((1000 * (now - then)) / (at - before.at)).toFixed(1));
  }
  last.current = { engines, at, rates };
  return rates;
}

const ENGINE_COLUMNS = [
  ...["Engine", "State", "#In flight", "#Sequences", "#Prompt tokens", "#Found in cache"],
  ...["#Generated tokens", "#Tokens/s", "#Restarts"],
];

export function Engines(): JSX.Element {
  const loaded = useLoad(
    "engines",
    async (signal) => {
      const text = await getText("/metrics", signal);
      const memory = /^process_resident_memory_bytes (\S+)/m.exec(text)?.[1];
      return { engines: engineSamples(text), memory: memory === undefined ? undefined : Number(memory) };
    },
    2000,
  );
  const { data } = loaded;
  const rates = useRates(data?.engines);
  const share = (samples: Map<string, number>) => {
    const prompt = samples.get("prime_engine_prompt_tokens_total") ?? 0;
    const shared = samples.get("prime_engine_shared_tokens_total") ?? 0;
    return prompt === 0 ? "" : `${Math.round((100 * shared) / prompt)} %`;
  };
  const whole = (samples: Map<string, number>, name: string) => count(samples.get(`prime_engine_${name}`) ?? 0);
  return (
    <main>
      <div class="title">
        <h1>Engines</h1>
      </div>
      <p class="muted">
        Counts since the daemon started, from its metrics.
        {data?.memory !== undefined && ` It holds ${count(Math.round(data.memory / 2 ** 20))} MiB of memory.`}
      </p>
      <Missing of={loaded} />
      {data?.engines.size === 0 && <p class="empty">No engine is configured: the agents need none.</p>}
      {data !== undefined && data.engines.size > 0 && (
        <Table name="Engines" columns={ENGINE_COLUMNS}>
          {[...data.engines].map(([engine, samples]) => (
            <tr key={engine}>
              <th scope="row">
                <Text of={engine} max={80} />
              </th>
              <td>{samples.get("prime_engine_up") === 1 ? "✓ up" : "✗ down"}</td>
              <td class="num">{whole(samples, "in_flight")}</td>
              <td class="num">{whole(samples, "live_sequences")}</td>
              <td class="num">{whole(samples, "prompt_tokens_total")}</td>
              <td class="num">{share(samples)}</td>
              <td class="num">{whole(samples, "generated_tokens_total")}</td>
              <td class="num">{rates.get(engine) ?? ""}</td>
              <td class="num">{whole(samples, "restarts_total")}</td>
            </tr>
          ))}
        </Table>
      )}
    </main>
  );
}

function TaskPage({ task }: { task: Task }): JSX.Element {
  return (
    <main>
      <nav class="crumbs" aria-label="Where you are">
        <a href={href(["tasks"])}>Tasks</a> › {task.title}
      </nav>
      <div class="title">
        <h1>{task.title}</h1>
        <a class="button primary" href={href(["runs", "new"], { task: task.slug })}>
          Run it
        </a>
      </div>
      <Panel title="Sizes">
        <dl class="figures">
          {["easy", "medium", "hard"].map((name, at) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{task.sizes[at]}</dd>
            </div>
          ))}
        </dl>
      </Panel>
      <Panel title="Action lines">
        <ul class="plain">
          {task.actions.map((action) => (
            <li key={action}>
              <code>{action}</code>
            </li>
          ))}
        </ul>
      </Panel>
      <Panel title="Constraints">
        <Table name="Constraints" columns={["Name", "Kind", "#Weight", "Meaning"]}>
          {task.constraints.map(({ name, kind, weight, meaning }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{kind}</td>
              <td class="num">{weight.toFixed(1)}</td>
              <td>{meaning}</td>
            </tr>
          ))}
        </Table>
      </Panel>
    </main>
  );
}

export function Tasks({ slug }: { slug: string | undefined }): JSX.Element {
  const wanted = usePlace().query.get("find") ?? "";
  const loaded = useLoad("tasks", (signal) => get<{ tasks: Task[] }>("/v1/tasks", signal));
  const { data } = loaded;
  const task = data?.tasks.find((one) => one.slug === slug);
  if (task !== undefined) return <TaskPage task={task} />;
  const found = data?.tasks.filter(({ slug: name, title, category }) =>
    `${name} ${title} ${category}`.toLowerCase().includes(wanted.toLowerCase()),
  );
  const categories = [...new Set(found?.map(({ category }) => category))];
  return (
    <main>
      <div class="title">
        <h1>Tasks</h1>
      </div>
      <div class="filters">
        <label>
          Find
          <input type="search" value={wanted} onInput={(event) => setQuery({ find: event.currentTarget.value }, true)} />
        </label>
      </div>
      <Missing of={loaded} />
      {slug !== undefined && data !== undefined && (
        <p class="problem">
          There is no task <Text of={slug} max={80} />.
        </p>
      )}
      {found?.length === 0 && <p class="empty">No task fits.</p>}
      {categories.map((category) => (
        <Panel key={category} title={category.replaceAll("-", " ")}>
          <ul class="cards">
            {found
              ?.filter((one) => one.category === category)
              .map((one) => (
                <li key={one.slug}>
                  <a href={href(["tasks", one.slug])}>{one.title}</a>
                  <span class="muted small">{one.sizes.join(" · ")}</span>
                </li>
              ))}
          </ul>
        </Panel>
      ))}
    </main>
  );
}
