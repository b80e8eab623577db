import type { HistoryMessage, Scope } from '../lib/api';
import type { WebSocketLike } from '../lib/session';
import type { AnswerAction, Attachment, GatewayMessage, MessageLimits, Preferences } from './protocol';

export type ConnectionState = 'connecting' | 'open' | 'reconnecting' | 'closed';

export interface ChatSocketOptions {
  url: (sessionId: string, after: number) => string;
  connect: (url: string) => WebSocketLike;
  /** Every message once, in order. */
  onMessage: (m: GatewayMessage) => void;
  onState: (s: ConnectionState) => void;
  /** The user's message that has not reached the gateway yet, or null. */
  onPending: (text: string | null) => void;
  /** A message that the gateway refused, to be edited and sent again. */
  onRejected?: (message: OutgoingMessage) => void;
  /** The session is gone (4404: unknown, 4410: deleted). */
  onSessionGone: (code: number) => void;
  setTimer?: (f: () => void, ms: number) => unknown;
  clearTimer?: (t: unknown) => void;
  random?: () => number;
}

/** Messages for a single connection, which repeat the sequence number of the last broadcast message. */
const unicastTypes = new Set(['connection', 'history']);

/**
 * ChatSocket keeps the connection to one session. It reconnects automatically,
 * requests the messages it missed, delivers every message once and in order,
 * and sends each message of the user exactly once.
 */
export class ChatSocket {
  private socket: WebSocketLike | null = null;
  private sessionId: string;
  private readonly createdHere: boolean; // the session was created by this page
  private ignoreMessages = false; // they only explain that the session does not exist
  private lastSeq = -1;
  private lastError = '';
  private connectAttempts = 0;
  private reconnectTimer: unknown = null;
  private stopped = false;
  private pending: (OutgoingMessage & { sent: boolean }) | null = null;
  private limits: MessageLimits = { messageBytes: Infinity, attachmentBytes: Infinity };
  private historyOutdated = false; // a new branch changed the history; it is requested again after the reply
  private replayUntil = -1; // the sequence number of the last message of a replay, or -1
  private replyActive = false; // a reply is in progress, according to the messages so far
  private state: ConnectionState = 'closed';
  private readonly setTimer: (f: () => void, ms: number) => unknown;
  private readonly clearTimer: (t: unknown) => void;
  private readonly random: () => number;

  constructor(
    sessionId: string,
    private readonly options: ChatSocketOptions,
  ) {
    this.sessionId = sessionId;
    this.createdHere = sessionId === '';
    this.setTimer = options.setTimer ?? ((f, ms) => setTimeout(f, ms));
    this.clearTimer = options.clearTimer ?? ((t) => clearTimeout(t as ReturnType<typeof setTimeout>));
    this.random = options.random ?? Math.random;
  }

  /** isEmptySession reports whether the session was created by this page and has no message yet. */
  private get isEmptySession(): boolean {
    return this.createdHere && this.lastSeq <= 0;
  }

  get currentSessionId(): string {
    return this.sessionId;
  }

  open() {
    this.stopped = false;
    this.connect();
  }

  close() {
    this.stopped = true;
    this.disconnect();
    this.clearTimer(this.reconnectTimer);
    this.setState('closed');
  }

  /** reconnectNow reconnects immediately, when the browser reports that the network is back. */
  reconnectNow() {
    if (this.stopped || this.socket) return;
    this.clearTimer(this.reconnectTimer);
    this.connectAttempts = 0;
    this.connect();
  }

  /** sendMessage sends a message, now or as soon as there is a connection and no reply in progress. */
  sendMessage(message: OutgoingMessage): boolean {
    if (this.pending) return false;
    this.pending = { ...message, sent: false };
    this.options.onPending(message.text || (message.attachments ?? []).map((a) => a.name).join(', '));
    this.sendPending();
    return true;
  }

  /** withdrawMessage removes a pending message that was not sent yet, and returns it. */
  withdrawMessage(): OutgoingMessage | null {
    return this.pending && !this.pending.sent ? this.takePending() : null;
  }

  abort() {
    this.transmit({ type: 'abort', payload: {} });
  }

  /** decide answers an approval. It returns false when there is no connection; the approval then stays open. */
  decide(callId: string, approve: boolean, scope: Scope = 'once', reason = ''): boolean {
    return this.transmit({ type: approve ? 'approve' : 'deny', payload: approve ? { callId, scope } : { callId, reason } });
  }

  /** answer answers a server's question. It returns false when there is no connection. */
  answer(questionId: string, action: AnswerAction, more: { content?: unknown; scope?: Scope } = {}): boolean {
    return this.transmit({ type: 'answer', payload: { questionId, action, ...more } });
  }

