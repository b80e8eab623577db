import { useEffect, useMemo, useRef, useState } from 'react';
import { callTool, get, type ToolDetails } from '../lib/api';
import { useMediaQuery, useQuery } from '../lib/use';
import { useMe } from '../me';
import { mcpRequest } from '../resources/catalog';
import { useTheme } from '../theme';
import { Icon } from '../ui/icons';
import { JsonView } from '../ui/json';
import { Button, Dialog, Note, Skeleton } from '../ui/ui';
import { ConsentPrompts, type ConsentRequest } from './consent';
import { guardFocus } from './focus';
import { AppHost, appLimits, RpcError, type Outcome } from './host';
import { frameUrl, readApp, type AppResource } from './resource';
import { appStyleVariables } from './styles';
import './apps.css';

export interface AppProps {
  server: string;
  tool: string;
  /** The URI of the app, ui://… */
  uri: string;
  args: unknown;
  /** The outcome of the call; undefined while it runs. */
  outcome: Outcome;
  /** Sends a message to the chat; not set outside the chat. */
  onSendMessage?: (text: string) => void;
  onClose: () => void;
}

interface LoadedApp {
  app: AppResource;
  definition: unknown;
}

const toolPath = (server: string, tool: string) => `/api/tools/${encodeURIComponent(server)}/${encodeURIComponent(tool)}`;

/** AppView shows the app of a tool, in a frame that can only connect to the origins that the app declares. */
export function AppView(p: AppProps) {
  const [attempt, setAttempt] = useState(0);
  const [stopReason, setStopReason] = useState('');
  const close = useRef<() => Promise<void>>(async () => {});
  const loaded = useQuery<LoadedApp>(`${p.server} ${p.tool} ${p.uri} ${attempt}`, async (signal) => {
    const [app, details] = await Promise.all([readApp(p.server, p.uri, signal), get<ToolDetails>(toolPath(p.server, p.tool), signal)]);
    return { app, definition: details.definition };
  });
  const origins = useMemo(() => {
    const c = loaded.data?.app.csp;
    return [...new Set([...(c?.connectDomains ?? []), ...(c?.resourceDomains ?? []), ...(c?.frameDomains ?? [])])];
  }, [loaded.data]);
  const reload = () => {
    setStopReason('');
    setAttempt((n) => n + 1);
  };
  return (
    <section className={`app ${loaded.data?.app.border === false ? 'plain' : ''}`} aria-label={`App of ${p.server}`}>
      <header className="row">
        <Icon name="servers" size={15} />
        <span className="grow muted small ellipsis" title={origins.join('\n')}>
          App of {p.server}
          {origins.length > 0 && ` · may reach ${origins.slice(0, 2).join(', ')}${origins.length > 2 ? ` and ${origins.length - 2} more` : ''}`}
        </span>
        <Button kind="quiet" small icon="refresh" aria-label="Reload app" title="Reload app" onClick={reload} />
        <Button kind="quiet" small icon="close" aria-label="Close app" title="Close app" onClick={() => void close.current().then(p.onClose)} />
      </header>
      {stopReason ? (
        <Note tone="warn" actions={<Button small onClick={reload}>Restart</Button>}>
          The app was stopped. {stopReason}
        </Note>
      ) : loaded.error && !loaded.data ? (
        <Note tone="warn" actions={<Button small onClick={reload}>Try again</Button>}>
          The app {p.uri} cannot be shown. {loaded.error.message}
        </Note>
      ) : !loaded.data ? (
        <Skeleton rows={1} height={120} />
      ) : (
        <AppFrame key={attempt} {...p} {...loaded.data} onStop={setStopReason} close={close} />
      )}
    </section>
  );
}

