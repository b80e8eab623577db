import { useState } from 'react';
import { send, type ApprovalRequest, type WaitingCall } from './lib/api';
import { formatDateTime, plural, timeAgo } from './lib/format';
import { useInbox } from './lib/inbox';
import { DataView } from './ui/data';
import { Badge, Button, EmptyState, Field, Note, useAction } from './ui/ui';

const scopeLabels = { once: 'Allow once', session: 'Allow for this session', always: 'Always allow' };

/** ApprovalsView is the inbox: the calls that wait for an administrator. */
export function ApprovalsView() {
  const calls = useInbox();
  return (
    <div className="page">
      <header className="view-head">
        <h1 className="grow">Approvals</h1>
        <NotificationButton />
      </header>
      <div className="page-scroll">
        <div className="page-column">
          {calls.length === 0 ? (
            <EmptyState icon="check" title="No call waits for approval">
              <p>Calls of tools that require approval appear here when their client cannot ask its user, and those of chats.</p>
            </EmptyState>
          ) : (
            <div className="stack" aria-live="polite" aria-label={`${plural(calls.length, 'call')} waiting`}>
              {calls.map((c) => (
                <PendingApproval key={c.id} call={c} />
              ))}
            </div>
          )}
        </div>
      </div>
    </div>
  );
}

function PendingApproval({ call }: { call: WaitingCall }) {
  const [busy, act] = useAction();
  const [reason, setReason] = useState('');
  const input = call.inputs?.find((i) => i.kind === 'approval');
  const request = input?.params as ApprovalRequest | undefined;
  if (!input || !request) return null;
  const decide = (name: string, body: unknown, done: string) => void act(name, () => send('POST', `/api/approvals/${call.id}`, body), done);
  return (
    <section className="card" aria-label={`${call.tool} for ${call.callerName ?? call.caller}`}>
      <h2 className="mono">{call.tool}</h2>
      <p>
        <strong title={call.caller}>{call.callerName ?? call.caller}</strong> wants to run it{call.face ? ` (${call.face})` : ''}, <span title={formatDateTime(call.created)}>{timeAgo(call.created)}</span>
        {input.expires && <span className="muted"> · until {formatDateTime(input.expires)}</span>}
      </p>
      <p className="muted">{request.why}</p>
      {request.changed && (
        <Note tone="warn">
          <strong>The definition of this tool changed</strong> since it was approved.
          {request.differences !== undefined && <DataView value={request.differences} label="What changed" />}
        </Note>
      )}
      {request.warnings?.map((w) => (
        <Badge key={w} tone="warn">
          {w}
        </Badge>
      ))}
      <DataView value={call.arguments ?? {}} label="Arguments" />
      <Field label="Reason for a denial" hint="The agent reads it.">
        {(id) => <input id={id} value={reason} maxLength={1000} onChange={(e) => setReason(e.target.value)} />}
      </Field>
      <div className="row wrap">
        {request.scopes.map((scope) => (
          <Button key={scope} kind={scope === 'once' ? 'primary' : 'plain'} busy={busy === scope} onClick={() => decide(scope, { action: 'allow', scope }, `${call.tool} allowed`)}>
            {scopeLabels[scope]}
          </Button>
        ))}
        <Button kind="danger" busy={busy === 'deny'} onClick={() => decide('deny', { action: 'deny', reason }, `${call.tool} denied`)}>
          Deny
        </Button>
      </div>
    </section>
  );
}

/** NotificationButton asks for the permission to show desktop notifications, unless it was decided before. */
function NotificationButton() {
  const [permission, setPermission] = useState(typeof Notification === 'undefined' ? 'denied' : Notification.permission);
  if (permission !== 'default') return null;
  return <Button onClick={() => void Notification.requestPermission().then(setPermission)}>Notify me on the desktop</Button>;
}
