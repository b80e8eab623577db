import { Component, Suspense, lazy, useCallback, useEffect, useMemo, useState, type ComponentType, type ErrorInfo, type ReactNode } from 'react';
import { clearTypedInput } from './chat/drafts';
import { ChatView } from './chat/view';
import { get, onConnectivityChange, onSessionEnd, signOut as endSession, type Session, type Status } from './lib/api';
import { followInbox, useInbox } from './lib/inbox';
import { followEvents, usePollInterval, useReloadOnChange, useWaitingChats } from './lib/live';
import { onSessionChange } from './lib/session';
import { useQuery, useRoute } from './lib/use';
import { MeContext, type Me } from './me';
import { Palette } from './palette';
import { SignIn } from './signin';
import { setTheme, useTheme } from './theme';
import { Icon, Logo, type IconName } from './ui/icons';
import { Button, EmptyState, ErrorNote, Note, Skeleton, StatusDot, Toasts } from './ui/ui';

type ViewProps = { status?: Status };
/** lazyView loads a view when it is opened. */
const lazyView = (load: () => Promise<ComponentType<ViewProps>>) => lazy(async () => ({ default: await load() }));

interface View {
  id: string;
  label: string;
  icon: IconName;
  component: ComponentType<ViewProps>;
}

/** The views, in the order of the navigation. Only the chat is in the first bundle. */
export const views: View[] = [
  { id: 'chat', label: 'Chat', icon: 'chat', component: ChatView },
  { id: 'tools', label: 'Tools', icon: 'tools', component: lazyView(() => import('./tools/view').then((m) => m.ToolsView)) },
  { id: 'code', label: 'Code', icon: 'code', component: lazyView(() => import('./code/view').then((m) => m.CodeView)) },
  { id: 'resources', label: 'Resources', icon: 'file', component: lazyView(() => import('./resources/view').then((m) => m.ResourcesView)) },
  { id: 'servers', label: 'Servers', icon: 'servers', component: lazyView(() => import('./servers/view').then((m) => m.ServersView)) },
  { id: 'activity', label: 'Activity', icon: 'activity', component: lazyView(() => import('./activity/view').then((m) => m.ActivityView)) },
  { id: 'settings', label: 'Settings', icon: 'settings', component: lazyView(() => import('./settings/view').then((m) => m.SettingsView)) },
];

/** inboxView is in the navigation while calls wait for approval. */
const inboxView: View = { id: 'approvals', label: 'Approvals', icon: 'check', component: lazyView(() => import('./approvals').then((m) => m.ApprovalsView)) };

/** tokenError is why the token in the URL was not accepted, or ''. */
export function App({ tokenError = '' }: { tokenError?: string }) {
  const [online, setOnline] = useState(true);
  const [signInRequired, setSignInRequired] = useState(false);
  const [signInOpen, setSignInOpen] = useState(false);
  const [warning, setWarning] = useState(tokenError);
  useEffect(
    () =>
      onConnectivityChange((s) => {
        setOnline(s.online);
        if (s.signIn) setSignInRequired(true);
      }),
    [],
  );
  const session = useQuery<Session>('session', (s) => get('/api/session', s));
  const needsSignIn = signInRequired || session.data?.needsSignIn === true;
  const status = useQuery<Status>(session.data && !needsSignIn ? 'status' : null, (s) => get('/api/status', s), usePollInterval(5000));
  useReloadOnChange(status.reload);
  const { reload } = session;
  const signOut = useCallback(() => {
    clearTypedInput();
    void endSession().finally(() => void reload());
  }, [reload]);
  const me = useMemo<Me>(
    () => ({ caller: session.data?.caller ?? '', admin: session.data?.admin ?? false, authenticated: session.data?.authenticated ?? false, signOut, signIn: () => setSignInOpen(true) }),
    [session.data, signOut],
  );
  // A change of user remounts the views. None is mounted before the session is
  // known, because input typed into it would be lost.
  const callerKey = `${me.caller} ${me.authenticated}`;
  const ready = session.data !== undefined && !needsSignIn;
  useEffect(() => (ready ? followEvents() : undefined), [ready, callerKey]);
  useEffect(() => (ready && me.admin ? followInbox() : undefined), [ready, me.admin, callerKey]);
  // Another tab has signed in or out, or the session was ended elsewhere.
  useEffect(() => onSessionChange(() => location.reload()), []);
  useEffect(() => onSessionEnd(() => void reload()), [reload]);

  // While the gateway is unreachable, poll its health endpoint.
  useEffect(() => {
    if (online) return;
    const t = setInterval(() => void get('/health/live').catch(() => {}), 2000);
    return () => clearInterval(t);
  }, [online]);
  useEffect(() => {
    if (online && session.error) void reload();
  }, [online, session.error, reload]);

  const route = useRoute();
  const view = [...views, inboxView].find((v) => v.id === route.parts[0]) ?? views[0]!;
  const waitingChats = useWaitingChats(view.id === 'chat' ? (route.parts[1] ?? '') : '');
  const waitingCount = Math.max(useInbox().length, waitingChats); // an approval in a chat is in both
  useEffect(() => {
    document.title = `${waitingCount > 0 ? `(${waitingCount}) ` : ''}${view.label} · Junctor`;
  }, [view, waitingCount]);

  if (needsSignIn || signInOpen) {
    return (
      <Toasts>
        <SignIn
          provider={session.data?.oidc}
          onCancel={needsSignIn ? undefined : () => setSignInOpen(false)}
          onDone={() => {
            setSignInRequired(false);
            setSignInOpen(false);
            void reload();
          }}
        />
      </Toasts>
    );
  }
  return (
    <Toasts>
      <MeContext.Provider value={me}>
        <div className="shell">
          <a className="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById('main')?.focus())}>
            Skip to main content
          </a>
          <Nav current={view.id} status={status.data} online={online} waitingChats={waitingChats} />
          <main id="main" tabIndex={-1}>
            {!online && (
              <div className="offline" role="alert">
                <span className="spinner" /> Cannot reach the gateway. Reconnecting…
              </div>
            )}
            {warning && (
              <Note tone="warn" actions={<Button kind="quiet" small icon="close" aria-label="Dismiss" onClick={() => setWarning('')} />}>
                <span role="alert">{warning}</span>
              </Note>
            )}
            <ErrorBoundary key={`${callerKey} ${view.id}`}>
              {session.error && !session.data ? (
                <EmptyState title="Waiting for the gateway" icon="power">
                  <ErrorNote error={session.error} retry={() => void reload()} />
                </EmptyState>
              ) : !session.data ? (
                <Skeleton rows={4} />
              ) : (
                <Suspense fallback={<Skeleton rows={4} />}>
                  <view.component status={status.data} />
                </Suspense>
              )}
            </ErrorBoundary>
          </main>
          {session.data && <Palette key={callerKey} />}
        </div>
      </MeContext.Provider>
    </Toasts>
  );
}

