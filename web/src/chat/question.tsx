import { lazy, Suspense, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';
import { Icon } from '../ui/icons';
import { Button, Note, Skeleton } from '../ui/ui';
import type { Question } from './conversation';
import type { TurnActions } from './turn';

// The form code is large and rarely needed, so it is loaded on demand.
const SchemaForm = lazy(() => import('../tools/form').then((m) => ({ default: m.SchemaForm })));

const outcomeTexts: Record<string, string> = {
  accept: 'You answered.',
  decline: 'You declined.',
  cancel: 'You dismissed the question.',
  expired: 'The question timed out.',
  withdrawn: 'Withdrawn before it was answered.',
};

/** Questions shows the elicitation and sampling requests of a call: open ones with their forms, answered ones with their outcome. */
export function Questions({ questions, actions }: { questions: Question[]; actions: TurnActions }) {
  return questions.map((q) =>
    q.action ? (
      <AnsweredQuestion key={q.id} question={q} />
    ) : (
      // Show the buttons together with the form, so that they do not move when the form appears.
      <Suspense key={q.id} fallback={<Skeleton rows={2} height={40} />}>
        <OpenQuestion question={q} actions={actions} />
      </Suspense>
    ),
  );
}

function AnsweredQuestion({ question: q }: { question: Question }) {
  return (
    <div className="answered small">
      <p className="muted">
        {q.kind === 'model' && q.action === 'accept' ? `The model answered ${q.server || 'the server'}` : `Request from ${q.server}. ${outcomeTexts[q.action ?? ''] ?? ''}`}
      </p>
      {q.text && <div className="wrap quoted">{q.text}</div>}
    </div>
  );
}

function OpenQuestion({ question: q, actions }: { question: Question; actions: TurnActions }) {
  const [offline, setOffline] = useState(false);
  const answer: TurnActions['answer'] = (...args) => {
    const sent = actions.answer(...args);
    setOffline(!sent);
    return sent;
  };
  // Show a long form from its top.
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    box.current?.scrollIntoView({ block: 'start' });
  }, []);
  return (
    <section className="approval question" aria-label={`Request from ${q.server}`} ref={box}>
      <p>
        <strong>Request from {q.server}</strong> <TimeLeft until={q.expires} />
      </p>
      {q.kind === 'form' && <FormQuestion question={q} answer={answer} />}
      {q.kind === 'url' && <UrlQuestion question={q} answer={answer} />}
      {q.kind === 'model' && <SamplingQuestion question={q} answer={answer} />}
      {(q.problem || offline) && (
        <div role="alert">
          <Note tone="bad">{offline ? 'Not connected. Answer again when the connection is restored.' : q.problem}</Note>
        </div>
      )}
    </section>
  );
}

interface QuestionProps {
  question: Question;
  answer: TurnActions['answer'];
}

function FormQuestion({ question: q, answer }: QuestionProps) {
  const id = useId();
  const [value, setValue] = useState<unknown>();
  return (
    <>
      {q.message && <p className="wrap">{q.message}</p>}
      <div className="question-form">
        <SchemaForm
          formId={id}
          schema={q.schema ?? {}}
          value={value}
          onChange={setValue}
          onSubmit={(content) => answer(q.id, 'accept', { content: content ?? {} })}
          messages={{ noFields: '', unsupported: 'This request cannot be shown as a form. You can decline it.' }}
        />
      </div>
      <p className="muted small">Your answers are sent to {q.server}. Do not enter passwords.</p>
      <div className="row">
        <Button kind="primary" icon="check" type="submit" form={id} busy={q.sent}>
          Send to {q.server}
        </Button>
        <DeclineButtons question={q} answer={answer} />
      </div>
    </>
  );
}

function UrlQuestion({ question: q, answer }: QuestionProps) {
  const host = webHost(q.url ?? '');
  const [opened, setOpened] = useState(false);
  return (
    <>
      {q.message && <p className="wrap">{q.message}</p>}
      <p className="address mono">
        {q.url}
      </p>
      <p className="muted small">
        Opens <strong>{host}</strong> in a new tab. Continue only if you trust this site and expected this request.
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
            Done, continue
          </Button>
        )}
        <DeclineButtons question={q} answer={answer} />
      </div>
    </>
  );
}

function SamplingQuestion({ question: q, answer }: QuestionProps) {
  return (
    <>
      <p>
        The server wants to send this prompt to <strong>{q.model}</strong> and receive the reply. It does not see this conversation.
      </p>
      <dl className="prompt" tabIndex={0} aria-label="Prompt for the model">
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
        {!q.onceOnly && (
          <Button disabled={q.sent} onClick={() => answer(q.id, 'accept', { scope: 'session' })}>
            In this chat
          </Button>
        )}
        <Button kind="danger" icon="close" disabled={q.sent} onClick={() => answer(q.id, 'decline')}>
          Deny
        </Button>
      </div>
    </>
  );
}

/** DeclineButtons has the buttons to decline and to cancel a question. */
function DeclineButtons({ question: q, answer }: QuestionProps) {
  return (
    <>
      <Button kind="danger" icon="close" disabled={q.sent} onClick={() => answer(q.id, 'decline')}>
        Decline
      </Button>
      <Button kind="quiet" disabled={q.sent} title="Dismiss without an answer; the server decides how to continue" onClick={() => answer(q.id, 'cancel')}>
        Cancel
      </Button>
    </>
  );
}

/** webHost returns the host of a web address as the browser parses it, or '' when the address must not be opened. */
export function webHost(url: string): string {
  try {
    const u = new URL(url);
    return u.protocol === 'https:' || u.protocol === 'http:' ? u.host : '';
  } catch {
    return '';
  }
}

export function TimeLeft({ until }: { until?: string }) {
  const [timeLeft, setTimeLeft] = useState('');
  useEffect(() => {
    const tick = () => {
      const ms = until ? Date.parse(until) - Date.now() : 0;
      setTimeLeft(ms > 60_000 ? `${Math.round(ms / 60_000)} min left` : ms > 0 ? `${Math.ceil(ms / 1000)} s left` : '');
    };
    tick();
    const t = setInterval(tick, 1000);
    return () => clearInterval(t);
  }, [until]);
  return <span className="muted small">{timeLeft}</span>;
}
