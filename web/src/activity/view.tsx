import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { events, get, type ApiError, type Call } from '../lib/api';
import { clock, count, download, duration } from '../lib/format';
import { go, href, useRoute } from '../lib/use';
import { Icon } from '../ui/icons';
import { VirtualList } from '../ui/list';
import { Button, Empty, Failure, Skeleton, Tabs } from '../ui/ui';
import { OneCall, statusTone, statusWord } from './call';
import { Charts } from './charts';
import { keep, merge, type Filter } from './log';
import { TraceView, useTrace } from './trace';


/** How many records are read at once. */
const firstPage = 1000;

type Follow = { state: 'connecting' | 'live' | 'broken'; error?: ApiError };

/** useLog holds the newest records and follows the log; it resumes where it stopped when the connection is lost. */
function useLog(): { calls: Call[]; loaded: boolean; follow: Follow; older: () => Promise<number> } {
  const [calls, set] = useState<Call[]>([]);
  const [loaded, setLoaded] = useState(false);
  const [follow, setFollow] = useState<Follow>({ state: 'connecting' });
  const held = useRef<Call[]>([]);

  const take = useCallback((more: Call[]) => {
    held.current = merge(held.current, more);
    set(held.current);
  }, []);

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
            const { calls: first, last } = await get<{ calls: Call[]; last: number }>(`/api/calls?limit=${firstPage}`, abort.signal);
            take(first);
            setLoaded(true);
            after = last;
          }
          for await (const e of events(`/api/calls?after=${after}`, abort.signal)) {
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
  }, [take]);

  const older = useCallback(async () => {
    const oldest = held.current.at(-1);
    if (!oldest) return 0;
    const { calls: more } = await get<{ calls: Call[] }>(`/api/calls?limit=${firstPage}&before=${oldest.seq}`);
    take(more);
    return more.length;
  }, [take]);

  return { calls, loaded, follow, older };
}

