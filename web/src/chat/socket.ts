import type { HistoryMessage, Scope } from '../lib/api';
import type { Answer, Attachment, Limits, Outgoing, Preferences } from './protocol';

/** Wire is the part of a WebSocket that ChatSocket uses; tests pass their own. */
export interface Wire {
  onopen: (() => void) | null;
  onmessage: ((e: { data: unknown }) => void) | null;
  onclose: ((e: { code: number; reason: string }) => void) | null;
  send(data: string): void;
  close(code?: number): void;
}

export type LinkState = 'connecting' | 'open' | 'waiting' | 'closed';

export interface SocketOptions {
  url: (sessionId: string, after: number) => string;
  dial: (url: string) => Wire;
  /** Every message once, in order. */
  onMessage: (m: Outgoing) => void;
  onState: (s: LinkState) => void;
  /** The user's message that has not reached the gateway yet, or null. */
  onPending: (text: string | null) => void;
  /** A message that the gateway refused, to be edited and sent again. */
  onRefused?: (said: Said) => void;
  /** The session is gone (4404: unknown, 4410: deleted). */
  onGone: (code: number) => void;
  setTimer?: (f: () => void, ms: number) => unknown;
  clearTimer?: (t: unknown) => void;
  random?: () => number;
}

/** Messages for a single connection, which repeat the sequence number of the last broadcast message. */
const alone = new Set(['connection', 'history']);

/**
 * ChatSocket keeps the connection to one session. It reconnects automatically,
 * requests the messages it missed, delivers every message once and in order,
 * and sends each message of the user exactly once.
 */
export class ChatSocket {
  private wire: Wire | null = null;
  private sessionId: string;
  private readonly own: boolean; // the session was created by this page
  private deaf = false; // ignore messages: they only explain that the session does not exist
  private last = -1;
  private lastError = '';
  private attempts = 0;
  private timer: unknown = null;
  private stopped = false;
  private pending: (Said & { sent: boolean }) | null = null;
  private limits: Limits = { messageBytes: Infinity, attachmentBytes: Infinity };
  private branched = false; // the history has more than the messages tell: the other branches
  private replayTo = -1;
  private active = false; // a reply is in progress, as far as known
  private state: LinkState = 'closed';
  private readonly setTimer: (f: () => void, ms: number) => unknown;
  private readonly clearTimer: (t: unknown) => void;
  private readonly random: () => number;

  constructor(
    sessionId: string,
    private readonly options: SocketOptions,
  ) {
    this.sessionId = sessionId;
    this.own = sessionId === '';
    this.setTimer = options.setTimer ?? ((f, ms) => setTimeout(f, ms));
    this.clearTimer = options.clearTimer ?? ((t) => clearTimeout(t as ReturnType<typeof setTimeout>));
    this.random = options.random ?? Math.random;
  }

  /** unsaid reports whether the session was created by this page and has no message yet. */
  private get unsaid(): boolean {
    return this.own && this.last <= 0;
  }

  get session(): string {
    return this.sessionId;
  }

  open() {
    this.stopped = false;
    this.dial();
  }

  close() {
    this.stopped = true;
    this.drop();
    this.clearTimer(this.timer);
    this.set('closed');
  }

  /** wake reconnects at once, when the browser reports that the network is back. */
  wake() {
    if (this.stopped || this.wire) return;
    this.clearTimer(this.timer);
    this.attempts = 0;
    this.dial();
  }

  /** say sends a message, now or as soon as there is a connection and no reply in progress. */
  say(said: Said): boolean {
    if (this.pending) return false;
    this.pending = { ...said, sent: false };
    this.options.onPending(said.text || (said.attachments ?? []).map((a) => a.name).join(', '));
    this.flush();
    return true;
  }

  /** unsay takes back a message that was not sent yet, and returns it. */
  unsay(): Said | null {
    return this.pending && !this.pending.sent ? this.takeBack() : null;
  }

  abort() {
    this.transmit({ type: 'abort', payload: {} });
  }

  /** decide answers an approval. It returns false when there is no connection; the approval then stays open. */
  decide(callId: string, approve: boolean, scope: Scope = 'once', reason = ''): boolean {
    return this.transmit({ type: approve ? 'approve' : 'deny', payload: approve ? { callId, scope } : { callId, reason } });
  }

  /** answer answers a server's question. It returns false when there is no connection. */
  answer(questionId: string, action: Answer, more: { content?: unknown; scope?: Scope } = {}): boolean {
    return this.transmit({ type: 'answer', payload: { questionId, action, ...more } });
  }

