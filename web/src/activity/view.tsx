import { useEffect, useMemo, useRef, useState } from 'react';
import { get, request, type Call, type CallStats, type CallSummary } from '../lib/api';
import { download, formatCount, formatDuration, formatTimeOfDay } from '../lib/format';
import { href, navigate, useDebounced, useQuery, useRoute } from '../lib/use';
import { Icon } from '../ui/icons';
import { VirtualList } from '../ui/list';
import { timeLabel } from '../ui/ticks';
import { Button, EmptyState, ErrorNote, Skeleton, Tabs, useAction } from '../ui/ui';
import { CallDetails, statusLabel, statusTone } from './call';
import { CallCharts } from './charts';
import { apiQuery, filterFromQuery, isFiltered, rangeOf, timeRanges, type Filter } from './log';
import { TraceView, useTraceAvailable } from './trace';
import { pageSize, useLog } from './useLog';
import { isWaitingCallId, WaitingCallDetails, WaitingCalls } from './waiting';

/** intervals is the number of intervals of the charts. */
const intervals = 60;

/** useStats reads the statistics of a filter, again at most every 2 seconds when newest changes. */
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

/** useFilterOptions reads the servers, APIs and callers of the range, regardless of the other filters. */
function useFilterOptions({ range, from, to }: Filter) {
  return useQuery(`${range} ${from} ${to}`, (signal) => {
    const empty = filterFromQuery(new URLSearchParams({ range, from, to }));
    return get<CallStats>(`/api/stats?${apiQuery(empty, rangeOf(empty, Date.now()))}`, signal);
  }, 30_000).data;
}

export function ActivityView() {
  const { parts, query } = useRoute();
  const id = parts[1];
  const traceAvailable = useTraceAvailable();
  const requestedTab = query.get('tab');
  const tab = requestedTab === 'waiting' || (requestedTab === 'trace' && traceAvailable) ? requestedTab : 'calls';
  const filter = filterFromQuery(query);
  const setFilter = (change: Partial<Filter> & { tab?: string }, to = id) => navigate(href(to ? ['activity', to] : ['activity'], { ...filter, tab: tab === 'calls' ? '' : tab, ...change }), true);
  const tabs = <LogTabs tab={tab} traceAvailable={traceAvailable} onChange={(t) => setFilter({ tab: t })} />;
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
          <CallLog id={id} filter={filter} setFilter={setFilter} tabs={tabs} />
        )}
      </section>
      {id && (
        <section className="split-detail" aria-label="Call details">
          {isWaitingCallId(id) ? <WaitingCallDetails key={id} id={id} /> : <CallDetails key={id} id={id} back={href(['activity'], { ...filter })} />}
        </section>
      )}
    </div>
  );
}

function LogTabs({ tab, traceAvailable, onChange }: { tab: string; traceAvailable: boolean; onChange: (tab: string) => void }) {
  return (
    <div className="pad-x">
      <Tabs
        label="Log"
        value={tab}
        onChange={(t) => onChange(t === 'calls' ? '' : t)}
        tabs={[
          { id: 'calls', label: 'Calls' },
          { id: 'waiting', label: 'Waiting' },
          ...(traceAvailable ? [{ id: 'trace', label: 'MCP trace' }] : []),
        ]}
      />
    </div>
  );
}

