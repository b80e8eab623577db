import { formatDuration } from '../lib/format';

/** TimelineSpan is a named interval of a timeline. */
export interface TimelineSpan {
  name: string;
  startMs: number;
  tookMs: number;
  tone?: 'accent' | 'bad';
  /** Shown below the name. */
  note?: string;
}

/** Timeline shows when each span began and how long it took. */
export function Timeline({ spans, totalMs = 0, wide }: { spans: TimelineSpan[]; /** At least as long as the spans. */ totalMs?: number; /** The names are long. */ wide?: boolean }) {
  const total = Math.max(totalMs, ...spans.map((s) => s.startMs + s.tookMs), 0.001);
  return (
    <ol className={`timeline ${wide ? 'wide' : ''}`}>
      {spans.map((s, i) => (
        <li key={i}>
          <span className="timeline-name">
            {s.name}
            {s.note && <span className="bad-text"> {s.note}</span>}
          </span>
          <span className="timeline-track">
            <span className={`timeline-bar ${s.tone ?? ''}`} style={{ left: `${Math.min((100 * s.startMs) / total, 99)}%`, width: `max(2px, ${(100 * s.tookMs) / total}%)` }} />
          </span>
          <span className="num">{s.tookMs < 1 ? `${Math.round(s.tookMs * 1000)} µs` : formatDuration(s.tookMs)}</span>
        </li>
      ))}
    </ol>
  );
}
