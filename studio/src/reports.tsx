// The reports of studies and load tests that lie in the daemon's folder of reports.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type ApiError, get, getBlob, key } from "./api";
import { asError, useLoad } from "./hooks";
import { Missing, Problem, Table, saveFile } from "./parts";
import { Text, count, time } from "./text";
import type { ReportList } from "./types";

const address = (path: string): string =>
  `/v1/reports/${path.split("/").map(encodeURIComponent).join("/")}`;

/** A link cannot carry a key, so with one the report is fetched and saved. */
function Download({
  path,
  onError,
}: {
  path: string;
  onError: (error: ApiError | undefined) => void;
}): JSX.Element {
  const save = async () => {
    onError(undefined);
    try {
      saveFile(path.replaceAll("/", "-"), await getBlob(address(path)));
    } catch (error) {
      onError(asError(error));
    }
  };
  return (
    <button class="link" onClick={() => void save()}>
      Save <Text of={path} max={200} />
    </button>
  );
}

export function Reports(): JSX.Element {
  const loaded = useLoad("reports", (signal) => get<ReportList>("/v1/reports", signal));
  const [error, setError] = useState<ApiError>();
  const { data } = loaded;
  return (
    <main>
      <div class="title">
        <h1>Reports</h1>
      </div>
      <Missing of={loaded} />
      {error && <Problem error={error} />}
      {data?.configured === false && (
        <p class="muted">
          The daemon has no folder of reports. Name one in its configuration,{" "}
          <code>server.reports</code>, and write reports into it:{" "}
          <code>prime-agents study report RECORDS --out FOLDER/NAME</code> or{" "}
          <code>prime-agents loadtest --html FOLDER/NAME.html</code>.
        </p>
      )}
      {data?.configured === true && data.reports.length === 0 && (
        <p class="muted">The folder has no reports yet.</p>
      )}
      {data !== undefined && data.reports.length > 0 && (
        <Table name="Reports" columns={["Report", "Written", "#Size"]}>
          {data.reports.map(({ path, bytes, modified_ms }) => (
            <tr key={path}>
              <th scope="row">
                {key.get() === "" ? (
                  <a href={address(path)} target="_blank" rel="noopener">
                    <Text of={path} max={200} />
                  </a>
                ) : (
                  <Download path={path} onError={setError} />
                )}
              </th>
              <td>{time(new Date(modified_ms).toISOString())}</td>
              <td class="num">{count(Math.ceil(bytes / 1024))} KiB</td>
            </tr>
          ))}
        </Table>
      )}
      {data?.has_more === true && (
        <p class="muted">The folder has more reports than are listed here.</p>
      )}
    </main>
  );
}