function CallLog({ id, filter, setFilter, tabs }: { id?: string; filter: Filter; setFilter: (change: Partial<Filter>) => void; tabs: React.ReactNode }) {
  const text = useDebounced(filter.q, 250);
  const appliedFilter: Filter = { ...filter, q: text };
  const key = JSON.stringify(appliedFilter);
  // Computed once per filter: the range of a live log has no end, and new calls are added.
  const logQuery = useMemo(() => {
    const range = rangeOf(appliedFilter, Date.now());
    return { query: apiQuery(appliedFilter, range).toString(), live: range.live };
  }, [key]);
  const log = useLog(logQuery.query, logQuery.live);
  const [pausedAt, setPausedAt] = useState<number | null>(null);
  const [allLoaded, setAllLoaded] = useState(false); // there are no older calls
  useEffect(() => setAllLoaded(false), [key]);
  const newest = log.calls[0]?.seq ?? 0;
  const stats = useStats(appliedFilter, newest);
  const filterOptions = useFilterOptions(filter);
  const shown = useMemo(() => (pausedAt === null ? log.calls : log.calls.filter((c) => c.seq <= pausedAt)), [log.calls, pausedAt]);
  const newCount = log.calls.length - shown.length;
  const state = pausedAt !== null ? 'paused' : log.follow.state;
  const zoomed = filter.from !== '' && filter.to !== '';
  const [busy, act] = useAction();
  const exportAll = () =>
    act('export', async () => {
      const range = rangeOf(appliedFilter, Date.now());
      const res = await request(`/api/export?${apiQuery(appliedFilter, range)}`);
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
          {state === 'paused' ? `paused${newCount ? `, ${formatCount(newCount)} new` : ''}` : state === 'broken' ? 'reconnecting' : state === 'fixed' ? 'past' : state}
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
            <input type="search" aria-label="Search calls" placeholder="Search names, arguments, results, errors, IDs" value={filter.q} onChange={(e) => setFilter({ q: e.target.value })} />
          </div>
          <select
            aria-label="Time range"
            value={zoomed ? 'zoom' : filter.range || '1h'}
            onChange={(e) => setFilter({ range: e.target.value === '1h' ? '' : e.target.value, from: '', to: '' })}
          >
            {zoomed && (
              <option value="zoom">
                {timeLabel(Number(filter.from), 0, true)} – {timeLabel(Number(filter.to), 0, true)}
              </option>
            )}
            {Object.entries(timeRanges).map(([name, s]) => (
              <option key={name} value={name}>
                {s.label[0]!.toUpperCase() + s.label.slice(1)}
              </option>
            ))}
          </select>
          {zoomed && (
            <Button small onClick={() => setFilter({ from: '', to: '' })}>
              Zoom out
            </Button>
          )}
          <FilterSelect label="Server" all="All servers" value={filter.server} list={filterOptions?.servers} name={(f) => f.server} onChange={(server) => setFilter({ server, tool: '' })} />
          {filter.tool && (
            <Button small icon="close" title="Show all tools" onClick={() => setFilter({ tool: '' })}>
              {filter.tool}
            </Button>
          )}
          <FilterSelect label="API" all="All APIs" value={filter.face} list={filterOptions?.faces} name={(f) => f.face} onChange={(face) => setFilter({ face })} />
          <FilterSelect label="Caller" all="All callers" value={filter.caller} list={filterOptions?.callers} name={(f) => f.caller} title={(f) => f.callerName || f.caller} onChange={(caller) => setFilter({ caller })} />
          <select aria-label="Outcome" value={filter.status} onChange={(e) => setFilter({ status: e.target.value })}>
            <option value="">Any outcome</option>
            <option value="ok">ok</option>
            <option value="bad">any failure</option>
            <option value="error">tool error</option>
            <option value="failed">call failed</option>
          </select>
        </div>
      </div>
      {stats.error && !stats.data ? (
        <ErrorNote error={stats.error} retry={() => void stats.reload()} />
      ) : (
        stats.data && <CallCharts stats={stats.data.stats} range={stats.data.range} onZoom={(from, to) => setFilter({ from: String(Math.round(from)), to: String(Math.round(to)) })} onPick={(server, tool) => setFilter({ server, tool })} />
      )}
      {!log.loaded && log.follow.error ? (
        !stats.error && <ErrorNote error={log.follow.error} />
      ) : !log.loaded ? (
        <Skeleton rows={8} height={38} />
      ) : shown.length === 0 ? (
        isFiltered(filter) || zoomed ? (
          <EmptyState icon="search" title="No matches" actions={<a className="button" href="#/activity">Clear filters</a>} />
        ) : (
          <EmptyState icon="activity" title={`No calls in the ${(timeRanges[filter.range] ?? timeRanges['1h']!).label}`} actions={<a className="button primary" href="#/tools">Run a tool</a>}>
            All calls are listed here as they happen: from this page, agents, programs and the chat.
          </EmptyState>
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
            {!allLoaded && log.calls.length >= pageSize && (
              <Button small kind="quiet" busy={busy === 'older'} onClick={() => void act('older', async () => setAllLoaded((await log.loadOlder()) === 0))}>
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
        {c.status === 'ok' ? 'ok' : c.code || statusLabel[c.status]}
        {c.error && <span className="call-error"> {c.error}</span>}
      </span>
      <span className="num">{formatDuration(c.durationMs)}</span>
    </a>
  );
}

function FilterSelect({ label, all, value, list, name, title = name, onChange }: { label: string; all: string; value: string; list?: CallSummary[]; name: (f: CallSummary) => string | undefined; title?: (f: CallSummary) => string | undefined; onChange: (v: string) => void }) {
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
