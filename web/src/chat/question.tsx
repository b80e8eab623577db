import { lazy, Suspense, useEffect, useId, useRef, useState } from 'react';
import { Icon } from '../ui/icons';
import { Button, Note, Skeleton } from '../ui/ui';
import type { Question } from './conversation';
import type { Ways } from './turn';

// Forms are large and rare: they come when a server asks.
const SchemaForm = lazy(() => import('../tools/form').then((m) => ({ default: m.SchemaForm })));

const outcomes: Record<string, string> = {
  accept: 'You answered.',
  decline: 'You declined.',
  cancel: 'You left it unanswered.',
  expired: 'Nobody answered in time.',
  withdrawn: 'Taken back before it was answered.',
};

/** Questions are what a server asked in the middle of a call: those that are open, and what became of the others. */
export function Questions({ of, ways }: { of: Question[]; ways: Ways }) {
  return of.map((q) => (q.action ? <Answered key={q.id} question={q} /> : <Open key={q.id} question={q} ways={ways} />));
}

function Answered({ question: q }: { question: Question }) {
  return (
    <div className="answered small">
      <p className="muted">
        {q.kind === 'model' && q.action === 'accept' ? `The model answered ${q.server || 'the server'}` : `${q.server} asked. ${outcomes[q.action ?? ''] ?? ''}`}
      </p>
      {q.text && <div className="wrap quoted">{q.text}</div>}
    </div>
  );
}

function Open({ question: q, ways }: { question: Question; ways: Ways }) {
  const [offline, setOffline] = useState(false);
  const answer: Ways['answer'] = (...args) => {
    const sent = ways.answer(...args);
    setOffline(!sent);
    return sent;
  };
  // A long form is read from its beginning.
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    box.current?.scrollIntoView({ block: 'start' });
  }, []);
  return (
    <section className="approval question" aria-label={`${q.server} asks`} ref={box}>
      <p>
        <strong>{q.server} asks</strong> <TimeLeft until={q.expires} />
      </p>
      {q.kind === 'form' && <FormQuestion question={q} answer={answer} />}
      {q.kind === 'url' && <AddressQuestion question={q} answer={answer} />}
      {q.kind === 'model' && <ModelQuestion question={q} answer={answer} />}
      {(q.problem || offline) && (
        <div role="alert">
          <Note tone="bad">{offline ? 'Not connected. Answer again when the connection is back.' : q.problem}</Note>
        </div>
      )}
    </section>
  );
}

interface Kind {
  question: Question;
  answer: Ways['answer'];
}

function FormQuestion({ question: q, answer }: Kind) {
  const id = useId();
  const [value, set] = useState<unknown>({});
  return (
    <>
      {q.message && <p className="wrap">{q.message}</p>}
      <div className="question-form">
        <Suspense fallback={<Skeleton rows={2} height={40} />}>
          <SchemaForm
            formId={id}
            defaults
            schema={q.schema ?? {}}
            value={value}
            onChange={set}
            onSubmit={(content) => answer(q.id, 'accept', { content: content ?? {} })}
            words={{ none: '', broken: 'No form can be made from what this server asks for. You can decline.' }}
          />
        </Suspense>
      </div>
      <p className="muted small">What you fill in goes to {q.server}. Give it no password.</p>
      <div className="row">
        <Button kind="primary" icon="check" type="submit" form={id} busy={q.sent}>
          Send to {q.server}
        </Button>
        <No question={q} answer={answer} />
      </div>
    </>
  );
}

function AddressQuestion({ question: q, answer }: Kind) {
  const host = hostOf(q.url ?? '');
  const [opened, setOpened] = useState(false);
  return (
    <>
      {q.message && <p className="wrap">{q.message}</p>}
      <p className="address mono">
        {q.url}
      </p>
      <p className="muted small">
        Opens <strong>{host}</strong> in a new tab. Go there only if you know it and expected this.
      </p>
      <div className="row">
        {host && (
          <a
            className={`button ${opened ? '' : 'primary'}`}
            href={q.url}
            target="_blank"
            rel="noopener noreferrer"
            onClick={(e) => {
              if (q.retry) setOpened(true);
              else if (!answer(q.id, 'accept')) e.preventDefault();
            }}
          >
            <Icon name="out" size={15} /> Open {host}
          </a>
        )}
        {q.retry && (
          <Button kind={opened ? 'primary' : undefined} icon="check" busy={q.sent} onClick={() => answer(q.id, 'accept')}>
            Done there, go on
          </Button>
        )}
        <No question={q} answer={answer} />
      </div>
    </>
  );
}

function ModelQuestion({ question: q, answer }: Kind) {
  return (
    <>
      <p>
        It wants to ask <strong>{q.model}</strong> this, and gets the reply. It sees nothing of this conversation.
      </p>
      <dl className="prompt" tabIndex={0} aria-label="What the model would be asked">
        {q.prompt?.map((line, i) => (
          <div key={i}>
            <dt>{line.role}</dt>
            <dd className="wrap">{line.text}</dd>
          </div>
        ))}
      </dl>
      <div className="row">
        <Button kind="primary" icon="check" busy={q.sent} onClick={() => answer(q.id, 'accept')}>
          Allow once
        </Button>
        <Button disabled={q.sent} onClick={() => answer(q.id, 'accept', { scope: 'session' })}>
          In this chat
        </Button>
        <Button kind="danger" icon="close" disabled={q.sent} onClick={() => answer(q.id, 'decline')}>
          Deny
        </Button>
      </div>
    </>
  );
}

/** The two ways not to answer: no, and neither yes nor no. */
function No({ question: q, answer }: Kind) {
  return (
    <>
      <Button kind="danger" icon="close" disabled={q.sent} onClick={() => answer(q.id, 'decline')}>
        Decline
      </Button>
      <Button kind="quiet" disabled={q.sent} title="Leave it unanswered; the server decides what that means" onClick={() => answer(q.id, 'cancel')}>
        Cancel
      </Button>
    </>
  );
}

/** hostOf is what an address leads to, as the browser reads it; '' when a browser must not open it. */
export function hostOf(url: string): string {
  try {
    const u = new URL(url);
    return u.protocol === 'https:' || u.protocol === 'http:' ? u.host : '';
  } catch {
    return '';
  }
}

export function TimeLeft({ until }: { until?: string }) {
  const [left, set] = useState('');
  useEffect(() => {
    const tick = () => {
      const ms = until ? Date.parse(until) - Date.now() : 0;
      set(ms > 60_000 ? `${Math.round(ms / 60_000)} min left` : ms > 0 ? `${Math.ceil(ms / 1000)} s left` : '');
    };
    tick();
    const t = setInterval(tick, 1000);
    return () => clearInterval(t);
  }, [until]);
  return <span className="muted small">{left}</span>;
}
