import { beforeEach, describe, expect, it, vi } from 'vitest';
import { connectWebSocket, sessionHeaders, storedSession, storeSession } from './session';

const memory = new Map<string, string>();
vi.stubGlobal('localStorage', {
  getItem: (k: string) => memory.get(k) ?? null,
  setItem: (k: string, v: string) => memory.set(k, v),
  removeItem: (k: string) => memory.delete(k),
});

const socket = () => ({ onopen: null, onmessage: null, onclose: null, sent: [] as string[], ended: 0, send(d: string) { this.sent.push(d); }, close() { this.ended++; } });

describe('the session', () => {
  beforeEach(() => memory.clear());

  it('is sent as a header only when there is one', () => {
    expect(sessionHeaders()).toEqual({});
    storeSession('secret');
    expect(sessionHeaders()).toEqual({ 'X-Junctor-Session': 'secret' });
    storeSession('');
    expect(storedSession()).toBe('');
  });

  it('opens sockets directly when there is none', () => {
    const opened: string[] = [];
    const s = socket();
    expect(connectWebSocket('ws://h/ws', () => Promise.reject(new Error('no')), (u) => (opened.push(u), s))).toBe(s);
    expect(opened).toEqual(['ws://h/ws']);
  });

  it('opens sockets with a ticket, never with the session itself', async () => {
    storeSession('secret');
    const opened: string[] = [];
    const s = socket();
    const outer = connectWebSocket('ws://h/ws?after=3', () => Promise.resolve('t1'), (u) => (opened.push(u), s));
    const received: unknown[] = [];
    outer.onopen = () => received.push('open');
    outer.onmessage = (e) => received.push(e.data);
    outer.onclose = (e) => received.push(e.code);
    await Promise.resolve();
    await Promise.resolve();
    expect(opened).toEqual(['ws://h/ws?after=3&ticket=t1']);
    const inner = s as unknown as { onopen: () => void; onmessage: (e: { data: string }) => void; onclose: (e: { code: number }) => void };
    inner.onopen();
    inner.onmessage({ data: 'x' });
    outer.send('y');
    inner.onclose({ code: 1000 });
    expect(received).toEqual(['open', 'x', 1000]);
    expect(s.sent).toEqual(['y']);
  });

  it('opens no socket after close, and reports a failed ticket request', async () => {
    storeSession('secret');
    const opened: string[] = [];
    connectWebSocket('ws://h/ws', () => Promise.resolve('t'), (u) => (opened.push(u), socket())).close();
    const lost = connectWebSocket('ws://h/ws', () => Promise.reject(new Error('gone')), (u) => (opened.push(u), socket()));
    const code = await new Promise((done) => (lost.onclose = (e) => done(e.code)));
    expect(code).toBe(1006);
    expect(opened).toEqual([]);
  });
});
