import { get, type Call } from '../lib/api';
import { formatDateTime, formatDuration, formatSize } from '../lib/format';
import { ToolLink } from '../tools/link';
import { useQuery } from '../lib/use';
import { Icon } from '../ui/icons';
import { JsonView } from '../ui/json';
import { ResultView } from '../ui/result';
import { Timeline, type TimelineSpan } from '../ui/timeline';
import { Badge, CopyButton, ErrorNote, Skeleton, type Tone } from '../ui/ui';

export const statusTone: Record<Call['status'], Tone> = { ok: 'ok', error: 'warn', failed: 'bad' };
export const statusLabel: Record<Call['status'], string> = { ok: 'ok', error: 'tool error', failed: 'failed' };

/** CallDetails shows a complete call record. */
export function CallDetails({ id, back }: { id: string; back: string }) {
  const path = `/api/calls/${encodeURIComponent(id)}`;
  const call = useQuery<Call>(path, (s) => get(path, s));
  const c = call.data;
  return (
    <div className="detail">
      <header className="view-head">
        <div className="grow min0">
          <h1 className="ellipsis">{c ? c.tool || c.method : 'Call'}</h1>
          <div className="muted small ellipsis">{c?.server}</div>
        </div>
        <a className="button quiet square" href={back} aria-label="Close">
          <Icon name="close" />
        </a>
      </header>
      {call.error ? (
        <ErrorNote error={call.error} retry={() => void call.reload()} />
      ) : !c ? (
        <Skeleton rows={6} />
      ) : (
        <div className="detail-scroll">
          <div className="row wrap-row">
            <Badge tone={statusTone[c.status]}>{statusLabel[c.status]}</Badge>
            {c.code && <Badge tone={statusTone[c.status]}>{c.code}</Badge>}
            <span>{formatDuration(c.durationMs)}</span>
            <span className="muted small">{formatDateTime(c.time)}</span>
          </div>
          {c.error && <p className="bad-text wrap">{c.error}</p>}
          <Stages call={c} />
          <dl className="facts-grid">
            {(
              [
                ['API', c.face],
                ['Caller', c.caller],
                ['Session', c.sessionId],
                ['Method', c.method],
                ['Result', c.resultBytes ? formatSize(c.resultBytes) : ''],
                ['Node', c.node],
                ['Request', c.requestId !== c.id && c.requestId],
              ] as const
            ).map(([k, v]) =>
              v ? (
                <div key={k}>
                  <dt>{k}</dt>
                  <dd className="wrap">{v}</dd>
                </div>
              ) : null,
            )}
            <div>
              <dt>Record</dt>
              <dd className="mono small wrap row tight">
                {c.id} <CopyButton text={c.id} label="Copy record ID" />
              </dd>
            </div>
            {c.traceId && (
              <div>
                <dt>Trace</dt>
                <dd className="mono small wrap">{c.traceId}</dd>
              </div>
            )}
          </dl>
          <section>
            <div className="row">
              <h3 className="grow">Arguments</h3>
              {c.tool && c.server && typeof c.arguments !== 'string' && (
                <ToolLink server={c.server} tool={c.tool} args={c.arguments}>
                  Run again
                </ToolLink>
              )}
            </div>
            {typeof c.arguments === 'string' ? <ResultView result={c.arguments} /> : <JsonView value={c.arguments ?? {}} open={3} label="Arguments" />}
          </section>
          {c.result !== undefined && c.result !== null && (
            <section>
              <h3>Result</h3>
              <ResultView result={c.result} />
            </section>
          )}
        </div>
      )}
    </div>
  );
}

/** Stages shows the duration of each stage of a call. */
function Stages({ call: c }: { call: Call }) {
  const stages = c.stages ?? [];
  if (stages.length === 0) return null;
  let at = 0;
  const spans = stages.map<TimelineSpan>((s) => {
    const startMs = at;
    at += s.tookMs;
    return { ...s, startMs, tone: s.name === 'dispatch' ? 'accent' : undefined };
  });
  return (
    <section aria-label="Timeline">
      <h3>Timeline</h3>
      <Timeline spans={spans} totalMs={c.durationMs} />
    </section>
  );
}