  /** regenerate answers a message of the user again, on another branch. */
  regenerate(messageId: string, model?: string): boolean {
    return this.transmit({ type: 'regenerate', payload: { messageId, ...(model ? { model } : {}) } });
  }

  /** branch continues on the branch of a message. */
  branch(messageId: string): boolean {
    return this.transmit({ type: 'branch', payload: { messageId } });
  }

  prefer(preferences: Preferences): boolean {
    return this.transmit({ type: 'preferences', payload: preferences });
  }

  private set(s: LinkState) {
    if (this.state !== s) this.options.onState((this.state = s));
  }

  private transmit(m: unknown): boolean {
    if (this.state !== 'open' || !this.wire) return false;
    this.wire.send(JSON.stringify(m));
    this.lastError = ''; // an error after this answers it, even if it reads like the last one
    return true;
  }

  private flush() {
    const p = this.pending;
    // Wait for the replay first: it may contain the message. A message during a reply would be refused.
    if (!p || p.sent || this.replayTo >= 0 || this.active) return;
    const problem = tooLarge(p, this.limits);
    if (problem) return this.refuse(problem);
    p.sent = this.transmit({ type: 'message', payload: { text: p.text, ...(p.model ? { model: p.model } : {}), ...(p.edit ? { edit: p.edit } : {}), ...(p.attachments?.length ? { attachments: p.attachments.map(({ name, mimeType, data }) => ({ name, mimeType, data })) } : {}) } });
  }

  private delivered() {
    if (!this.pending) return;
    this.pending = null;
    this.options.onPending(null);
  }

  /** takeBack returns the pending message, which is then not pending any more. */
  private takeBack(): Said {
    const { sent: _, ...said } = this.pending!;
    this.delivered();
    return said;
  }

  /** refuse returns the pending message as the gateway does, before it would close the connection. */
  private refuse(message: string) {
    this.options.onRefused?.(this.takeBack());
    this.options.onMessage({ type: 'error', seq: this.last, payload: { code: 'TOO_LARGE', message } });
  }

  private drop() {
    const w = this.wire;
    this.wire = null;
    if (!w) return;
    w.onopen = w.onmessage = w.onclose = null;
    w.close();
  }

  private dial() {
    this.drop();
    this.set(this.attempts === 0 ? 'connecting' : 'waiting');
    this.deaf = false;
    const wire = this.options.dial(this.options.url(this.sessionId, this.last));
    this.wire = wire;
    wire.onmessage = (e) => {
      if (this.wire === wire && typeof e.data === 'string') this.receive(e.data);
    };
    wire.onclose = (e) => {
      if (this.wire !== wire) return;
      this.wire = null;
      this.replayTo = -1;
      if (this.stopped) return;
      if (e.code === 4404 && this.unsaid) {
        // The session had no messages; create another one.
        this.sessionId = '';
        this.last = -1;
        this.again();
        return;
      }
      if (e.code === 4404 || e.code === 4410) {
        this.stopped = true;
        this.set('closed');
        this.options.onGone(e.code);
        return;
      }
      // Sending it again would end the next connection, too.
      if (e.code === 1009 && this.pending?.sent) this.refuse('the message is too large for the gateway');
      this.again();
    };
  }

  private again() {
    this.attempts++;
    this.set('waiting');
    const wait = Math.min(15_000, 250 * 2 ** Math.min(this.attempts, 6)) * (0.75 + this.random() / 2);
    this.clearTimer(this.timer);
    this.timer = this.setTimer(() => {
      if (!this.stopped && !this.wire) this.dial();
    }, wait);
  }

