import { useEffect, useState } from 'react';
import { get, send, type GetResponse, type Server, type ServerState } from '../lib/api';
import { formatCount, formatDateTime, formatDuration, plural, timeAgo } from '../lib/format';
import { usePollInterval, useReloadOnChange } from '../lib/live';
import { href, navigate, parseRoute, useQuery, useRoute } from '../lib/use';
import { useMe } from '../me';
import { Icon } from '../ui/icons';
import { ConfirmDialog } from '../ui/grid';
import { Badge, Button, EmptyState, ErrorNote, Note, Skeleton, StatusDot, Switch, useAction, useToast, type Tone } from '../ui/ui';
import { AddServer, EditServer } from './add';
import { Logins } from './logins';
import { ConnectionSettings, RecentCalls, ResourcesAndPrompts, ServerTools, StderrLog } from './parts';

export const stateTone: Record<ServerState, Tone> = { connected: 'ok', connecting: 'accent', disconnected: 'bad', auth_required: 'warn', disabled: 'neutral' };
const stateLabel: Record<ServerState, string> = { connected: 'connected', connecting: 'connecting', disconnected: 'disconnected', auth_required: 'sign-in required', disabled: 'off' };

export function ServersView() {
  const { parts, query } = useRoute();
  const name = parts[1];
  const me = useMe();
  const add = query.get('add');
  const list = useQuery<GetResponse<'/api/servers'>>('servers', (s) => get('/api/servers', s), usePollInterval(3000));
  useReloadOnChange(list.reload);
  const servers = list.data?.servers ?? [];
  const current = servers.find((s) => s.name === name);
  const configuredServers = servers.filter((s) => s.transport !== 'inprocess' && s.name !== 'junctor');
  return (
    <div className={`servers split ${name ? 'has-detail' : ''}`}>
      <section className="split-list" aria-label="Servers">
        <header className="view-head">
          <h1 className="grow">Servers</h1>
          {me.admin && (
            <Button kind="primary" icon="plus" onClick={() => navigate(href(['servers', ...(name ? [name] : [])], { add: 'form' }))}>
              Add
            </Button>
          )}
        </header>
        {!me.admin && me.caller && (
          <p className="muted small pad">
            Only administrators can change servers. Run <code>junctor open</code>, or sign in with an administrator key in <a href="#/settings">Settings</a>.
          </p>
        )}
        {list.error && <ErrorNote error={list.error} retry={() => void list.reload()} />}
        {!list.data && !list.error ? (
          <Skeleton rows={5} height={64} />
        ) : (
          <div className="server-list">
            <ul>
              {servers.map((s) => (
                <li key={s.name}>
                  <a className={`server-row ${s.name === name ? 'current' : ''}`} href={href(['servers', s.name])} aria-current={s.name === name ? 'true' : undefined}>
                    <StatusDot tone={stateTone[s.status]} pulse={s.status === 'connecting'} />
                    <span className="grow min0">
                      <span className="row tight">
                        <strong className="ellipsis">{s.name}</strong>
                        <span className="muted small">{s.transport}</span>
                      </span>
                      <span className={`small ellipsis block ${s.status === 'connected' ? 'muted' : `${stateTone[s.status]}-text`}`}>
                        {s.status === 'connected' ? (s.description ?? '').replace(/^[#\s]+/, '') || plural(s.tools, 'tool') : `${stateLabel[s.status]}${s.reason ? `: ${s.reason}` : ''}`}
                      </span>
                    </span>
                    <span className="server-count">{formatCount(s.tools)}</span>
                  </a>
                </li>
              ))}
            </ul>
            {configuredServers.length === 0 && list.data && (
              <EmptyState
                icon="servers"
                title="No servers yet"
                actions={
                  me.admin && (
                    <>
                      <a className="button primary" href={href(['servers'], { add: 'import' })}>
                        Import
                      </a>
                      <a className="button" href={href(['servers'], { add: 'form' })}>
                        Add one
                      </a>
                    </>
                  )
                }
              >
                MCP servers provide the tools. Import the servers of Claude, Cursor, VS Code and other programs on this machine, or add one.
              </EmptyState>
            )}
          </div>
        )}
      </section>
      <section className="split-detail" aria-label="Server">
        {current ? (
          <ServerPage server={current} reload={list.reload} />
        ) : name && list.data ? (
          <EmptyState icon="servers" title={`No such server: “${name}”`} actions={<a className="button" href="#/servers">All servers</a>} />
        ) : (
          <EmptyState icon="servers" title="Select a server">
            See its status, its tools and its latest output.
          </EmptyState>
        )}
      </section>
      {add && me.admin && (
        <AddServer
          key={add}
          tab={add}
          existingNames={servers.map((s) => s.name)}
          onClose={() => navigate(href(['servers', ...(name ? [name] : [])]), true)}
          onDone={(names) => {
            navigate(href(['servers', ...(names[0] ? [names[0]] : [])]), true);
            void list.reload();
          }}
        />
      )}
    </div>
  );
}

function ServerPage({ server: s, reload }: { server: Server; reload: () => Promise<void> }) {
  const me = useMe();
  const toast = useToast();
  const [busy, act] = useAction();
  const [removing, setRemoving] = useState(false);
  const [, forceUpdate] = useState(0);
  useEffect(() => {
    const t = setInterval(() => forceUpdate((n) => n + 1), 1000);
    return () => clearInterval(t);
  }, []);
  const [editing, setEditing] = useState(false);
  const path = `/api/servers/${encodeURIComponent(s.name)}`;
  const builtin = s.transport === 'inprocess' || s.name === 'junctor';

  const signIn = () => {
    // The tab must be opened while the click is being handled, or the browser blocks it.
    const tab = window.open('about:blank', '_blank');
    void act('signin', async () => {
      const { url } = await send<{ url: string }>('POST', `/api/mcp/${encodeURIComponent(s.name)}/authorize`, {});
      if (!/^https?:\/\//i.test(url)) throw new Error('the server returned a sign-in URL that is not a web address');
      if (tab) {
        tab.opener = null;
        tab.location.href = url;
      } else location.href = url;
    }).then((ok) => {
      if (!ok) tab?.close();
      else toast('Sign in in the new tab. The server then connects automatically.');
    });
  };

  const ping = () => {
    const startedAt = performance.now();
    void act('test', () => send('POST', path + '/request', { method: 'ping' })).then((ok) => ok && toast(`${s.name} answered in ${formatDuration(performance.now() - startedAt)}`, 'ok'));
  };

  return (
    <div className="detail">
      <header className="view-head">
        <a className="button quiet square only-narrow" href="#/servers" aria-label="Back to the list">
          <Icon name="back" />
        </a>
        <div className="grow min0">
          <h1 className="ellipsis">{s.name}</h1>
          <div className="small row tight">
            <StatusDot tone={stateTone[s.status]} pulse={s.status === 'connecting'} />
            <span>{stateLabel[s.status]}</span>
            {s.since && <span className="muted">{timeAgo(s.since)}</span>}
          </div>
        </div>
        {me.admin && !builtin && (
          <Switch
            on={s.status !== 'disabled'}
            label={`${s.name} is on`}
            disabled={busy !== null}
            onChange={(on) => void act('enable', () => send('PATCH', path, { enabled: on }), `${s.name} is ${on ? 'on' : 'off'}`).then(reload)}
          />
        )}
      </header>
      <div className="detail-scroll">
        {s.status === 'auth_required' && (
          <Note tone="warn" actions={<Button kind="primary" small icon="out" busy={busy === 'signin'} onClick={signIn}>Sign in</Button>}>
            {s.login === 'caller' ? 'This server requires you to sign in with your own account.' : `This server requires a sign-in${s.reason ? `: ${s.reason}` : '.'}`}
          </Note>
        )}
        {s.status === 'disconnected' && (
          <Note
            tone="bad"
            actions={
              me.admin && (
                <Button small icon="refresh" busy={busy === 'restart'} onClick={() => void act('restart', () => send('POST', path + '/restart')).then(reload)}>
                  Connect now
                </Button>
              )
            }
          >
            {s.reason || 'Not connected.'}
            {s.nextTry && <div className="small muted">Next attempt {timeAgo(s.nextTry)} · {plural(s.attempts ?? 0, 'attempt')} so far</div>}
          </Note>
        )}
        {s.status === 'connecting' && <Note>Connecting{s.reason ? `: ${s.reason}` : '…'}</Note>}
        <div className="row wrap-row">
          <a className="button" href={href(['tools'], { server: s.name })}>
            <Icon name="tools" size={17} /> {plural(s.tools, 'tool')}
          </a>
          <a className="button" href={href(['activity'], { server: s.name })}>
            <Icon name="activity" size={17} /> Activity
          </a>
          {me.admin && (s.status === 'connected' || s.status === 'connecting') && (
            <Button icon="refresh" busy={busy === 'restart'} onClick={() => void act('restart', () => send('POST', path + '/restart'), `${s.name} is restarting`).then(reload)}>
              Restart
            </Button>
          )}
          {s.status === 'connected' && (
            <Button icon="check" busy={busy === 'test'} onClick={ping}>
              Test
            </Button>
          )}
          {me.admin && !builtin && (
            <Button icon="settings" onClick={() => setEditing(true)}>
              Edit
            </Button>
          )}
          {(s.login === 'caller' ? s.signedIn : me.admin && s.transport !== 'stdio' && !builtin && s.status === 'connected') && (
            <Button kind="quiet" icon="out" busy={busy === 'signout'} onClick={() => void act('signout', () => send('DELETE', `/api/mcp/${encodeURIComponent(s.name)}/authorize`), `Signed out of ${s.name}`).then(reload)}>
              {s.login === 'caller' ? 'End your login' : 'Sign out'}
            </Button>
          )}
          {me.admin && !builtin && (
            <Button kind="quiet" icon="trash" onClick={() => setRemoving(true)}>
              Remove
            </Button>
          )}
        </div>
        {s.description && !s.instructions?.startsWith(s.description.replace(/…$/, '').slice(0, 60)) && <p className="wrap">{s.description}</p>}
        {s.tags && s.tags.length > 0 && (
          <div className="row tight wrap-row">
            {s.tags.map((t) => (
              <Badge key={t}>#{t}</Badge>
            ))}
          </div>
        )}
        <dl className="facts-grid">
          <Fact name="Server">{[s.serverTitle || s.serverName, s.serverVersion].filter(Boolean).join(' ')}</Fact>
          <Fact name="Transport">{s.transport}</Fact>
          <Fact name="Your login">{s.login === 'caller' ? (s.signedIn ? 'signed in' : 'none') : ''}</Fact>
          <Fact name="Protocol">{s.protocol && `${s.protocol}${s.era ? ` (${s.era})` : ''}`}</Fact>
          <Fact name="Latency">{s.latencyMs ? formatDuration(s.latencyMs) : ''}</Fact>
          <Fact name="Tools">{`${formatCount(s.enabledTools)} of ${formatCount(s.tools)} enabled`}</Fact>
          <Fact name="Calls in progress">{s.inFlight ? String(s.inFlight) : ''}</Fact>
          <Fact name="Process">{s.pid ? `${s.pid}${s.isolation ? `, ${String(s.isolation)}` : ''}` : ''}</Fact>
          <Fact name="Connections lost">{s.lost ? String(s.lost) : ''}</Fact>
          <Fact name="Invalid output lines">{s.strayLines ? `${s.strayLines}, last: ${s.lastStray ?? ''}` : ''}</Fact>
          <Fact name="Last failure">{s.lastFailure && s.lastFailure !== s.reason ? `${s.lastFailure} (${formatDateTime(s.failedAt)})` : ''}</Fact>
        </dl>
        {me.admin && s.login === 'caller' && <Logins key={`logins ${s.name}`} server={s.name} />}
        {me.admin && !builtin && <ConnectionSettings key={s.name} name={s.name} version={`${s.status} ${s.since ?? ''}`} />}
        {s.problems && s.problems.length > 0 && (
          <section>
            <h3>Problems with its definitions</h3>
            <ul className="plain-list">
              {s.problems.map((p, i) => (
                <li key={i} className="wrap">
                  {p}
                </li>
              ))}
            </ul>
          </section>
        )}
        {s.instructions && (
          <details className="fold">
            <summary>Server instructions</summary>
            <div className="wrap">{s.instructions}</div>
          </details>
        )}
        <RecentCalls key={`traffic ${s.name}`} server={s.name} />
        {s.tools > 0 && <ServerTools key={`tools ${s.name}`} server={s.name} />}
        {s.status === 'connected' && <ResourcesAndPrompts key={`catalog ${s.name}`} server={s.name} />}
        {s.stderr && s.stderr.length > 0 && <StderrLog lines={s.stderr} />}
      </div>
      {editing && (
        <EditServer
          name={s.name}
          onClose={() => setEditing(false)}
          onDone={() => {
            setEditing(false);
            void reload();
          }}
        />
      )}
      {removing && (
        <ConfirmDialog
          title={`Remove ${s.name}?`}
          action="Remove"
          busy={busy === 'remove'}
          onClose={() => setRemoving(false)}
          onConfirm={() =>
            void act('remove', () => send('DELETE', path), `${s.name} removed`).then((ok) => {
              if (!ok) return;
              setRemoving(false);
              // The user may have navigated elsewhere before the response.
              const [view, shown] = parseRoute(location.hash).parts;
              if (view === 'servers' && shown === s.name) navigate('#/servers');
              void reload();
            })
          }
        >
          The server is removed from the configuration file; the rest of the file is not changed. Calls in progress are cancelled.
        </ConfirmDialog>
      )}
    </div>
  );
}

function Fact({ name, children }: { name: string; children?: string }) {
  if (!children) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd className="wrap">{children}</dd>
    </div>
  );
}
