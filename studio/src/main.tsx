// The frame of the page: navigation, the key, and the screen that the address names.

import type { JSX } from "preact";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { connection, get, key, tryNow, unauthorized } from "./api";
import { Agents } from "./agents";
import { Nodes, loadCluster } from "./cluster";
import { Compare } from "./compare";
import { Engines } from "./engines";
import { asError, useLoad } from "./hooks";
import { NewRun } from "./new_run";
import { Queue } from "./queue";
import { followLinks, href, useFocusOnScreen, usePlace } from "./router";
import { Reports } from "./reports";
import { Run } from "./run";
import { Runs } from "./runs";
import { Tasks } from "./tasks";
import { visible } from "./text";
import { Totals } from "./totals";

type ScreenName = [path: string, label: string];
const NODES: ScreenName = ["nodes", "Nodes"];
const SCREENS: ScreenName[] = [
  ["runs", "Runs"],
  ["overview", "Overview"],
  ["review", "Review"],
  ["compare", "Compare"],
  ["agents", "Agents"],
  ["engines", "Engines"],
  ["tasks", "Tasks"],
  ["reports", "Reports"],
];

function KeyForm({ onKey }: { onKey: () => void }): JSX.Element {
  const [value, setValue] = useState("");
  const [message, setMessage] = useState(key.get() === "" ? "" : "This key is no longer valid.");
  const submit = async () => {
    // A key is a header: what cannot stand in one is no key.
    if (!/^[!-~]+$/.test(value.trim())) {
      setMessage("A key has letters, digits and signs, without spaces.");
      return;
    }
    key.set(value.trim());
    try {
      await get("/v1/agents");
      onKey();
    } catch (error) {
      key.set("");
      setMessage(asError(error).message);
    }
  };
  return (
    <main class="narrow">
      <div class="title">
        <h1>This daemon asks for a key</h1>
      </div>
      <p>
        Its operator gives you one (<code>prime-agents key new NAME</code>). The page keeps it until you close this tab, and sends it
        to this daemon only.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <label class="field">
          <span>Key</span>
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={value}
            placeholder="prime_…"
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        </label>
        {message !== "" && (
          <p class="problem" role="alert">
            {message}
          </p>
        )}
        <div class="actions">
          <button class="primary">Go on</button>
        </div>
      </form>
    </main>
  );
}

/** Says if the daemon is away: nothing on the page is newer than that. */
function Away(): JSX.Element | null {
  const [since, setSince] = useState<Date>();
  useEffect(() => {
    const onAway = () => setSince(new Date());
    const onBack = () => setSince(undefined);
    connection.addEventListener("away", onAway);
    connection.addEventListener("back", onBack);
    return () => {
      connection.removeEventListener("away", onAway);
      connection.removeEventListener("back", onBack);
    };
  }, []);
  return (
    <div role="status" class="away">
      {since !== undefined && (
        <p>
          The daemon does not answer since {since.toLocaleTimeString("en-GB")}. The page continues when it answers again.{" "}
          <button onClick={tryNow}>Try now</button>
        </p>
      )}
    </div>
  );
}

function Screen({ path }: { path: string[] }): JSX.Element {
  const [screen = "runs", item] = path;
  if (screen === "runs" && item === "new") return <NewRun />;
  if (screen === "runs") return item === undefined ? <Runs /> : <Run key={item} id={item} />;
  if (screen === "overview") return <Totals />;
  if (screen === "review") return <Queue />;
  if (screen === "compare") return <Compare />;
  if (screen === "agents") return <Agents />;
  if (screen === "engines") return <Engines />;
  if (screen === "nodes") return <Nodes />;
  if (screen === "reports") return <Reports />;
  if (screen === "tasks") return <Tasks slug={item} />;
  return (
    <main>
      <div class="title">
        <h1>There is no such page</h1>
      </div>
      <a href={href(["runs"])}>To the runs</a>
    </main>
  );
}

function Studio(): JSX.Element {
  const { path } = usePlace();
  const [asks, setAsks] = useState(false);
  const [screen = "runs", item] = path;
  useEffect(() => {
    const ask = () => setAsks(true);
    unauthorized.addEventListener("401", ask);
    return () => unauthorized.removeEventListener("401", ask);
  }, []);
  // The daemon is asked once if there are other nodes: a page of one daemon need not ask again.
  const cluster = useLoad(asks ? "asks" : "cluster", (signal) => (asks ? Promise.resolve(undefined) : loadCluster(signal)));
  const hasSeveral = cluster.data?.shared === true || screen === "nodes";
  useFocusOnScreen(`${screen}/${item ?? ""}`);
  // A run says its task and status itself.
  const isRun = screen === "runs" && item !== undefined && item !== "new";
  useEffect(() => {
    const label = [...SCREENS, NODES].find(([name]) => name === screen)?.[1] ?? "No such page";
    if (!isRun) document.title = `${item === "new" ? "New run" : visible(item ?? label, 60)} · prime-agents`;
  }, [screen, item, isRun]);
  return (
    <>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="bar">
        <a class="brand" href={href(["runs"])}>
          prime-agents <span>studio</span>
        </a>
        <nav aria-label="Screens">
          {(hasSeveral ? [...SCREENS, NODES] : SCREENS).map(([name, label]) => (
            <a key={name} href={href([name])} aria-current={screen === name ? "page" : undefined}>
              {label}
            </a>
          ))}
          {key.get() !== "" && (
            <button
              class="link"
              onClick={() => {
                key.set("");
                setAsks(true);
              }}
            >
              Forget key
            </button>
          )}
        </nav>
        <Away />
      </header>
      <div id="content" tabIndex={-1}>{asks ? <KeyForm onKey={() => setAsks(false)} /> : <Screen path={path} />}</div>
    </>
  );
}

followLinks();
const root = document.getElementById("studio");
if (root !== null) render(<Studio />, root);
