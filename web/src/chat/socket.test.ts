import { describe, expect, it } from 'vitest';
import type { WebSocketLike } from '../lib/session';
import type { GatewayMessage } from './protocol';
import { ChatSocket, type ConnectionState, type OutgoingMessage } from './socket';

/** setUp returns a ChatSocket with a fake gateway: it records connections and sent messages, and the test sends the gateway's messages. */
function setUp(sessionId = '') {
  const urls: { session: string; after: number }[] = [];
  const sockets: (WebSocketLike & { sent: { type: string; payload: Record<string, unknown> }[]; closed: boolean })[] = [];
  const received: GatewayMessage[] = [];
  const states: ConnectionState[] = [];
  const pending: (string | null)[] = [];
  const refused: OutgoingMessage[] = [];
  const timers: { f: () => void; ms: number; dead: boolean }[] = [];
  let gone = 0;
  const socket = new ChatSocket(sessionId, {
    url: (session, after) => {
      urls.push({ session, after });
      return 'ws://test';
    },
    connect: () => {
      const ws = {
        onopen: null,
        onmessage: null,
        onclose: null,
        sent: [] as { type: string; payload: Record<string, unknown> }[],
        closed: false,
        send(data: string) {
          this.sent.push(JSON.parse(data));
        },
        close() {
          this.closed = true;
        },
      } as WebSocketLike & { sent: { type: string; payload: Record<string, unknown> }[]; closed: boolean };
      sockets.push(ws);
      return ws;
    },
    onMessage: (m) => received.push(m),
    onState: (s) => states.push(s),
    onPending: (p) => pending.push(p),
    onRejected: (message) => refused.push(message),
    onSessionGone: (code) => (gone = code),
    setTimer: (f, ms) => {
      const t = { f, ms, dead: false };
      timers.push(t);
      return t;
    },
    clearTimer: (t) => {
      if (t) (t as { dead: boolean }).dead = true;
    },
    random: () => 0.5,
  });
  const ws = () => sockets.at(-1)!;
  return {
    socket,
    urls,
    sockets,
    states,
    pending,
    refused,
    timers,
    ws,
    get gone() {
      return gone;
    },
    receive: (type: string, seq: number, payload: Record<string, unknown> = {}) => ws().onmessage?.({ data: JSON.stringify({ type, seq, payload }) }),
    greet: (seq: number, more: Record<string, unknown> = {}) => ws().onmessage?.({ data: JSON.stringify({ type: 'connection', seq, payload: { state: 'connected', sessionId: 's1', ...more } }) }),
    drop: (code = 1006) => ws().onclose?.({ code, reason: '' }),
    tick: () => {
      const t = timers.findLast((x) => !x.dead)!;
      t.dead = true;
      t.f();
    },
    texts: () => received.filter((m) => m.type === 'text').map((m) => m.payload.content),
    types: () => received.map((m) => m.type),
    errors: () => received.filter((m) => m.type === 'error').map((m) => m.payload),
  };
}

const file = (name: string, size = 1) => ({ name, mimeType: 'text/plain', data: '', size });

