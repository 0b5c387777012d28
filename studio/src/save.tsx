// A run to keep: its trace, as the daemon has it, and a page of it that needs no daemon.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { get, getBlob, key, query } from "./api";
import { asError } from "./hooks";
import { isOver } from "./live";
import { saveFile } from "./parts";
import { STEPS_MAX, pageOf } from "./saved_page";
import type { Steps } from "./saved_page";
import type { Spec } from "./spec";
import { count, visible } from "./text";
import { nameOf } from "./tree";
import type { Run, StepList, Tree } from "./types";

const PAGE = 1000;

/** The forms of a run that is over, for other daemons and tools. */
const FORMS = [
  ["bundle", "Bundle (for another daemon)"],
  ["otel", "OpenTelemetry spans"],
  ["dataset", "Row of a data set"],
] as const;

const fileOf = (run: string, form: string): string => `${run}.${form}.jsonl`;

/** All steps of a run, trajectory by trajectory, up to what a page can hold. */
async function stepsOf(
  path: string,
  tree: Tree,
  onRead: (steps: number) => void,
): Promise<Steps[]> {
  const found: Steps[] = [];
  let left = STEPS_MAX;
  for (const node of tree.rounds.flatMap(({ trajectories }) => trajectories)) {
    const trajectory = nameOf(node);
    const steps: StepList["steps"] = [];
    const most = Math.min(node.steps, left);
    while (steps.length < most) {
      const limit = Math.min(PAGE, most - steps.length);
      const page = await get<StepList>(
        query(`${path}/steps`, { trajectory, from: steps.length, limit }),
      );
      if (page.steps.length === 0 && page.has_more !== true) break;
      steps.push(...page.steps);
      onRead(STEPS_MAX - left + steps.length);
    }
    left -= steps.length;
    found.push({ node, steps });
  }
  return found;
}

/** The tree of a run, once the daemon has read all of it. */
async function wholeTree(path: string): Promise<Tree> {
  for (;;) {
    const tree = await get<Tree>(`${path}/tree`);
    if (!tree.has_more) return tree;
  }
}

export function SaveMenu({ run }: { run: Run }): JSX.Element {
  const [message, setMessage] = useState("");
  const menu = useRef<HTMLDetailsElement>(null);
  const path = `/v1/runs/${encodeURIComponent(run.id)}`;
  const close = () => {
    if (menu.current !== null) menu.current.open = false;
  };
  const save = async (work: () => Promise<void>) => {
    close();
    setMessage("Preparing…");
    try {
      await work();
      setMessage("");
    } catch (error) {
      setMessage(asError(error).message);
    }
  };
  const saveTrace = () =>
    save(async () => saveFile(`${run.id}.jsonl`, await getBlob(`${path}/trace`)));
  const saveForm = (form: string) =>
    save(async () =>
      saveFile(fileOf(run.id, form), await getBlob(query(`${path}/export`, { as: form }))),
    );
  const savePage = () =>
    save(async () => {
      const [spec, tree] = await Promise.all([get<Spec>(`${path}/spec`), wholeTree(path)]);
      const steps = await stepsOf(path, tree, (read) =>
        setMessage(`Preparing: ${count(read)} steps…`),
      );
      const html = pageOf({
        run,
        spec,
        tree,
        steps,
        address: `${location.origin}/studio/runs/${run.id}`,
      });
      saveFile(`${run.id}.html`, new Blob([html], { type: "text/html" }));
    });
  return (
    <>
      <details class="menu" ref={menu}>
        <summary class="button">Save</summary>
        <div>
          {key.get() === "" ? (
            <a class="button" href={`${path}/trace`} download={`${run.id}.jsonl`} onClick={close}>
              Trace (JSON Lines)
            </a>
          ) : (
            <button onClick={() => void saveTrace()}>Trace (JSON Lines)</button>
          )}
          {isOver(run) &&
            FORMS.map(([form, title]) =>
              key.get() === "" ? (
                <a
                  key={form}
                  class="button"
                  href={query(`${path}/export`, { as: form })}
                  download={fileOf(run.id, form)}
                  onClick={close}
                >
                  {title}
                </a>
              ) : (
                <button key={form} onClick={() => void saveForm(form)}>
                  {title}
                </button>
              ),
            )}
          <button onClick={() => void savePage()}>Page (HTML, needs no daemon)</button>
        </div>
      </details>
      <span class="muted small" role="status">
        {visible(message, 300)}
      </span>
    </>
  );
}
