import { useMemo, useState } from 'react';
import { get, type Setting, type Status } from '../lib/api';
import { duration, json } from '../lib/format';
import { useResource, useRoute, go, href } from '../lib/use';
import { useMe } from '../me';
import { setTheme, useTheme, type Theme } from '../theme';
import { Icon, type IconName } from '../ui/icons';
import { Badge, Button, Code, Empty, Failure, Skeleton, Tabs } from '../ui/ui';
import { Approvals } from './approvals';
import { Keys, NotAdmin } from './keys';
import { SignIns } from './signins';

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
  ['system', 'System', 'system'],
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
              <dt>Uptime</dt>
              <dd>{duration(Date.now() - Date.parse(status.started))}</dd>
            </div>
            <div>
              <dt>Node</dt>
              <dd className="mono">{status.node}</dd>
            </div>
            <div>
              <dt>Signed in as</dt>
              <dd>
                {me.caller} {me.admin && <Badge tone="accent">administrator</Badge>}
              </dd>
            </div>
          </dl>
        ) : (
          <Skeleton rows={2} />
        )}
        {!me.admin && (
          <p className="muted">
            To change servers, keys and settings, run <code>junctor open</code> on the gateway's machine, or sign in with an administrator key.
          </p>
        )}
        <div className="row">
          {me.authenticated ? (
            <Button icon="power" onClick={me.signOut}>
              Sign out
            </Button>
          ) : (
            <Button icon="key" onClick={me.signIn}>
              Sign in with a key
            </Button>
          )}
        </div>
      </section>
      {me.authenticated && <SignIns />}
      <Approvals />
      <section className="card">
        <h2>Connect an agent</h2>
        <p>Claude, Cursor, VS Code and other clients can use all of these tools through one MCP server:</p>
        <Code lang="shell" text="junctor connect" />
        <p>Or enter this URL in the client:</p>
        <Code lang="url" text={`${location.origin}/mcp`} />
      </section>
    </div>
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
            There is no configuration file; all settings have their default values. The first change creates <code>{place.new}</code>.
          </>
        )}
      </p>
      <div className="row wrap-row">
        <input type="search" className="grow" aria-label="Search settings" placeholder="Search settings" value={text} onChange={(e) => setText(e.target.value)} />
        <label className="check">
          <input type="checkbox" checked={changed} onChange={(e) => setChanged(e.target.checked)} /> Only changed settings
        </label>
      </div>
      {groups.length === 0 && <Empty icon="search" title="No matches" />}
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
