import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { get, send, type GetResponse, type ModelInfo, type Status } from '../lib/api';
import { formatTokens, oneLine } from '../lib/format';
import { useReloadOnChange } from '../lib/live';
import { href, navigate, useLocalStorage, useQuery, useRoute } from '../lib/use';
import { Button, Empty, Note, Skeleton } from '../ui/ui';
import { Composer } from './composer';
import { textOf, waiting, type Turn } from './conversation';
import { moveDraft } from './drafts';
import { isSet, PreferencesDialog } from './preferences';
import { pageOfSessions, Sessions } from './sessions';
import { TurnView } from './turn';
import { useChat } from './useChat';
import { NoModel, Welcome } from './welcome';

export function ChatView({ status }: { status?: Status }) {
  const route = useRoute();
  const id = route.parts[1] ?? '';
  const [generation, setGeneration] = useState(0);
  const [drawer, setDrawer] = useState(false);
  const [model, setModel] = useState('');
  // A new conversation begins with the model that was chosen last.
  const [lastModel, setLastModel] = useLocalStorage('junctor.model', '');
  const chooseModel = (m: string) => {
    setModel(m);
    if (m) setLastModel(m);
  };
  const chat = useChat(id, generation);
  const { decide, answer, say, regenerate, branch } = chat;
  const c = chat.conversation;
  const [preferring, setPreferring] = useState(false);
  // The dialog begins with what is known when it opens, and saves all of it.
  const preferable = status !== undefined && c.sessionId !== '';
  const chosen = useRef('');
  const ways = useMemo(
    () => ({
      decide,
      answer,
      branch,
      edit: (edit: string, text: string) => void say({ text, edit, model: chosen.current || undefined }),
      regenerate: (id: string) => regenerate(id, chosen.current || undefined),
      tell: (text: string) => void say({ text, model: chosen.current || undefined }),
    }),
    [decide, answer, branch, say, regenerate],
  );
  chosen.current = model;
  const idle = !c.active && chat.link === 'open' && chat.pending === null;
  // A chosen model applies to the current conversation only.
  const chosenIn = useRef('');
  useEffect(() => {
    if (chosenIn.current && chosenIn.current !== c.sessionId) setModel('');
    chosenIn.current = c.sessionId;
  }, [c.sessionId]);
  const sessions = useQuery<GetResponse<'/api/sessions'>>('sessions', (s) => get(`/api/sessions?limit=${pageOfSessions}`, s), 20_000);
  useReloadOnChange(sessions.reload); // the marks of those that wait
  const models = useQuery<GetResponse<'/api/models'>>('models', (s) => get('/api/models', s), 30_000);
  // During an outage the choice stays.
  const lastModels = useRef<ModelInfo[]>([]);
  if (models.data?.models.length) lastModels.current = models.data.models;
  const begins = c.turns.length === 0 && lastModels.current.some((m) => m.id === lastModel) ? lastModel : '';
  const noModel = models.data !== undefined && models.data.models.length === 0;

  // A conversation gets its URL with its first message.
  const begun = c.turns.length > 0;
  const addressed = useRef(''); // the conversation that was in the URL last: leaving it must not navigate back
  useEffect(() => {
    if (id) addressed.current = id;
    else if (begun && c.sessionId && c.sessionId !== addressed.current) {
      moveDraft(c.sessionId);
      navigate(href(['chat', c.sessionId]), true);
    }
  }, [id, begun, c.sessionId]);

  // Reload the list when a reply begins or ends.
  const { reload } = sessions;
  useEffect(() => {
    if (begun) void reload();
  }, [begun, c.active, c.title, reload]);

  // The model writes the title after the first reply of a conversation that began here.
  const began = useRef('');
  if (!id && c.sessionId && c.sessionId !== addressed.current) began.current = c.sessionId;
  const titled = !c.active && c.stop === 'end' && c.turns.length === 2 && c.sessionId !== '' && began.current === c.sessionId;
  useEffect(() => {
    if (!titled) return;
    began.current = '';
    // Without one the title stays the beginning of the first message.
    send('POST', `/api/sessions/${encodeURIComponent(c.sessionId)}/title`).then(() => void reload(), () => {});
  }, [titled, c.sessionId, reload]);

  const fresh = useCallback(() => {
    setDrawer(false);
    setGeneration((n) => n + 1);
    navigate('#/chat');
    document.getElementById('say')?.focus();
  }, []);

  // The URL names no conversation, or one that was deleted elsewhere.
  const lost = chat.gone !== 0 && (id !== '' || begun);
  useEffect(() => {
    if (chat.gone !== 0 && !id && !begun) setGeneration((n) => n + 1);
  }, [chat.gone, id, begun]);

  const ended = c.turns.at(-1)?.notice ?? '';
  const retry = () => {
    const last = c.turns.findLast((t) => t.role === 'user');
    if (last?.id) regenerate(last.id, model || undefined);
    else if (last) say({ text: textOf(last), model: model || undefined });
  };
  const trouble = c.error && c.error.code !== 'NO_MODEL' && !c.error.inReply && (
    <div role="alert">
      <Note tone="bad" actions={<Button kind="quiet" small icon="close" aria-label="Dismiss" onClick={chat.dismiss} />}>
        {c.error.message}
      </Note>
    </div>
  );
  return (
    <div className={`chat ${drawer ? 'drawer' : ''}`}>
      <Sessions list={sessions} current={id || c.sessionId} onNew={fresh} onPick={() => setDrawer(false)} />
      {drawer && <button type="button" className="scrim" aria-label="Close conversation list" onClick={() => setDrawer(false)} />}
      <section className="chat-main" aria-label="Conversation">
        <header className="view-head">
          <Button className="only-narrow" kind="quiet" icon="menu" aria-label="Conversations" aria-expanded={drawer} onClick={() => setDrawer(!drawer)} />
          <h1 className="grow ellipsis">{c.title || 'New chat'}</h1>
          <Button kind={isSet(c.preferences) ? 'plain' : 'quiet'} small icon="settings" aria-label="Settings of this chat" title="Settings of this chat" disabled={!preferable} onClick={() => setPreferring(true)} />
          {chat.link === 'waiting' && <span className="badge warn">Reconnecting…</span>}
          {c.usage && c.usage.context > 0 && (
            <span className="muted small usage" title={`This conversation: ${formatTokens(c.usage.session.input ?? 0)} tokens in, ${formatTokens(c.usage.session.output ?? 0)} out`}>
              {formatTokens((c.usage.session.input ?? 0) + (c.usage.session.output ?? 0))} tokens
              {c.usage.window > 0 && ` · ${Math.max(1, Math.round((100 * c.usage.context) / c.usage.window))} % of context`}
            </span>
          )}
        </header>
        {preferring && preferable && <PreferencesDialog value={c.preferences} status={status} onSave={chat.prefer} onClose={() => setPreferring(false)} />}
        {lost ? (
          <Empty icon="chat" title="Conversation not found" actions={<Button kind="primary" icon="plus" onClick={fresh}>New chat</Button>}>
            It was deleted, or it belongs to another user.
          </Empty>
        ) : (
          <>
            <Scroll busy={c.active} loading={!c.loaded} count={c.turns.length} tail={tailOf(c.turns.at(-1))} hold={questioned(c.turns.at(-1))}>
              {!c.loaded && chat.link !== 'waiting' ? (
                <Skeleton rows={4} height={64} />
              ) : c.turns.length === 0 && !chat.pending ? (
                <>
                  <Welcome status={status} noModel={noModel} chatMissing={models.error?.status === 404} onAsk={(text) => chat.say({ text, model: model || begins })} />
                  {trouble}
                </>
              ) : (
                <>
                  {c.turns.map((t, i) => (
                    <TurnView key={t.key} turn={t} live={c.active && i === c.turns.length - 1} ways={ways} idle={idle} latest={i === c.turns.length - 1} asked={i > 0 ? c.turns[i - 1]!.id : ''} />
                  ))}
                  {c.active && !asking(c.turns.at(-1)) && (
                    <p className="thinking">
                      <span className="spinner" /> {c.status || 'Thinking…'}
                    </p>
                  )}
                  {chat.pending !== null && (
                    <article className="turn user pending" aria-label="Your message, not sent yet">
                      <div className="said">{chat.pending}</div>
                      <span className="muted small">{chat.link !== 'open' ? 'Will be sent when the connection is restored' : c.active ? 'Will be sent when the reply is finished' : 'Sending…'}</span>
                      {(c.active || chat.link !== 'open') && (
                        <Button small kind="quiet" onClick={chat.unsay}>
                          Edit
                        </Button>
                      )}
                    </article>
                  )}
                  {trouble}
                  {(c.stop === 'error' || ended === 'interrupted' || ended === 'broken') && !c.active && chat.pending === null && c.error?.code !== 'NO_MODEL' && (
                    <div className="row">
                      <Button small icon="refresh" disabled={chat.link !== 'open'} onClick={retry}>
                        Retry
                      </Button>
                    </div>
                  )}
                  {(c.error?.code === 'NO_MODEL' || (noModel && !c.active)) && <NoModel />}
                </>
              )}
            </Scroll>
            {c.unavailable.length > 0 && c.turns.length > 0 && (
              <p className="chat-down small" title={c.unavailable.map((d) => `${d.server}: ${d.state.replace('_', ' ')}`).join('\n')}>
                Unavailable: {c.unavailable.slice(0, 2).map((d) => oneLine(d.server, 24)).join(', ')}
                {c.unavailable.length > 2 && ` and ${c.unavailable.length - 2} more`}. <a href="#/servers">View servers</a>
              </p>
            )}
            <Composer
              active={c.active}
              offline={chat.link === 'waiting'}
              models={noModel && !models.error ? [] : lastModels.current}
              model={model || begins || c.model}
              setModel={chooseModel}
              onSay={(text, attachments) => chat.say({ text, attachments, model: model || begins || undefined })}
              onStop={chat.abort}
              waiting={chat.pending !== null}
              focus={generation + id}
              id={id}
            />
          </>
        )}
        <div className="sr-only" role="status">
          {asking(c.turns.at(-1)) ? 'A call is waiting for your answer' : c.active ? 'Reply in progress' : c.stop ? `Reply ended: ${c.status}` : ''}
        </div>
      </section>
    </div>
  );
}