  /** regenerate answers a message of the user again, on another branch. */
  regenerate(messageId: string, model?: string): boolean {
    return this.transmit({ type: 'regenerate', payload: { messageId, ...(model ? { model } : {}) } });
  }

  /** switchBranch continues on the branch of a message. */
  switchBranch(messageId: string): boolean {
    return this.transmit({ type: 'branch', payload: { messageId } });
  }

  setPreferences(preferences: Preferences): boolean {
    return this.transmit({ type: 'preferences', payload: preferences });
  }

  private setState(s: ConnectionState) {
    if (this.state !== s) this.options.onState((this.state = s));
  }

  private transmit(m: unknown): boolean {
    if (this.state !== 'open' || !this.socket) return false;
    this.socket.send(JSON.stringify(m));
    this.lastError = ''; // an error after this is a response to it, even if it equals the last one
    return true;
  }

  private sendPending() {
    const p = this.pending;
    // Wait for the replay first: it may contain the message. The gateway refuses messages during a reply.
    if (!p || p.sent || this.replayUntil >= 0 || this.replyActive) return;
    const problem = sizeError(p, this.limits);
    if (problem) return this.rejectPending(problem);
    p.sent = this.transmit({ type: 'message', payload: { text: p.text, ...(p.model ? { model: p.model } : {}), ...(p.edit ? { edit: p.edit } : {}), ...(p.attachments?.length ? { attachments: p.attachments.map(({ name, mimeType, data }) => ({ name, mimeType, data })) } : {}) } });
  }

  private clearPending() {
    if (!this.pending) return;
    this.pending = null;
    this.options.onPending(null);
  }

  /** takePending removes the pending message and returns it. */
  private takePending(): OutgoingMessage {
    const { sent: _, ...message } = this.pending!;
    this.clearPending();
    return message;
  }

  /** rejectPending returns the pending message with an error, like a refusal by the gateway. */
  private rejectPending(message: string) {
    this.options.onRejected?.(this.takePending());
    this.options.onMessage({ type: 'error', seq: this.lastSeq, payload: { code: 'TOO_LARGE', message } });
  }

  private disconnect() {
    const old = this.socket;
    this.socket = null;
    if (!old) return;
    old.onopen = old.onmessage = old.onclose = null;
    old.close();
  }

  private connect() {
    this.disconnect();
    this.setState(this.connectAttempts === 0 ? 'connecting' : 'reconnecting');
    this.ignoreMessages = false;
    const socket = this.options.connect(this.options.url(this.sessionId, this.lastSeq));
    this.socket = socket;
    socket.onmessage = (e) => {
      if (this.socket === socket && typeof e.data === 'string') this.receive(e.data);
    };
    socket.onclose = (e) => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.replayUntil = -1;
      if (this.stopped) return;
      if (e.code === 4404 && this.isEmptySession) {
        // The session had no messages; create another one.
        this.sessionId = '';
        this.lastSeq = -1;
        this.scheduleReconnect();
        return;
      }
      if (e.code === 4404 || e.code === 4410) {
        this.stopped = true;
        this.setState('closed');
        this.options.onSessionGone(e.code);
        return;
      }
      // Sending it again would close the next connection, too.
      if (e.code === 1009 && this.pending?.sent) this.rejectPending('the message is too large for the gateway');
      this.scheduleReconnect();
    };
  }

  private scheduleReconnect() {
    this.connectAttempts++;
    this.setState('reconnecting');
    const wait = Math.min(15_000, 250 * 2 ** Math.min(this.connectAttempts, 6)) * (0.75 + this.random() / 2);
    this.clearTimer(this.reconnectTimer);
    this.reconnectTimer = this.setTimer(() => {
      if (!this.stopped && !this.socket) this.connect();
    }, wait);
  }

  private receive(data: string) {
    let m: GatewayMessage;
    try {
      m = JSON.parse(data) as GatewayMessage;
    } catch {
      return; // not a protocol message
    }
    if (this.ignoreMessages || typeof m?.type !== 'string' || typeof m.seq !== 'number') return;
    if (!m.payload) m.payload = {};

    if (m.type === 'connection') {
      if (m.payload.state === 'error') {
        if (this.isEmptySession) this.ignoreMessages = true;
        else this.options.onMessage(m);
        return;
      }
      if (typeof m.payload.sessionId === 'string') this.sessionId = m.payload.sessionId;
      if (m.payload.limits) this.limits = m.payload.limits as MessageLimits;
      this.connectAttempts = 0;
      this.setState('open');
      // A replay follows, up to the sequence number of this message.
      const behind = this.lastSeq < 0 ? false : m.seq > this.lastSeq;
      this.replayUntil = behind ? m.seq : -1;
      if (this.lastSeq < 0) this.lastSeq = m.seq;
      this.replyActive = m.payload.active === true;
      if (!behind) this.markPendingUnsent();
      this.options.onMessage(m);
      this.sendPending();
      return;
    }
    if (m.type === 'history') {
      // The history includes everything up to this number; later messages are sent again.
      this.lastSeq = m.seq;
      this.lastError = '';
      if (this.pending?.sent && isSameMessage(this.pending, lastUserMessage(m))) this.clearPending();
      this.options.onMessage(m);
      this.endReplayIfComplete();
      return;
    }
    const error = m.type === 'error' ? JSON.stringify(m.payload) : '';
    if (m.seq <= this.lastSeq) {
      // A duplicate, unless it is an error for this connection only.
      if (!error || m.seq < this.lastSeq || error === this.lastError) return;
    } else if (m.seq > this.lastSeq + 1 && !unicastTypes.has(m.type)) {
      // A message is missing: reload the whole conversation.
      this.lastSeq = -1;
      this.connect();
      return;
    } else this.lastSeq = m.seq;
    this.lastError = error;
    if (m.type === 'message' && this.pending && isSameMessage(this.pending, m.payload as unknown as EchoedMessage)) this.clearPending();
    if (error && this.pending?.sent && m.payload.callId === undefined && m.payload.questionId === undefined && !replyErrorCodes.has(String(m.payload.code))) {
      // The error explains why.
      this.options.onRejected?.(this.takePending());
    }
    if (m.type === 'message' || (m.type === 'branch' && m.payload.again)) this.replyActive = true;
    if (m.type === 'branch') {
      if (m.payload.reload) this.transmit({ type: 'history', payload: {} });
      else this.historyOutdated = true;
    }
    if (m.type === 'status' && !m.payload.tool && m.payload.state === 'complete') {
      this.replyActive = false;
      this.markPendingUnsent();
      if (this.historyOutdated) this.historyOutdated = !this.transmit({ type: 'history', payload: {} });
    }
    this.options.onMessage(m);
    this.endReplayIfComplete();
    this.sendPending();
  }

  private endReplayIfComplete() {
    if (this.replayUntil >= 0 && this.lastSeq >= this.replayUntil) {
      this.replayUntil = -1;
      this.markPendingUnsent();
      this.sendPending();
    }
  }

  /** markPendingUnsent marks the pending message as unsent when the replay is complete and does not contain it, unless a reply to it may still arrive. */
  private markPendingUnsent() {
    if (this.pending?.sent && !this.replyActive) this.pending.sent = false;
  }
}

