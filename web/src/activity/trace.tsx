import { useEffect, useMemo, useRef, useState } from 'react';
import { request } from '../lib/api';
import { download, formatCount, formatTimeOfDay, oneLine } from '../lib/format';
import { JsonView } from '../ui/json';
import { Button, EmptyState, Note, Skeleton } from '../ui/ui';
import { followTrace, type TraceEntry, type TraceState } from './stream';

/** useTraceAvailable reports whether this gateway provides a trace of MCP messages. */
export function useTraceAvailable(): boolean {
  const [available, setAvailable] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    request('/api/mcptrace?limit=1', { signal: abort.signal, headers: { Accept: 'application/json' } }).then(
      (r) => setAvailable((r.headers.get('Content-Type') ?? '').includes('json')),
      () => setAvailable(false),
    );
    return () => abort.abort();
  }, []);
  return available;
}

/** TraceView shows the messages on the MCP connections as they are sent, newest first. */
export function TraceView() {
  const [trace, setTrace] = useState<TraceState>({ connection: 'connecting', entries: null });
  const [paused, setPaused] = useState<TraceEntry[] | null>(null);
  const [text, setText] = useState('');
  const [server, setServer] = useState('');
  const frame = useRef(0);
  useEffect(() => {
    // Messages arrive faster than they can be drawn.
    const stop = followTrace((state) => {
      cancelAnimationFrame(frame.current);
      frame.current = requestAnimationFrame(() => setTrace(state));
    });
    return () => {
      stop();
      cancelAnimationFrame(frame.current);
    };
  }, []);
  const all = paused ?? trace.entries ?? [];
  const servers = useMemo(() => [...new Set((trace.entries ?? []).flatMap((e) => e.backendId || []))].sort(), [trace.entries]);
  const shown = useMemo(() => {
    const filter = text.toLowerCase();
    return all.filter((e) => (!server || e.backendId === server) && (!filter || JSON.stringify(e).toLowerCase().includes(filter)));
  }, [all, text, server]);
  const newCount = paused && trace.entries ? trace.entries.filter((e) => e.key > (paused[0]?.key ?? -1)).length : 0;
  return (
    <>
      <div className="filters row wrap-row">
        <input type="search" className="grow" aria-label="Filter messages" placeholder="Filter by method, server or content" value={text} onChange={(e) => setText(e.target.value)} />
        <select aria-label="Server" value={server} onChange={(e) => setServer(e.target.value)}>
          <option value="">All servers</option>
          {[...new Set([...servers, ...(server ? [server] : [])])].map((s) => (
            <option key={s}>{s}</option>
          ))}
        </select>
        <span className={`live ${paused ? 'paused' : trace.connection}`} role="status">
          <span className="dot" aria-hidden="true" />
          {paused ? `paused${newCount ? `, ${formatCount(newCount)} new` : ''}` : trace.connection === 'broken' ? 'reconnecting' : trace.connection}
        </span>
        <Button small icon={paused ? 'play' : 'pause'} aria-pressed={paused !== null} onClick={() => setPaused(paused ? null : (trace.entries ?? []))}>
          {paused ? 'Resume' : 'Pause'}
        </Button>
        <Button small icon="download" disabled={shown.length === 0} onClick={() => download('mcptrace.json', JSON.stringify(shown.map(({ key: _, ...e }) => e), null, 2), 'application/json')}>
          Export
        </Button>
      </div>
      {trace.entries === null ? (
        trace.connection === 'broken' ? <Note tone="warn">The trace is unavailable. Reconnecting…</Note> : <Skeleton rows={8} height={32} />
      ) : shown.length === 0 ? (
        <EmptyState icon="activity" title={all.length === 0 ? 'No messages yet' : 'No matches'}>
          {all.length === 0 ? 'Messages between the gateway and its servers are listed here as they are sent. Run a tool to see some.' : 'No message matches the filter.'}
        </EmptyState>
      ) : (
        <ul className="trace">
          {shown.map((e) => (
            <TraceRow key={e.key} entry={e} />
          ))}
        </ul>
      )}
    </>
  );
}

function TraceRow({ entry: e }: { entry: TraceEntry }) {
  const [open, setOpen] = useState(false);
  if (e.method === 'agentify/missed') return <li className="muted small">{formatCount(Number(e.paramsOrResult) || 0)} messages omitted because they arrived too fast</li>;
  const out = e.direction.startsWith('OUT');
  const { key: _, ...message } = e;
  return (
    <li>
      <details onToggle={(t) => setOpen(t.currentTarget.open)}>
        <summary>
          <span className="mono muted">{formatTimeOfDay(new Date(e.timestamp).toISOString())}</span>
          <span className={out ? 'trace-out' : 'trace-in'} title={out ? 'from the gateway' : 'to the gateway'}>
            {out ? '→' : '←'}
            <span className="sr-only">{out ? 'from the gateway to ' : 'to the gateway from '}</span>
          </span>
          <span className="muted">{e.backendId}</span>
          <strong className={e.error ? 'bad-text' : ''}>{e.method}</strong>
          <span className="muted small ellipsis grow">{oneLine(e.error ?? e.paramsOrResult ?? '', 160)}</span>
        </summary>
        {open && <JsonView value={message} open={3} label="Message" />}
      </details>
    </li>
  );
}