function tailOf(t: Turn | undefined): unknown {
  return t?.blocks.at(-1);
}

function asking(t: Turn | undefined): boolean {
  return t?.blocks.some((b) => b.kind === 'call' && b.state === 'asking') ?? false;
}

/** questioned reports whether a server's question is open. The view then does not scroll, because the question may be long. */
function questioned(t: Turn | undefined): boolean {
  return t?.blocks.some((b) => b.kind === 'call' && waiting(b.questions)) ?? false;
}

/** Scroll keeps the end of the conversation in view until the user scrolls away; hold stops it from scrolling. */
export function Scroll({ children, count, tail, busy, loading, hold }: { children: React.ReactNode; count: number; tail: unknown; busy: boolean; loading: boolean; hold: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const follow = useRef(true);
  const [away, setAway] = useState(false);
  const end = useCallback(() => {
    const b = box.current;
    if (b) b.scrollTop = b.scrollHeight;
  }, []);
  useLayoutEffect(() => {
    follow.current = true;
    end();
  }, [count, end]);
  useLayoutEffect(() => {
    if (follow.current && !hold) end();
  }, [tail, busy, hold, end]);
  return (
    <div className="chat-scroll-wrap">
      <div
        className="chat-scroll"
        ref={box}
        tabIndex={0}
        role="log"
        // Nothing is announced while it grows; the whole reply is when it is finished.
        aria-live="polite"
        aria-busy={busy || loading}
        aria-label="Messages"
        onScroll={(e) => {
          const b = e.currentTarget;
          follow.current = b.scrollHeight - b.scrollTop - b.clientHeight < 60;
          setAway(!follow.current);
        }}
      >
        <div className="chat-column">{children}</div>
      </div>
      {away && busy && (
        <Button
          className="to-end"
          small
          icon="down"
          onClick={() => {
            follow.current = true;
            end();
          }}
        >
          Jump to latest
        </Button>
      )}
    </div>
  );
}
