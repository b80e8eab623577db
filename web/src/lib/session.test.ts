import { beforeEach, describe, expect, it, vi } from 'vitest';
import { connect, headers, keep, stored } from './session';

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
    expect(headers()).toEqual({});
    keep('secret');
    expect(headers()).toEqual({ 'X-Junctor-Session': 'secret' });
    keep('');
    expect(stored()).toBe('');
  });

  it('opens sockets directly when there is none', () => {
    const asked: string[] = [];
    const s = socket();
    expect(connect('ws://h/ws', () => Promise.reject(new Error('no')), (u) => (asked.push(u), s))).toBe(s);
    expect(asked).toEqual(['ws://h/ws']);
  });

  it('opens sockets with a ticket, never with the session itself', async () => {
    keep('secret');
    const asked: string[] = [];
    const s = socket();
    const outer = connect('ws://h/ws?after=3', () => Promise.resolve('t1'), (u) => (asked.push(u), s));
    const heard: unknown[] = [];
    outer.onopen = () => heard.push('open');
    outer.onmessage = (e) => heard.push(e.data);
    outer.onclose = (e) => heard.push(e.code);
    await Promise.resolve();
    await Promise.resolve();
    expect(asked).toEqual(['ws://h/ws?after=3&ticket=t1']);
    const inner = s as unknown as { onopen: () => void; onmessage: (e: { data: string }) => void; onclose: (e: { code: number }) => void };
    inner.onopen();
    inner.onmessage({ data: 'x' });
    outer.send('y');
    inner.onclose({ code: 1000 });
    expect(heard).toEqual(['open', 'x', 1000]);
    expect(s.sent).toEqual(['y']);
  });

  it('opens no socket after close, and reports a failed ticket request', async () => {
    keep('secret');
    const asked: string[] = [];
    connect('ws://h/ws', () => Promise.resolve('t'), (u) => (asked.push(u), socket())).close();
    const lost = connect('ws://h/ws', () => Promise.reject(new Error('gone')), (u) => (asked.push(u), socket()));
    const code = await new Promise((done) => (lost.onclose = (e) => done(e.code)));
    expect(code).toBe(1006);
    expect(asked).toEqual([]);
  });
});
