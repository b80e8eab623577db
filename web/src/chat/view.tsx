import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { get, send, type GetResponse, type ModelInfo, type Status } from '../lib/api';
import { formatTokens, oneLine } from '../lib/format';
import { useReloadOnChange } from '../lib/live';
import { href, navigate, useLocalStorage, useQuery, useRoute } from '../lib/use';
import { Button, EmptyState, Note, Skeleton } from '../ui/ui';
import { Composer } from './composer';
import { hasOpenQuestion, turnText, type Turn } from './conversation';
import { moveDraft } from './drafts';
import { hasPreferences, PreferencesDialog } from './preferences';
import { Sessions, sessionsPageSize } from './sessions';
import { TurnView, type TurnActions } from './turn';
import { useChat } from './useChat';
import { NoModel, Welcome } from './welcome';

export function ChatView({ status }: { status?: Status }) {
  const route = useRoute();
  const id = route.parts[1] ?? '';
  const [generation, setGeneration] = useState(0);
  const [drawer, setDrawer] = useState(false);
  const [model, setModel] = useState('');
  // A new conversation starts with the model that was chosen last.
  const [lastModel, setLastModel] = useLocalStorage('junctor.model', '');
  const chooseModel = (m: string) => {
    setModel(m);
    if (m) setLastModel(m);
  };
  const chat = useChat(id, generation);
  const { decide, answer, sendMessage, regenerate, switchBranch } = chat;
  const c = chat.conversation;
  const [preferencesOpen, setPreferencesOpen] = useState(false);
  // The dialog is filled when it opens and saves all its fields, so everything must be loaded.
  const canEditPreferences = status !== undefined && c.sessionId !== '';
  const modelRef = useRef('');
  const actions = useMemo<TurnActions>(
    () => ({
      decide,
      answer,
      switchBranch,
      edit: (edit: string, text: string) => void sendMessage({ text, edit, model: modelRef.current || undefined }),
      regenerate: (id: string) => regenerate(id, modelRef.current || undefined),
      sendMessage: (text: string) => void sendMessage({ text, model: modelRef.current || undefined }),
    }),
    [decide, answer, switchBranch, sendMessage, regenerate],
  );
  modelRef.current = model;
  const idle = !c.active && chat.connectionState === 'open' && chat.pending === null;
  // A chosen model applies to the current conversation only.
  const modelSessionId = useRef('');
  useEffect(() => {
    if (modelSessionId.current && modelSessionId.current !== c.sessionId) setModel('');
    modelSessionId.current = c.sessionId;
  }, [c.sessionId]);
  const sessions = useQuery<GetResponse<'/api/sessions'>>('sessions', (s) => get(`/api/sessions?limit=${sessionsPageSize}`, s), 20_000);
  useReloadOnChange(sessions.reload); // for the badges of conversations that wait for an answer
  const models = useQuery<GetResponse<'/api/models'>>('models', (s) => get('/api/models', s), 30_000);
  // Keep the choice during an outage.
  const knownModels = useRef<ModelInfo[]>([]);
  if (models.data?.models.length) knownModels.current = models.data.models;
  const initialModel = c.turns.length === 0 && knownModels.current.some((m) => m.id === lastModel) ? lastModel : '';
  const noModel = models.data !== undefined && models.data.models.length === 0;

  // A conversation gets its URL with its first message.
  const hasTurns = c.turns.length > 0;
  const lastUrlSessionId = useRef(''); // leaving this conversation must not navigate back to it
  useEffect(() => {
    if (id) lastUrlSessionId.current = id;
    else if (hasTurns && c.sessionId && c.sessionId !== lastUrlSessionId.current) {
      moveDraft(c.sessionId);
      navigate(href(['chat', c.sessionId]), true);
    }
  }, [id, hasTurns, c.sessionId]);

  // Reload the list when a reply begins or ends.
  const { reload } = sessions;
  useEffect(() => {
    if (hasTurns) void reload();
  }, [hasTurns, c.active, c.title, reload]);

  // The model writes the title after the first reply of a conversation that started here.
  const startedHere = useRef('');
  if (!id && c.sessionId && c.sessionId !== lastUrlSessionId.current) startedHere.current = c.sessionId;
  const needsTitle = !c.active && c.stopReason === 'end' && c.turns.length === 2 && c.sessionId !== '' && startedHere.current === c.sessionId;
  useEffect(() => {
    if (!needsTitle) return;
    startedHere.current = '';
    // If that fails, the title stays the first line of the first message.
    send('POST', `/api/sessions/${encodeURIComponent(c.sessionId)}/title`).then(() => void reload(), () => {});
  }, [needsTitle, c.sessionId, reload]);

  const startNewChat = useCallback(() => {
    setDrawer(false);
    setGeneration((n) => n + 1);
    navigate('#/chat');
    document.getElementById('message-input')?.focus();
  }, []);

  // The URL names no conversation, or one that was deleted elsewhere.
  const notFound = chat.goneCode !== 0 && (id !== '' || hasTurns);
  useEffect(() => {
    if (chat.goneCode !== 0 && !id && !hasTurns) setGeneration((n) => n + 1);
  }, [chat.goneCode, id, hasTurns]);

  const lastNotice = c.turns.at(-1)?.notice ?? '';
  const retry = () => {
    const last = c.turns.findLast((t) => t.role === 'user');
    if (last?.id) regenerate(last.id, model || undefined);
    else if (last) sendMessage({ text: turnText(last), model: model || undefined });
  };
  const errorNote = c.error && c.error.code !== 'NO_MODEL' && !c.error.inReply && (
    <div role="alert">
      <Note tone="bad" actions={<Button kind="quiet" small icon="close" aria-label="Dismiss" onClick={chat.dismissError} />}>
        {c.error.message}
      </Note>
    </div>
  );
  return (
    <div className={`chat ${drawer ? 'drawer' : ''}`}>
      <Sessions list={sessions} current={id || c.sessionId} onNew={startNewChat} onPick={() => setDrawer(false)} />
      {drawer && <button type="button" className="scrim" aria-label="Close conversation list" onClick={() => setDrawer(false)} />}
      <section className="chat-main" aria-label="Conversation">
        <header className="view-head">
          <Button className="only-narrow" kind="quiet" icon="menu" aria-label="Conversations" aria-expanded={drawer} onClick={() => setDrawer(!drawer)} />
          <h1 className="grow ellipsis">{c.title || 'New chat'}</h1>
          <Button kind={hasPreferences(c.preferences) ? 'plain' : 'quiet'} small icon="settings" aria-label="Settings of this chat" title="Settings of this chat" disabled={!canEditPreferences} onClick={() => setPreferencesOpen(true)} />
          {chat.connectionState === 'reconnecting' && <span className="badge warn">Reconnecting…</span>}
          {c.usage && c.usage.context > 0 && (
            <span className="muted small usage" title={`This conversation: ${formatTokens(c.usage.session.input ?? 0)} tokens in, ${formatTokens(c.usage.session.output ?? 0)} out`}>
              {formatTokens((c.usage.session.input ?? 0) + (c.usage.session.output ?? 0))} tokens
              {c.usage.window > 0 && ` · ${Math.max(1, Math.round((100 * c.usage.context) / c.usage.window))} % of context`}
            </span>
          )}
        </header>
        {preferencesOpen && canEditPreferences && <PreferencesDialog value={c.preferences} status={status} onSave={chat.setPreferences} onClose={() => setPreferencesOpen(false)} />}
        {notFound ? (
          <EmptyState icon="chat" title="Conversation not found" actions={<Button kind="primary" icon="plus" onClick={startNewChat}>New chat</Button>}>
            It was deleted, or it belongs to another user.
          </EmptyState>
        ) : (
          <>
            <MessageLog busy={c.active} loading={!c.loaded} turnCount={c.turns.length} lastBlock={lastBlockOf(c.turns.at(-1))} holdScroll={isServerAsking(c.turns.at(-1))}>
              {!c.loaded && chat.connectionState !== 'reconnecting' ? (
                <Skeleton rows={4} height={64} />
              ) : c.turns.length === 0 && !chat.pending ? (
                <>
                  <Welcome status={status} noModel={noModel} chatMissing={models.error?.status === 404} onSend={(text) => chat.sendMessage({ text, model: model || initialModel })} />
                  {errorNote}
                </>
              ) : (
                <>
                  {c.turns.map((t, i) => (
                    <TurnView key={t.key} turn={t} live={c.active && i === c.turns.length - 1} actions={actions} idle={idle} latest={i === c.turns.length - 1} userMessageId={i > 0 ? c.turns[i - 1]!.id : ''} />
                  ))}
                  {c.active && !isWaitingForUser(c.turns.at(-1)) && (
                    <p className="thinking">
                      <span className="spinner" /> {c.status || 'Thinking…'}
                    </p>
                  )}
                  {chat.pending !== null && (
                    <article className="turn user pending" aria-label="Your message, not sent yet">
                      <div className="user-text">{chat.pending}</div>
                      <span className="muted small">{chat.connectionState !== 'open' ? 'Will be sent when the connection is restored' : c.active ? 'Will be sent when the reply is finished' : 'Sending…'}</span>
                      {(c.active || chat.connectionState !== 'open') && (
                        <Button small kind="quiet" onClick={chat.withdrawMessage}>
                          Edit
                        </Button>
                      )}
                    </article>
                  )}
                  {errorNote}
                  {(c.stopReason === 'error' || lastNotice === 'interrupted' || lastNotice === 'broken') && !c.active && chat.pending === null && c.error?.code !== 'NO_MODEL' && (
                    <div className="row">
                      <Button small icon="refresh" disabled={chat.connectionState !== 'open'} onClick={retry}>
                        Retry
                      </Button>
                    </div>
                  )}
                  {(c.error?.code === 'NO_MODEL' || (noModel && !c.active)) && <NoModel />}
                </>
              )}
            </MessageLog>
            {c.unavailable.length > 0 && c.turns.length > 0 && (
              <p className="chat-down small" title={c.unavailable.map((d) => `${d.server}: ${d.state.replace('_', ' ')}`).join('\n')}>
                Unavailable: {c.unavailable.slice(0, 2).map((d) => oneLine(d.server, 24)).join(', ')}
                {c.unavailable.length > 2 && ` and ${c.unavailable.length - 2} more`}. <a href="#/servers">View servers</a>
              </p>
            )}
            <Composer
              active={c.active}
              offline={chat.connectionState === 'reconnecting'}
              models={noModel && !models.error ? [] : knownModels.current}
              model={model || initialModel || c.model}
              onModelChange={chooseModel}
              onSend={(text, attachments) => chat.sendMessage({ text, attachments, model: model || initialModel || undefined })}
              onStop={chat.abort}
              queued={chat.pending !== null}
              focusKey={generation + id}
              sessionId={id}
            />
          </>
        )}
        <div className="sr-only" role="status">
          {isWaitingForUser(c.turns.at(-1)) ? 'A call is waiting for your answer' : c.active ? 'Reply in progress' : c.stopReason ? `Reply ended: ${c.status}` : ''}
        </div>
      </section>
    </div>
  );
}