describe('ChatSocket', () => {
  it('delivers each message once, in order', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    for (const seq of [1, 2, 2, 1, 3, 3]) r.receive('text', seq, { content: String(seq) });
    expect(r.texts()).toEqual(['1', '2', '3']);
    expect(r.urls).toEqual([{ session: '', after: -1 }]);
  });

  it('reconnects with the session and the last sequence number and resumes', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.receive('text', 1, { content: 'a' });
    r.receive('text', 2, { content: 'b' });
    r.drop();
    expect(r.states.at(-1)).toBe('reconnecting');
    r.tick();
    expect(r.urls.at(-1)).toEqual({ session: 's1', after: 2 });
    r.greet(4); // the sequence number of connection is not that of a message received
    r.receive('text', 3, { content: 'c' });
    r.drop();
    r.tick();
    expect(r.urls.at(-1)).toEqual({ session: 's1', after: 3 });
    r.greet(4);
    r.receive('text', 3, { content: 'c' });
    r.receive('text', 4, { content: 'd' });
    expect(r.texts()).toEqual(['a', 'b', 'c', 'd']);
    expect(r.states.at(-1)).toBe('open');
  });

  it('backs off with every attempt, and reconnects at once when the network is back', () => {
    const r = setUp();
    r.socket.open();
    for (let i = 0; i < 8; i++) {
      r.drop();
      if (i < 7) r.tick();
    }
    const waits = r.timers.map((t) => t.ms);
    expect(waits.slice(0, 3)).toEqual([500, 1000, 2000]);
    expect(Math.max(...waits)).toBeLessThanOrEqual(15_000 * 1.25);
    const before = r.sockets.length;
    r.socket.reconnectNow();
    expect(r.sockets.length).toBe(before + 1);
    r.socket.reconnectNow(); // it is already connecting
    expect(r.sockets.length).toBe(before + 1);
  });

  it('reloads the conversation when a message is missing', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.receive('text', 1, { content: 'a' });
    r.receive('text', 3, { content: 'c' });
    expect(r.sockets).toHaveLength(2);
    expect(r.sockets[0]!.closed).toBe(true);
    expect(r.urls.at(-1)).toEqual({ session: 's1', after: -1 });
    r.greet(3);
    r.receive('history', 3, { messages: [] });
    r.receive('text', 4, { content: 'd' });
    expect(r.texts()).toEqual(['a', 'd']);
  });

  it('replays the current reply after the history', () => {
    const r = setUp('s1');
    r.socket.open();
    r.greet(9, { active: true });
    r.receive('history', 5, { messages: [] });
    for (const seq of [6, 7, 8, 9, 10]) r.receive('text', seq, { content: String(seq) });
    expect(r.texts()).toEqual(['6', '7', '8', '9', '10']);
  });

  it('delivers an error for this connection only once', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.receive('text', 1, { content: 'a' });
    r.receive('error', 1, { code: 'RATE_LIMITED', message: 'slow down' });
    r.receive('error', 1, { code: 'RATE_LIMITED', message: 'slow down' });
    r.receive('error', 0, { code: 'OLD', message: 'old' });
    r.receive('error', 2, { code: 'MODEL_ERROR', message: 'broke' });
    r.receive('error', 2, { code: 'MODEL_ERROR', message: 'broke' });
    expect(r.types().filter((t) => t === 'error')).toHaveLength(2);
  });

  it('ignores malformed messages', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    for (const data of ['{', '[]', 'null', '{"type":1,"seq":1}', '{"type":"text"}', new ArrayBuffer(1)]) r.ws().onmessage?.({ data });
    expect(r.types()).toEqual(['connection']);
  });

  it('ignores messages of an abandoned connection', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    const old = r.ws();
    const late = old.onmessage;
    r.receive('text', 2, { content: 'gap' });
    late?.({ data: JSON.stringify({ type: 'text', seq: 1, payload: { content: 'late' } }) });
    expect(r.texts()).toEqual([]);
  });

  it('reports a deleted session and stops', () => {
    for (const code of [4404, 4410]) {
      const r = setUp('s1');
      r.socket.open();
      r.drop(code);
      expect(r.gone).toBe(code);
      expect(r.timers).toHaveLength(0);
    }
  });

  it('creates another session when an empty one is gone, and sends the pending message there', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.drop(1006);
    r.socket.sendMessage({ text: 'hello' });
    r.tick();
    r.receive('connection', 0, { state: 'error', message: 'no such session' });
    r.receive('error', 0, { code: 'INVALID_REQUEST', message: 'no such session' });
    r.drop(4404);
    r.tick();
    expect(r.gone).toBe(0);
    expect(r.urls.at(-1)).toEqual({ session: '', after: -1 });
    r.greet(0);
    expect(r.ws().sent).toEqual([{ type: 'message', payload: { text: 'hello' } }]);
    expect(r.refused).toEqual([]);
    expect(r.types()).not.toContain('error');
  });

  it('stays closed after close', () => {
    const r = setUp();
    r.socket.open();
    r.socket.close();
    expect(r.sockets[0]!.closed).toBe(true);
    r.socket.reconnectNow();
    expect(r.sockets).toHaveLength(1);
  });
});

