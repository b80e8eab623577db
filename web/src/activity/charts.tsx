import { useState } from 'react';
import type { CallStats, CallSummary } from '../lib/api';
import { formatCount, formatDuration, plural } from '../lib/format';
import { TimeChart } from '../ui/chart';
import { Table } from '../ui/grid';
import { Tabs } from '../ui/ui';

interface Props {
  stats: CallStats;
  range: { from: number; to: number };
  onZoom: (from: number, to: number) => void;
  onPick: (server: string, tool: string) => void;
}

/** CallCharts charts the number and the duration of calls, from the gateway's statistics. */
export function CallCharts({ stats, range, onZoom, onPick }: Props) {
  const intervals = stats.intervals ?? [];
  const failures = stats.total.errors + stats.total.failed;
  const seriesOf = (pick: (f: CallSummary) => number) => intervals.map((p) => (p.calls > 0 ? pick(p) : NaN));
  return (
    <div className="charts">
      <figure>
        <figcaption>
          <strong>{plural(stats.total.calls, 'call')}</strong>
          {failures > 0 && <span className="bad-text"> · {formatCount(failures)} failed</span>}
        </figcaption>
        <TimeChart
          label={`Calls over time: ${plural(stats.total.calls, 'call')}, ${formatCount(failures)} failed`}
          kind="bars"
          {...range}
          format={formatCount}
          onZoom={onZoom}
          series={[
            { label: 'failed', className: 'series-bad', values: intervals.map((p) => p.errors + p.failed) },
            { label: 'ok', className: 'series-ok', values: intervals.map((p) => p.calls - p.errors - p.failed) },
          ]}
        />
      </figure>
      <figure>
        <figcaption>
          <strong>Duration</strong>
          {stats.total.calls > 0 && (
            <span className="muted">
              {' '}
              p50 {formatDuration(stats.total.p50Ms)} · p95 {formatDuration(stats.total.p95Ms)} · p99 {formatDuration(stats.total.p99Ms)}
            </span>
          )}
        </figcaption>
        <TimeChart
          label={`Duration over time: median ${formatDuration(stats.total.p50Ms)}, 95th percentile ${formatDuration(stats.total.p95Ms)}`}
          kind="lines"
          log
          {...range}
          format={formatDuration}
          onZoom={onZoom}
          series={[
            { label: 'p99', className: 'series-p99', values: seriesOf((p) => p.p99Ms) },
            { label: 'p95', className: 'series-p95', values: seriesOf((p) => p.p95Ms) },
            { label: 'p50', className: 'series-p50', values: seriesOf((p) => p.p50Ms) },
          ]}
        />
      </figure>
      <SummaryTable stats={stats} onPick={onPick} />
    </div>
  );
}

function SummaryTable({ stats, onPick }: Pick<Props, 'stats' | 'onPick'>) {
  const [groupBy, setGroupBy] = useState<'servers' | 'tools'>('servers');
  const rows = [...stats[groupBy]].sort((a, b) => b.calls - a.calls);
  return (
    <div className="stat-figures">
      <Tabs
        label="Figures"
        value={groupBy}
        onChange={setGroupBy}
        tabs={[
          { id: 'servers', label: 'By server' },
          { id: 'tools', label: 'By tool' },
        ]}
      />
      <Table label="Figures" className="figures-table" columns={[groupBy === 'servers' ? 'Server' : 'Tool', 'Calls', 'Failed', 'p50', 'p95', 'p99']}>
        {rows.slice(0, 200).map((s) => (
          <tr key={`${s.server}:${s.tool}`}>
            <th scope="row">
              <span className="share" style={{ width: `${(100 * s.calls) / rows[0]!.calls}%` }} />
              <button type="button" className="linkish share-name ellipsis" title={groupBy === 'tools' ? `${s.server}:${s.tool}` : s.server} onClick={() => onPick(s.server ?? '', groupBy === 'tools' ? (s.tool ?? '') : '')}>
                {groupBy === 'tools' ? s.tool || '(other requests)' : s.server || '(none)'}
              </button>
            </th>
            <td>{formatCount(s.calls)}</td>
            <td className={s.errors + s.failed ? 'bad-text' : 'muted'}>{formatCount(s.errors + s.failed)}</td>
            <td>{formatDuration(s.p50Ms)}</td>
            <td>{formatDuration(s.p95Ms)}</td>
            <td>{formatDuration(s.p99Ms)}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}