function AppFrame({ server, tool, args, outcome, onSendMessage, app, definition, onStop, close }: AppProps & LoadedApp & { onStop: (reason: string) => void; close: React.RefObject<() => Promise<void>> }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const host = useRef<AppHost>(null);
  const me = useMe();
  const [consentRequest, setConsentRequest] = useState<ConsentRequest | null>(null);
  const theme = useTheme();
  const prefersDark = useMediaQuery('(prefers-color-scheme: dark)');
  const dark = theme === 'dark' || (theme === 'system' && prefersDark);
  const src = useMemo(() => frameUrl(app.csp), [app]);
  const [consentPrompts] = useState(() => new ConsentPrompts(setConsentRequest));

  const call = async (name: string, args: Record<string, unknown>, signal: AbortSignal) => {
    const details = await get<ToolDetails>(toolPath(server, name), signal);
    const approved = me.admin && details.approval === 'ask';
    if (approved && !(await consentPrompts.ask({ title: 'Allow this call?', text: `The app of ${server} wants to run ${server}:${details.tool}, which needs your approval.`, args, confirmLabel: 'Allow once' }, signal))) throw new RpcError('the user did not allow the call');
    return (await callTool({ server, tool: name, arguments: args, app: true, approved: approved || undefined }, () => {}, signal)).result;
  };
  const callbacks = useRef({ call, onSendMessage, onStop });
  callbacks.current = { call, onSendMessage, onStop };

  useEffect(() => {
    const iframe = frame.current!;
    const appHost = new AppHost(
      {
        post: (m) => iframe.contentWindow?.postMessage(m, '*'), // the frame's origin is opaque; the source of each message is checked
        callTool: (name, args, signal) => callbacks.current.call(name, args, signal),
        readResource: (uri, signal) => mcpRequest(server, 'resources/read', { uri }, signal),
        openLink: async (url, signal) => {
          const accepted = await consentPrompts.ask({ title: 'Open this link?', text: `The app of ${server} wants to open:`, args: url, confirmLabel: 'Open link' }, signal);
          if (accepted) window.open(url, '_blank', 'noopener,noreferrer');
          return accepted;
        },
        ...(callbacks.current.onSendMessage && {
          sendMessage: async (text, signal) => {
            const accepted = await consentPrompts.ask({ title: 'Send this message?', text: `The app of ${server} wants to send this message to the chat, as yours:`, args: text, confirmLabel: 'Send' }, signal);
            if (accepted) callbacks.current.onSendMessage?.(text);
            return accepted;
          },
        }),
        resize: (height) => (iframe.style.height = `${Math.max(height, 40)}px`),
        stop: (reason) => callbacks.current.onStop(reason),
      },
      { ...hostContext(dark), toolInfo: { tool: definition }, containerDimensions: { width: iframe.clientWidth, maxHeight: appLimits.height } },
      { openLinks: {}, serverTools: {}, serverResources: {}, sandbox: { csp: app.csp }, ...(callbacks.current.onSendMessage && { message: { text: {} } }) },
    );
    host.current = appHost;
    close.current = () => appHost.tearDown('The user closed the app.');
    let sent = false;
    const onMessage = (e: MessageEvent<unknown>) => {
      const appWindow = iframe.contentWindow;
      if (!appWindow || e.source !== appWindow) {
        if (appWindow && isInsideFrame(e.source, appWindow)) appHost.countMessage(); // it bypassed the document that limits messages: ignored, but counted
        return;
      }
      if (!appHost.countMessage()) return;
      if (typeof e.data === 'string') return appHost.receive(e.data);
      const { method, params } = e.data as { method?: string; params?: { reason?: string } };
      if (method === 'ui/notifications/sandbox-proxy-ready' && !sent) {
        sent = true;
        appWindow.postMessage({ method: 'ui/notifications/sandbox-resource-ready', params: { html: app.html } }, '*');
      } else if (method === 'ui/notifications/sandbox-refused') {
        appHost.close();
        callbacks.current.onStop(params?.reason ?? '');
      }
    };
    window.addEventListener('message', onMessage);
    let width = iframe.clientWidth;
    const observer = new ResizeObserver(() => {
      if (iframe.clientWidth === width) return;
      width = iframe.clientWidth;
      appHost.updateContext({ containerDimensions: { width, maxHeight: appLimits.height } });
    });
    observer.observe(iframe);
    const stopGuard = guardFocus(iframe, () => {
      appHost.close();
      callbacks.current.onStop('It took the keyboard focus again and again.');
    });
    return () => {
      stopGuard();
      window.removeEventListener('message', onMessage);
      observer.disconnect();
      void appHost.tearDown('The page shows something else.', 0);
    };
    // A change of the theme keeps the host; any other change creates a new one.
  }, [app, definition, server, tool]);

  useEffect(() => host.current?.updateContext(hostContext(dark)), [dark]);
  useEffect(() => host.current?.setToolCall((typeof args === 'object' && args !== null ? args : {}) as Record<string, unknown>, outcome), [args, outcome]);

  return (
    <>
      <iframe ref={frame} src={src} title={`App of ${server}`} sandbox="allow-scripts allow-forms" allow="" referrerPolicy="no-referrer" />
      {consentRequest && <ConsentDialog key={consentRequest.id} {...consentRequest} stop={() => onStop('You stopped it.')} />}
    </>
  );
}

/** isInsideFrame reports whether the source of a message is a descendant of an app's frame. */
function isInsideFrame(source: MessageEventSource | null, frame: Window): boolean {
  let w = source as Window | null;
  for (let depth = 0; w && depth < 8; depth++) {
    if (w === frame) return true;
    if (w === w.parent) return false;
    w = w.parent;
  }
  return false;
}

function hostContext(dark: boolean): Record<string, unknown> {
  return {
    theme: dark ? 'dark' : 'light',
    styles: { variables: appStyleVariables(getComputedStyle(document.documentElement)) },
    displayMode: 'inline',
    availableDisplayModes: ['inline'],
    locale: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    userAgent: 'junctor',
    platform: 'web',
  };
}

/** ConsentDialog asks the user for consent. Its confirm button is disabled at first, so that a click meant for the app does not hit it. */
function ConsentDialog({ title, text, args, confirmLabel, answer, stop }: ConsentRequest & { stop: () => void }) {
  const [confirmEnabled, setConfirmEnabled] = useState(false);
  useEffect(() => {
    const t = setTimeout(() => setConfirmEnabled(true), 500);
    return () => clearTimeout(t);
  }, []);
  return (
    <Dialog title={title} open onClose={() => answer(false)}>
      <div className="stack">
        <p>{text}</p>
        {typeof args === 'string' ? <pre className="wrap app-asks">{args}</pre> : <JsonView value={args} open={3} label="Arguments" />}
        <div className="row end">
          <Button
            kind="quiet"
            onClick={() => {
              answer(false);
              stop();
            }}
          >
            Stop app
          </Button>
          <span className="grow" />
          <Button onClick={() => answer(false)}>Refuse</Button>
          <Button kind="primary" disabled={!confirmEnabled} onClick={() => answer(true)}>
            {confirmLabel}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
