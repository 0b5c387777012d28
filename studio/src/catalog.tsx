// What a daemon offers: agents, engines, tasks.

import type { JSX } from "preact";
import { get, getText } from "./api";
import { useLoad } from "./hooks";
import { Panel, Problem, Skeleton } from "./parts";
import { href, setQuery, usePlace } from "./router";
import { Text, count } from "./text";
import type { Agent, Task } from "./types";

export function Agents(): JSX.Element {
  const { data, error, reload } = useLoad("agents", (signal) => get<{ agents: Agent[] }>("/v1/agents", signal));
  return (
    <main>
      <div class="title">
        <h1>Agents</h1>
      </div>
      {error && <Problem error={error} retry={reload} />}
      {data === undefined && error === undefined && <Skeleton />}
      {["executor", "verifier", "coordinator"].map((role) => (
        <Panel key={role} title={`${role[0]?.toUpperCase()}${role.slice(1)}s`}>
          <div class="scroll" tabIndex={0} role="region" aria-label={`${role}s`}>
            <table>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">What it is</th>
                  <th scope="col">A request may choose it</th>
                </tr>
              </thead>
              <tbody>
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
              </tbody>
            </table>
          </div>
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

export function Engines(): JSX.Element {
  const { data, error, reload } = useLoad(
    "engines",
    async (signal) => ({ engines: engineSamples(await getText("/metrics", signal)) }),
    2000,
  );
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
      <p class="muted">Counts since the daemon started, from its metrics.</p>
      {error && <Problem error={error} retry={reload} />}
      {data === undefined && error === undefined && <Skeleton />}
      {data?.engines.size === 0 && <p class="empty">No engine is configured: the agents need none.</p>}
      {data !== undefined && data.engines.size > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Engines">
          <table>
            <thead>
              <tr>
                <th scope="col">Engine</th>
                <th scope="col">State</th>
                <th scope="col" class="num">In flight</th>
                <th scope="col" class="num">Sequences</th>
                <th scope="col" class="num">Prompt tokens</th>
                <th scope="col" class="num">Found in cache</th>
                <th scope="col" class="num">Generated tokens</th>
                <th scope="col" class="num">Restarts</th>
              </tr>
            </thead>
            <tbody>
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
                  <td class="num">{whole(samples, "restarts_total")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
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
        <div class="scroll" tabIndex={0} role="region" aria-label="Constraints">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Kind</th>
                <th scope="col" class="num">Weight</th>
                <th scope="col">Meaning</th>
              </tr>
            </thead>
            <tbody>
              {task.constraints.map(({ name, kind, weight, meaning }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>{kind}</td>
                  <td class="num">{weight.toFixed(1)}</td>
                  <td>{meaning}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Panel>
    </main>
  );
}

export function Tasks({ slug }: { slug: string | undefined }): JSX.Element {
  const wanted = usePlace().query.get("find") ?? "";
  const { data, error, reload } = useLoad("tasks", (signal) => get<{ tasks: Task[] }>("/v1/tasks", signal));
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
      {error && <Problem error={error} retry={reload} />}
      {data === undefined && error === undefined && <Skeleton />}
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
