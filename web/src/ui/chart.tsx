// A chart of values over time: bars or lines with axes, the
// values under the pointer, and zoom by dragging.
import { useEffect, useId, useRef, useState } from 'react';
import { logTicks, niceTicks, timeLabel, timeTicks } from './ticks';

export interface Series {
  label: string;
  /** The CSS class of the bars or the line. */
  className: string;
  /** The value of each point; NaN where there is none. */
  values: number[];
}

interface Props {
  label: string;
  kind: 'bars' | 'lines';
  from: number;
  to: number;
  series: Series[];
  format: (v: number) => string;
  /** Logarithmic, for values over several orders of magnitude. */
  log?: boolean;
  height?: number;
  onZoom?: (from: number, to: number) => void;
}

const left = 46;
const right = 8;
const top = 8;
const bottom = 20;

export function TimeChart({ label, kind, from, to, series, format, log = false, height = 132, onZoom }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const clip = useId();
  const [width, setWidth] = useState(480);
  const [hovered, setHovered] = useState<number | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const measure = () => setWidth(Math.max(160, el.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(el);
    return () => observer.disconnect();
  }, []);

  const n = series[0]?.values.length ?? 0;
  const w = Math.max(1, width - left - right);
  const h = height - top - bottom;
  const step = w / Math.max(1, n);
  const x = (time: number) => left + ((time - from) / Math.max(1, to - from)) * w;
  const all = kind === 'bars' ? Array.from({ length: n }, (_, i) => series.reduce((sum, s) => sum + (s.values[i] || 0), 0)) : series.flatMap((s) => s.values.filter(Number.isFinite));
  const maxValue = Math.max(...all, log ? 1 : 0);
  const ticks = log ? logTicks(Math.min(...all.filter((v) => v > 0), maxValue), maxValue) : niceTicks(maxValue);
  const low = log ? Math.log10(ticks[0]!) : 0;
  const high = log ? Math.log10(ticks.at(-1)!) : ticks.at(-1)!;
  const y = (v: number) => top + h - ((log ? Math.log10(Math.max(v, ticks[0]!)) - low : v) / Math.max(1e-9, high - low)) * h;
  const indexAt = (clientX: number) => {
    const r = box.current!.getBoundingClientRect();
    return Math.max(0, Math.min(n - 1, Math.floor((clientX - r.left - left) / step)));
  };
  const timeOf = (i: number) => from + (i * (to - from)) / n;
  const zoom = (a: number, b: number) => onZoom?.(timeOf(Math.min(a, b)), timeOf(Math.max(a, b) + 1));
  const cursor = hovered !== null && hovered < n ? hovered : null;

  return (
    <div
      className="chart"
      ref={box}
      role="group"
      aria-label={label}
      tabIndex={n > 0 ? 0 : undefined}
      onPointerMove={(e) => {
        if (n === 0) return;
        const i = indexAt(e.clientX);
        setHovered(i);
        if (drag) setDrag([drag[0], i]);
      }}
      onPointerLeave={() => !drag && setHovered(null)}
      onPointerDown={(e) => {
        if (!onZoom || n === 0 || e.button !== 0) return;
        e.currentTarget.setPointerCapture(e.pointerId);
        const i = indexAt(e.clientX);
        setDrag([i, i]);
      }}
      onPointerUp={() => {
        if (drag && drag[0] !== drag[1]) zoom(drag[0], drag[1]);
        setDrag(null);
      }}
      onPointerCancel={() => setDrag(null)}
      onBlur={() => setHovered(null)}
      onKeyDown={(e) => {
        if (e.key === 'ArrowRight') setHovered(Math.min(n - 1, (hovered ?? -1) + 1));
        else if (e.key === 'ArrowLeft') setHovered(Math.max(0, (hovered ?? n) - 1));
        else if (e.key === 'Enter' && cursor !== null) zoom(cursor - 1 < 0 ? 0 : cursor - 1, Math.min(n - 1, cursor + 1));
        else return;
        e.preventDefault();
      }}
    >
      <svg width={width} height={height} aria-hidden="true">
        <clipPath id={clip}>
          <rect x={left} y={0} width={w} height={height} />
        </clipPath>
        {ticks.map((v) => (
          <g key={v}>
            <line className="grid" x1={left} x2={left + w} y1={Math.round(y(v)) + 0.5} y2={Math.round(y(v)) + 0.5} />
            <text className="tick" x={left - 6} y={y(v) + 4} textAnchor="end">
              {format(v)}
            </text>
          </g>
        ))}
        {timeTicks(from, to, Math.max(2, Math.floor(w / 90))).map((t) => (
          <text key={t} className="tick" x={x(t)} y={height - 5} textAnchor="middle" clipPath={`url(#${clip})`}>
            {timeLabel(t, to - from)}
          </text>
        ))}
        {kind === 'bars'
          ? Array.from({ length: n }, (_, i) => {
              let base = 0;
              return series.map((s) => {
                const v = s.values[i] || 0;
                if (v === 0) return null;
                const y0 = y(base);
                base += v;
                const y1 = Math.min(y(base), y0 - 1);
                return <rect key={`${s.label}${i}`} className={s.className} x={left + i * step + 0.5} width={Math.max(1, step - 1)} y={y1} height={y0 - y1} />;
              });
            })
          : series.map((s) => <Line key={s.label} series={s} x={(i) => left + (i + 0.5) * step} y={y} />)}
        {drag && <rect className="chosen" x={left + Math.min(...drag) * step} width={(Math.abs(drag[0] - drag[1]) + 1) * step} y={top} height={h} />}
        {cursor !== null && !drag && <rect className="cursor" x={left + cursor * step} width={Math.max(1, step)} y={top} height={h} />}
      </svg>
      <div className={`chart-tip ${cursor !== null && left + cursor * step > width / 2 ? 'on-left' : ''}`} hidden={cursor === null} role="status">
        {cursor !== null && (
          <>
            <strong>{timeLabel(timeOf(cursor), to - from, true)}</strong>
            {series.map((s) => (
              <span key={s.label} className="row tight">
                <span className={`key ${s.className}`} aria-hidden="true" />
                {s.label} <b>{Number.isFinite(s.values[cursor]) ? format(s.values[cursor]!) : '–'}</b>
              </span>
            ))}
          </>
        )}
      </div>
    </div>
  );
}

function Line({ series: s, x, y }: { series: Series; x: (i: number) => number; y: (v: number) => number }) {
  let d = '';
  let last = -2;
  const points: number[] = [];
  s.values.forEach((v, i) => {
    if (!Number.isFinite(v)) return;
    d += `${last === i - 1 ? 'L' : 'M'}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    last = i;
    points.push(i);
  });
  return (
    <g className={s.className}>
      <path className="line" d={d} />
      {points.length <= 60 && points.map((i) => <circle key={i} cx={x(i)} cy={y(s.values[i]!)} r="1.8" />)}
    </g>
  );
}
