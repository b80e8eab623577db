import { useEffect, useMemo, useRef, useState } from 'react';
import { get, request, type Call, type CallStats, type CallSummary } from '../lib/api';
import { download, formatCount, formatDuration, formatTimeOfDay } from '../lib/format';
import { href, navigate, useDebounced, useQuery, useRoute } from '../lib/use';
import { Icon } from '../ui/icons';
import { VirtualList } from '../ui/list';
import { timeLabel } from '../ui/ticks';
import { Button, Empty, Failure, Skeleton, Tabs, useAction } from '../ui/ui';
import { OneCall, statusTone, statusWord } from './call';
import { Charts } from './charts';
import { apiQuery, filtered, rangeOf, readFilter, spans, type Filter } from './log';
import { TraceView, useTrace } from './trace';
import { pageSize, useLog } from './useLog';
import { isWaiting, OneWaiting, WaitingCalls } from './waiting';

/** How many intervals the charts have. */
const intervals = 60;

/** useStats reads the figures of a filter, again at most every 2 seconds when newest changes. */
function useStats(filter: Filter, newest: number) {
  const key = JSON.stringify(filter);
  const stats = useQuery(key, async (signal) => {
    const range = rangeOf(filter, Date.now());
    const p = apiQuery(filter, range);
    p.set('to', new Date(range.to).toISOString());
    p.set('intervals', String(intervals));
    return { range, stats: await get<CallStats>(`/api/stats?${p}`, signal) };
  }, filter.from ? 0 : 10_000);
  const { reload } = stats;
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (newest === 0 || filter.from) return;
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void reload();
    }, 2000);
  }, [newest, reload, filter.from]);
  useEffect(() => () => {
    clearTimeout(timer.current);
    timer.current = undefined;
  }, [reload]);
  return stats;
}

/** useChoices reads which servers, APIs and callers the range has, whatever else is filtered. */
function useChoices({ range, from, to }: Filter) {
  return useQuery(`${range} ${from} ${to}`, (signal) => {
    const empty = readFilter(new URLSearchParams({ range, from, to }));
    return get<CallStats>(`/api/stats?${apiQuery(empty, rangeOf(empty, Date.now()))}`, signal);
  }, 30_000).data;
}

export function ActivityView() {
  const { parts, query } = useRoute();
  const id = parts[1];
  const trace = useTrace();
  const asked = query.get('tab');
  const tab = asked === 'waiting' || (asked === 'trace' && trace.available) ? asked : 'calls';
  const filter = readFilter(query);
  const set = (change: Partial<Filter> & { tab?: string }, to = id) => navigate(href(to ? ['activity', to] : ['activity'], { ...filter, tab: tab === 'calls' ? '' : tab, ...change }), true);
  const tabs = <LogTabs tab={tab} trace={trace.available} onChange={(t) => set({ tab: t })} />;
  return (
    <div className={`activity split wide-list ${id ? 'has-detail' : ''}`}>
      <section className="split-list" aria-label="Activity">
        {tab !== 'calls' ? (
          <>
            <header className="view-head">
              <h1 className="grow">Activity</h1>
            </header>
            {tabs}
            {tab === 'trace' ? <TraceView /> : <WaitingCalls id={id} />}
          </>
        ) : (
          <Calls id={id} filter={filter} set={set} tabs={tabs} />
        )}
      </section>
      {id && (
        <section className="split-detail" aria-label="Call details">
          {isWaiting(id) ? <OneWaiting key={id} id={id} /> : <OneCall key={id} id={id} back={href(['activity'], { ...filter })} />}
        </section>
      )}
    </div>
  );
}

function LogTabs({ tab, trace, onChange }: { tab: string; /** There is a trace. */ trace: boolean; onChange: (tab: string) => void }) {
  return (
    <div className="pad-x">
      <Tabs
        label="Log"
        value={tab}
        onChange={(t) => onChange(t === 'calls' ? '' : t)}
        tabs={[
          { id: 'calls', label: 'Calls' },
          { id: 'waiting', label: 'Waiting' },
          ...(trace ? [{ id: 'trace', label: 'MCP trace' }] : []),
        ]}
      />
    </div>
  );
}

