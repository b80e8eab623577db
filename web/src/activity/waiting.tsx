import { useEffect, useState } from 'react';
import { get, send, type GetResponse, type WaitingCall } from '../lib/api';
import { formatDateTime, timeAgo } from '../lib/format';
import { href, useQuery } from '../lib/use';
import { RunQuestions, updateQuestions, type RunQuestion } from '../tools/ask';
import { ConfirmDialog, QueryContent, Table } from '../ui/grid';
import { Icon } from '../ui/icons';
import { JsonView } from '../ui/json';
import { ResultView } from '../ui/result';
import { Badge, Button, EmptyState, useAction, type Tone } from '../ui/ui';

const statusTones: Record<WaitingCall['status'], Tone> = { working: 'accent', input_required: 'warn', completed: 'ok', failed: 'bad', cancelled: 'neutral' };

/** isWaitingCallId reports whether an id is that of a waiting or detached call, and not of the call log. */
export const isWaitingCallId = (id: string) => id.startsWith('call_');

const path = (id: string) => `/api/calls/${encodeURIComponent(id)}`;
const isRunning = (c: WaitingCall) => c.status === 'working' || c.status === 'input_required';
const waitingHref = (id?: string) => href(id ? ['activity', id] : ['activity'], { tab: 'waiting' });

/** WaitingCalls lists the caller's calls that wait for a result, an approval or an answer, and those that have ended since. */
export function WaitingCalls({ id }: { id?: string }) {
  const list = useQuery<GetResponse<'/api/waiting'>>('waiting', (s) => get('/api/waiting', s), 2000);
  return (
    <div className="page-scroll pad-x">
      <QueryContent query={list}>
        {({ calls }) =>
          calls.length === 0 ? (
            <EmptyState icon="activity" title="No waiting calls">
              Your calls that were left running, and those that wait for an approval or an answer, are listed here with their results.
            </EmptyState>
          ) : (
            <Table label="Waiting calls, newest first" columns={['Started', 'Tool', 'Status', '']}>
              {calls.map((c) => (
                <tr key={c.id}>
                  <td title={formatDateTime(c.created)}>{timeAgo(c.created)}</td>
                  <td className="mono wrap">
                    <a href={waitingHref(c.id)} aria-current={c.id === id ? 'true' : undefined}>
                      {c.tool}
                    </a>
                  </td>
                  <td className="wrap">
                    <Status call={c} />
                  </td>
                  <td>{isRunning(c) && <StopButton call={c} done={list.reload} />}</td>
                </tr>
              ))}
            </Table>
          )
        }
      </QueryContent>
    </div>
  );
}

function Status({ call: c }: { call: WaitingCall }) {
  const tone = c.isError ? 'warn' : statusTones[c.status];
  return (
    <>
      <Badge tone={tone}>{c.isError ? 'tool error' : c.status.replace('_', ' ')}</Badge> {c.status !== 'cancelled' && c.statusMessage && <span className="muted small">{c.statusMessage}</span>}
    </>
  );
}

/** StopButton cancels a call after a confirmation. */
function StopButton({ call: c, done }: { call: WaitingCall; done: () => Promise<void> }) {
  const [confirming, setConfirming] = useState(false);
  const [busy, act] = useAction();
  const stop = async () => {
    await act('stop', () => send('DELETE', path(c.id)), `${c.tool} stopped`);
    setConfirming(false);
    await done();
  };
  return (
    <>
      <Button small aria-label={`Stop ${c.tool}`} onClick={() => setConfirming(true)}>
        Stop
      </Button>
      {confirming && (
        <ConfirmDialog title={`Stop ${c.tool}?`} action="Stop the call" busy={busy !== null} onClose={() => setConfirming(false)} onConfirm={() => void stop()}>
          Its result is lost. The server is told to stop; what it has done already remains.
        </ConfirmDialog>
      )}
    </>
  );
}

/** WaitingCallDetails shows a waiting call, its questions, and its result when it has one. */
export function WaitingCallDetails({ id }: { id: string }) {
  const [ended, setEnded] = useState(false);
  const call = useQuery<WaitingCall>(path(id), (s) => get(path(id), s), ended ? 0 : 2000);
  const c = call.data;
  useEffect(() => setEnded(c !== undefined && !isRunning(c)), [c]);
  const [questions, setQuestions] = useState<RunQuestion[]>([]);
  useEffect(() => {
    if (!c) return;
    const open = c.inputs ?? [];
    setQuestions((list) => {
      const gone = list.filter((q) => !open.some((i) => i.id === q.id));
      const added = open.filter((i) => !list.some((q) => q.id === i.id));
      const server = c.tool.split(':')[0]!;
      const after = gone.reduce((l, q) => updateQuestions(l, { type: 'answered', call: id, input: { id: q.id, kind: '', asked: '' } }, server), list);
      return added.reduce((l, input) => updateQuestions(l, { type: 'question', call: id, input }, server), after);
    });
  }, [c, id]);
  return (
    <div className="detail">
      <header className="view-head">
        <h1 className="grow min0 ellipsis">{c?.tool ?? 'Call'}</h1>
        {c && isRunning(c) && <StopButton call={c} done={call.reload} />}
        <a className="button quiet square" href={waitingHref()} aria-label="Close">
          <Icon name="close" />
        </a>
      </header>
      <div className="detail-scroll">
        <QueryContent query={call}>
          {(c) => (
            <>
              <div className="row wrap-row">
                <Status call={c} />
                <span className="muted small">
                  {formatDateTime(c.created)}
                  {c.face ? ` · ${c.face}` : ''} · kept until {formatDateTime(c.expires)}
                </span>
              </div>
              {c.error && <p className="bad-text wrap">{c.error.message}</p>}
              <RunQuestions questions={questions} setQuestions={setQuestions} />
              {c.inputs?.some((i) => i.kind === 'approval') && <p className="muted">It waits for the approval of an administrator.</p>}
              {c.arguments !== undefined && (
                <section>
                  <h3>Arguments</h3>
                  <JsonView value={c.arguments} open={3} label="Arguments" />
                </section>
              )}
              {c.result !== undefined && (
                <section>
                  <h3>Result</h3>
                  <ResultView result={c.result} />
                </section>
              )}
            </>
          )}
        </QueryContent>
      </div>
    </div>
  );
}
