// The state of a conversation, computed from the messages of the socket. All
// functions are pure, so that duplicate and late messages can be tested.
import type { HistoryMessage } from '../lib/api';
import type { GatewayMessage, Preferences, UnavailableServer, Usage } from './protocol';

/** Question is a server's request to the user during a call. */
export interface Question {
  id: string;
  server: string;
  kind: string;
  message: string;
  expires: string;
  schema?: Record<string, unknown>;
  url?: string;
  retry?: boolean;
  prompt?: { role: string; text: string }[];
  model?: string;
  /** The request can only be allowed once, not for the whole chat. */
  onceOnly?: boolean;
  /** The outcome; undefined while the question is open. */
  action?: string;
  /** The model's reply to the server. */
  text?: string;
  /** The answer was sent and is not confirmed yet. */
  sent?: boolean;
  /** Why the gateway refused the answer. */
  problem?: string;
}

export interface CallBlock {
  kind: 'call';
  id: string;
  tool: string;
  args: unknown;
  state: 'running' | 'asking' | 'done' | 'failed';
  message?: string;
  progress?: number;
  total?: number;
  result?: unknown;
  tookMs?: number;
  /** The index of the call in the reply; parallel calls start in any order. */
  order?: number;
  expires?: string;
  decision?: 'approved' | 'denied';
  questions?: Question[];
}
export type Block = { kind: 'text'; text: string } | { kind: 'reasoning'; text: string } | { kind: 'image'; mime: string; data: string } | { kind: 'file'; name: string; mime: string; size: number } | CallBlock;

export interface Turn {
  key: string;
  id: string;
  role: 'user' | 'assistant';
  time?: string;
  blocks: Block[];
  notice?: string;
  model?: string;
  /** The ids of this message on each branch. */
  siblings?: string[];
}

export interface Conversation {
  sessionId: string;
  title: string;
  model: string;
  turns: Turn[];
  active: boolean;
  status: string;
  stopReason?: string;
  error?: { code: string; message: string; /** The last reply has the same text. */ inReply?: boolean };
  unavailable: UnavailableServer[];
  usage?: { turn: Usage; session: Usage; context: number; window: number; model: string };
  loaded: boolean;
  preferences: Preferences;
  /** The preferences before those that were sent and are not confirmed yet. */
  confirmedPreferences?: Preferences;
}

export const emptyConversation: Conversation = { sessionId: '', title: '', model: '', turns: [], active: false, status: '', unavailable: [], loaded: false, preferences: {} };

/** turnText returns the text of a turn, without its calls and files. */
export function turnText(t: Turn): string {
  return t.blocks.filter((b) => b.kind === 'text').map((b) => b.text).join('\n\n');
}

function asString(v: unknown): string {
  return typeof v === 'string' ? v : '';
}

/** fromHistory joins the messages of the model and the results of its tools into turns. */
export function fromHistory(messages: HistoryMessage[]): Turn[] {
  const turns: Turn[] = [];
  for (const m of messages) {
    const { parts } = m;
    if (m.role === 'user') {
      turns.push({
        key: `m${m.seq}`,
        id: m.id,
        role: 'user',
        time: m.time,
        blocks: parts.flatMap((p): Block[] =>
          p.text ? [{ kind: 'text', text: p.text }] : p.image ? [{ kind: 'image', mime: p.image.mime, data: p.image.data }] : p.file ? [{ kind: 'file', ...p.file }] : [],
        ),
        ...(m.siblings && { siblings: m.siblings }),
      });
      continue;
    }
    let turn = turns.at(-1);
    if (!turn || turn.role === 'user') {
      turn = { key: `m${m.seq}`, id: m.id, role: 'assistant', time: m.time, blocks: [], ...(m.siblings && { siblings: m.siblings }) };
      turns.push(turn);
    }
    if (m.model) turn.model = m.model;
    if (m.notice) turn.notice = m.notice;
    for (const p of parts) {
      if (p.text) turn.blocks.push({ kind: 'text', text: p.text });
      else if (p.reasoning) turn.blocks.push({ kind: 'reasoning', text: p.reasoning });
      else if (p.call) {
        turn.blocks.push({ kind: 'call', id: p.call.id, tool: p.call.tool || p.call.name, args: p.call.arguments, state: 'running' });
      } else if (p.result) {
        const id = p.result.callId;
        const at = turn.blocks.findLastIndex((b) => b.kind === 'call' && b.id === id && b.result === undefined);
        const call = turn.blocks[at];
        if (call?.kind === 'call') {
          turn.blocks[at] = { ...call, result: p.result.content, state: p.result.isError ? 'failed' : 'done', ...(p.result.tookMs ? { tookMs: p.result.tookMs } : {}) };
        }
      }
    }
  }
  return turns;
}