function Calls({ id, filter, set, tabs }: { id?: string; filter: Filter; set: (change: Partial<Filter>) => void; tabs: React.ReactNode }) {
  const text = useDebounced(filter.q, 250);
  const asked: Filter = { ...filter, q: text };
  const key = JSON.stringify(asked);
  // The range of the list begins when it is asked for; new calls are added at its end.
  const listed = useMemo(() => {
    const range = rangeOf(asked, Date.now());
    return { query: apiQuery(asked, range).toString(), live: range.live };
  }, [key]);
  const log = useLog(listed.query, listed.live);
  const [pausedAt, setPausedAt] = useState<number | null>(null);
  const [end, setEnd] = useState(false); // there are no older calls
  useEffect(() => setEnd(false), [key]);
  const newest = log.calls[0]?.seq ?? 0;
  const stats = useStats(asked, newest);
  const choices = useChoices(filter);
  const shown = useMemo(() => (pausedAt === null ? log.calls : log.calls.filter((c) => c.seq <= pausedAt)), [log.calls, pausedAt]);
  const missed = log.calls.length - shown.length;
  const state = pausedAt !== null ? 'paused' : log.follow.state;
  const zoomed = filter.from !== '' && filter.to !== '';
  const [busy, act] = useAction();
  const exportAll = () =>
    act('export', async () => {
      const range = rangeOf(asked, Date.now());
      const res = await request(`/api/export?${apiQuery(asked, range)}`);
      download('calls.jsonl', await res.blob(), 'application/x-ndjson');
    });
  const total = stats.data?.stats.total.calls;
  const link = (c: Call) => href(['activity', c.id], { ...filter });

  return (
    <>
      <header className="view-head">
        <h1 className="grow">Activity</h1>
        <span className={`live ${state}`} role="status">
          <span className="dot" aria-hidden="true" />
          {state === 'paused' ? `paused${missed ? `, ${formatCount(missed)} new` : ''}` : state === 'broken' ? 'reconnecting' : state === 'fixed' ? 'past' : state}
        </span>
        <Button small icon={pausedAt !== null ? 'play' : 'pause'} aria-pressed={pausedAt !== null} onClick={() => setPausedAt(pausedAt === null ? newest : null)}>
          {pausedAt !== null ? 'Resume' : 'Pause'}
        </Button>
        <Button small icon="download" busy={busy === 'export'} disabled={total === 0} title="Save all matching calls of the range as JSON lines, with arguments and results" onClick={() => void exportAll()}>
          Export
        </Button>
      </header>
      {tabs}
      <div className="filters">
        <div className="row tight wrap-row">
          <div className="searchbox">
            <Icon name="search" size={16} />
            <input type="search" aria-label="Search calls" placeholder="Search names, arguments, results, errors, IDs" value={filter.q} onChange={(e) => set({ q: e.target.value })} />
          </div>
          <select
            aria-label="Time range"
            value={zoomed ? 'zoom' : filter.range || '1h'}
            onChange={(e) => set({ range: e.target.value === '1h' ? '' : e.target.value, from: '', to: '' })}
          >
            {zoomed && (
              <option value="zoom">
                {timeLabel(Number(filter.from), 0, true)} – {timeLabel(Number(filter.to), 0, true)}
              </option>
            )}
            {Object.entries(spans).map(([name, s]) => (
              <option key={name} value={name}>
                {s.label[0]!.toUpperCase() + s.label.slice(1)}
              </option>
            ))}
          </select>
          {zoomed && (
            <Button small onClick={() => set({ from: '', to: '' })}>
              Zoom out
            </Button>
          )}
          <Choice label="Server" all="All servers" value={filter.server} list={choices?.servers} name={(f) => f.server} onChange={(server) => set({ server, tool: '' })} />
          {filter.tool && (
            <Button small icon="close" title="Show all tools" onClick={() => set({ tool: '' })}>
              {filter.tool}
            </Button>
          )}
          <Choice label="API" all="All APIs" value={filter.face} list={choices?.faces} name={(f) => f.face} onChange={(face) => set({ face })} />
          <Choice label="Caller" all="All callers" value={filter.caller} list={choices?.callers} name={(f) => f.caller} title={(f) => f.callerName || f.caller} onChange={(caller) => set({ caller })} />
          <select aria-label="Outcome" value={filter.status} onChange={(e) => set({ status: e.target.value })}>
            <option value="">Any outcome</option>
            <option value="ok">ok</option>
            <option value="bad">any failure</option>
            <option value="error">tool error</option>
            <option value="failed">call failed</option>
          </select>
        </div>
      </div>
      {stats.error && !stats.data ? (
        <Failure error={stats.error} retry={() => void stats.reload()} />
      ) : (
        stats.data && <Charts stats={stats.data.stats} range={stats.data.range} onZoom={(from, to) => set({ from: String(Math.round(from)), to: String(Math.round(to)) })} onPick={(server, tool) => set({ server, tool })} />
      )}
      {!log.loaded && log.follow.error ? (
        !stats.error && <Failure error={log.follow.error} />
      ) : !log.loaded ? (
        <Skeleton rows={8} height={38} />
      ) : shown.length === 0 ? (
        filtered(filter) || zoomed ? (
          <Empty icon="search" title="No matches" actions={<a className="button" href="#/activity">Clear filters</a>} />
        ) : (
          <Empty icon="activity" title={`No calls in the ${(spans[filter.range] ?? spans['1h']!).label}`} actions={<a className="button primary" href="#/tools">Run a tool</a>}>
            All calls are listed here as they happen: from this page, agents, programs and the chat.
          </Empty>
        )
      ) : (
        <div className="calls">
          <div className="call-cols" aria-hidden="true">
            <span>Time</span>
            <span>Tool</span>
            <span>API</span>
            <span>Outcome</span>
            <span>Duration</span>
          </div>
          <VirtualList items={shown} height={36} keepPosition resetKey={key} keyOf={(c) => String(c.seq)} label="Calls, newest first" row={(c) => <Row call={c} current={c.id === id} to={link(c)} />} />
          <div className="row calls-foot">
            <span className="muted small">
              {formatCount(shown.length)}
              {total !== undefined && total > shown.length && ` of ${formatCount(total)}`} listed
            </span>
            <span className="grow" />
            {!end && log.calls.length >= pageSize && (
              <Button small kind="quiet" busy={busy === 'older'} onClick={() => void act('older', async () => setEnd((await log.older()) === 0))}>
                Load older
              </Button>
            )}
          </div>
        </div>
      )}
    </>
  );
}

