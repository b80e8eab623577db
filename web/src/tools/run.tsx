import { useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { AppSlot } from '../apps/slot';
import { ApiError, callTool, type CallAnswer, type ToolDetails } from '../lib/api';
import { formatDuration, formatSize, plural, toJson } from '../lib/format';
import { href, useLocalStorage, useRoute } from '../lib/use';
import { useMe } from '../me';
import { JsonView } from '../ui/json';
import { ResultView } from '../ui/result';
import { Badge, Button, Code, ErrorNote, Note, Tabs } from '../ui/ui';
import { argumentsFromQuery, parseArguments } from './arguments';
import { RunQuestions, updateQuestions, type RunQuestion } from './ask';
import { RunHistory } from './history';
import { ServerContext } from '../ui/resource';
import { focusFirstProblem, SchemaForm, type FormProblem } from './form';
import { snippets } from './snippets';

interface RunState {
  busy: boolean;
  /** The arguments of the call, and its number among the calls of this form. */
  args?: unknown;
  runNumber?: number;
  log: { text: string; level?: string }[];
  progress?: { at: number; of?: number; text?: string };
  answer?: CallAnswer;
  error?: ApiError;
  questions: RunQuestion[];
}

/** ToolRunner calls a tool with the arguments in its form and shows progress, messages and the result. */
export function ToolRunner({ tool: t, onDone }: { tool: ToolDetails; onDone: () => void }) {
  const route = useRoute();
  const me = useMe();
  const [value, setValue] = useState<unknown>(() => argumentsFromQuery(route.query));
  const [mode, setMode] = useState<'form' | 'json'>('form');
  const [text, setText] = useState('');
  const [textError, setTextError] = useState('');
  const [problems, setProblems] = useState<FormProblem[]>([]);
  const [run, setRun] = useState<RunState>({ busy: false, log: [], questions: [] });
  const [snippet, setSnippet] = useLocalStorage('junctor.snippet', 'curl');
  const abort = useRef<AbortController | null>(null);
  const [formVersion, setFormVersion] = useState(0);
  const needsApproval = t.approval === 'ask';

  const changeValue = (v: unknown) => {
    setValue(v);
    setProblems([]);
  };
  /** changeText updates the value as soon as the JSON text is valid. */
  const changeText = (t: string) => {
    setText(t);
    const parsed = parseArguments(t);
    setTextError('');
    if (parsed.value) changeValue(parsed.value);
  };
  const switchMode = (m: 'form' | 'json') => {
    if (m === mode) return;
    if (m === 'json') {
      setText(toJson(value ?? {}));
      setTextError('');
    } else {
      const parsed = parseArguments(text);
      setTextError(parsed.error ?? '');
      if (!parsed.value) return; // stay in JSON mode until the text is valid
    }
    setProblems([]);
    setMode(m);
  };

  const runTool = async (args: unknown) => {
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    setProblems([]);
    setRun((r) => ({ busy: true, log: [], questions: [], args: args ?? {}, runNumber: (r.runNumber ?? 0) + 1 }));
    try {
      const answer = await callTool(
        { server: t.server, tool: t.tool, arguments: args ?? {}, approved: needsApproval || undefined, ask: ['elicitation', 'sampling'] },
        (n) => setRun((r) => applyNotification(r, n, t.server)),
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
    const parsed = parseArguments(text);
    setTextError(parsed.error ?? '');
    if (!parsed.value) return document.getElementById('run-json')?.focus();
    setValue(parsed.value);
    void runTool(parsed.value);
  };

  /** loadArguments replaces the arguments in the form. */
  const loadArguments = (args: unknown) => {
    changeValue(args);
    setText(toJson(args));
    setTextError('');
    setFormVersion((n) => n + 1);
  };

  const outcome = useMemo(() => (run.answer ? { result: run.answer.result } : run.error ? { cancelled: run.error.message } : undefined), [run.answer, run.error]);
  const canRun = !needsApproval || me.admin;
  const handleKeyDown = (e: KeyboardEvent) => {
    if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey) || run.busy || !canRun) return;
    e.preventDefault();
    if (mode === 'json') submitText();
    else document.querySelector<HTMLFormElement>('form#run-form')?.requestSubmit();
  };

  const code = useMemo(() => {
    const s = snippets.find((x) => x.id === snippet) ?? snippets[0]!;
    return { lang: s.lang, text: s.make({ origin: location.origin, server: t.server, tool: t.tool, args: value }) };
  }, [snippet, value, t.server, t.tool]);

  return (
    <div className="run" onKeyDown={handleKeyDown}>
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
        <SchemaForm key={formVersion} formId="run-form" schema={t.inputSchema} value={value} onChange={changeValue} onSubmit={(v) => void runTool(v)} onInvalid={setProblems} />
      ) : (
        <div className="field">
          <label htmlFor="run-json" className="sr-only">
            Arguments as JSON
          </label>
          <textarea id="run-json" className="mono" rows={10} spellCheck={false} value={text} onChange={(e) => changeText(e.target.value)} aria-invalid={textError !== ''} />
          {textError && (
            <div className="field-error" role="alert">
              {textError}
            </div>
          )}
        </div>
      )}
      <div className="row run-bar">
        {mode === 'form' ? (
          <Button kind="primary" icon="play" type="submit" form="run-form" busy={run.busy} disabled={!canRun} title="Ctrl+Enter">
            {needsApproval ? 'Allow and run' : 'Run'}
          </Button>
        ) : (
          <Button kind="primary" icon="play" busy={run.busy} disabled={!canRun} title="Ctrl+Enter" onClick={submitText}>
            {needsApproval ? 'Allow and run' : 'Run'}
          </Button>
        )}
        {run.busy && (
          <Button icon="stop" onClick={() => abort.current?.abort()}>
            Stop
          </Button>
        )}
        {t.annotations.destructiveHint && <span className="muted small">May delete or overwrite data.</span>}
        {needsApproval && !me.admin && <span className="muted small">A rule requires approval by an administrator.</span>}
      </div>
      <ProblemList problems={problems} />
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
        <RunQuestions questions={run.questions} setQuestions={(f) => setRun((r) => ({ ...r, questions: f(r.questions) }))} />
        {run.error && <RunFailure error={run.error} />}
        {run.answer && (
          <section className={`answer ${run.answer.isError ? 'failed' : ''}`} aria-label="Result">
            <div className="row answer-head">
              {run.answer.isError ? <Badge tone="bad">the tool failed</Badge> : <Badge tone="ok">done</Badge>}
              <span className="muted small">{formatDuration(run.answer.durationMs ?? 0)}</span>
              <span className="grow" />
              {run.answer.requestId && (
                <a className="small" href={href(['activity', run.answer.requestId])}>
                  View in call log
                </a>
              )}
            </div>
            <ServerContext value={t.server}>
              <ResultView result={run.answer.result} />
            </ServerContext>
          </section>
        )}
      </div>
      {t.app && run.args !== undefined && <AppSlot key={run.runNumber} server={t.server} tool={t.tool} uri={t.app} args={run.args} outcome={outcome} open />}
      <RunHistory server={t.server} tool={t.tool} value={value} runs={t.stats.calls} onUse={loadArguments} />
      <section className="stack">
        <div className="row">
          <h3 className="grow">The same call in code</h3>
        </div>
        <Tabs label="Language" value={snippet} onChange={setSnippet} tabs={snippets.map((s) => ({ id: s.id, label: s.label }))} />
        <Code lang={code.lang} text={code.text.length > 20_000 ? code.text.slice(0, 20_000) + ` … (${formatSize(code.text.length)})` : code.text} max={320} />
      </section>
    </div>
  );
}

