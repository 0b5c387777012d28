// The model engines of a daemon, from its metrics.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { getText } from "./api";
import { useLoad } from "./hooks";
import { Missing, Table } from "./parts";
import { Text, count, percent } from "./text";

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
  const last = useRef({
    engines: undefined as Samples | undefined,
    at: 0,
    rates: new Map<string, string>(),
  });
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
  ...["Engine", "State", "#In the queue", "#Being computed", "#Prompt tokens", "#Found in cache"],
  ...["#Generated tokens", "#Tokens/s", "#Memory", "#Restarts"],
];

/** Says if an engine takes turns, and if it has one now. */
function stateOf(samples: Map<string, number>): string {
  if (samples.get("prime_engine_up") !== 1) return "✗ down";
  if ((samples.get("prime_engine_in_flight") ?? 0) > 0) return "▶ at work";
  return (samples.get("prime_engine_generated_tokens_total") ?? 0) > 0
    ? "idle"
    : "idle, not asked yet";
}

function mebibytes(bytes: number | undefined): string {
  return bytes === undefined || bytes === 0 ? "" : `${count(Math.round(bytes / 2 ** 20))} MiB`;
}

export function Engines(): JSX.Element {
  const loaded = useLoad(
    "engines",
    async (signal) => {
      const text = await getText("/metrics", signal);
      const memory = /^process_resident_memory_bytes (\S+)/m.exec(text)?.[1];
      return {
        engines: engineSamples(text),
        memory: memory === undefined ? undefined : Number(memory),
      };
    },
    2000,
  );
  const { data } = loaded;
  const rates = useRates(data?.engines);
  const share = (samples: Map<string, number>) => {
    const prompt = samples.get("prime_engine_prompt_tokens_total") ?? 0;
    const shared = samples.get("prime_engine_shared_tokens_total") ?? 0;
    return prompt === 0 ? "" : percent(shared / prompt);
  };
  const whole = (samples: Map<string, number>, name: string) =>
    count(samples.get(`prime_engine_${name}`) ?? 0);
  return (
    <main>
      <div class="title">
        <h1>Engines</h1>
      </div>
      <p class="muted">
        Counts since the daemon started, from its metrics.
        {data?.memory !== undefined &&
          ` The daemon itself holds ${mebibytes(data.memory)} of memory.`}
      </p>
      <Missing of={loaded} />
      {data?.engines.size === 0 && (
        <p class="empty">
          The configured agents need no engine. It runs a model for them on this machine.
        </p>
      )}
      {data !== undefined && data.engines.size > 0 && (
        <Table name="Engines" columns={ENGINE_COLUMNS}>
          {[...data.engines].map(([engine, samples]) => (
            <tr key={engine}>
              <th scope="row">
                <Text of={engine} max={80} />
              </th>
              <td>{stateOf(samples)}</td>
              <td class="num">
                {count(
                  Math.max(
                    0,
                    (samples.get("prime_engine_in_flight") ?? 0) -
                      (samples.get("prime_engine_live_sequences") ?? 0),
                  ),
                )}
              </td>
              <td class="num">{whole(samples, "live_sequences")}</td>
              <td class="num">{whole(samples, "prompt_tokens_total")}</td>
              <td class="num">{share(samples)}</td>
              <td class="num">{whole(samples, "generated_tokens_total")}</td>
              <td class="num">{rates.get(engine) ?? ""}</td>
              <td class="num">{mebibytes(samples.get("prime_engine_resident_memory_bytes"))}</td>
              <td class="num">{whole(samples, "restarts_total")}</td>
            </tr>
          ))}
        </Table>
      )}
    </main>
  );
}
