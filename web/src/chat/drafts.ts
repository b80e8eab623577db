// Drafts: the text and files that are not sent yet, for each conversation; '' is a new
// one. Text is kept over reloads of the tab; files, which are too
// large for storage, are kept in memory.
import type { Attachment } from './protocol';
import type { OutgoingMessage } from './socket';

export interface Draft {
  text: string;
  files: Attachment[];
}

const prefix = 'junctor.draft.';
const drafts = new Map<string, { draft: Draft }>();
const listeners = new Set<() => void>();

function entryFor(conversation: string) {
  let e = drafts.get(conversation);
  if (!e) drafts.set(conversation, (e = { draft: { text: loadText(conversation), files: [] } }));
  return e;
}

function loadText(conversation: string): string {
  try {
    return sessionStorage.getItem(prefix + conversation) ?? '';
  } catch {
    return '';
  }
}

function saveText(conversation: string, text: string) {
  try {
    if (text) sessionStorage.setItem(prefix + conversation, text);
    else sessionStorage.removeItem(prefix + conversation);
  } catch {
    // Without storage a draft does not outlast a reload.
  }
}

function notifyListeners() {
  for (const f of listeners) f();
}

/** subscribeDrafts calls f when a draft has changed. */
export function subscribeDrafts(f: () => void): () => void {
  listeners.add(f);
  return () => void listeners.delete(f);
}

/** getDraft returns a draft, the same object until it changes. */
export function getDraft(conversation: string): Draft {
  return entryFor(conversation).draft;
}

export function getDraftText(conversation: string): string {
  return getDraft(conversation).text;
}

export function updateDraft(conversation: string, change: Partial<Draft>) {
  const e = entryFor(conversation);
  e.draft = { ...e.draft, ...change };
  saveText(conversation, e.draft.text);
  notifyListeners();
}

export function setDraftText(conversation: string, text: string) {
  updateDraft(conversation, { text });
}

/** draftAttacher returns a function that adds files to a draft, even if the draft has moved since. */
export function draftAttacher(conversation: string): (files: Attachment[]) => void {
  const e = entryFor(conversation);
  return (files) => {
    e.draft = { ...e.draft, files: [...e.draft.files, ...files] };
    notifyListeners();
  };
}

/** moveDraft moves the draft of a new conversation to its session id. */
export function moveDraft(to: string) {
  const e = entryFor('');
  drafts.delete('');
  saveText('', '');
  drafts.set(to, e);
  saveText(to, e.draft.text);
  notifyListeners();
}

/** restoreToDraft inserts a message that was not sent before the text and files of the draft. */
export function restoreToDraft(conversation: string, message: OutgoingMessage) {
  const { text, files } = getDraft(conversation);
  updateDraft(conversation, { text: [message.text, text].filter((t) => t.trim() !== '').join('\n\n'), files: [...(message.attachments ?? []), ...files] });
}

/** clearTypedInput removes all drafts and stored arguments, when the user signs out. */
export function clearTypedInput() {
  drafts.clear();
  try {
    for (const key of Object.keys(sessionStorage)) if (/^junctor\.(draft|args)\./.test(key)) sessionStorage.removeItem(key);
  } catch {
    // Without storage there is nothing to remove.
  }
  notifyListeners();
}