/** withReply changes the assistant's current turn, and adds one when there is none. */
function withReply(c: Conversation, seq: number, change: (t: Turn) => Turn): Conversation {
  const last = c.turns.at(-1);
  if (last?.role === 'assistant') return { ...c, turns: [...c.turns.slice(0, -1), change(last)] };
  return { ...c, turns: [...c.turns, change({ key: `e${seq}`, id: '', role: 'assistant', blocks: [] })] };
}

function appendText(t: Turn, kind: 'text' | 'reasoning', text: string): Turn {
  const last = t.blocks.at(-1);
  if (last?.kind === kind) return { ...t, blocks: [...t.blocks.slice(0, -1), { kind, text: last.text + text }] };
  return { ...t, blocks: [...t.blocks, { kind, text }] };
}

function withCall(t: Turn, id: string, tool: string, change: (b: CallBlock) => CallBlock, order = Infinity): Turn {
  // A model may reuse an id in a later step; use the call without a result.
  let at = t.blocks.findLastIndex((b) => b.kind === 'call' && b.id === id && b.result === undefined);
  const blocks = [...t.blocks];
  if (at < 0) {
    for (at = blocks.length; at > 0; at--) {
      const before = blocks[at - 1]!;
      if (before.kind !== 'call' || before.order === undefined || before.order <= order) break;
    }
    blocks.splice(at, 0, { kind: 'call', id, tool, args: undefined, state: 'running', ...(Number.isFinite(order) ? { order } : {}) });
  }
  blocks[at] = change(blocks[at] as CallBlock);
  return { ...t, blocks };
}

/** applyMessage applies one message of the socket, which delivers every message once and in order. */
export function applyMessage(c: Conversation, m: GatewayMessage): Conversation {
  const p = m.payload;
  switch (m.type) {
    case 'connection':
      if (p.state === 'error') return { ...c, error: { code: 'CONNECTION', message: asString(p.message) }, loaded: true };
      return {
        ...c,
        turns: resetSentAnswers(c.turns), // an answer that was not confirmed may be lost
        sessionId: asString(p.sessionId) || c.sessionId,
        title: asString(p.title) || c.title,
        model: asString(p.model),
        active: p.active === true,
        unavailable: (p.unavailable as UnavailableServer[] | undefined) ?? [],
        ...preferencesOf(p),
        loaded: true,
      };
    case 'history':
      return { ...c, title: asString(p.title) || c.title, turns: fromHistory((p.messages as HistoryMessage[] | null) ?? []), usage: usageOf(p.usage) ?? c.usage, ...preferencesOf(p), loaded: true };
    case 'message': {
      const turn: Turn = { key: `e${m.seq}`, id: asString(p.id), role: 'user', time: asString(p.time), blocks: userBlocks(p) };
      if (c.turns.some((t) => t.id !== '' && t.id === turn.id)) return { ...c, active: true };
      return { ...c, turns: [...c.turns, turn], active: true, status: '', stopReason: undefined, error: undefined, title: c.title || asString(p.text).split('\n')[0]!.slice(0, 60) };
    }
    case 'text':
    case 'reasoning': {
      const kind = m.type;
      return { ...withReply(c, m.seq, (t) => appendText(t, kind, asString(p.content))), active: true };
    }
    case 'status':
      return applyStatus(c, m);
    case 'approval':
      return withReply(c, m.seq, (t) =>
        withCall(t, asString(p.callId), asString(p.tool), (b) => ({ ...b, tool: asString(p.tool) || b.tool, args: p.arguments ?? b.args, state: 'asking', message: asString(p.message), expires: asString(p.expires) })),
      );
    case 'question':
      return withReply(c, m.seq, (t) =>
        withCall(t, asString(p.callId), asString(p.tool), (b) => ({ ...b, state: 'asking', questions: [...(b.questions ?? []), questionFrom(p)] })),
      );
    case 'answered':
      return withReply(c, m.seq, (t) => withCall(t, asString(p.callId), '', (b) => applyAnswer(b, p)));
    case 'usage':
      return {
        ...c,
        turns: c.turns.map((t, i) => (i === c.turns.length - 1 && t.role === 'assistant' && asString(p.model) ? { ...t, model: asString(p.model) } : t)),
        usage: usageOf(p),
      };
    case 'session':
      return { ...c, title: asString(p.title) || c.title, model: asString(p.model) || c.model, ...preferencesOf(p) };
    case 'branch':
      return applyBranch(c, p);
    case 'error':
      if (p.code === 'ABORTED') return c;
      // The notice of the reply shows the interruption.
      if (p.code === 'INTERRUPTED') return { ...withReply(c, m.seq, (t) => ({ ...finishTurn(t, ''), notice: 'interrupted' })), active: false, stopReason: 'error' };
      if (asString(p.questionId)) return withQuestion(c, asString(p.questionId), (q) => ({ ...q, sent: false, problem: asString(p.message) }));
      return withError(asString(p.callId) ? c : revertPreferences(c), { code: asString(p.code), message: asString(p.message) });
  }
  return c; // a type of a later gateway version
}

