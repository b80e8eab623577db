import { useEffect, useRef, useState } from 'react';
import { getDraftText, setDraftText } from '../chat/drafts';
import { ApiError, runScript, type RunResult } from '../lib/api';
import { formatDuration, plural } from '../lib/format';
import { href } from '../lib/use';
import { DataView } from '../ui/data';
import { JsonView } from '../ui/json';
import { Timeline } from '../ui/timeline';
import { Badge, Button, EmptyState, ErrorNote, Note } from '../ui/ui';

const example = `// JavaScript or TypeScript. Ctrl+Enter runs it.
const found = await tools.search("read a file", 3)
console.log(found.length, "tools")
return found.map((t) => t.signature)
`;

/** CodeView runs scripts that call tools. */
export function CodeView() {
  const [code, setCode] = useState(() => getDraftText('code') || example);
  const [run, setRun] = useState<{ busy?: boolean; calls?: RunResult['calls']; outcome?: RunResult; error?: ApiError }>({});
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const changeCode = (text: string) => {
    setCode(text);
    setDraftText('code', text);
  };
  const runCode = async () => {
    if (run.busy || !code.trim()) return;
    const controller = new AbortController();
    abort.current = controller;
    const calls: RunResult['calls'] = [];
    setRun({ busy: true });
    try {
      const outcome = await runScript(
        code,
        (c) => {
          calls[c.number - 1] = c;
          setRun({ busy: true, calls: calls.filter(Boolean) });
        },
        controller.signal,
      );
      setRun({ outcome });
    } catch (e) {
      if (controller.signal.aborted) setRun({ error: new ApiError(499, 'CANCELLED', 'Stopped. The call log has what the script called before.') });
      else setRun({ error: e instanceof ApiError ? e : new ApiError(0, '', String(e)) });
    }
  };
  return (
    <div className="detail">
      <header className="view-head">
        <h1 className="grow">Code</h1>
      </header>
      <div className="detail-scroll" tabIndex={0} role="group" aria-label="Script and result">
        <div className="field">
          <label htmlFor="script">Script</label>
          <textarea
            id="script"
            className="mono"
            rows={12}
            spellCheck={false}
            autoCapitalize="off"
            value={code}
            onChange={(e) => changeCode(e.target.value)}
            onKeyDown={(e) => {
              if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey)) return;
              e.preventDefault();
              void runCode();
            }}
          />
          <div className="hint">
            <code>await tools.SERVER.TOOL(args)</code> calls a tool, <code>tools.search(text)</code> and <code>tools.describe(names)</code> find one, <code>console.log</code> writes, and <code>return</code> gives the result.
          </div>
        </div>
        <div className="row run-bar">
          <Button kind="primary" icon="play" busy={run.busy} disabled={!code.trim()} title="Ctrl+Enter" onClick={() => void runCode()}>
            Run
          </Button>
          {run.busy && (
            <Button icon="stop" onClick={() => abort.current?.abort()}>
              Stop
            </Button>
          )}
        </div>
        <div aria-live="polite">
          {run.error && <ErrorNote error={run.error} />}
          {run.error?.details !== undefined && run.error.details !== null && <JsonView value={run.error.details} label="Error details" />}
          {run.calls && <CallsView calls={run.calls} />}
          {run.outcome && <OutcomeView outcome={run.outcome} />}
          {!run.busy && !run.error && !run.outcome && (
            <EmptyState icon="code" title="Not run yet">
              The calls that the script makes, what it writes and what it returns are shown here.
            </EmptyState>
          )}
        </div>
      </div>
    </div>
  );
}

/** CallsView shows the calls of a script over time; a running call extends to the latest event. */
export function CallsView({ calls }: { calls: RunResult['calls'] }) {
  const first = Math.min(...calls.map((c) => c.startMs)); // the time before is spent by the script itself
  const last = Math.max(...calls.map((c) => c.startMs + c.tookMs));
  return (
    <section aria-label="Calls">
      <h3>Calls</h3>
      <div className="script-calls" tabIndex={0} role="group" aria-label="Timeline">
        <Timeline
          wide
          spans={calls.map((c) => ({
            name: c.tool,
            startMs: c.startMs - first,
            tookMs: c.ended ? c.tookMs : last - c.startMs,
            tone: c.error ? 'bad' : 'accent',
            note: c.error || (c.ended ? '' : 'not ended'),
          }))}
        />
      </div>
    </section>
  );
}

/** OutcomeView shows the calls of a script over time, its console output and its value. */
export function OutcomeView({ outcome: o }: { outcome: RunResult }) {
  return (
    <section className={`answer stack ${o.error ? 'failed' : ''}`} aria-label="Result">
      <div className="row wrap-row">
        {o.error ? <Badge tone="bad">{o.error.code}</Badge> : <Badge tone="ok">done</Badge>}
        <span className="muted small">
          {formatDuration(o.tookMs)}, {plural(o.calls.length, 'call')}
        </span>
        <span className="grow" />
        <a className="small" href={href(['activity', o.id])}>
          View in call log
        </a>
      </div>
      {o.error && (
        <Note tone="bad">
          <span role="alert">{o.error.message}</span>
        </Note>
      )}
      {o.error?.details !== undefined && o.error.details !== null && <JsonView value={o.error.details} label="Error details" />}
      {o.calls.length > 0 && <CallsView calls={o.calls} />}
      {o.log && o.log.length > 0 && (
        <section className="runlog" aria-label="Console">
          <h3>Console</h3>
          <pre tabIndex={0} aria-label="Console output">
            {o.log.join('\n')}
            {o.droppedLines ? `\n… and ${plural(o.droppedLines, 'line')} that were not kept` : ''}
          </pre>
        </section>
      )}
      {!o.error && (
        <section aria-label="Value">
          <h3>Value</h3>
          <DataView value={o.value} label="Value" />
          {o.more && <Note>{o.more}</Note>}
        </section>
      )}
    </section>
  );
}
