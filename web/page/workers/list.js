// Every worker, by its stream: what the stream does not tell is read when somebody is new or changed a lot.
import { get, withQuery } from "../common/api.js";
import { useEvery } from "../common/asking.js";
import { useLive } from "../common/live.js";
import { useCallback, useEffect, useRef, useState } from "../common/view.js";

const AT_ONCE = 200;
const BUSY_MS = 4000; // how fast somebody is changes all the time, and is told by nobody
const IDLE_MS = 15000;

async function everybody() {
  const found = [];
  let cursor;
  do {
    const page = await get(withQuery("/api/workers", { limit: AT_ONCE, cursor }));
    found.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  return found;
}

export function useWorkers() {
  const [workers, setWorkers] = useState(/** @type {any[] | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const due = useRef(0);
  const reload = useCallback(async () => {
    clearTimeout(due.current);
    try {
      setWorkers(await everybody());
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  }, []);
  useEffect(() => void reload(), []);
  useEvery(workers?.some((one) => one.speed || one.current_job_id) ? BUSY_MS : IDLE_MS, reload);
  useLive(
    "/api/events/workers",
    {
      worker_status(news) {
        setWorkers((before) => {
          if (!before?.some((one) => one.worker_id === news.worker_id)) {
            clearTimeout(due.current);
            due.current = setTimeout(reload, 300);
            return before;
          }
          return before.map((one) => (one.worker_id === news.worker_id ? { ...one, ...news } : one));
        });
      },
      worker_removed: ({ worker_id: id }) => setWorkers((before) => before && before.filter((one) => one.worker_id !== id)),
    },
    reload,
  );
  return { workers, error, reload };
}
