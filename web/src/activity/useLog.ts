import { useCallback, useEffect, useRef, useState } from 'react';
import { get, readEvents, type ApiError, type Call, type GetResponse } from '../lib/api';
import { mergeCalls } from './log';

/** pageSize is the number of records read by one request. */
export const pageSize = 1000;

export type FollowState = { state: 'connecting' | 'live' | 'fixed' | 'broken'; error?: ApiError };

interface LogState {
  calls: Call[];
  loaded: boolean;
  follow: FollowState;
  loadOlder: () => Promise<number>;
}

/**
 * useLog loads the newest records that match query, parameters of /api/calls, and
 * follows the log if live. After a lost connection it resumes at the last record.
 */
export function useLog(query: string, live: boolean): LogState {
  const [state, setState] = useState<{ query: string; calls: Call[]; loaded: boolean }>({ query, calls: [], loaded: false });
  const [follow, setFollow] = useState<FollowState>({ state: 'connecting' });
  const loadedCalls = useRef<Call[]>([]);

  const addCalls = useCallback(
    (more: Call[]) => {
      loadedCalls.current = mergeCalls(loadedCalls.current, more);
      setState({ query, calls: loadedCalls.current, loaded: true });
    },
    [query],
  );

  useEffect(() => {
    const abort = new AbortController();
    let attempts = 0;
    let queue: Call[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      const batch = queue;
      queue = [];
      addCalls(batch);
    };
    const followLog = async () => {
      let after = -1;
      while (!abort.signal.aborted) {
        try {
          if (after < 0) {
            const { calls: first, last } = await get<GetResponse<'/api/calls'>>(`/api/calls?limit=${pageSize}&${query}`, abort.signal);
            loadedCalls.current = [];
            addCalls(first);
            after = last;
          }
          if (!live) {
            setFollow({ state: 'fixed' });
            return;
          }
          for await (const e of readEvents(`/api/calls?after=${after}&${query}`, abort.signal)) {
            attempts = 0;
            setFollow((f) => (f.state === 'live' ? f : { state: 'live' }));
            if (e.event !== 'call') continue;
            const call = JSON.parse(e.data) as Call;
            after = Math.max(after, call.seq);
            queue.push(call);
            timer ??= setTimeout(flush, 100);
          }
        } catch (e) {
          if (abort.signal.aborted) return;
          setFollow({ state: 'broken', error: e as ApiError });
        }
        await new Promise((r) => setTimeout(r, Math.min(10_000, 500 * 2 ** attempts++)));
      }
    };
    void followLog();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [addCalls, query, live]);

  const loadOlder = useCallback(async () => {
    const oldest = loadedCalls.current.at(-1);
    if (!oldest) return 0;
    const { calls: more } = await get<GetResponse<'/api/calls'>>(`/api/calls?limit=${pageSize}&before=${oldest.seq}&${query}`);
    addCalls(more);
    return more.length;
  }, [addCalls, query]);

  return { calls: state.calls, loaded: state.loaded, follow, loadOlder };
}