function userBlocks(payload: Record<string, unknown>): Block[] {
  const files = (payload.attachments as { name: string; mimeType: string; size?: number }[] | undefined) ?? [];
  return [...(asString(payload.text) ? [{ kind: 'text' as const, text: asString(payload.text) }] : []), ...files.map((f) => ({ kind: 'file' as const, name: f.name, mime: f.mimeType, size: f.size ?? 0 }))];
}

/** applyBranch removes the turns that the new branch does not have; the history, which follows, has the others. */
function applyBranch(c: Conversation, p: Record<string, unknown>): Conversation {
  if (p.reload === true) return c;
  const again = p.again === true;
  const at = c.turns.findIndex((t) => t.id !== '' && t.id === asString(again ? p.after : p.replaces));
  if (at < 0) return { ...c, active: again || c.active };
  return { ...c, turns: c.turns.slice(0, again ? at + 1 : at), active: true, status: '', stopReason: undefined, error: undefined };
}

function usageOf(v: unknown): Conversation['usage'] {
  if (typeof v !== 'object' || v === null) return undefined;
  const p = v as Record<string, unknown>;
  return { turn: (p.turn as Usage) ?? {}, session: (p.session as Usage) ?? {}, context: Number(p.context) || 0, window: Number(p.contextWindow) || 0, model: asString(p.model) };
}

/** withError records an error, and marks a reply that is the gateway's error message instead of the model's text. */
function withError(c: Conversation, error: { code: string; message: string }): Conversation {
  const last = c.turns.at(-1);
  const text = last?.blocks.at(-1);
  if (last?.role !== 'assistant' || text?.kind !== 'text' || text.text !== error.message) return { ...c, error };
  return { ...c, turns: [...c.turns.slice(0, -1), { ...last, notice: 'fallback' }], error: { ...error, inReply: true } };
}

function applyStatus(c: Conversation, m: GatewayMessage): Conversation {
  const p = m.payload;
  const data = (p.data ?? {}) as Record<string, unknown>;
  const tool = asString(p.tool);
  if (!tool) {
    if (p.state === 'complete') {
      const stop = asString(data.stop);
      const ended = c.turns.map((t, i) => (i === c.turns.length - 1 ? finishTurn(t, stop) : t));
      return { ...c, turns: ended, active: false, status: asString(p.message), stopReason: stop };
    }
    return { ...c, active: true, status: asString(p.message), unavailable: (data.unavailable as UnavailableServer[] | undefined) ?? c.unavailable };
  }
  return {
    ...withReply(c, m.seq, (t) =>
      withCall(t, asString(data.callId), tool, (b) => {
        if (p.state === 'complete') {
          return { ...b, tool, state: data.isError ? 'failed' : 'done', result: data.result ?? null, tookMs: Number(data.tookMs) || 0, message: undefined, expires: undefined };
        }
        const progress = data.progress as { progress?: number; total?: number } | undefined;
        return {
          ...b,
          tool,
          args: data.arguments ?? b.args,
          state: hasOpenQuestion(b.questions) ? 'asking' : 'running',
          message: asString(p.message),
          progress: progress?.progress ?? b.progress,
          total: progress?.total ?? b.total,
        };
      }, data.progress === undefined && p.state !== 'complete' ? Number(data.order ?? 0) : undefined),
    ),
    active: true,
    status: asString(p.message),
  };
}

