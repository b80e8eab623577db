import { describe, expect, it } from 'vitest';
import { applyMessage, emptyConversation, fromHistory, withAnswerSent, withDecision, withPreferences, type CallBlock, type Conversation } from './conversation';
import type { HistoryMessage } from '../lib/api';
import type { GatewayMessage } from './protocol';

let seq = 0;
const m = (type: string, payload: Record<string, unknown>): GatewayMessage => ({ type, seq: ++seq, payload });
const play = (c: Conversation, ...list: GatewayMessage[]) => list.reduce(applyMessage, c);
const call = (c: Conversation, i: number) => c.turns.at(-1)!.blocks[i] as CallBlock;

describe('a conversation', () => {
  it('has the preferences that were sent until the gateway confirms or refuses them', () => {
    const before = play(emptyConversation, m('connection', { state: 'connected', sessionId: 's', preferences: { temperature: 1 } }));
    const sent = withPreferences(before, { systemPrompt: 'Answer briefly.' });
    expect(sent.preferences).toEqual({ systemPrompt: 'Answer briefly.' });
    expect(play(sent, m('error', { code: 'INVALID_REQUEST', message: 'no' })).preferences).toEqual({ temperature: 1 });
    expect(play(withPreferences(sent, {}), m('error', { code: 'INVALID_REQUEST', message: 'no' })).preferences).toEqual({ temperature: 1 });
    // The error was about something else.
    expect(play(sent, m('error', { code: 'BUSY', message: 'no' }), m('session', { preferences: { systemPrompt: 'Answer briefly.' } })).preferences).toEqual({ systemPrompt: 'Answer briefly.' });
    const confirmed = play(sent, m('session', { preferences: { systemPrompt: 'Answer briefly.' } }), m('error', { code: 'BUSY', message: 'no' }));
    expect(confirmed.preferences).toEqual({ systemPrompt: 'Answer briefly.' });
    // They were lost with the connection.
    expect(play(sent, m('connection', { state: 'reconnecting', sessionId: 's', preferences: { temperature: 1 } })).preferences).toEqual({ temperature: 1 });
    expect(play(sent, m('connection', { state: 'reconnecting', sessionId: 's' })).preferences).toEqual({});
    expect(play(sent, m('history', { messages: [] })).preferences).toEqual({});
  });

  it('joins pieces of text', () => {
    const c = play(
      emptyConversation,
      m('connection', { state: 'connected', sessionId: 's', model: 'gpt', unavailable: [{ server: 'x', state: 'disconnected' }] }),
      m('message', { id: 'u1', text: 'hi\nthere', time: '2026-01-01T00:00:00Z' }),
      m('status', { state: 'processing', message: 'Thinking' }),
      m('reasoning', { content: 'let ' }),
      m('reasoning', { content: 'me see' }),
      m('text', { content: 'Hel' }),
      m('text', { content: 'lo' }),
    );
    expect(c).toMatchObject({ sessionId: 's', model: 'gpt', title: 'hi', active: true, status: 'Thinking' });
    expect(c.unavailable).toHaveLength(1);
    expect(c.turns).toHaveLength(2);
    expect(c.turns[1]!.blocks).toEqual([
      { kind: 'reasoning', text: 'let me see' },
      { kind: 'text', text: 'Hello' },
    ]);
    const done = play(c, m('usage', { model: 'gpt', turn: { input: 1 }, session: { input: 5 }, context: 10, contextWindow: 100 }), m('status', { state: 'complete', message: 'Done', data: { stop: 'end' } }));
    expect(done).toMatchObject({ active: false, stopReason: 'end', usage: { context: 10, window: 100 } });
  });

  it('tracks calls from start over progress to result', () => {
    let c = play(
      emptyConversation,
      m('message', { id: 'u', text: 'go' }),
      m('status', { state: 'processing', tool: 'fs:read', message: 'Running', data: { callId: 'c1', arguments: { path: 'a' } } }),
      m('status', { state: 'processing', tool: 'fs:list', message: 'Running', data: { callId: 'c2', arguments: {} } }),
      m('status', { state: 'processing', tool: 'fs:read', message: 'half', data: { callId: 'c1', progress: { progress: 1, total: 2 } } }),
    );
    expect(call(c, 0)).toMatchObject({ id: 'c1', tool: 'fs:read', args: { path: 'a' }, state: 'running', progress: 1, total: 2, message: 'half' });
    c = play(
      c,
      m('status', { state: 'complete', tool: 'fs:list', message: '', data: { callId: 'c2', result: { content: [] }, isError: true, tookMs: 7 } }),
      m('status', { state: 'complete', tool: 'fs:read', message: '', data: { callId: 'c1', result: { content: [1] }, tookMs: 9 } }),
      m('text', { content: 'done' }),
    );
    expect(call(c, 0)).toMatchObject({ state: 'done', tookMs: 9, result: { content: [1] } });
    expect(call(c, 1)).toMatchObject({ state: 'failed' });
    expect(c.turns.at(-1)!.blocks).toHaveLength(3);
  });

  it('distinguishes calls with the same id', () => {
    const run = (n: number) => [
      m('status', { state: 'processing', tool: 'a:b', message: '', data: { callId: 'call_1', arguments: { n } } }),
      m('status', { state: 'complete', tool: 'a:b', message: '', data: { callId: 'call_1', result: { n } } }),
    ];
    const c = play(emptyConversation, m('message', { id: 'u', text: 'x' }), ...run(1), ...run(2));
    expect(c.turns.at(-1)!.blocks).toMatchObject([
      { args: { n: 1 }, result: { n: 1 } },
      { args: { n: 2 }, result: { n: 2 } },
    ]);
  });

  it('shows an approval request and its decision', () => {
    let c = play(
      emptyConversation,
      m('message', { id: 'u', text: 'x' }),
      m('status', { state: 'processing', tool: 'fs:rm', message: '', data: { callId: 'c', arguments: { p: 1 } } }),
      m('approval', { callId: 'c', tool: 'fs:rm', arguments: { p: 1 }, message: 'Allow?', expires: '2026-01-01T00:00:00Z' }),
    );
    expect(c.turns.at(-1)!.blocks).toHaveLength(1);
    expect(call(c, 0)).toMatchObject({ state: 'asking', message: 'Allow?' });
    c = withDecision(c, 'c', 'approved');
    expect(call(c, 0)).toMatchObject({ state: 'running', decision: 'approved' });
  });

  it('ends open calls when a reply is stopped', () => {
    const c = play(
      emptyConversation,
      m('message', { id: 'u', text: 'x' }),
      m('status', { state: 'processing', tool: 'fs:rm', message: '', data: { callId: 'c' } }),
      m('error', { code: 'ABORTED', message: 'stopped' }),
      m('status', { state: 'complete', message: 'Stopped', data: { stop: 'aborted' } }),
    );
    expect(call(c, 0).state).toBe('failed');
    expect(c.turns.at(-1)!.notice).toBe('aborted');
    expect(c.error).toBeUndefined();
  });

  it('keeps errors until the next message', () => {
    let c = play(emptyConversation, m('message', { id: 'u', text: 'x' }), m('error', { code: 'MODEL_ERROR', message: 'broke' }));
    expect(c.error).toEqual({ code: 'MODEL_ERROR', message: 'broke' });
    c = play(c, m('message', { id: 'u2', text: 'y' }));
    expect(c.error).toBeUndefined();
  });

  it('ignores a message that is already in the history', () => {
    const c = play(
      emptyConversation,
      m('history', { title: 't', messages: [{ id: 'u1', seq: 1, role: 'user', time: '', parts: [{ text: 'hi' }] }] }),
      m('message', { id: 'u1', text: 'hi' }),
      m('text', { content: 'yes' }),
    );
    expect(c.turns.map((t) => t.role)).toEqual(['user', 'assistant']);
  });

  it('is renamed, and ignores unknown message types', () => {
    const c = play(emptyConversation, m('session', { title: 'new', model: 'm' }), m('of a later version', {}), m('history', { messages: null }));
    expect(c).toMatchObject({ title: 'new', model: 'm', turns: [] });
    expect(play(c, m('connection', { state: 'error', message: 'no such session' })).error?.message).toBe('no such session');
  });
});

