import { type Question } from '../chat/conversation';
import { Questions } from '../chat/question';
import { ApiError, send, type CallAnswer } from '../lib/api';

/** Asked is a question of a server during a run, and the record at which it is answered. */
export type Asked = Question & { call: string; /** The action that was sent. */ answer?: string };

interface Params {
  mode?: string;
  message?: string;
  requestedSchema?: Record<string, unknown>;
  url?: string;
  systemPrompt?: string;
  messages?: { role: string; content: unknown }[];
  _meta?: Record<string, unknown>;
}

/** asked returns the questions of a run after a piece of its answer. */
export function asked(list: Asked[], n: CallAnswer, server: string): Asked[] {
  const input = n.input;
  if (!input || !n.call) return list;
  if (n.type === 'answered') return list.map((q) => (q.id === input.id && !q.action ? { ...q, sent: false, action: q.answer ?? 'withdrawn' } : q));
  const p = (input.params ?? {}) as Params;
  const kind = input.kind === 'sampling/createMessage' ? 'model' : p.mode === 'url' ? 'url' : 'form';
  if (kind !== 'model' && input.kind !== 'elicitation/create') return list; // an approval, which the inbox shows
  return [
    ...list,
    {
      id: input.id,
      call: n.call,
      server,
      kind,
      message: p.message ?? '',
      expires: '',
      schema: p.requestedSchema,
      url: p.url,
      retry: p._meta?.['junctor/retry'] === true,
      prompt: kind === 'model' ? promptOf(p) : undefined,
      model: 'the model of the gateway',
      onceOnly: true,
    },
  ];
}

function promptOf(p: Params): { role: string; text: string }[] {
  const text = (content: unknown) => (content as { text?: string } | undefined)?.text ?? JSON.stringify(content);
  const lines = (p.messages ?? []).map((m) => ({ role: m.role, text: text(m.content) }));
  return p.systemPrompt ? [{ role: 'system', text: p.systemPrompt }, ...lines] : lines;
}

/** RunQuestions shows what the server asks during a run, as the chat does. */
export function RunQuestions({ of, set }: { of: Asked[]; set: (f: (list: Asked[]) => Asked[]) => void }) {
  const change = (id: string, c: Partial<Asked>) => set((list) => list.map((q) => (q.id === id ? { ...q, ...c } : q)));
  const answer = (id: string, action: string, more?: { content?: unknown }) => {
    const q = of.find((x) => x.id === id);
    if (!q) return false;
    change(id, { sent: true, answer: action, problem: undefined });
    send('POST', `/api/calls/${encodeURIComponent(q.call)}`, { input: id, answer: { action, ...(more?.content !== undefined ? { content: more.content } : {}) } }).catch((e: unknown) =>
      change(id, { sent: false, problem: e instanceof ApiError ? e.message : String(e) }),
    );
    return true;
  };
  return <Questions questions={of} actions={{ answer, decide: () => {} }} />;
}