describe('a message of the user', () => {
  const messages = (r: ReturnType<typeof setUp>) => r.sockets.flatMap((w) => w.sent.filter((m) => m.type === 'message'));

  it('waits for the connection', () => {
    const r = setUp();
    r.socket.open();
    expect(r.socket.sendMessage({ text: 'hello', model: 'm1' })).toBe(true);
    expect(messages(r)).toHaveLength(0);
    r.greet(0);
    expect(messages(r)).toEqual([{ type: 'message', payload: { text: 'hello', model: 'm1' } }]);
    expect(r.socket.sendMessage({ text: 'again' })).toBe(false); // only one message may be pending
    r.receive('message', 1, { text: 'hello', id: 'x' });
    expect(r.pending).toEqual(['hello', null]);
    expect(r.socket.sendMessage({ text: 'again' })).toBe(true);
  });

  it('is sent again when the connection was lost before it arrived', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.socket.sendMessage({ text: 'hello' });
    r.drop();
    r.tick();
    r.greet(0);
    expect(messages(r)).toHaveLength(2);
    r.receive('message', 1, { text: 'hello', id: 'x' });
    expect(r.pending.at(-1)).toBe(null);
  });

  it('is not sent again when it has arrived', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.socket.sendMessage({ text: 'hello' });
    r.drop();
    r.tick();
    r.greet(2, { active: true }); // missed messages are replayed first
    expect(messages(r)).toHaveLength(1);
    r.receive('message', 1, { text: 'hello', id: 'x' });
    r.receive('text', 2, { content: 'hi' });
    expect(messages(r)).toHaveLength(1);
    expect(r.pending.at(-1)).toBe(null);
  });

  it('is not sent again when its reply is being replayed', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.socket.sendMessage({ text: 'hello' });
    r.drop();
    r.tick();
    r.greet(0, { active: true });
    expect(messages(r)).toHaveLength(1);
    r.receive('message', 1, { text: 'hello', id: 'x' });
    expect(r.pending.at(-1)).toBe(null);
  });

  it('is found in a history that replaces missed messages', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.receive('text', 1, { content: 'a' });
    r.socket.sendMessage({ text: 'hello' });
    r.drop();
    r.tick();
    r.greet(40);
    r.receive('history', 40, { messages: [{ role: 'user', parts: [{ text: 'hello' }] }, { role: 'assistant', parts: [{ text: 'hi' }] }] });
    expect(messages(r)).toHaveLength(1);
    expect(r.pending.at(-1)).toBe(null);
  });

  it('is sent after a replay that does not contain it', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.receive('text', 1, { content: 'a' });
    r.socket.sendMessage({ text: 'hello' });
    r.drop();
    r.tick();
    r.greet(2);
    r.receive('status', 2, { state: 'complete', message: 'Done' });
    expect(messages(r)).toHaveLength(2);
  });

  it('is returned for editing when the gateway refuses it', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.socket.sendMessage({ text: 'hello', model: 'm1', attachments: [file('a.txt')] });
    r.receive('error', 0, { code: 'TOO_LARGE', message: 'too long' });
    expect(r.pending.at(-1)).toBe(null);
    expect(r.refused).toEqual([{ text: 'hello', model: 'm1', attachments: [file('a.txt')] }]);
    expect(r.types()).toContain('error');
  });

  it('is returned each time the gateway refuses it for the same reason', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    for (const text of ['hello', 'hello again']) {
      r.socket.sendMessage({ text });
      r.receive('error', 0, { code: 'UNAVAILABLE', message: 'try again' });
      expect(r.pending.at(-1)).toBe(null);
    }
    expect(r.refused.map((message) => message.text)).toEqual(['hello', 'hello again']);
  });

  it('is not sent when the gateway would refuse it, and is returned with the reason', () => {
    const limits = { messageBytes: 5, attachmentBytes: 10 };
    for (const [message, reason] of [
      [{ text: 'größe' }, 'the message has 7 bytes; 5 are allowed'],
      [{ text: '', attachments: [file('a', 6), file('b', 6)] }, 'the attachments have more than 10 bytes (chat.maxAttachmentBytes)'],
    ] as const) {
      const r = setUp();
      r.socket.open();
      r.socket.sendMessage({ ...message, attachments: [...('attachments' in message ? message.attachments : [])] }); // the limits are not known yet
      r.greet(0, { limits });
      expect(messages(r)).toEqual([]);
      expect(r.pending.at(-1)).toBe(null);
      expect(r.refused).toEqual([{ attachments: [], ...message }]);
      expect(r.errors()).toEqual([{ code: 'TOO_LARGE', message: reason }]);
      expect(r.socket.sendMessage({ text: 'small', attachments: [file('a', 10)] })).toBe(true);
      expect(messages(r)).toHaveLength(1);
    }
  });

  it('is not sent again when the gateway closed the connection because of its size', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.socket.sendMessage({ text: 'hello', attachments: [file('a')] });
    r.drop(1009);
    expect(r.refused).toEqual([{ text: 'hello', attachments: [file('a')] }]);
    expect(r.errors()).toEqual([{ code: 'TOO_LARGE', message: 'the message is too large for the gateway' }]);
    r.tick();
    r.greet(0);
    expect(messages(r)).toHaveLength(1);
    expect(r.states.at(-1)).toBe('open');
    r.drop(1009); // nothing was sent
    expect(r.refused).toHaveLength(1);
  });

  it('of files alone is distinguished from others', () => {
    const after = (history: unknown[], more: Record<string, unknown>[] = []) => {
      const r = setUp();
      r.socket.open();
      r.greet(0);
      r.receive('text', 1, { content: 'a' });
      r.socket.sendMessage({ text: '', attachments: [file('dot.png', 4), file('notes.txt', 17)] });
      r.drop();
      r.tick();
      r.greet(40);
      r.receive('history', 40, { messages: [{ role: 'user', parts: history }] });
      more.forEach((payload, i) => r.receive('message', 41 + i, payload));
      return { sent: messages(r).length, pending: r.pending.at(-1) };
    };
    const image = { image: { mime: 'image/png', data: 'AAAAAA==' } };
    const notes = { file: { name: 'notes.txt', mime: 'text/plain', size: 17 } };
    expect(after([image, notes])).toEqual({ sent: 1, pending: null });
    // The gateway leaves images out of a long history.
    expect(after([{ file: { name: 'image', mime: 'image/png', size: 4 } }, notes])).toEqual({ sent: 1, pending: null });
    // An earlier message.
    expect(after([notes])).toEqual({ sent: 2, pending: 'dot.png, notes.txt' });
    expect(after([])).toEqual({ sent: 2, pending: 'dot.png, notes.txt' });
    // A message of another user, then this one.
    expect(after([], [{ text: '', attachments: [{ name: 'x', size: 3 }] }])).toEqual({ sent: 2, pending: 'dot.png, notes.txt' });
    expect(after([], [{ text: '', attachments: [{ name: 'image', size: 4 }, { name: 'notes.txt', size: 17 }] }])).toEqual({ sent: 2, pending: null });
  });

  it('can approve, deny, answer and stop', () => {
    const r = setUp();
    r.socket.open();
    r.socket.abort(); // no connection: no effect
    expect(r.socket.decide('c0', true)).toBe(false); // the question stays open
    r.greet(0);
    r.socket.decide('c1', true, 'always');
    r.socket.decide('c2', false, 'once', 'no');
    r.socket.answer('q1', 'accept', { content: { name: 'Ada' } });
    r.socket.answer('q2', 'decline');
    r.socket.abort();
    expect(r.ws().sent).toEqual([
      { type: 'approve', payload: { callId: 'c1', scope: 'always' } },
      { type: 'deny', payload: { callId: 'c2', reason: 'no' } },
      { type: 'answer', payload: { questionId: 'q1', action: 'accept', content: { name: 'Ada' } } },
      { type: 'answer', payload: { questionId: 'q2', action: 'decline' } },
      { type: 'abort', payload: {} },
    ]);
  });
});