describe('a history', () => {
  it('joins messages, calls and results into turns', () => {
    const messages: HistoryMessage[] = [
      { id: '1', seq: 1, role: 'user', time: 't', parts: [{ text: 'go' }] },
      { id: '2', seq: 2, role: 'assistant', time: 't', model: 'gpt', parts: [{ reasoning: 'hm' }, { text: 'ok' }, { call: { id: 'c', name: 'fs__read', tool: 'fs:read', arguments: { a: 1 } } }] },
      { id: '3', seq: 3, role: 'tool', time: 't', parts: [{ result: { callId: 'c', name: 'fs__read', content: { content: [] } } }] },
      { id: '4', seq: 4, role: 'assistant', time: 't', notice: 'aborted', parts: [{ text: 'so' }] },
      { id: '5', seq: 5, role: 'user', time: 't', parts: [] },
    ];
    const turns = fromHistory(messages);
    expect(turns.map((t) => t.role)).toEqual(['user', 'assistant', 'user']);
    expect(turns[1]).toMatchObject({ model: 'gpt', notice: 'aborted' });
    expect(turns[1]!.blocks).toMatchObject([{ kind: 'reasoning' }, { text: 'ok' }, { kind: 'call', tool: 'fs:read', state: 'done' }, { text: 'so' }]);
  });

  it('recognizes a reply that is the gateway’s error message', () => {
    const c = play(emptyConversation, m('message', { id: 'u', text: 'x' }), m('text', { content: 'No answer.' }), m('error', { code: 'MODEL_ERROR', message: 'No answer.' }));
    expect(c.turns.at(-1)!.notice).toBe('fallback');
    expect(c.error?.inReply).toBe(true); // so it is shown once
    expect(play(c, m('error', { code: 'TOO_LARGE', message: 'the next message is too long' })).error).toEqual({ code: 'TOO_LARGE', message: 'the next message is too long' });
    const broken = play(emptyConversation, m('message', { id: 'u', text: 'x' }), m('text', { content: 'Half a' }), m('error', { code: 'MODEL_ERROR', message: 'it broke off' }));
    expect(broken.turns.at(-1)!.notice).toBeUndefined();
  });

  it('shows a server’s question until it is answered here or elsewhere', () => {
    const ask = (id: string) => m('question', { questionId: id, callId: 'c', tool: 'a:b', server: 'a', kind: 'form', message: 'who?', schema: { type: 'object' }, expires: '' });
    let c = play(emptyConversation, m('message', { id: 'u', text: 'x' }), m('status', { state: 'processing', tool: 'a:b', message: '', data: { callId: 'c', arguments: {} } }), ask('q1'), ask('q2'));
    expect(call(c, 0)).toMatchObject({ state: 'asking', questions: [{ id: 'q1', server: 'a', message: 'who?' }, { id: 'q2' }] });
    // Progress does not hide a question.
    c = play(c, m('status', { state: 'processing', tool: 'a:b', message: 'on it', data: { callId: 'c', progress: { progress: 1 } } }));
    expect(call(c, 0).state).toBe('asking');
    c = withAnswerSent(c, 'q1');
    expect(call(c, 0).questions![0]!.sent).toBe(true);
    // A question whose answer was refused stays open with the reason; the conversation has no error.
    c = play(c, m('error', { code: 'INVALID_ARGUMENTS', message: 'name: too short', questionId: 'q1' }));
    expect(call(c, 0).questions![0]).toMatchObject({ sent: false, problem: 'name: too short' });
    expect(c.error).toBeUndefined();
    // The answer may have been lost with the connection.
    c = play(withAnswerSent(c, 'q1'), m('connection', { state: 'reconnecting', sessionId: 's', active: true }));
    expect(call(c, 0).questions![0]!.sent).toBe(false);
    c = play(c, m('answered', { questionId: 'q1', callId: 'c', action: 'accept' }));
    expect(call(c, 0)).toMatchObject({ state: 'asking', questions: [{ action: 'accept' }, {}] });
    c = play(c, m('answered', { questionId: 'q2', callId: 'c', action: 'decline' }));
    expect(call(c, 0)).toMatchObject({ state: 'running', questions: [{ action: 'accept' }, { action: 'decline' }] });
  });

  it('shows the model’s replies to a server, and ends open questions with the reply', () => {
    let c = play(emptyConversation, m('message', { id: 'u', text: 'x' }), m('question', { questionId: 'q', callId: 'c', tool: 'a:b', server: 'a', kind: 'model', prompt: [{ role: 'user', text: 'hi' }], model: 'gpt', expires: '' }));
    c = play(c, m('answered', { questionId: 'q', callId: 'c', action: 'accept' }), m('answered', { questionId: 'q', callId: 'c', action: 'accept', text: 'hello' }), m('answered', { questionId: 'r', callId: 'c', action: 'accept', text: 'again' }));
    expect(call(c, 0).questions).toMatchObject([{ id: 'q', kind: 'model', text: 'hello' }, { kind: 'model', text: 'again' }]);
    c = play(c, m('question', { questionId: 's', callId: 'c', tool: 'a:b', server: 'a', kind: 'form', expires: '' }), m('status', { state: 'complete', message: '', data: { stop: 'aborted' } }));
    expect(call(c, 0)).toMatchObject({ state: 'failed', questions: [{}, {}, { action: 'withdrawn' }] });
  });
});

