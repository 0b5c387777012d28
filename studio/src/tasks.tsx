// The tasks of the benchmark, and the page of one with its worked example.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get } from "./api";
import { State } from "./drawing";
import { useLoad } from "./hooks";
import { Missing, Panel, Table } from "./parts";
import { href, setQuery, usePlace } from "./router";
import { Hidden, Long, Quoted, Text, count } from "./text";
import type { Described, Task, TaskDetail } from "./types";

function Fields({ name, fields }: { name: string; fields: Described[] }): JSX.Element {
  return (
    <Table name={name} columns={["Field", "Meaning"]}>
      {fields.map((field) => (
        <tr key={field.name}>
          <th scope="row">
            <code>{field.name}</code>
          </th>
          <td>
            <Quoted text={field.meaning} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** The example step by step: a line, and what it did to the state. */
function Example({ task }: { task: TaskDetail }): JSX.Element {
  const { input, start, steps, steps_total, answer } = task.example;
  const [at, setAt] = useState(0);
  const before = at === 0 ? start : steps[at - 1]?.state;
  return (
    <Panel title="Worked example">
      <p>
        Input <code><Long of={input} max={2000} /></code>
      </p>
      <div class="example">
        <ol class="lines" start={0} aria-label="Steps of the example">
          {steps.map(({ line }, index) => (
            <li key={index} value={index}>
              <button class="link" aria-pressed={index === at} onClick={() => setAt(index)}>
                <code>{line}</code>
              </button>
            </li>
          ))}
          {steps_total > steps.length && <li class="muted plain">
              {count(steps_total - steps.length)} more: <a href={href(["runs", "new"], { task: task.slug })}>run it</a> to see them
            </li>}
        </ol>
        <div class="states">
          <section aria-label="State before" tabIndex={0}>
            <h3>Before step {at}</h3>
            <State value={before} task={task.slug} input={input} />
          </section>
          <section aria-label="State after" tabIndex={0}>
            <h3>After it</h3>
            <State value={steps[at]?.state} other={before} task={task.slug} input={input} />
          </section>
        </div>
      </div>
      <p>
        Answer <code><Long of={answer} max={2000} /></code>
      </p>
    </Panel>
  );
}

function TaskPage({ slug }: { slug: string }): JSX.Element {
  const path = `/v1/tasks/${encodeURIComponent(slug)}`;
  const loaded = useLoad(path, (signal) => get<TaskDetail>(path, signal));
  const task = loaded.data;
  return (
    <main>
      <nav class="crumbs" aria-label="Where you are">
        <a href={href(["tasks"])}>Tasks</a> › <Text of={task?.title ?? slug} max={80} />
      </nav>
      <div class="title">
        <h1>
          <Text of={task?.title ?? slug} max={80} />
        </h1>
        {task && (
          <a class="button primary" href={href(["runs", "new"], { task: task.slug })}>
            Run it
          </a>
        )}
      </div>
      <Missing of={loaded} />
      {task && (
        <>
          <p class="in-words">
            <Quoted text={task.problem} />
          </p>
          <dl class="figures head">
            {[["Slug", task.slug], ["Category", task.category], ["Easy", task.sizes[0]], ["Medium", task.sizes[1]], ["Hard", task.sizes[2]]].map(
              ([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ),
            )}
          </dl>
          <Example task={task} />
          <Panel title="Algorithm">
            <pre class="text" tabIndex={0}>{task.algorithm}</pre>
            <p>
              One step: <Quoted text={task.step} />
            </p>
            <p class="muted">
              Instances: <Quoted text={task.instances} />
            </p>
            {task.note !== "" && (
              <p class="muted">
                Note: <Quoted text={task.note} />
              </p>
            )}
          </Panel>
          <Panel title="Lines">
            <Table name="Lines" columns={["Line", "What it does", "Example"]}>
              {task.lines.map(({ line, effect, example }) => (
                <tr key={line}>
                  <th scope="row">
                    <code>{line}</code>
                  </th>
                  <td>
                    <Quoted text={effect} />
                  </td>
                  <td>
                    <code>{example}</code>
                  </td>
                </tr>
              ))}
            </Table>
          </Panel>
          <Panel title="Constraints">
            <Table name="Constraints" columns={["Name", "Kind", "#Weight", "What it asks for"]}>
              {task.constraints.map(({ name, kind, weight, meaning }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>{kind}</td>
                  <td class="num">{count(weight)}</td>
                  <td>
                    <Quoted text={meaning} />
                  </td>
                </tr>
              ))}
            </Table>
          </Panel>
          <Panel title="Fields">
            <h3>Input</h3>
            <Fields name="Input" fields={task.input} />
            <h3>State</h3>
            <Fields name="State" fields={task.state} />
            <h3>Answer</h3>
            <Fields name="Answer" fields={task.answer} />
          </Panel>
        </>
      )}
    </main>
  );
}

export function Tasks({ slug }: { slug: string | undefined }): JSX.Element {
  const wanted = usePlace().query.get("find") ?? "";
  const loaded = useLoad("tasks", (signal) => get<{ tasks: Task[] }>("/v1/tasks", signal));
  if (slug !== undefined) return <TaskPage key={slug} slug={slug} />;
  const found = loaded.data?.tasks.filter(({ slug: name, title, category }) =>
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
          <Hidden of={wanted} />
        </label>
      </div>
      <Missing of={loaded} />
      {found?.length === 0 && <p class="empty">No task matches.</p>}
      {categories.map((category) => (
        <Panel key={category} title={category.replaceAll("-", " ")} class="category">
          <ul class="cards">
            {found
              ?.filter((one) => one.category === category)
              .map((one) => (
                <li key={one.slug}>
                  <a href={href(["tasks", one.slug])}>{one.title}</a>
                  <span class="muted small">
                    <code>{one.slug}</code>
                  </span>
                  {one.unavailable !== undefined && (
                    <span class="small">Not available: <Text of={one.unavailable} max={300} /></span>
                  )}
                </li>
              ))}
          </ul>
        </Panel>
      ))}
    </main>
  );
}