/** OutgoingMessage is a message that the user sends; edit is the id of the one that it replaces. */
export interface OutgoingMessage {
  text: string;
  model?: string;
  edit?: string;
  attachments?: Attachment[];
}

/** Error codes of the current reply, which do not concern a pending message. */
const replyErrorCodes = new Set(['ABORTED', 'INTERRUPTED', 'MODEL_ERROR', 'NO_MODEL', 'NO_SUCH_APPROVAL', 'NO_SUCH_QUESTION']);

/** sizeError returns the gateway's error message about a message that exceeds the limits, or ''. */
function sizeError({ text, attachments = [] }: OutgoingMessage, limits: MessageLimits): string {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > limits.messageBytes) return `the message has ${bytes} bytes; ${limits.messageBytes} are allowed`;
  const attached = attachments.reduce((sum, a) => sum + a.size, 0);
  return attached > limits.attachmentBytes ? `the attachments have more than ${limits.attachmentBytes} bytes (chat.maxAttachmentBytes)` : '';
}

/** EchoedMessage is a user's message as the gateway broadcasts it. */
interface EchoedMessage {
  text?: string;
  attachments?: { size?: number }[];
}

/** isSameMessage reports whether the gateway's echo is of this message. Attachments are compared by size, because images lose their names. */
function isSameMessage(message: OutgoingMessage, echo: EchoedMessage | undefined): boolean {
  const sizes = (list: { size?: number }[] = []) => list.map((a) => a.size ?? 0).join();
  return echo !== undefined && message.text === (echo.text ?? '') && sizes(message.attachments) === sizes(echo.attachments);
}

/** lastUserMessage returns the user's last message of a history. */
function lastUserMessage(history: GatewayMessage): EchoedMessage | undefined {
  const message = ((history.payload.messages as HistoryMessage[] | null) ?? []).findLast((h) => h.role === 'user');
  return (
    message && {
      text: message.parts.find((p) => p.text)?.text,
      attachments: message.parts.flatMap((p) => (p.image ? [{ size: decodedSize(p.image.data) }] : p.file ? [p.file] : [])),
    }
  );
}

/** decodedSize returns the number of bytes of base64 data. */
function decodedSize(data: string): number {
  return (data.length / 4) * 3 - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0);
}