describe('a reload', () => {
  it('shows parallel calls in the same order, which is that of the model', () => {
    const begin = (id: string, order: number) => m('status', { state: 'processing', tool: 'fs:' + id, message: '', data: { callId: id, order } });
    const c = play(emptyConversation, m('message', { id: 'u', text: 'go' }), m('text', { content: 'Both.' }), begin('b', 1), begin('a', 0), begin('d', 3), begin('c', 2), m('status', { state: 'processing', tool: 'fs:a', message: 'half', data: { callId: 'a', progress: { progress: 1 } } }));
    expect(c.turns.at(-1)!.blocks.slice(1).map((b) => (b as CallBlock).id)).toEqual(['a', 'b', 'c', 'd']);
  });
  it('keeps durations and token counts', () => {
    const messages = [
      { id: '1', seq: 1, role: 'assistant', time: '', parts: [{ call: { id: 'c', name: 'fs__read', tool: 'fs:read', arguments: {} } }] },
      { id: '2', seq: 2, role: 'tool', time: '', parts: [{ result: { callId: 'c', name: 'fs__read', content: {}, tookMs: 12 } }] },
    ];
    const c = applyMessage(emptyConversation, m('history', { title: 't', messages, usage: { model: 'gpt', turn: {}, session: { input: 5, output: 2 }, context: 5, contextWindow: 100 } }));
    expect(call(c, 0).tookMs).toBe(12);
    expect(c.usage).toMatchObject({ session: { input: 5, output: 2 }, context: 5, window: 100 });
  });
  it('shows an interruption once, on the reply', () => {
    const c = play(emptyConversation, m('message', { id: 'u', text: 'go' }), m('text', { content: 'ha' }), m('error', { code: 'INTERRUPTED', message: 'stopped' }));
    expect(c.error).toBeUndefined();
    expect(c).toMatchObject({ active: false, stopReason: 'error' });
    expect(c.turns.at(-1)!.notice).toBe('interrupted');
  });
});
