import { type Question } from '../chat/conversation';
import { Questions } from '../chat/question';
import { ApiError, send, type CallAnswer } from '../lib/api';

/** RunQuestion is a question of a server during a run, and the id of the call to answer it at. */
export type RunQuestion = Question & { call: string; /** The action that was sent. */ answer?: string };

interface InputParams {
  mode?: string;
  message?: string;
  requestedSchema?: Record<string, unknown>;
  url?: string;
  systemPrompt?: string;
  messages?: { role: string; content: unknown }[];
  _meta?: Record<string, unknown>;
}

/** updateQuestions applies a notification of a run to its questions. */
export function updateQuestions(list: RunQuestion[], notification: CallAnswer, server: string): RunQuestion[] {
  const input = notification.input;
  if (!input || !notification.call) return list;
  if (notification.type === 'answered') return list.map((q) => (q.id === input.id && !q.action ? { ...q, sent: false, action: q.answer ?? 'withdrawn' } : q));
  const p = (input.params ?? {}) as InputParams;
  const kind = input.kind === 'sampling/createMessage' ? 'model' : p.mode === 'url' ? 'url' : 'form';
  if (kind !== 'model' && input.kind !== 'elicitation/create') return list; // an approval, which the Approvals view shows
  return [
    ...list,
    {
      id: input.id,
      call: notification.call,
      server,
      kind,
      message: p.message ?? '',
      expires: '',
      schema: p.requestedSchema,
      url: p.url,
      retry: p._meta?.['junctor/retry'] === true,
      prompt: kind === 'model' ? promptLines(p) : undefined,
      model: 'the model of the gateway',
      onceOnly: true,
    },
  ];
}

function promptLines(p: InputParams): { role: string; text: string }[] {
  const text = (content: unknown) => (content as { text?: string } | undefined)?.text ?? JSON.stringify(content);
  const lines = (p.messages ?? []).map((m) => ({ role: m.role, text: text(m.content) }));
  return p.systemPrompt ? [{ role: 'system', text: p.systemPrompt }, ...lines] : lines;
}

/** RunQuestions shows the questions of the server during a run, like the chat. */
export function RunQuestions({ questions, setQuestions }: { questions: RunQuestion[]; setQuestions: (f: (list: RunQuestion[]) => RunQuestion[]) => void }) {
  const updateQuestion = (id: string, c: Partial<RunQuestion>) => setQuestions((list) => list.map((q) => (q.id === id ? { ...q, ...c } : q)));
  const answer = (id: string, action: string, more?: { content?: unknown }) => {
    const q = questions.find((x) => x.id === id);
    if (!q) return false;
    updateQuestion(id, { sent: true, answer: action, problem: undefined });
    send('POST', `/api/calls/${encodeURIComponent(q.call)}`, { input: id, answer: { action, ...(more?.content !== undefined ? { content: more.content } : {}) } }).catch((e: unknown) =>
      updateQuestion(id, { sent: false, problem: e instanceof ApiError ? e.message : String(e) }),
    );
    return true;
  };
  return <Questions questions={questions} actions={{ answer, decide: () => {} }} />;
}
