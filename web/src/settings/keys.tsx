import { useState } from 'react';
import { get, send, type Key } from '../lib/api';
import { ago, dateTime } from '../lib/format';
import { useResource } from '../lib/use';
import { useMe } from '../me';
import { Badge, Button, CopyButton, Dialog, Empty, Failure, Field, Note, Skeleton, useAction } from '../ui/ui';

/** Keys lists, makes and revokes API keys. */
export function Keys() {
  const me = useMe();
  const keys = useResource<{ keys: Key[] }>(me.admin ? 'keys' : null, (s) => get('/api/keys', s));
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<{ key: string; record: Key } | null>(null);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [old, setOld] = useState(false);
  const [busy, act] = useAction();
  if (!me.admin) return <NotAdmin what="Keys" />;
  const all = keys.data?.keys ?? [];
  const inForce = all.filter((k) => !k.revoked && (!k.expires || Date.parse(k.expires) > Date.now()));
  const shown = old ? all : inForce;
  return (
    <div className="stack">
      <div className="row">
        <p className="grow muted">A key lets a program or a person call this gateway, from other machines too.</p>
        <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
          New key
        </Button>
      </div>
      {made && (
        <Note tone="ok" actions={<Button kind="quiet" small icon="close" aria-label="Dismiss" onClick={() => setMade(null)} />}>
          <strong>{made.record.name}</strong> is made. This is the only time it can be seen:
          <div className="row keyline">
            <code className="wrap grow">{made.key}</code>
            <CopyButton text={made.key} label="Copy the key" small={false} />
          </div>
        </Note>
      )}
      {keys.error ? (
        <Failure error={keys.error} retry={() => void keys.reload()} />
      ) : !keys.data ? (
        <Skeleton rows={3} />
      ) : shown.length === 0 ? (
        <Empty icon="key" title="No keys">
          On this machine none is needed. Make one for programs elsewhere, or to limit what a program may use.
        </Empty>
      ) : (
        <div className="table-scroll" tabIndex={0} role="group" aria-label="API keys">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Key</th>
                <th scope="col">May use</th>
                <th scope="col">Made</th>
                <th scope="col">Last used</th>
                <th scope="col">
                  <span className="sr-only">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((k) => {
                const ended = k.revoked ? 'revoked' : k.expires && Date.parse(k.expires) < Date.now() ? 'expired' : '';
                return (
                  <tr key={k.id} className={ended ? 'off' : ''}>
                    <th scope="row">
                      {k.name} {k.admin && <Badge tone="accent">admin</Badge>} {k.chat !== undefined && <Badge>{k.chat ? 'chat' : 'no chat'}</Badge>} {ended && <Badge>{ended}</Badge>}
                    </th>
                    <td className="mono">{k.hint}…</td>
                    <td>{[...(k.servers ?? []), ...(k.tools ?? [])].join(', ') || 'everything'}</td>
                    <td title={dateTime(k.created)}>{ago(k.created)}</td>
                    <td>{k.lastUsed ? ago(k.lastUsed) : 'never'}</td>
                    <td>
                      {!ended && (
                        <Button small kind="quiet" onClick={() => setRevoking(k)}>
                          Revoke
                        </Button>
                      )}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {all.length > inForce.length && (
        <label className="check">
          <input type="checkbox" checked={old} onChange={(e) => setOld(e.target.checked)} /> Show {all.length - inForce.length} that are no longer in force
        </label>
      )}
      {making && (
        <NewKey
          onClose={() => setMaking(false)}
          onMade={(m) => {
            setMade(m);
            setMaking(false);
            void keys.reload();
          }}
        />
      )}
      {revoking && (
        <Dialog title={`Revoke ${revoking.name}?`} open onClose={() => setRevoking(null)}>
          <p>Whoever uses it is locked out within seconds. It cannot be undone.</p>
          <div className="row end">
            <Button onClick={() => setRevoking(null)}>Keep</Button>
            <Button
              kind="danger"
              busy={busy === 'revoke'}
              onClick={() =>
                void act('revoke', () => send('DELETE', `/api/keys/${encodeURIComponent(revoking.name)}`), `${revoking.name} is revoked`).then((ok) => {
                  if (ok) setRevoking(null);
                  void keys.reload();
                })
              }
            >
              Revoke
            </Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

function NewKey({ onClose, onMade }: { onClose: () => void; onMade: (m: { key: string; record: Key }) => void }) {
  const [name, setName] = useState('');
  const [admin, setAdmin] = useState(false);
  const [servers, setServers] = useState('');
  const [tools, setTools] = useState('');
  const [chat, setChat] = useState('');
  const [days, setDays] = useState('0');
  const [busy, act] = useAction();
  const list = (s: string) => {
    const l = s.split(/[\s,]+/).filter(Boolean);
    return l.length > 0 ? l : undefined;
  };
  const submit = () =>
    void act('make', async () =>
      onMade(await send('POST', '/api/keys', { name: name.trim(), admin, servers: list(servers), tools: list(tools), chat: chat ? chat === 'yes' : undefined, expiresInSeconds: Number(days) * 86_400 })),
    );
  return (
    <Dialog title="New API key" open onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          submit();
        }}
      >
        <Field label="Name" hint="Who or what uses it">
          {(id) => <input id={id} value={name} required autoFocus pattern="[A-Za-z0-9_\-]{1,64}" placeholder="laptop" autoComplete="off" onChange={(e) => setName(e.target.value)} />}
        </Field>
        <Field label="Servers" hint="Empty: all. Patterns such as git* are understood.">
          {(id) => <input id={id} className="mono" value={servers} autoComplete="off" placeholder="files, git*" onChange={(e) => setServers(e.target.value)} />}
        </Field>
        <Field label="Tools" hint="Empty: all of these servers">
          {(id) => <input id={id} className="mono" value={tools} autoComplete="off" placeholder="files:read_*" onChange={(e) => setTools(e.target.value)} />}
        </Field>
        <Field label="Chat and other use of models">
          {(id) => (
            <select id={id} value={chat} onChange={(e) => setChat(e.target.value)}>
              <option value="">unless limited to servers or tools</option>
              <option value="yes">yes</option>
              <option value="no">no</option>
            </select>
          )}
        </Field>
        <Field label="Ends">
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
          <input type="checkbox" checked={admin} onChange={(e) => setAdmin(e.target.checked)} /> Administrator: may change the configuration and run programs
        </label>
        <div className="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy === 'make'} disabled={!name.trim()}>
            Make
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** NotAdmin stands where something is for administrators. */
export function NotAdmin({ what }: { what: string }) {
  const me = useMe();
  return (
    <Empty icon="shield" title="For administrators" actions={!me.authenticated && <Button onClick={me.signIn}>Sign in with a key</Button>}>
      <p>{what} can be seen and changed by administrators.</p>
      <p>
        On the gateway's own machine run <code>junctor open</code>: it opens this page with the rights. Elsewhere sign in with a key made by <code>junctor keys add NAME --admin</code>.
      </p>
    </Empty>
  );
}