function Row({ call: c, current, to }: { call: Call; current: boolean; to: string }) {
  return (
    <a className={`call-row ${current ? 'current' : ''}`} href={to} aria-current={current ? 'true' : undefined}>
      <span className="mono muted" title={c.time}>
        {formatTimeOfDay(c.time).slice(0, -4)}
        <span className="clock-ms">{formatTimeOfDay(c.time).slice(-4)}</span>
      </span>
      <span className="ellipsis">
        <span className="muted">{c.server ? c.server + ':' : ''}</span>
        <strong>{c.tool || c.method}</strong>
      </span>
      <span className="muted ellipsis">{c.face}</span>
      <span className={`${statusTone[c.status]}-text ellipsis`} title={c.error}>
        {c.status === 'ok' ? 'ok' : c.code || statusWord[c.status]}
        {c.error && <span className="call-error"> {c.error}</span>}
      </span>
      <span className="num">{formatDuration(c.durationMs)}</span>
    </a>
  );
}

function Choice({ label, all, value, list, name, title = name, onChange }: { label: string; all: string; value: string; list?: CallSummary[]; name: (f: CallSummary) => string | undefined; title?: (f: CallSummary) => string | undefined; onChange: (v: string) => void }) {
  const known = (list ?? []).filter((f) => name(f));
  return (
    <select aria-label={label} value={value} onChange={(e) => onChange(e.target.value)}>
      <option value="">{all}</option>
      {value && !known.some((f) => name(f) === value) && <option>{value}</option>}
      {known.map((f) => (
        <option key={name(f)} value={name(f)}>
          {title(f)}
        </option>
      ))}
    </select>
  );
}
