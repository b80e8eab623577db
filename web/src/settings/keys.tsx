import { useState } from 'react';
import { get, send, type GetResponse, type Key } from '../lib/api';
import { formatDateTime, timeAgo } from '../lib/format';
import { useQuery } from '../lib/use';
import { useMe } from '../me';
import { ConfirmDialog, QueryContent, Table } from '../ui/grid';
import { Badge, Button, CopyButton, Dialog, EmptyState, Field, Note, useAction } from '../ui/ui';

/** ApiKeys lists, creates and revokes API keys. */
export function ApiKeys() {
  const me = useMe();
  const keys = useQuery<GetResponse<'/api/keys'>>(me.admin ? 'keys' : null, (s) => get('/api/keys', s));
  const [creating, setCreating] = useState(false);
  const [created, setCreated] = useState<{ key: string; record: Key } | null>(null);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [showInactive, setShowInactive] = useState(false);
  const [busy, act] = useAction();
  if (!me.admin) return <NotAdmin subject="Keys" />;
  const all = keys.data?.keys ?? [];
  const activeKeys = all.filter((k) => !k.revoked && (!k.expires || Date.parse(k.expires) > Date.now()));
  const shown = showInactive ? all : activeKeys;
  return (
    <div className="stack">
      <div className="row">
        <p className="grow muted">API keys let programs and people use this gateway, also from other machines.</p>
        <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
          New key
        </Button>
      </div>
      {created && (
        <Note tone="ok" actions={<Button kind="quiet" small icon="close" aria-label="Dismiss" onClick={() => setCreated(null)} />}>
          <strong>{created.record.name}</strong> created. Copy the key now; it is not shown again:
          <div className="row keyline">
            <code className="wrap grow">{created.key}</code>
            <CopyButton text={created.key} label="Copy key" small={false} />
          </div>
        </Note>
      )}
      <QueryContent query={keys} rows={3}>
        {() =>
          shown.length === 0 ? (
            <EmptyState icon="key" title="No keys">
              None is needed on this machine. Create one for programs on other machines, or to restrict what a program can use.
            </EmptyState>
          ) : (
            <Table label="API keys" columns={['Name', 'Key', 'Access', 'Created', 'Last used', '']}>
              {shown.map((k) => {
                const inactiveReason = k.revoked ? 'revoked' : k.expires && Date.parse(k.expires) < Date.now() ? 'expired' : '';
                return (
                  <tr key={k.id} className={inactiveReason ? 'off' : ''}>
                    <th scope="row">
                      {k.name} {k.admin && <Badge tone="accent">admin</Badge>} {k.chat !== undefined && <Badge>{k.chat ? 'chat' : 'no chat'}</Badge>} {inactiveReason && <Badge>{inactiveReason}</Badge>}
                    </th>
                    <td className="mono">{k.hint}…</td>
                    <td>{[...(k.profile ? [`profile ${k.profile}`] : []), ...(k.servers ?? []), ...(k.tools ?? [])].join(', ') || 'everything'}</td>
                    <td title={formatDateTime(k.created)}>{timeAgo(k.created)}</td>
                    <td>{k.lastUsed ? timeAgo(k.lastUsed) : 'never'}</td>
                    <td>
                      {!inactiveReason && (
                        <Button small kind="quiet" onClick={() => setRevoking(k)}>
                          Revoke
                        </Button>
                      )}
                    </td>
                  </tr>
                );
              })}
            </Table>
          )
        }
      </QueryContent>
      {all.length > activeKeys.length && (
        <label className="check">
          <input type="checkbox" checked={showInactive} onChange={(e) => setShowInactive(e.target.checked)} /> Show {all.length - activeKeys.length} revoked or expired
        </label>
      )}
      {creating && (
        <NewKey
          onClose={() => setCreating(false)}
          onCreated={(m) => {
            setCreated(m);
            setCreating(false);
            void keys.reload();
          }}
        />
      )}
      {revoking && (
        <ConfirmDialog
          title={`Revoke ${revoking.name}?`}
          action="Revoke"
          busy={busy === 'revoke'}
          onClose={() => setRevoking(null)}
          onConfirm={() =>
            void act('revoke', () => send('DELETE', `/api/keys/${encodeURIComponent(revoking.name)}`), `${revoking.name} revoked`).then((ok) => {
              if (ok) setRevoking(null);
              void keys.reload();
            })
          }
        >
          Programs that use this key lose access within seconds. This cannot be undone.
        </ConfirmDialog>
      )}
    </div>
  );
}