/** ProblemList lists why a form was not submitted; each problem links to its field. */
export function ProblemList({ problems }: { problems: FormProblem[] }) {
  if (problems.length === 0) return null;
  return (
    <div className="problems" role="alert">
      <strong>Not run: {plural(problems.length, 'problem')}</strong>
      <ul>
        {problems.slice(0, 8).map((p) => (
          <li key={p.id}>
            <button type="button" className="linkish" onClick={() => focusFirstProblem('run-form', [p])}>
              {p.text}
            </button>
          </li>
        ))}
      </ul>
      {problems.length > 8 && <span className="muted small">and {problems.length - 8} more</span>}
    </div>
  );
}

function RunFailure({ error }: { error: ApiError }) {
  return (
    <>
      <ErrorNote error={error} />
      {error.details !== undefined && error.details !== null && <JsonView value={error.details} open={2} label="Error details" />}
    </>
  );
}

function applyNotification(r: RunState, n: CallAnswer, server: string): RunState {
  if (n.type === 'question' || n.type === 'answered') return { ...r, questions: updateQuestions(r.questions, n, server) };
  const p = (n.params ?? {}) as { progress?: number; total?: number; message?: string; level?: string; data?: unknown };
  if (n.method === 'notifications/progress') return { ...r, progress: { at: p.progress ?? 0, of: p.total, text: p.message } };
  if (n.method === 'notifications/message') return { ...r, log: [...r.log.slice(-999), { level: p.level, text: typeof p.data === 'string' ? p.data : toJson(p.data, 0) }] };
  return r;
}
