import { useEffect, useMemo, useRef, useState } from 'react';
import { callTool, get, type ToolDetails } from '../lib/api';
import { useMediaQuery, useQuery } from '../lib/use';
import { useMe } from '../me';
import { ask } from '../resources/offers';
import { useTheme } from '../theme';
import { Icon } from '../ui/icons';
import { JsonView } from '../ui/json';
import { Button, Dialog, Note, Skeleton } from '../ui/ui';
import { Consents, type Question } from './consent';
import { keepFocus } from './focus';
import { AppHost, limits, Refusal, type Outcome } from './host';
import { frameUrl, readApp, type AppResource } from './resource';
import { styles } from './styles';
import './apps.css';

export interface AppProps {
  server: string;
  tool: string;
  /** The address of the app, ui://… */
  uri: string;
  args: unknown;
  /** How the call ended; undefined while it runs. */
  outcome: Outcome;
  /** Sends a message to the chat; not set where there is none. */
  say?: (text: string) => void;
  onClose: () => void;
}

interface Loaded {
  app: AppResource;
  definition: unknown;
}

const pathOf = (server: string, tool: string) => `/api/tools/${encodeURIComponent(server)}/${encodeURIComponent(tool)}`;

/** AppView shows the app of a tool, in a frame that reaches nothing but what the app declares. */
export function AppView(p: AppProps) {
  const [attempt, setAttempt] = useState(0);
  const [stopReason, setStopReason] = useState('');
  const close = useRef<() => Promise<void>>(async () => {});
  const loaded = useQuery<Loaded>(`${p.server} ${p.tool} ${p.uri} ${attempt}`, async (signal) => {
    const [app, details] = await Promise.all([readApp(p.server, p.uri, signal), get<ToolDetails>(pathOf(p.server, p.tool), signal)]);
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
        <Frame key={attempt} {...p} {...loaded.data} onStop={setStopReason} close={close} />
      )}
    </section>
  );
}

function Frame({ server, tool, args, outcome, say, app, definition, onStop, close }: AppProps & Loaded & { onStop: (reason: string) => void; close: React.RefObject<() => Promise<void>> }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const host = useRef<AppHost>(null);
  const me = useMe();
  const [question, setQuestion] = useState<Question | null>(null);
  const theme = useTheme();
  const prefersDark = useMediaQuery('(prefers-color-scheme: dark)');
  const dark = theme === 'dark' || (theme === 'system' && prefersDark);
  const src = useMemo(() => frameUrl(app.csp), [app]);
  const [consents] = useState(() => new Consents(setQuestion));

  const call = async (name: string, args: Record<string, unknown>, signal: AbortSignal) => {
    const details = await get<ToolDetails>(pathOf(server, name), signal);
    const approved = me.admin && details.approval === 'ask';
    if (approved && !(await consents.ask({ title: 'Allow this call?', text: `The app of ${server} wants to run ${server}:${details.tool}, which needs your approval.`, args, yes: 'Allow once' }, signal))) throw new Refusal('the user did not allow the call');
    return (await callTool({ server, tool: name, arguments: args, app: true, approved: approved || undefined }, () => {}, signal)).result;
  };
  const links = useRef({ call, say, onStop });
  links.current = { call, say, onStop };

  useEffect(() => {
    const f = frame.current!;
    const h = new AppHost(
      {
        post: (m) => f.contentWindow?.postMessage(m, '*'), // the frame's origin is opaque; the source of each message is checked
        callTool: (name, args, signal) => links.current.call(name, args, signal),
        readResource: (uri, signal) => ask(server, 'resources/read', { uri }, signal),
        openLink: async (url, signal) => {
          const yes = await consents.ask({ title: 'Open this link?', text: `The app of ${server} wants to open:`, args: url, yes: 'Open link' }, signal);
          if (yes) window.open(url, '_blank', 'noopener,noreferrer');
          return yes;
        },
        ...(links.current.say && {
          say: async (text, signal) => {
            const yes = await consents.ask({ title: 'Send this message?', text: `The app of ${server} wants to send this message to the chat, as yours:`, args: text, yes: 'Send' }, signal);
            if (yes) links.current.say?.(text);
            return yes;
          },
        }),
        resize: (height) => (f.style.height = `${Math.max(height, 40)}px`),
        stop: (reason) => links.current.onStop(reason),
      },
      { ...contextOf(dark), toolInfo: { tool: definition }, containerDimensions: { width: f.clientWidth, maxHeight: limits.height } },
      { openLinks: {}, serverTools: {}, serverResources: {}, sandbox: { csp: app.csp }, ...(links.current.say && { message: { text: {} } }) },
    );
    host.current = h;
    close.current = () => h.tearDown('The user closed the app.');
    let sent = false;
    const receive = (e: MessageEvent<unknown>) => {
      const own = f.contentWindow;
      if (!own || e.source !== own) {
        if (own && within(e.source, own)) h.count(); // past the document that limits messages: not read, but counted
        return;
      }
      if (!h.count()) return;
      if (typeof e.data === 'string') return h.receive(e.data);
      const { method, params } = e.data as { method?: string; params?: { reason?: string } };
      if (method === 'ui/notifications/sandbox-proxy-ready' && !sent) {
        sent = true;
        own.postMessage({ method: 'ui/notifications/sandbox-resource-ready', params: { html: app.html } }, '*');
      } else if (method === 'ui/notifications/sandbox-refused') {
        h.close();
        links.current.onStop(params?.reason ?? '');
      }
    };
    window.addEventListener('message', receive);
    let width = f.clientWidth;
    const sized = new ResizeObserver(() => {
      if (f.clientWidth === width) return;
      width = f.clientWidth;
      h.change({ containerDimensions: { width, maxHeight: limits.height } });
    });
    sized.observe(f);
    const release = keepFocus(f, () => {
      h.close();
      links.current.onStop('It took the keyboard focus again and again.');
    });
    return () => {
      release();
      window.removeEventListener('message', receive);
      sized.disconnect();
      void h.tearDown('The page shows something else.', 0);
    };
    // The theme changes within a host; all else makes a new one.
  }, [app, definition, server, tool]);

  useEffect(() => host.current?.change(contextOf(dark)), [dark]);
  useEffect(() => host.current?.tool((typeof args === 'object' && args !== null ? args : {}) as Record<string, unknown>, outcome), [args, outcome]);

  return (
    <>
      <iframe ref={frame} src={src} title={`App of ${server}`} sandbox="allow-scripts allow-forms" allow="" referrerPolicy="no-referrer" />
      {question && <Consent key={question.id} {...question} stop={() => onStop('You stopped it.')} />}
    </>
  );
}

/** within reports whether a message comes from a frame in the frame of an app. */
function within(source: MessageEventSource | null, frame: Window): boolean {
  let w = source as Window | null;
  for (let depth = 0; w && depth < 8; depth++) {
    if (w === frame) return true;
    if (w === w.parent) return false;
    w = w.parent;
  }
  return false;
}

function contextOf(dark: boolean): Record<string, unknown> {
  return {
    theme: dark ? 'dark' : 'light',
    styles: { variables: styles(getComputedStyle(document.documentElement)) },
    displayMode: 'inline',
    availableDisplayModes: ['inline'],
    locale: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    userAgent: 'junctor',
    platform: 'web',
  };
}

/** Consent asks the user what an app asks for. The button that agrees waits, so that a click for the app does not hit it. */
function Consent({ title, text, args, yes, answer, stop }: Question & { stop: () => void }) {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const t = setTimeout(() => setReady(true), 500);
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
          <Button kind="primary" disabled={!ready} onClick={() => answer(true)}>
            {yes}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