describe('a message during a reply', () => {
  it('is sent when the reply is finished', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.receive('message', 1, { text: 'first' });
    expect(r.socket.sendMessage({ text: 'second' })).toBe(true);
    expect(r.socket.sendMessage({ text: 'third' })).toBe(false); // another message is pending
    expect(r.ws().sent).toEqual([]);
    r.receive('status', 2, { state: 'complete', message: 'Done' });
    expect(r.ws().sent.map((m) => m.payload.text)).toEqual(['second']);
  });
  it('is sent after an outage that ended the reply, once', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0);
    r.receive('message', 1, { text: 'first' });
    r.drop();
    r.socket.sendMessage({ text: 'second' });
    r.tick();
    r.greet(3, { active: false });
    expect(r.ws().sent).toEqual([]); // missed messages are replayed first
    r.receive('text', 2, { content: 'half' });
    r.receive('error', 3, { code: 'INTERRUPTED', message: 'the gateway was stopped' });
    expect(r.ws().sent.map((m) => m.payload.text)).toEqual(['second']);
    r.receive('message', 4, { text: 'second' });
    expect(r.pending.at(-1)).toBe(null);
    expect(r.refused).toEqual([]);
  });
  it('can be withdrawn', () => {
    const r = setUp();
    r.socket.open();
    r.greet(0, { active: true });
    r.socket.sendMessage({ text: '', attachments: [file('oops.txt')] });
    expect(r.socket.withdrawMessage()).toEqual({ text: '', attachments: [file('oops.txt')] });
    expect(r.pending).toEqual(['oops.txt', null]);
    r.receive('status', 1, { state: 'complete', message: 'Done' });
    expect(r.ws().sent).toEqual([]);
    expect(r.socket.withdrawMessage()).toBe(null);
  });
});