export function ActivityView() {
  const { parts, query } = useRoute();
  const id = parts[1];
  const trace = useTrace();
  const tab = query.get('tab') === 'trace' && trace.available ? 'trace' : 'calls';
  const log = useLog();
  const [paused, setPaused] = useState<Call[] | null>(null);
  const [span, setSpan] = useState(3600_000);
  const [older, setOlder] = useState<'idle' | 'busy' | 'end'>('idle');
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const t = setInterval(() => setNow(Date.now()), 5000);
    return () => clearInterval(t);
  }, []);
  const filter: Filter = { server: query.get('server') ?? '', face: query.get('face') ?? '', status: query.get('status') ?? '', text: query.get('q') ?? '' };
  const set = (change: Record<string, string>) =>
    go(href(id ? ['activity', id] : ['activity'], { server: filter.server, face: filter.face, status: filter.status, q: filter.text, tab: tab === 'trace' ? 'trace' : '', ...change }), true);
  const all = paused ?? log.calls;
  const shown = useMemo(() => all.filter((c) => keep(c, filter)), [all, filter.server, filter.face, filter.status, filter.text]);
  const servers = useMemo(() => [...new Set(log.calls.map((c) => c.server).filter(Boolean))].sort() as string[], [log.calls]);
  const faces = useMemo(() => [...new Set(log.calls.map((c) => c.face).filter(Boolean))].sort() as string[], [log.calls]);
  const filtered = Boolean(filter.server || filter.face || filter.status || filter.text);
  const link = (c: Call) => href(['activity', c.id], { server: filter.server, face: filter.face, status: filter.status, q: filter.text });
  const missed = paused ? log.calls.filter((c) => c.seq > (paused[0]?.seq ?? -1)).length : 0;

  return (
    <div className={`activity split wide-list ${id ? 'has-detail' : ''}`}>
      <section className="split-list" aria-label="Activity">
        <header className="view-head">
          <h1 className="grow">Activity</h1>
          {tab === 'calls' && (
          <>
          <span className={`live ${paused ? 'paused' : log.follow.state}`} role="status">
            <span className="dot" aria-hidden="true" />
            {paused ? `paused${missed ? `, ${count(missed)} new` : ''}` : log.follow.state === 'live' ? 'live' : log.follow.state === 'broken' ? 'reconnecting' : 'connecting'}
          </span>
          <Button small icon={paused ? 'play' : 'pause'} aria-pressed={paused !== null} onClick={() => setPaused(paused ? null : log.calls)}>
            {paused ? 'Resume' : 'Pause'}
          </Button>
          <Button small icon="download" disabled={shown.length === 0} title="Save the listed calls as JSON lines" onClick={() => download('calls.jsonl', shown.map((c) => JSON.stringify(c)).join('\n') + '\n', 'application/x-ndjson')}>
            Export
          </Button>
          </>
          )}
        </header>
        {trace.available && (
          <div className="pad-x">
            <Tabs
              label="Log"
              value={tab}
              onChange={(t) => set({ tab: t === 'trace' ? 'trace' : '' })}
              tabs={[
                { id: 'calls', label: 'Calls' },
                { id: 'trace', label: 'MCP trace' },
              ]}
            />
          </div>
        )}
        {tab === 'trace' ? (
          <TraceView />
        ) : (
          <>
            <div className="filters">
              <div className="row tight wrap-row">
                <div className="searchbox">
                  <Icon name="search" size={16} />
                  <input type="search" aria-label="Filter calls" placeholder="Filter by tool, caller, error or ID" value={filter.text} onChange={(e) => set({ q: e.target.value })} />
                </div>
                <select aria-label="Server" value={filter.server} onChange={(e) => set({ server: e.target.value })}>
                  <option value="">All servers</option>
                  {[...new Set([...servers, ...(filter.server ? [filter.server] : [])])].map((s) => (
                    <option key={s}>{s}</option>
                  ))}
                </select>
                <select aria-label="API" value={filter.face} onChange={(e) => set({ face: e.target.value })}>
                  <option value="">All APIs</option>
                  {[...new Set([...faces, ...(filter.face ? [filter.face] : [])])].map((s) => (
                    <option key={s}>{s}</option>
                  ))}
                </select>
                <select aria-label="Outcome" value={filter.status} onChange={(e) => set({ status: e.target.value })}>
                  <option value="">Any outcome</option>
                  <option value="ok">ok</option>
                  <option value="bad">any failure</option>
                  <option value="error">tool error</option>
                  <option value="failed">call failed</option>
                </select>
              </div>
            </div>
            {!log.loaded && log.follow.error ? (
              <Failure error={log.follow.error} />
            ) : !log.loaded ? (
              <Skeleton rows={8} height={38} />
            ) : log.calls.length === 0 ? (
              <Empty icon="activity" title="No calls yet" actions={<a className="button primary" href="#/tools">Run a tool</a>}>
                All calls are listed here as they happen: from this page, agents, programs and the chat.
              </Empty>
            ) : (
              <>
                <Charts calls={shown} now={now} span={span} onSpan={setSpan} />
                {shown.length === 0 ? (
                  <Empty icon="search" title="No matches" actions={<a className="button" href="#/activity">Clear filters</a>} />
                ) : (
                  <div className="calls">
                    <div className="call-cols" aria-hidden="true">
                      <span>Time</span>
                      <span>Tool</span>
                      <span>API</span>
                      <span>Outcome</span>
                      <span>Duration</span>
                    </div>
                    <VirtualList
                      items={shown}
                      height={36}
                      stick
                      keyOf={(c) => String(c.seq)}
                      label="Calls, newest first"
                      row={(c) => (
                        <a className={`call-row ${c.id === id ? 'current' : ''}`} href={link(c)} aria-current={c.id === id ? 'true' : undefined}>
                          <span className="mono muted">
                            {clock(c.time).slice(0, -4)}
                            <span className="clock-ms">{clock(c.time).slice(-4)}</span>
                          </span>
                          <span className="ellipsis">
                            <span className="muted">{c.server ? c.server + ':' : ''}</span>
                            <strong>{c.tool || c.method}</strong>
                          </span>
                          <span className="muted ellipsis">{c.face}</span>
                          <span className={`${statusTone[c.status]}-text ellipsis`} title={c.error}>
                            {c.status === 'ok' ? 'ok' : c.code || statusWord[c.status]}
                          </span>
                          <span className="num">{duration(c.durationMs)}</span>
                        </a>
                      )}
                    />
                    <div className="row calls-foot">
                      <span className="muted small">
                        {count(shown.length)}
                        {filtered && ` of ${count(all.length)}`} shown
                      </span>
                      <span className="grow" />
                      {older !== 'end' && log.calls.length >= firstPage && (
                        <Button
                          small
                          kind="quiet"
                          busy={older === 'busy'}
                          onClick={() => {
                            setOlder('busy');
                            log.older().then(
                              (n) => setOlder(n === 0 ? 'end' : 'idle'),
                              () => setOlder('idle'),
                            );
                          }}
                        >
                          Load older
                        </Button>
                      )}
                    </div>
                  </div>
                )}
              </>
            )}
          </>
        )}
      </section>
      {id && (
        <section className="split-detail" aria-label="Call details">
          <OneCall key={id} id={id} back={href(['activity'], { server: filter.server, face: filter.face, status: filter.status, q: filter.text })} />
        </section>
      )}
    </div>
  );
}
