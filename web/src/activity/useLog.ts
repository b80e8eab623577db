import { useCallback, useEffect, useRef, useState } from 'react';
import { get, readEvents, type ApiError, type Call, type GetResponse } from '../lib/api';
import { merge } from './log';

/** How many records are read at once. */
export const pageSize = 1000;

export type Follow = { state: 'connecting' | 'live' | 'fixed' | 'broken'; error?: ApiError };

interface Log {
  calls: Call[];
  loaded: boolean;
  follow: Follow;
  older: () => Promise<number>;
}

/**
 * useLog holds the newest records that match query, parameters of /api/calls, and
 * follows the log if live; it resumes where it stopped when the connection is lost.
 */
export function useLog(query: string, live: boolean): Log {
  const [state, setState] = useState<{ query: string; calls: Call[]; loaded: boolean }>({ query, calls: [], loaded: false });
  const [follow, setFollow] = useState<Follow>({ state: 'connecting' });
  const held = useRef<Call[]>([]);

  const take = useCallback(
    (more: Call[]) => {
      held.current = merge(held.current, more);
      setState({ query, calls: held.current, loaded: true });
    },
    [query],
  );

  useEffect(() => {
    const abort = new AbortController();
    let attempts = 0;
    let waiting: Call[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      const batch = waiting;
      waiting = [];
      take(batch);
    };
    const run = async () => {
      let after = -1;
      while (!abort.signal.aborted) {
        try {
          if (after < 0) {
            const { calls: first, last } = await get<GetResponse<'/api/calls'>>(`/api/calls?limit=${pageSize}&${query}`, abort.signal);
            held.current = [];
            take(first);
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
            waiting.push(call);
            timer ??= setTimeout(flush, 100);
          }
        } catch (e) {
          if (abort.signal.aborted) return;
          setFollow({ state: 'broken', error: e as ApiError });
        }
        await new Promise((r) => setTimeout(r, Math.min(10_000, 500 * 2 ** attempts++)));
      }
    };
    void run();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [take, query, live]);

  const older = useCallback(async () => {
    const oldest = held.current.at(-1);
    if (!oldest) return 0;
    const { calls: more } = await get<GetResponse<'/api/calls'>>(`/api/calls?limit=${pageSize}&before=${oldest.seq}&${query}`);
    take(more);
    return more.length;
  }, [take, query]);

  return { calls: state.calls, loaded: state.loaded, follow, older };
}
