import { useMemo, useState } from 'react';
import { get, send, type Key, type Setting, type Status } from '../lib/api';
import { ago, dateTime, duration, json } from '../lib/format';
import { useResource, useRoute, go, href } from '../lib/use';
import { useMe } from '../me';
import { setTheme, useTheme, type Theme } from '../theme';
import { Icon, type IconName } from '../ui/icons';
import { Badge, Button, Code, CopyButton, Dialog, Empty, Failure, Field, Note, Skeleton, Tabs, useAction } from '../ui/ui';

type Tab = 'general' | 'keys' | 'config';

export function SettingsView({ status }: { status?: Status }) {
  const { parts } = useRoute();
  const tab = (['keys', 'config'].includes(parts[1] ?? '') ? parts[1] : 'general') as Tab;
  return (
    <div className="page">
      <header className="view-head">
        <h1 className="grow">Settings</h1>
      </header>
      <div className="page-scroll">
        <div className="page-column">
          <Tabs
            label="Settings"
            value={tab}
            onChange={(t) => go(href(t === 'general' ? ['settings'] : ['settings', t]))}
            tabs={[
              { id: 'general', label: 'General' },
              { id: 'keys', label: 'API keys' },
              { id: 'config', label: 'Configuration' },
            ]}
          />
          {tab === 'general' && <General status={status} />}
          {tab === 'keys' && <Keys />}
          {tab === 'config' && <Config />}
        </div>
      </div>
    </div>
  );
}

const themes: [Theme, string, IconName][] = [
  ['system', 'As the system', 'system'],
  ['light', 'Light', 'sun'],
  ['dark', 'Dark', 'moon'],
];

function General({ status }: { status?: Status }) {
  const theme = useTheme();
  const me = useMe();
  return (
    <div className="stack">
      <section className="card">
        <h2>Appearance</h2>
        <div className="segmented" role="group" aria-label="Theme">
          {themes.map(([id, label, icon]) => (
            <button key={id} type="button" aria-pressed={theme === id} onClick={() => setTheme(id)}>
              <Icon name={icon} size={16} /> {label}
            </button>
          ))}
        </div>
      </section>
      <section className="card">
        <h2>This gateway</h2>
        {status ? (
          <dl className="facts-grid">
            <div>
              <dt>Version</dt>
              <dd className="mono">{status.version}</dd>
            </div>
            <div>
              <dt>Running for</dt>
              <dd>{duration(Date.now() - Date.parse(status.started))}</dd>
            </div>
            <div>
              <dt>Node</dt>
              <dd className="mono">{status.node}</dd>
            </div>
            <div>
              <dt>You are</dt>
              <dd>
                {me.caller} {me.admin && <Badge tone="accent">administrator</Badge>}
              </dd>
            </div>
          </dl>
        ) : (
          <Skeleton rows={2} />
        )}
        {me.authenticated && (
          <div className="row">
            <Button icon="power" onClick={me.signOut}>
              Sign out
            </Button>
          </div>
        )}
      </section>
      <section className="card">
        <h2>Connect an agent</h2>
        <p>Claude, Cursor, VS Code and other clients reach every tool here through one server:</p>
        <Code lang="shell" text="junctor connect" />
        <p>Or give them the address:</p>
        <Code lang="url" text={`${location.origin}/mcp`} />
      </section>
    </div>
  );
}

function Keys() {
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
                      {k.name} {k.admin && <Badge tone="accent">admin</Badge>} {ended && <Badge>{ended}</Badge>}
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
  const [days, setDays] = useState('0');
  const [busy, act] = useAction();
  const list = (s: string) => {
    const l = s.split(/[\s,]+/).filter(Boolean);
    return l.length > 0 ? l : undefined;
  };
  const submit = () =>
    void act('make', async () =>
      onMade(await send('POST', '/api/keys', { name: name.trim(), admin, servers: list(servers), tools: list(tools), expiresInSeconds: Number(days) * 86_400 })),
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

interface ConfigAnswer {
  place: { path: string; how: string; new?: string };
  settings: Setting[];
}

function Config() {
  const me = useMe();
  const config = useResource<ConfigAnswer>(me.admin ? 'config' : null, (s) => get('/api/config', s));
  const [text, setText] = useState('');
  const [changed, setChanged] = useState(false);
  const groups = useMemo(() => {
    const t = text.toLowerCase();
    const out = new Map<string, Setting[]>();
    for (const s of config.data?.settings ?? []) {
      if (changed && s.source === 'default') continue;
      if (t && !`${s.key} ${json(s.value, 0)} ${s.from}`.toLowerCase().includes(t)) continue;
      const parts = s.key.split('.');
      const group = parts[0] === 'mcpServers' ? parts.slice(0, 2).join('.') : (parts[0] ?? '');
      const g = out.get(group);
      if (g) g.push(s);
      else out.set(group, [s]);
    }
    return [...out];
  }, [config.data, text, changed]);
  if (!me.admin) return <NotAdmin what="The configuration" />;
  if (config.error) return <Failure error={config.error} retry={() => void config.reload()} />;
  if (!config.data) return <Skeleton rows={8} />;
  const place = config.data.place;
  return (
    <div className="stack">
      <p className="wrap">
        {place.path ? (
          <>
            File: <code>{place.path}</code> <span className="muted">({place.how})</span>
          </>
        ) : (
          <>
            There is no configuration file; everything is at its default. The first change makes <code>{place.new}</code>.
          </>
        )}
      </p>
      <div className="row wrap-row">
        <input type="search" className="grow" aria-label="Search settings" placeholder="Search settings" value={text} onChange={(e) => setText(e.target.value)} />
        <label className="check">
          <input type="checkbox" checked={changed} onChange={(e) => setChanged(e.target.checked)} /> Only what is not default
        </label>
      </div>
      {groups.length === 0 && <Empty icon="search" title="Nothing fits" />}
      {groups.map(([group, list]) => (
        <section key={group} className="config-group">
          <h2>{group}</h2>
          <div className="table-scroll" tabIndex={0} role="group" aria-label={`Settings of ${group}`}>
            <table className="config">
              <tbody>
                {list.map((s) => (
                  <tr key={s.key}>
                    <th scope="row" className="mono">
                      {s.key.slice(group.length + 1) || s.key}
                    </th>
                    <td className="mono wrap">{value(s.value)}</td>
                    <td className={s.source === 'default' ? 'muted' : 'accent-text'}>{s.from}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      ))}
    </div>
  );
}

function value(v: unknown): string {
  if (v === '' || v === null || v === undefined) return '–';
  if (Array.isArray(v) && v.every((x) => typeof x === 'string')) return v.join(', ') || '–';
  return typeof v === 'string' ? v : json(v, 0);
}

function NotAdmin({ what }: { what: string }) {
  return (
    <Empty icon="shield" title="For administrators">
      {what} can be seen by administrators: on the gateway's own machine, or with a key made by <code>junctor keys add NAME --admin</code>.
    </Empty>
  );
}
