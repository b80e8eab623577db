// Tick positions and labels of chart axes.

/** niceTicks returns 3 to 5 round values from 0 to at least max. */
export function niceTicks(max: number): number[] {
  if (!(max > 0)) return [0, 1];
  if (max <= 3) return Array.from({ length: Math.ceil(max) + 1 }, (_, i) => i);
  const rough = max / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((f) => f * power >= rough)! * power;
  const out: number[] = [];
  for (let i = 0; ; i++) {
    out.push(Number((i * step).toPrecision(12)));
    if (i * step >= max) return out;
  }
}

/** logTicks returns powers of ten around min and max, at most five. */
export function logTicks(min: number, max: number): number[] {
  const low = Math.floor(Math.log10(Math.max(min, 0.01)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(max, 0.01))));
  const skip = Math.ceil((high - low) / 4);
  const out: number[] = [];
  for (let e = low; e < high + skip; e += skip) out.push(10 ** e);
  return out;
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const steps = [second, 2 * second, 5 * second, 10 * second, 30 * second, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 30 * day];

/** timeTicks returns at most maxTicks times, at round local times. */
export function timeTicks(from: number, to: number, maxTicks: number): number[] {
  const step = steps.find((s) => (to - from) / s <= maxTicks) ?? to - from;
  const offset = new Date(from).getTimezoneOffset() * minute;
  const out: number[] = [];
  for (let t = Math.ceil((from - offset) / step) * step + offset; t <= to; t += step) out.push(t);
  return out;
}

/** timeLabel returns the label of a time on an axis of that span; full adds the parts that the axis omits. */
export function timeLabel(t: number, span: number, full = false): string {
  const d = new Date(t);
  const clock = d.toLocaleTimeString(undefined, { hour12: false, hour: '2-digit', minute: '2-digit', ...(span <= 10 * minute || full ? { second: '2-digit' } : {}) });
  const date = d.toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
  if (full) return span > 12 * hour ? `${date} ${clock}` : clock;
  return span > 2 * day ? date : clock;
}
