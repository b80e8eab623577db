import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import type { RunResult } from '../lib/api';
import { CallsView, OutcomeView } from './view';

const outcome: RunResult = {
  id: 'call-1',
  value: { sum: 42 },
  log: ['<b>first</b>', 'second'],
  calls: [
    { number: 1, tool: 'everything:get-sum', startMs: 900, tookMs: 50, ended: true },
    { number: 2, tool: 'everything:echo', startMs: 950, tookMs: 50, ended: true, error: 'TIMEOUT' },
  ],
  cpuMs: 1,
  tookMs: 1100,
};

it('shows the calls of a script over time, its output and its value', () => {
  const html = renderToStaticMarkup(<OutcomeView outcome={outcome} />);
  expect(html).toContain('left:0%;width:max(2px, 50%)');
  expect(html).toMatch(/TIMEOUT.*timeline-bar bad" style="left:50%;width:max\(2px, 50%\)/);
  expect(html).toContain('&lt;b&gt;first&lt;/b&gt;\nsecond');
  expect(html).toMatch(/sum.*42/);
  expect(html).toContain('href="#/activity/call-1"');
});

it('shows why a script failed in place of its value', () => {
  const html = renderToStaticMarkup(<OutcomeView outcome={{ ...outcome, value: null, error: { code: 'EXECUTION_FAILED', message: 'x is not defined', details: { line: 2 } } }} />);
  expect(html).toContain('x is not defined');
  expect(html).toContain('line');
  expect(html).not.toContain('aria-label="Value"');
});

it('draws a call that runs up to the latest event', () => {
  const running = { number: 3, tool: 'everything:echo', startMs: 950, tookMs: 0, ended: false };
  const html = renderToStaticMarkup(<CallsView calls={[...outcome.calls.slice(0, 1), { ...running, startMs: 925 }]} />);
  expect(html).toContain('left:50%;width:max(2px, 50%)');
  expect(html).toContain('not ended');
});