  private receive(data: string) {
    let m: Outgoing;
    try {
      m = JSON.parse(data) as Outgoing;
    } catch {
      return; // not a protocol message
    }
    if (this.deaf || typeof m?.type !== 'string' || typeof m.seq !== 'number') return;
    if (!m.payload) m.payload = {};

    if (m.type === 'connection') {
      if (m.payload.state === 'error') {
        if (this.unsaid) this.deaf = true;
        else this.options.onMessage(m);
        return;
      }
      if (typeof m.payload.sessionId === 'string') this.sessionId = m.payload.sessionId;
      if (m.payload.limits) this.limits = m.payload.limits as Limits;
      this.attempts = 0;
      this.set('open');
      // Messages are missing until the sequence number of the greeting has arrived.
      const behind = this.last < 0 ? false : m.seq > this.last;
      this.replayTo = behind ? m.seq : -1;
      if (this.last < 0) this.last = m.seq;
      this.active = m.payload.active === true;
      if (!behind) this.resend();
      this.options.onMessage(m);
      this.flush();
      return;
    }
    if (m.type === 'history') {
      // The history includes everything up to this number; later messages are sent again.
      this.last = m.seq;
      this.lastError = '';
      if (this.pending?.sent && isSame(this.pending, lastSaid(m))) this.delivered();
      this.options.onMessage(m);
      this.caughtUp();
      return;
    }
    const error = m.type === 'error' ? JSON.stringify(m.payload) : '';
    if (m.seq <= this.last) {
      // A duplicate, unless it is an error for this connection only.
      if (!error || m.seq < this.last || error === this.lastError) return;
    } else if (m.seq > this.last + 1 && !alone.has(m.type)) {
      // A message is missing: reload the whole conversation.
      this.last = -1;
      this.dial();
      return;
    } else this.last = m.seq;
    this.lastError = error;
    if (m.type === 'message' && this.pending && isSame(this.pending, m.payload as unknown as Content)) this.delivered();
    if (error && this.pending?.sent && m.payload.callId === undefined && m.payload.questionId === undefined && !turnErrors.has(String(m.payload.code))) {
      // The error explains why.
      this.options.onRefused?.(this.takeBack());
    }
    if (m.type === 'message' || (m.type === 'branch' && m.payload.again)) this.active = true;
    if (m.type === 'branch') {
      if (m.payload.reload) this.transmit({ type: 'history', payload: {} });
      else this.branched = true;
    }
    if (m.type === 'status' && !m.payload.tool && m.payload.state === 'complete') {
      this.active = false;
      this.resend();
      if (this.branched) this.branched = !this.transmit({ type: 'history', payload: {} });
    }
    this.options.onMessage(m);
    this.caughtUp();
    this.flush();
  }

  private caughtUp() {
    if (this.replayTo >= 0 && this.last >= this.replayTo) {
      this.replayTo = -1;
      this.resend();
      this.flush();
    }
  }

  /** resend marks the pending message as unsent when the replay is complete and does not contain it, unless a reply to it may still arrive. */
  private resend() {
    if (this.pending?.sent && !this.active) this.pending.sent = false;
  }
}

/** Said is a message of the user; edit is the id of the one that it replaces. */
export interface Said {
  text: string;
  model?: string;
  edit?: string;
  attachments?: Attachment[];
}

/** Errors of the current reply, which do not concern a pending message. */
const turnErrors = new Set(['ABORTED', 'INTERRUPTED', 'MODEL_ERROR', 'NO_MODEL', 'NO_SUCH_APPROVAL', 'NO_SUCH_QUESTION']);

/** tooLarge returns the gateway's error message about a message that exceeds the limits, or ''. */
function tooLarge({ text, attachments = [] }: Said, limits: Limits): string {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > limits.messageBytes) return `the message has ${bytes} bytes; ${limits.messageBytes} are allowed`;
  const attached = attachments.reduce((sum, a) => sum + a.size, 0);
  return attached > limits.attachmentBytes ? `the attachments have more than ${limits.attachmentBytes} bytes (chat.maxAttachmentBytes)` : '';
}

/** Content is a message as the gateway repeats it. */
interface Content {
  text?: string;
  attachments?: { size?: number }[];
}

/** isSame reports whether the gateway has got a message. Attachments are compared by size, because images lose their names. */
function isSame(said: Said, got: Content | undefined): boolean {
  const sizes = (list: { size?: number }[] = []) => list.map((a) => a.size ?? 0).join();
  return got !== undefined && said.text === (got.text ?? '') && sizes(said.attachments) === sizes(got.attachments);
}

/** lastSaid returns the user's last message of a history. */
function lastSaid(m: Outgoing): Content | undefined {
  const said = ((m.payload.messages as HistoryMessage[] | null) ?? []).findLast((h) => h.role === 'user');
  return (
    said && {
      text: said.parts.find((p) => p.text)?.text,
      attachments: said.parts.flatMap((p) => (p.image ? [{ size: decodedSize(p.image.data) }] : p.file ? [p.file] : [])),
    }
  );
}

/** decodedSize returns the number of bytes that base64 stands for. */
function decodedSize(data: string): number {
  return (data.length / 4) * 3 - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0);
}
