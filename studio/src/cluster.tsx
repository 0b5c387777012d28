// The daemons that share the journal.

import type { JSX } from "preact";
import { get } from "./api";
import { useLoad } from "./hooks";
import { Missing, Table } from "./parts";
import { Text, count, duration } from "./text";
import type { Cluster } from "./types";

export const loadCluster = (signal: AbortSignal): Promise<Cluster> => get<Cluster>("/v1/cluster", signal);

function lease(left_ms: number | null): string {
  if (left_ms === null) return "not needed";
  return left_ms < 0 ? `late by ${duration(-left_ms)}` : `${duration(left_ms)} left`;
}

export function Nodes(): JSX.Element {
  const loaded = useLoad("cluster", loadCluster, 2000);
  const { data } = loaded;
  return (
    <main>
      <div class="title">
        <h1>Nodes</h1>
      </div>
      <Missing of={loaded} />
      {data !== undefined && (
        <>
          <p class="muted">
            {data.shared ? "The daemons that share the journal. Any of them answers for every run." : "This daemon is the only one: its journal is a file."}{" "}
            {data.open_runs === 1 ? "1 run is open" : `${count(data.open_runs)} runs are open`}
            {data.waiting_runs > 0 && `, ${count(data.waiting_runs)} of them on no node yet`}
            {data.oldest_waiting_ms !== null && `, the oldest for ${duration(data.oldest_waiting_ms)}`}.
          </p>
          <Table name="Nodes" columns={["Node", "Version", "#Open runs", "#At most", "Up for", "Lease"]}>
            {data.nodes.map((node) => (
              <tr key={node.name}>
                <th scope="row">
                  <Text of={node.name} max={120} />
                  {node.this && <span class="badge verified">this one</span>}
                </th>
                <td>
                  <Text of={node.version} max={40} />
                </td>
                <td class="num">{count(node.held)}</td>
                <td class="num">{count(node.capacity)}</td>
                <td>{duration(node.age_ms)}</td>
                <td>{lease(node.lease_left_ms)}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </main>
  );
}
