// One video and everything about it, kept true while it is looked at.
import { get } from "../common/api.js";
import { useAsked, useEvery } from "../common/asking.js";
import { useLive } from "../common/live.js";
import { useCallback, useEffect, useRef, useState } from "../common/view.js";

const LOOK_MS = 1200; // steps and events are read at most so often
const AFTER_MS = 4000; // what runs after the end (the storyboard) is told by nobody

/** `told`: whether the steps and events were read, so that what lies below them need not move. */
/** @returns {{video: any, error: any, progress: any, job: any, steps: any[], events: any[], told: boolean, reload: () => void}} */
export function useVideo(id) {
  const { data: video, error, reload } = useAsked(`/api/videos/${id}`);
  const [progress, setProgress] = useState(/** @type {any} */ (null));
  const jobId = progress?.job_id ?? video?.job_id ?? null;
  const { data: job, reload: reloadJob } = useAsked(jobId && `/api/jobs/${jobId}`);
  const { steps, events, told, look } = useStory(jobId);

  const everything = useCallback(() => {
    reload();
    reloadJob();
    look();
  }, [reload, reloadJob, look]);

  const before = useRef("");
  useLive(
    error?.status === 404 ? null : `/api/events/progress?video_ids=${id}`, // of what is not there nothing is told
    {
      [`transcode_progress:${id}`]: (news) => {
        setProgress(news);
        look();
        // The picture of the video itself changes with these only.
        const now = JSON.stringify([news.job_id, news.status, news.state, news.playable_at, news.error_code]);
        if (before.current && now !== before.current) everything();
        before.current = now;
      },
      [`transcode_complete:${id}`]: everything,
      [`video_deleted:${id}`]: everything,
    },
    everything,
  );
  const running = steps.some((step) => step.outcome === "running");
  useEvery(running ? AFTER_MS : 0, look);
  useEffect(() => {
    if (progress?.status !== "ready") return undefined;
    const timer = setTimeout(everything, AFTER_MS);
    return () => clearTimeout(timer);
  }, [progress?.status]);
  return { video, error, progress, job, steps, events, told: told || (!!video && !jobId), reload: everything };
}

/** The attempts and the events of a job; events are read on from the last one known. */
function useStory(jobId) {
  const [story, setStory] = useState(/** @type {any} */ ({ jobId: null, steps: [], events: [] }));
  const known = useRef(/** @type {any} */ (story));
  const due = useRef(0);
  const wanted = useRef(jobId);
  wanted.current = jobId;
  const read = useRef(/** @type {() => void} */ (() => {}));

  read.current = async () => {
    if (!jobId) return;
    const last = known.current.jobId === jobId ? (known.current.events.at(-1)?.event_id ?? 0) : 0;
    try {
      const [steps, fresh] = await Promise.all([
        get(`/api/jobs/${jobId}/steps`),
        get(`/api/jobs/${jobId}/events?after=${last}&limit=1000`),
      ]);
      if (jobId !== wanted.current) return; // a newer job has begun meanwhile
      const old = last ? known.current.events : [];
      const seen = new Set(old.map((event) => event.event_id));
      known.current = { jobId, steps, events: [...old, ...fresh.filter((event) => !seen.has(event.event_id))] };
      setStory(known.current);
    } catch {
      look(AFTER_MS);
    }
  };
  const look = useCallback((wait = LOOK_MS) => {
    if (due.current) return;
    due.current = setTimeout(() => {
      due.current = 0;
      read.current();
    }, wait);
  }, []);
  useEffect(() => void read.current(), [jobId]);
  useEffect(() => () => clearTimeout(due.current), []);
  const mine = story.jobId === jobId;
  return { ...(mine ? story : { steps: [], events: [] }), told: story.jobId !== null, look };
}