/** finishTurn marks open calls and questions of a finished turn as ended. */
function finishTurn(t: Turn, stop: string): Turn {
  if (t.role !== 'assistant') return t;
  return {
    ...t,
    notice: stop === 'aborted' ? 'aborted' : t.notice,
    blocks: t.blocks.map((b) =>
      b.kind === 'call' && (b.state === 'running' || b.state === 'asking')
        ? { ...b, state: 'failed', message: 'not finished', questions: b.questions?.map((q) => (q.action ? q : { ...q, action: 'withdrawn' })) }
        : b,
    ),
  };
}

/** withDecision records the user's decision before the gateway confirms it. */
export function withDecision(c: Conversation, callId: string, decision: 'approved' | 'denied'): Conversation {
  return withReply(c, 0, (t) => withCall(t, callId, '', (b) => ({ ...b, state: 'running', decision })));
}

/** withPreferences records the preferences that were sent, before the gateway confirms them. */
export function withPreferences(c: Conversation, p: Preferences): Conversation {
  return { ...c, preferences: p, confirmedPreferences: c.confirmedPreferences ?? c.preferences };
}

/**
 * revertPreferences restores the confirmed preferences. An error does not show whether
 * it is about the preferences; if it is not, their confirmation follows.
 */
function revertPreferences(c: Conversation): Conversation {
  return c.confirmedPreferences ? { ...c, preferences: c.confirmedPreferences, confirmedPreferences: undefined } : c;
}

/** preferencesOf returns the preferences in a message; the gateway omits them when there are none. */
function preferencesOf(p: Record<string, unknown>): Pick<Conversation, 'preferences' | 'confirmedPreferences'> {
  return { preferences: (p.preferences as Preferences | undefined) ?? {}, confirmedPreferences: undefined };
}

function questionFrom(p: Record<string, unknown>): Question {
  return {
    id: asString(p.questionId),
    server: asString(p.server),
    kind: asString(p.kind),
    message: asString(p.message),
    expires: asString(p.expires),
    schema: p.schema as Question['schema'],
    url: asString(p.url) || undefined,
    retry: p.retry === true,
    prompt: p.prompt as Question['prompt'],
    model: asString(p.model) || undefined,
  };
}

/** hasOpenQuestion reports whether one of the questions is not answered yet. */
export function hasOpenQuestion(questions: Question[] | undefined): boolean {
  return questions?.some((q) => !q.action) ?? false;
}

function applyAnswer(b: CallBlock, p: Record<string, unknown>): CallBlock {
  const id = asString(p.questionId);
  const change = (q: Question): Question => ({ ...q, action: asString(p.action), text: asString(p.text) || q.text, sent: false, problem: undefined });
  const known = b.questions?.some((q) => q.id === id);
  // A server that may use the model in this chat sends no question, but its requests are still shown.
  const questions = known ? b.questions?.map((q) => (q.id === id ? change(q) : q)) : [...(b.questions ?? []), change({ ...questionFrom(p), kind: 'model' })];
  return { ...b, questions, state: b.state === 'asking' && !hasOpenQuestion(questions) ? 'running' : b.state };
}

function withQuestion(c: Conversation, id: string, change: (q: Question) => Question): Conversation {
  const turns = c.turns.map((t) =>
    t.blocks.some((b) => b.kind === 'call' && b.questions?.some((q) => q.id === id))
      ? { ...t, blocks: t.blocks.map((b) => (b.kind === 'call' ? { ...b, questions: b.questions?.map((q) => (q.id === id ? change(q) : q)) } : b)) }
      : t,
  );
  return { ...c, turns };
}

function resetSentAnswers(turns: Turn[]): Turn[] {
  const last = turns.at(-1);
  if (!last?.blocks.some((b) => b.kind === 'call' && b.questions?.some((q) => q.sent))) return turns;
  const blocks = last.blocks.map((b) => (b.kind === 'call' ? { ...b, questions: b.questions?.map((q) => ({ ...q, sent: false })) } : b));
  return [...turns.slice(0, -1), { ...last, blocks }];
}

/** withAnswerSent records that an answer was sent. */
export function withAnswerSent(c: Conversation, questionId: string): Conversation {
  return withQuestion(c, questionId, (q) => ({ ...q, sent: true, problem: undefined }));
}
