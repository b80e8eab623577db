import { useCallback, useEffect, useReducer, useRef, useState } from 'react';
import { answering, apply, decided, empty, preferred, type Conversation } from './conversation';
import { giveBack } from './drafts';
import type { Answer, Outgoing, Preferences } from './protocol';
import { openWebSocket, type Scope } from '../lib/api';
import { ChatSocket, type LinkState, type Said } from './socket';

type Action = { type: 'message'; message: Outgoing } | { type: 'decided'; callId: string; how: 'approved' | 'denied' } | { type: 'answering'; questionId: string } | { type: 'preferred'; preferences: Preferences } | { type: 'reset' } | { type: 'dismiss' };

function reduce(c: Conversation, a: Action): Conversation {
  switch (a.type) {
    case 'message':
      return apply(c, a.message);
    case 'decided':
      return decided(c, a.callId, a.how);
    case 'answering':
      return answering(c, a.questionId);
    case 'preferred':
      return preferred(c, a.preferences);
    case 'dismiss':
      return { ...c, error: undefined };
    case 'reset':
      return empty;
  }
}

function wsUrl(sessionId: string, after: number): string {
  const q = new URLSearchParams();
  if (sessionId) q.set('sessionId', sessionId);
  if (after >= 0) q.set('after', String(after));
  const text = q.toString();
  return `/ws${text ? '?' + text : ''}`;
}

export interface Chat {
  conversation: Conversation;
  link: LinkState;
  pending: string | null;
  gone: number;
  say: (said: Said) => boolean;
  /** Answers a message of the user again. */
  regenerate: (messageId: string, model?: string) => void;
  /** Continues on the branch of a message. */
  branch: (messageId: string) => void;
  /** Returns false when there is no connection. */
  prefer: (p: Preferences) => boolean;
  /** Takes back the message that waits to be sent, into the draft. */
  unsay: () => void;
  abort: () => void;
  decide: (callId: string, approve: boolean, scope?: Scope, reason?: string) => void;
  /** Returns false when there is no connection; the question then stays open. */
  answer: (questionId: string, action: Answer, more?: { content?: unknown; scope?: Scope }) => boolean;
  dismiss: () => void;
}

/**
 * useChat connects to the session in the URL. When a new session gets its URL,
 * the connection is kept.
 */
export function useChat(sessionId: string, generation: number): Chat {
  const [conversation, dispatch] = useReducer(reduce, empty);
  const [link, setLink] = useState<LinkState>('closed');
  const [pending, setPending] = useState<string | null>(null);
  const [gone, setGone] = useState(0);
  const socket = useRef<ChatSocket | null>(null);
  const made = useRef(-1);
  const applyWaiting = useRef(() => {});
  const address = useRef(''); // the session in the URL

  useEffect(() => {
    const before = address.current;
    address.current = sessionId;
    // The URL now has the session that this page has just created.
    if (socket.current && made.current === generation && sessionId !== '' && socket.current.session === sessionId) return;
    // A message that was not sent stays in its conversation, as a draft.
    const unsent = socket.current?.unsay();
    if (unsent) giveBack(before, unsent);
    socket.current?.close();
    made.current = generation;
    dispatch({ type: 'reset' });
    setPending(null);
    setGone(0);
    // Pieces of a reply arrive faster than they can be drawn, so they are applied once per frame.
    let waiting: Outgoing[] = [];
    let scheduled = false;
    const flush = () => {
      scheduled = false;
      const batch = waiting;
      waiting = [];
      if (socket.current === s) for (const message of batch) dispatch({ type: 'message', message });
    };
    applyWaiting.current = flush;
    const s: ChatSocket = new ChatSocket(sessionId, {
      url: wsUrl,
      dial: openWebSocket,
      onMessage: (message) => {
        waiting.push(message);
        if (!scheduled) {
          scheduled = true;
          // A hidden page has no animation frames.
          if (document.hidden) setTimeout(flush, 50);
          else requestAnimationFrame(flush);
        }
      },
      onState: (state) => socket.current === s && setLink(state),
      onPending: (text) => socket.current === s && setPending(text),
      onRefused: (said) => socket.current === s && giveBack(address.current, said),
      onGone: (code) => socket.current === s && setGone(code),
    });
    socket.current = s;
    s.open();
  }, [sessionId, generation]);

  useEffect(() => {
    const wake = () => socket.current?.wake();
    window.addEventListener('online', wake);
    document.addEventListener('visibilitychange', wake);
    return () => {
      window.removeEventListener('online', wake);
      document.removeEventListener('visibilitychange', wake);
      const unsent = socket.current?.unsay();
      if (unsent) giveBack(address.current, unsent);
      socket.current?.close();
      socket.current = null;
      made.current = -1;
    };
  }, []);

  return {
    conversation,
    link,
    pending,
    gone,
    say: useCallback((said) => socket.current?.say(said) ?? false, []),
    regenerate: useCallback((id, model) => void socket.current?.regenerate(id, model), []),
    branch: useCallback((id) => void socket.current?.branch(id), []),
    prefer: useCallback((p) => {
      const sent = socket.current?.prefer(p) ?? false;
      if (sent) {
        applyWaiting.current(); // what arrived before has older preferences
        dispatch({ type: 'preferred', preferences: p });
      }
      return sent;
    }, []),
    unsay: useCallback(() => {
      const said = socket.current?.unsay();
      if (said) giveBack(address.current, said);
    }, []),
    abort: useCallback(() => socket.current?.abort(), []),
    decide: useCallback((callId, approve, scope = 'once', reason = '') => {
      if (socket.current?.decide(callId, approve, scope, reason)) dispatch({ type: 'decided', callId, how: approve ? 'approved' : 'denied' });
    }, []),
    answer: useCallback((questionId, action, more) => {
      const sent = socket.current?.answer(questionId, action, more) ?? false;
      if (sent) dispatch({ type: 'answering', questionId });
      return sent;
    }, []),
    dismiss: useCallback(() => dispatch({ type: 'dismiss' }), []),
  };
}