export function Nav({ current, status, online, waitingChats = 0 }: { current: string; status?: Status; online: boolean; /** How many conversations wait for an answer. */ waitingChats?: number }) {
  const theme = useTheme();
  const dark = theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  const waitingCount = useInbox().length;
  const disconnected = status?.servers.filter((s) => s.status === 'disconnected' || s.status === 'auth_required').length ?? 0;
  return (
    <nav className="nav" aria-label="Views">
      <a className="brand" href="#/chat" aria-label="Junctor">
        <Logo />
        <span>Junctor</span>
      </a>
      <ul>
        {views.map((v) => (
          <li key={v.id}>
            <a href={`#/${v.id}`} title={v.label} aria-current={v.id === current ? 'page' : undefined}>
              <Icon name={v.icon} size={20} />
              <span>{v.label}</span>
              {v.id === 'chat' && waitingChats > 0 && (
                <span className="nav-badge" title={`${waitingChats} waiting for your answer`}>
                  {waitingChats}
                  <span className="sr-only"> waiting for your answer</span>
                </span>
              )}
              {v.id === 'servers' && disconnected > 0 && (
                <span className="nav-badge" title={`${disconnected} not connected`}>
                  {disconnected}
                  <span className="sr-only"> not connected</span>
                </span>
              )}
            </a>
          </li>
        ))}
        {(waitingCount > 0 || current === inboxView.id) && (
          <li>
            <a href={`#/${inboxView.id}`} title={inboxView.label} aria-current={current === inboxView.id ? 'page' : undefined}>
              <Icon name={inboxView.icon} size={20} />
              <span>{inboxView.label}</span>
              {waitingCount > 0 && (
                <span className="nav-badge" title={`${waitingCount} waiting`}>
                  {waitingCount}
                  <span className="sr-only"> waiting</span>
                </span>
              )}
            </a>
          </li>
        )}
      </ul>
      <div className="nav-foot">
        <button type="button" className="nav-find" title="Find" onClick={() => window.dispatchEvent(new CustomEvent('junctor:find'))}>
          <Icon name="search" size={16} />
          <span>Find</span>
          <kbd>{/Mac/.test(navigator.platform) ? '⌘K' : 'Ctrl K'}</kbd>
        </button>
        <div className="row">
          <span className="nav-status small" title={status ? `Version ${status.version}` : undefined}>
            <StatusDot tone={online ? 'ok' : 'bad'} /> <span>{online ? (status ? `${status.version}` : '…') : 'offline'}</span>
          </span>
          <Button kind="quiet" small icon={dark ? 'sun' : 'moon'} aria-label={dark ? 'Switch to the light theme' : 'Switch to the dark theme'} onClick={() => setTheme(dark ? 'light' : 'dark')} />
        </div>
      </div>
    </nav>
  );
}

/** ErrorBoundary shows an error in place of a view that throws; the other views stay usable. */
class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  override componentDidCatch(error: Error, info: ErrorInfo) {
    console.error(error, info.componentStack);
  }
  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <EmptyState icon="alert" title="This view failed to load" actions={<Button kind="primary" onClick={() => this.setState({ error: null })}>Try again</Button>}>
        <p className="wrap mono small">{this.state.error.message}</p>
      </EmptyState>
    );
  }
}
