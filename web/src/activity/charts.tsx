import { duration, plural } from '../lib/format';
import type { Call } from '../lib/api';
import { buckets, perServer } from './log';

const W = 480;
const H = 84;

/** Charts shows rate, failures and latency of the loaded calls, and figures per server. */
export function Charts({ calls, now, span, onSpan }: { calls: Call[]; now: number; span: number; onSpan: (span: number) => void }) {
  const inside = calls.filter((c) => Date.parse(c.time) >= now - span);
  const n = 48;
  const list = buckets(inside, now, span, n);
  const most = Math.max(1, ...list.map((b) => b.ok + b.bad));
  const slowest = Math.max(1, ...list.map((b) => (Number.isFinite(b.p95) ? b.p95 : 0)));
  const x = (i: number) => (i * W) / n;
  const bad = inside.filter((c) => c.status !== 'ok').length;
  const logScale = (v: number) => H - 6 - ((H - 14) * Math.log1p(v)) / Math.log1p(slowest);
  const line = (pick: (b: (typeof list)[number]) => number) => {
    let d = '';
    let pen = false;
    list.forEach((b, i) => {
      const v = pick(b);
      if (!Number.isFinite(v)) return;
      d += `${pen ? 'L' : 'M'}${(x(i) + W / n / 2).toFixed(1)} ${logScale(v).toFixed(1)}`;
      pen = true;
    });
    return d;
  };
  const servers = perServer(inside);
  return (
    <div className="charts">
      <figure>
        <figcaption>
          <strong>{plural(inside.length, 'call')}</strong> <span className="muted">in </span>
          <select aria-label="Time span of the charts" value={span} onChange={(e) => onSpan(Number(e.target.value))}>
            {spans.map((s) => (
              <option key={s} value={s}>
                {spanWord(s)}
              </option>
            ))}
          </select>
          {bad > 0 && <span className="bad-text"> · {bad} failed</span>}
        </figcaption>
        <svg viewBox={`0 0 ${W} ${H}`} preserveAspectRatio="none" role="img" aria-label={`${inside.length} calls in ${spanWord(span)}, ${bad} failed, at most ${most} per ${duration(span / n)}`}>
          {list.map((b, i) => {
            const all = ((b.ok + b.bad) / most) * (H - 10);
            const red = (b.bad / most) * (H - 10);
            return (
              <g key={i}>
                <rect className="bar-ok" x={x(i) + 1} width={W / n - 2} y={H - all} height={Math.max(0, all - red)} rx="1" />
                {red > 0 && <rect className="bar-bad" x={x(i) + 1} width={W / n - 2} y={H - red} height={red} rx="1" />}
              </g>
            );
          })}
          <line className="axis" x1="0" x2={W} y1={H - 0.5} y2={H - 0.5} />
        </svg>
      </figure>
      <figure>
        <figcaption>
          <strong>Latency</strong> <span className="muted">median and 95th percentile · up to {duration(slowest)}</span>
        </figcaption>
        <svg viewBox={`0 0 ${W} ${H}`} preserveAspectRatio="none" role="img" aria-label={`Latency over ${spanWord(span)}; slowest 95th percentile ${duration(slowest)}`}>
          <path className="line-95" d={line((b) => b.p95)} />
          <path className="line-50" d={line((b) => b.p50)} />
          {list.map((b, i) => Number.isFinite(b.p50) && <path key={i} className="point" d={`M${(x(i) + W / n / 2).toFixed(1)} ${logScale(b.p50).toFixed(1)}h0`} />)}
          <line className="axis" x1="0" x2={W} y1={H - 0.5} y2={H - 0.5} />
        </svg>
      </figure>
      {servers.length > 0 && (
        <div className="table-scroll figures-table" tabIndex={0} role="group" aria-label="Figures per server">
          <table>
            <thead>
              <tr>
                <th scope="col">Server</th>
                <th scope="col">Calls</th>
                <th scope="col">Failed</th>
                <th scope="col">Median</th>
                <th scope="col">95th percentile</th>
              </tr>
            </thead>
            <tbody>
              {servers.slice(0, 50).map((s) => (
                <tr key={s.server}>
                  <th scope="row">
                    <span className="share" style={{ width: `${(100 * s.calls) / servers[0]!.calls}%` }} />
                    <span className="share-name">{s.server}</span>
                  </th>
                  <td>{s.calls}</td>
                  <td className={s.bad ? 'bad-text' : 'muted'}>{s.bad}</td>
                  <td>{duration(s.p50)}</td>
                  <td>{duration(s.p95)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

const spans = [3600_000, 6 * 3600_000, 24 * 3600_000];

function spanWord(span: number): string {
  return span <= 3600_000 ? 'the last hour' : span <= 6 * 3600_000 ? 'the last 6 hours' : 'the last day';
}