function NewKey({ onClose, onCreated }: { onClose: () => void; onCreated: (m: { key: string; record: Key }) => void }) {
  const [name, setName] = useState('');
  const [admin, setAdmin] = useState(false);
  const [servers, setServers] = useState('');
  const [tools, setTools] = useState('');
  const [chat, setChat] = useState('');
  const [days, setDays] = useState('0');
  const [profile, setProfile] = useState('');
  const profiles = useQuery<{ profiles: { name: string }[] }>('profiles', (s) => get('/api/profiles', s)).data?.profiles ?? [];
  const [busy, act] = useAction();
  const parseList = (s: string) => {
    const l = s.split(/[\s,]+/).filter(Boolean);
    return l.length > 0 ? l : undefined;
  };
  const submit = () =>
    void act('make', async () =>
      onCreated(await send('POST', '/api/keys', { name: name.trim(), admin, servers: parseList(servers), tools: parseList(tools), profile: profile || undefined, chat: chat ? chat === 'yes' : undefined, expiresInSeconds: Number(days) * 86_400 })),
    );
  return (
    <Dialog title="New API key" open onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          submit();
        }}
      >
        <Field label="Name" hint="The program or person that will use the key">
          {(id) => <input id={id} value={name} required autoFocus pattern="[A-Za-z0-9_\-]{1,64}" placeholder="laptop" autoComplete="off" onChange={(e) => setName(e.target.value)} />}
        </Field>
        <Field label="Servers" hint="Leave empty for all. Patterns such as git* are supported.">
          {(id) => <input id={id} className="mono" value={servers} autoComplete="off" placeholder="files, git*" onChange={(e) => setServers(e.target.value)} />}
        </Field>
        <Field label="Tools" hint="Leave empty for all tools of these servers">
          {(id) => <input id={id} className="mono" value={tools} autoComplete="off" placeholder="files:read_*" onChange={(e) => setTools(e.target.value)} />}
        </Field>
        {profiles.length > 0 && (
          <Field label="Profile" hint="The key is bound to it and can choose no other">
            {(id) => (
              <select id={id} value={profile} onChange={(e) => setProfile(e.target.value)}>
                <option value="">none</option>
                {profiles.map((p) => (
                  <option key={p.name}>{p.name}</option>
                ))}
              </select>
            )}
          </Field>
        )}
        <Field label="Chat and other uses of models">
          {(id) => (
            <select id={id} value={chat} onChange={(e) => setChat(e.target.value)}>
              <option value="">allowed unless restricted to servers or tools</option>
              <option value="yes">allowed</option>
              <option value="no">not allowed</option>
            </select>
          )}
        </Field>
        <Field label="Expires">
          {(id) => (
            <select id={id} value={days} onChange={(e) => setDays(e.target.value)}>
              <option value="0">never</option>
              <option value="7">in a week</option>
              <option value="30">in 30 days</option>
              <option value="365">in a year</option>
            </select>
          )}
        </Field>
        <label className="check">
          <input type="checkbox" checked={admin} onChange={(e) => setAdmin(e.target.checked)} /> Administrator: can change the configuration and run programs
        </label>
        <div className="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy === 'make'} disabled={!name.trim()}>
            Create key
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** NotAdmin is shown in place of content that requires administrator rights. */
export function NotAdmin({ subject }: { subject: string }) {
  const me = useMe();
  return (
    <EmptyState icon="shield" title="Administrators only" actions={!me.authenticated && <Button onClick={me.signIn}>Sign in with a key</Button>}>
      <p>{subject} can only be viewed and changed by administrators.</p>
      <p>
        On the gateway's machine, run <code>junctor open</code>: it opens this page with administrator rights. On other machines, sign in with a key created by <code>junctor keys add NAME --admin</code>.
      </p>
    </EmptyState>
  );
}
