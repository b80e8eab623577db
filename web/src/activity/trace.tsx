import { useEffect, useMemo, useState } from 'react';
import { get, request, type ApiError } from '../lib/api';
import { clock, download, oneLine } from '../lib/format';
import { useResource } from '../lib/use';
import { JsonView } from '../ui/json';
import { Button, Empty, Failure, Skeleton } from '../ui/ui';

/** One message on an MCP connection. */
interface TraceEntry {
  timestamp?: string;
  time?: string;
  direction?: string;
  server?: string;
  method?: string;
  id?: string | number;
  message?: unknown;
  [key: string]: unknown;
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

function entries(body: unknown): TraceEntry[] {
  if (Array.isArray(body)) return body as TraceEntry[];
  if (body && typeof body === 'object') {
    for (const v of Object.values(body)) if (Array.isArray(v)) return v as TraceEntry[];
  }
  return [];
}

/** TraceView shows the messages on the MCP connections, newest first. */
export function TraceView() {
  const [paused, pause] = useState(false);
  const [text, setText] = useState('');
  const trace = useResource<unknown>('trace', (s) => get('/api/mcptrace?limit=500', s), paused ? 0 : 2000);
  const all = useMemo(() => entries(trace.data), [trace.data]);
  const shown = useMemo(() => {
    const sorted = [...all].sort((a, b) => String(b.timestamp ?? b.time ?? '').localeCompare(String(a.timestamp ?? a.time ?? '')));
    return text ? sorted.filter((e) => JSON.stringify(e).toLowerCase().includes(text.toLowerCase())) : sorted;
  }, [all, text]);
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
          Messages between the gateway and its clients and servers show up here.
        </Empty>
      ) : (
        <ul className="trace">
          {shown.slice(0, 500).map((e, i) => (
            <li key={`${e.timestamp ?? e.time ?? ''}${i}`}>
              <details>
                <summary>
                  <span className="mono muted">{e.timestamp || e.time ? clock(String(e.timestamp ?? e.time)) : ''}</span> <span className="mono">{e.direction ?? ''}</span> <strong>{String(e.method ?? '')}</strong>{' '}
                  <span className="muted">{String(e.server ?? '')}</span> <span className="muted small">{oneLine(e.message ?? e, 100)}</span>
                </summary>
                <JsonView value={e} open={3} label="Message" />
              </details>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
