import type { Status } from '../lib/api';
import { formatDuration } from '../lib/format';
import { href, navigate, useRoute } from '../lib/use';
import { useMe } from '../me';
import { setTheme, useTheme, type Theme } from '../theme';
import { Profiles } from '../profiles/view';
import { Icon, type IconName } from '../ui/icons';
import { Badge, Button, Code, Skeleton, Tabs } from '../ui/ui';
import { Approvals } from './approvals';
import { AuditLog } from './audit';
import { Clients } from './clients';
import { Config } from './config';
import { ApiKeys } from './keys';
import { Models } from './models';
import { SignIns } from './signins';

type Tab = 'general' | 'models' | 'keys' | 'profiles' | 'config' | 'audit';

export function SettingsView({ status }: { status?: Status }) {
  const { parts } = useRoute();
  const tab = (['models', 'keys', 'profiles', 'config', 'audit'].includes(parts[1] ?? '') ? parts[1] : 'general') as Tab;
  return (
    <div className="page">
      <header className="view-head">
        <h1 className="grow">Settings</h1>
      </header>
      <div className="page-scroll">
        <div className={`page-column ${tab === 'config' ? 'wide' : ''}`}>
          <Tabs
            label="Settings"
            value={tab}
            onChange={(t) => navigate(href(t === 'general' ? ['settings'] : ['settings', t]))}
            tabs={[
              { id: 'general', label: 'General' },
              { id: 'models', label: 'Models' },
              { id: 'keys', label: 'API keys' },
              { id: 'profiles', label: 'Profiles' },
              { id: 'config', label: 'Configuration' },
              { id: 'audit', label: 'Audit log' },
            ]}
          />
          {tab === 'general' && <General status={status} />}
          {tab === 'models' && <Models />}
          {tab === 'keys' && <ApiKeys />}
          {tab === 'profiles' && <Profiles />}
          {tab === 'config' && <Config />}
          {tab === 'audit' && <AuditLog />}
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
              <dd>{formatDuration(Date.now() - Date.parse(status.started))}</dd>
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
      {me.authenticated && <Clients />}
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
