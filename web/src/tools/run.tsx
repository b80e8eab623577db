import { useMemo, useRef, useState } from 'react';
import { ApiError, callTool, type CallAnswer, type ToolDetails } from '../lib/api';
import { duration, json, plural, size } from '../lib/format';
import { href, useRoute, useStored } from '../lib/use';
import { useMe } from '../me';
import { JsonView } from '../ui/json';
import { ResultView } from '../ui/result';
import { Badge, Button, Code, Failure, Note, Tabs } from '../ui/ui';
import { SchemaForm } from './form';
import { snippets } from './snippets';

interface RunState {
  busy: boolean;
  log: { text: string; level?: string }[];
  progress?: { at: number; of?: number; text?: string };
  answer?: CallAnswer;
  error?: ApiError;
}

/** Run calls a tool with the arguments in its form and shows progress, messages and the result. */
export function Run({ tool: t, onDone }: { tool: ToolDetails; onDone: () => void }) {
  const route = useRoute();
  const me = useMe();
  const [value, setValue] = useState<unknown>(() => {
    try {
      const given: unknown = JSON.parse(route.query.get('args') ?? 'null');
      return given && typeof given === 'object' ? given : undefined;
    } catch {
      return undefined;
    }
  });
  const [mode, setMode] = useState<'form' | 'json'>('form');
  const [text, setText] = useState('');
  const [textError, setTextError] = useState('');
  const [run, setRun] = useState<RunState>({ busy: false, log: [] });
  const [snippet, setSnippet] = useStored('junctor.snippet', 'curl');
  const abort = useRef<AbortController | null>(null);
  const ask = t.approval === 'ask';

  const switchMode = (m: 'form' | 'json') => {
    if (m === 'json') setText(json(value ?? {}));
    setMode(m);
  };

  const start = async (args: unknown) => {
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    setRun({ busy: true, log: [] });
    try {
      const answer = await callTool(
        { server: t.server, tool: t.tool, arguments: args ?? {}, approved: ask || undefined },
        (n) => setRun((r) => note(r, n)),
        controller.signal,
      );
      setRun((r) => ({ ...r, busy: false, answer }));
    } catch (e) {
      if (controller.signal.aborted) setRun((r) => ({ ...r, busy: false, error: new ApiError(499, 'CANCELLED', 'Stopped. A cancellation was sent to the server.') }));
      else setRun((r) => ({ ...r, busy: false, error: e instanceof ApiError ? e : new ApiError(0, '', String(e)) }));
    }
    onDone();
  };

  const submitText = () => {
    try {
      const parsed: unknown = JSON.parse(text || '{}');
      if (parsed === null || typeof parsed !== 'object' || Array.isArray(parsed)) throw new Error('The arguments must be a JSON object.');
      setTextError('');
      setValue(parsed);
      void start(parsed);
    } catch (e) {
      setTextError(e instanceof Error ? e.message : String(e));
    }
  };

  const code = useMemo(() => {
    const s = snippets.find((x) => x.id === snippet) ?? snippets[0]!;
    return { lang: s.lang, text: s.make({ origin: location.origin, server: t.server, tool: t.tool, args: value }) };
  }, [snippet, value, t.server, t.tool]);

  return (
    <div className="run">
      {!t.enabled && !t.changed && <Note tone="warn">This tool is disabled{t.reason ? `: ${t.reason}` : ''}. The gateway refuses calls to it.</Note>}
      <div className="row">
        <h3 className="grow">Arguments</h3>
        <div className="segmented" role="group" aria-label="Argument input">
          <button type="button" aria-pressed={mode === 'form'} onClick={() => switchMode('form')}>
            Form
          </button>
          <button type="button" aria-pressed={mode === 'json'} onClick={() => switchMode('json')}>
            JSON
          </button>
        </div>
      </div>
      {mode === 'form' ? (
        <SchemaForm formId="run-form" schema={t.inputSchema} value={value} onChange={setValue} onSubmit={(v) => void start(v)} />
      ) : (
        <div className="field">
          <label htmlFor="run-json" className="sr-only">
            Arguments as JSON
          </label>
          <textarea id="run-json" className="mono" rows={10} spellCheck={false} value={text} onChange={(e) => setText(e.target.value)} aria-invalid={textError !== ''} />
          {textError && <div className="field-error">{textError}</div>}
        </div>
      )}
      <div className="row run-bar">
        {mode === 'form' ? (
          <Button kind="primary" icon="play" type="submit" form="run-form" busy={run.busy} disabled={ask && !me.admin}>
            {ask ? 'Allow and run' : 'Run'}
          </Button>
        ) : (
          <Button kind="primary" icon="play" busy={run.busy} disabled={ask && !me.admin} onClick={submitText}>
            {ask ? 'Allow and run' : 'Run'}
          </Button>
        )}
        {run.busy && (
          <Button icon="stop" onClick={() => abort.current?.abort()}>
            Stop
          </Button>
        )}
        {t.annotations.destructiveHint && <span className="muted small">May delete or overwrite data.</span>}
        {ask && !me.admin && <span className="muted small">A rule requires approval by an administrator.</span>}
      </div>
      <div aria-live="polite">
        {run.progress && run.busy && (
          <div className="call-progress">
            <progress value={run.progress.of ? run.progress.at : undefined} max={run.progress.of} aria-label="Progress" />
            <span className="muted small">
              {run.progress.of ? `${run.progress.at} of ${run.progress.of}` : run.progress.at} {run.progress.text}
            </span>
          </div>
        )}
        {run.log.length > 0 && (
          <details className="runlog" open={run.busy || undefined}>
            <summary>{plural(run.log.length, 'message')} from the server</summary>
            <pre tabIndex={0} aria-label="Messages from the server">{run.log.slice(-200).map((l) => `${l.level ? `[${l.level}] ` : ''}${l.text}`).join('\n')}</pre>
          </details>
        )}
        {run.error && <RunFailure error={run.error} />}
        {run.answer && (
          <section className={`answer ${run.answer.isError ? 'failed' : ''}`} aria-label="Result">
            <div className="row answer-head">
              {run.answer.isError ? <Badge tone="bad">the tool failed</Badge> : <Badge tone="ok">done</Badge>}
              <span className="muted small">{duration(run.answer.durationMs ?? 0)}</span>
              <span className="grow" />
              {run.answer.requestId && (
                <a className="small" href={href(['activity', run.answer.requestId])}>
                  View in call log
                </a>
              )}
            </div>
            {run.answer.isError && unasked.test(json(run.answer.result, 0).slice(0, 10_000)) && (
              <Note>
                This tool asks the user for input while it runs. Run it in the <a href="#/chat">chat</a> to answer.
              </Note>
            )}
            <ResultView result={run.answer.result} />
          </section>
        )}
      </div>
      <section className="stack">
        <div className="row">
          <h3 className="grow">The same call in code</h3>
        </div>
        <Tabs label="Language" value={snippet} onChange={setSnippet} tabs={snippets.map((s) => ({ id: s.id, label: s.label }))} />
        <Code lang={code.lang} text={code.text.length > 20_000 ? code.text.slice(0, 20_000) + ` … (${size(code.text.length)})` : code.text} max={320} />
      </section>
    </div>
  );
}

/** unasked matches the gateway's error for a server request that no user can answer: internal/mcp, route.go and input.go. */
const unasked = /declined: no user to ask|this caller cannot be asked/;

function RunFailure({ error }: { error: ApiError }) {
  return (
    <>
      <Failure error={error} />
      {error.details !== undefined && error.details !== null && <JsonView value={error.details} open={2} label="Error details" />}
    </>
  );
}

function note(r: RunState, n: CallAnswer): RunState {
  const p = (n.params ?? {}) as { progress?: number; total?: number; message?: string; level?: string; data?: unknown };
  if (n.method === 'notifications/progress') return { ...r, progress: { at: p.progress ?? 0, of: p.total, text: p.message } };
  if (n.method === 'notifications/message') return { ...r, log: [...r.log.slice(-999), { level: p.level, text: typeof p.data === 'string' ? p.data : json(p.data, 0) }] };
  return r;
}
