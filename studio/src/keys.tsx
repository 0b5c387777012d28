// Single keys: what they do, and the switch that turns them off.

import type { JSX } from "preact";
import { useState } from "preact/hooks";

const KEYS_OFF = "prime-keys-off";

/** True if single keys are off, until the tab closes. */
export function useKeysOff(): [boolean, (off: boolean) => void] {
  const [off, setOff] = useState(sessionStorage.getItem(KEYS_OFF) !== null);
  const put = (now: boolean) => {
    if (now) sessionStorage.setItem(KEYS_OFF, "1");
    else sessionStorage.removeItem(KEYS_OFF);
    setOff(now);
  };
  return [off, put];
}

export function Keys(props: {
  keys: [key: string, what: string][];
  off: boolean;
  onOff: (off: boolean) => void;
}): JSX.Element {
  const { keys, off, onOff } = props;
  return (
    <details class="keys">
      <summary>Keys</summary>
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={off}
          onChange={(event) => onOff(event.currentTarget.checked)}
        />
        Turn single keys off
      </label>
    </details>
  );
}
