import { useCallback, useEffect, useReducer, useRef, useState } from 'react';
import { applyMessage, emptyConversation, withAnswerSent, withDecision, withPreferences, type Conversation } from './conversation';
import { restoreToDraft } from './drafts';
import type { AnswerAction, GatewayMessage, Preferences } from './protocol';
import { openWebSocket, type Scope } from '../lib/api';
import { ChatSocket, type ConnectionState, type OutgoingMessage } from './socket';

type Action = { type: 'message'; message: GatewayMessage } | { type: 'decision'; callId: string; decision: 'approved' | 'denied' } | { type: 'answerSent'; questionId: string } | { type: 'preferencesSent'; preferences: Preferences } | { type: 'reset' } | { type: 'dismissError' };

function conversationReducer(c: Conversation, a: Action): Conversation {
  switch (a.type) {
    case 'message':
      return applyMessage(c, a.message);
    case 'decision':
      return withDecision(c, a.callId, a.decision);
    case 'answerSent':
      return withAnswerSent(c, a.questionId);
    case 'preferencesSent':
      return withPreferences(c, a.preferences);
    case 'dismissError':
      return { ...c, error: undefined };
    case 'reset':
      return emptyConversation;
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
  connectionState: ConnectionState;
  pending: string | null;
  goneCode: number;
  sendMessage: (message: OutgoingMessage) => boolean;
  /** Answers a message of the user again. */
  regenerate: (messageId: string, model?: string) => void;
  /** Continues on the branch of a message. */
  switchBranch: (messageId: string) => void;
  /** Returns false when there is no connection. */
  setPreferences: (p: Preferences) => boolean;
  /** Moves the message that waits to be sent back into the draft. */
  withdrawMessage: () => void;
  abort: () => void;
  decide: (callId: string, approve: boolean, scope?: Scope, reason?: string) => void;
  /** Returns false when there is no connection; the question then stays open. */
  answer: (questionId: string, action: AnswerAction, more?: { content?: unknown; scope?: Scope }) => boolean;
  dismissError: () => void;
}

/**
 * useChat connects to the session in the URL. When a new session gets its URL,
 * the connection is kept.
 */
export function useChat(sessionId: string, generation: number): Chat {
  const [conversation, dispatch] = useReducer(conversationReducer, emptyConversation);
  const [connectionState, setConnectionState] = useState<ConnectionState>('closed');
  const [pending, setPending] = useState<string | null>(null);
  const [goneCode, setGoneCode] = useState(0);
  const socket = useRef<ChatSocket | null>(null);
  const socketGeneration = useRef(-1);
  const applyQueued = useRef(() => {});
  const urlSessionId = useRef('');

  useEffect(() => {
    const previousSessionId = urlSessionId.current;
    urlSessionId.current = sessionId;
    // The URL now has the session that this page has just created.
    if (socket.current && socketGeneration.current === generation && sessionId !== '' && socket.current.currentSessionId === sessionId) return;
    // A message that was not sent stays in its conversation, as a draft.
    const unsent = socket.current?.withdrawMessage();
    if (unsent) restoreToDraft(previousSessionId, unsent);
    socket.current?.close();
    socketGeneration.current = generation;
    dispatch({ type: 'reset' });
    setPending(null);
    setGoneCode(0);
    // Pieces of a reply arrive faster than they can be drawn, so they are applied once per frame.
    let queue: GatewayMessage[] = [];
    let scheduled = false;
    const flush = () => {
      scheduled = false;
      const batch = queue;
      queue = [];
      if (socket.current === chatSocket) for (const message of batch) dispatch({ type: 'message', message });
    };
    applyQueued.current = flush;
    const chatSocket: ChatSocket = new ChatSocket(sessionId, {
      url: wsUrl,
      connect: openWebSocket,
      onMessage: (message) => {
        queue.push(message);
        if (!scheduled) {
          scheduled = true;
          // A hidden page has no animation frames.
          if (document.hidden) setTimeout(flush, 50);
          else requestAnimationFrame(flush);
        }
      },
      onState: (state) => socket.current === chatSocket && setConnectionState(state),
      onPending: (text) => socket.current === chatSocket && setPending(text),
      onRejected: (message) => socket.current === chatSocket && restoreToDraft(urlSessionId.current, message),
      onSessionGone: (code) => socket.current === chatSocket && setGoneCode(code),
    });
    socket.current = chatSocket;
    chatSocket.open();
  }, [sessionId, generation]);

  useEffect(() => {
    const reconnect = () => socket.current?.reconnectNow();
    window.addEventListener('online', reconnect);
    document.addEventListener('visibilitychange', reconnect);
    return () => {
      window.removeEventListener('online', reconnect);
      document.removeEventListener('visibilitychange', reconnect);
      const unsent = socket.current?.withdrawMessage();
      if (unsent) restoreToDraft(urlSessionId.current, unsent);
      socket.current?.close();
      socket.current = null;
      socketGeneration.current = -1;
    };
  }, []);

  return {
    conversation,
    connectionState,
    pending,
    goneCode,
    sendMessage: useCallback((message) => socket.current?.sendMessage(message) ?? false, []),
    regenerate: useCallback((id, model) => void socket.current?.regenerate(id, model), []),
    switchBranch: useCallback((id) => void socket.current?.switchBranch(id), []),
    setPreferences: useCallback((p) => {
      const sent = socket.current?.setPreferences(p) ?? false;
      if (sent) {
        applyQueued.current(); // messages that arrived before have older preferences
        dispatch({ type: 'preferencesSent', preferences: p });
      }
      return sent;
    }, []),
    withdrawMessage: useCallback(() => {
      const message = socket.current?.withdrawMessage();
      if (message) restoreToDraft(urlSessionId.current, message);
    }, []),
    abort: useCallback(() => socket.current?.abort(), []),
    decide: useCallback((callId, approve, scope = 'once', reason = '') => {
      if (socket.current?.decide(callId, approve, scope, reason)) dispatch({ type: 'decision', callId, decision: approve ? 'approved' : 'denied' });
    }, []),
    answer: useCallback((questionId, action, more) => {
      const sent = socket.current?.answer(questionId, action, more) ?? false;
      if (sent) dispatch({ type: 'answerSent', questionId });
      return sent;
    }, []),
    dismissError: useCallback(() => dispatch({ type: 'dismissError' }), []),
  };
}
