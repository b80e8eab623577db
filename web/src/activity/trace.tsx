import { useEffect, useMemo, useState } from 'react';
import { get, request, type ApiError } from '../lib/api';
import { clock, download, oneLine } from '../lib/format';
import { useResource } from '../lib/use';
import { JsonView } from '../ui/json';
import { Button, Empty, Failure, Skeleton } from '../ui/ui';

/** One message between the gateway and a server. */
interface TraceEntry {
  timestamp: number;
  direction: string;
  backendId?: string;
  id?: number;
  method: string;
  paramsOrResult?: unknown;
  error?: unknown;
}

/** useTrace tells whether this gateway has a trace of MCP messages. */
export function useTrace(): { available: boolean } {
  const [available, set] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    request('/api/mcptrace?limit=1', { signal: abort.signal, headers: { Accept: 'application/json' } }).then(
      (r) => set((r.headers.get('Content-Type') ?? '').includes('json')),
      () => set(false),
    );
    return () => abort.abort();
  }, []);
  return { available };
}

/** TraceView shows the messages on the MCP connections, newest first. */
export function TraceView() {
  const [paused, pause] = useState(false);
  const [text, setText] = useState('');
  const trace = useResource<TraceEntry[]>('trace', (s) => get('/api/mcptrace?limit=500', s), paused ? 0 : 1500);
  const shown = useMemo(() => {
    const newest = [...(trace.data ?? [])].reverse();
    return text ? newest.filter((e) => JSON.stringify(e).toLowerCase().includes(text.toLowerCase())) : newest;
  }, [trace.data, text]);
  if (trace.error && !trace.data) return <Failure error={trace.error as ApiError} retry={() => void trace.reload()} />;
  if (!trace.data) return <Skeleton rows={8} height={32} />;
  return (
    <>
      <div className="filters row">
        <input type="search" className="grow" aria-label="Filter messages" placeholder="Method, server, anything in it" value={text} onChange={(e) => setText(e.target.value)} />
        <Button small icon={paused ? 'play' : 'pause'} onClick={() => pause(!paused)}>
          {paused ? 'Go on' : 'Pause'}
        </Button>
        <Button small icon="download" onClick={() => download('mcptrace.json', JSON.stringify(shown, null, 2), 'application/json')}>
          Export
        </Button>
      </div>
      {shown.length === 0 ? (
        <Empty icon="activity" title="No messages">
          Messages between the gateway and its servers show up here as they pass.
        </Empty>
      ) : (
        <ul className="trace">
          {shown.map((e, i) => {
            const out = e.direction.startsWith('OUT');
            return (
              <li key={`${e.timestamp} ${e.id ?? ''} ${e.direction} ${shown.length - i}`}>
                <details>
                  <summary>
                    <span className="mono muted">{clock(new Date(e.timestamp).toISOString())}</span>
                    <span className={out ? 'trace-out' : 'trace-in'} title={out ? 'from the gateway' : 'to the gateway'}>
                      {out ? '→' : '←'}
                      <span className="sr-only">{out ? 'from the gateway to ' : 'to the gateway from '}</span>
                    </span>
                    <span className="muted">{e.backendId}</span>
                    <strong className={e.error ? 'bad-text' : ''}>{e.method}</strong>
                    <span className="muted small ellipsis grow">{oneLine(e.error ?? e.paramsOrResult ?? '', 160)}</span>
                  </summary>
                  <JsonView value={e} open={3} label="Message" />
                </details>
              </li>
            );
          })}
        </ul>
      )}
    </>
  );
}