function lastBlockOf(t: Turn | undefined): unknown {
  return t?.blocks.at(-1);
}

function isWaitingForUser(t: Turn | undefined): boolean {
  return t?.blocks.some((b) => b.kind === 'call' && b.state === 'asking') ?? false;
}

/** isServerAsking reports whether a server's question is open. The view then does not scroll, because the question may be long. */
function isServerAsking(t: Turn | undefined): boolean {
  return t?.blocks.some((b) => b.kind === 'call' && hasOpenQuestion(b.questions)) ?? false;
}

/** MessageLog keeps the end of the conversation in view until the user scrolls away; holdScroll stops it from scrolling. */
export function MessageLog({ children, turnCount, lastBlock, busy, loading, holdScroll }: { children: React.ReactNode; turnCount: number; lastBlock: unknown; busy: boolean; loading: boolean; holdScroll: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const [away, setAway] = useState(false);
  const scrollToEnd = useCallback(() => {
    const b = box.current;
    if (b) b.scrollTop = b.scrollHeight;
  }, []);
  useLayoutEffect(() => {
    atEnd.current = true;
    scrollToEnd();
  }, [turnCount, scrollToEnd]);
  useLayoutEffect(() => {
    if (atEnd.current && !holdScroll) scrollToEnd();
  }, [lastBlock, busy, holdScroll, scrollToEnd]);
  return (
    <div className="chat-scroll-wrap">
      <div
        className="chat-scroll"
        ref={box}
        tabIndex={0}
        role="log"
        // A reply is announced when it is complete, not while it grows.
        aria-live="polite"
        aria-busy={busy || loading}
        aria-label="Messages"
        onScroll={(e) => {
          const b = e.currentTarget;
          atEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < 60;
          setAway(!atEnd.current);
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
            atEnd.current = true;
            scrollToEnd();
          }}
        >
          Jump to latest
        </Button>
      )}
    </div>
  );
}
