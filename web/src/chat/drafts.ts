// What is typed or attached and not sent yet, for each conversation; '' is a new
// one. Drafts last as long as the tab: text over reloads, files, which are too
// large for storage, in memory.
import type { Attachment } from './protocol';
import type { Said } from './socket';

export interface Draft {
  text: string;
  files: Attachment[];
}

const prefix = 'junctor.draft.';
const drafts = new Map<string, { now: Draft }>();
const watchers = new Set<() => void>();

function entry(conversation: string) {
  let e = drafts.get(conversation);
  if (!e) drafts.set(conversation, (e = { now: { text: stored(conversation), files: [] } }));
  return e;
}

function stored(conversation: string): string {
  try {
    return sessionStorage.getItem(prefix + conversation) ?? '';
  } catch {
    return '';
  }
}

function store(conversation: string, text: string) {
  try {
    if (text) sessionStorage.setItem(prefix + conversation, text);
    else sessionStorage.removeItem(prefix + conversation);
  } catch {
    // Without storage a draft does not outlast a reload.
  }
}

function changed() {
  for (const f of watchers) f();
}

/** onDrafts calls f when a draft has changed. */
export function onDrafts(f: () => void): () => void {
  watchers.add(f);
  return () => void watchers.delete(f);
}

/** draftOf returns a draft, the same object until it changes. */
export function draftOf(conversation: string): Draft {
  return entry(conversation).now;
}

export function readDraft(conversation: string): string {
  return draftOf(conversation).text;
}

export function changeDraft(conversation: string, change: Partial<Draft>) {
  const e = entry(conversation);
  e.now = { ...e.now, ...change };
  store(conversation, e.now.text);
  changed();
}

export function writeDraft(conversation: string, text: string) {
  changeDraft(conversation, { text });
}

/** attachTo returns a function that adds files to a draft, also when the draft has been moved since. */
export function attachTo(conversation: string): (files: Attachment[]) => void {
  const e = entry(conversation);
  return (files) => {
    e.now = { ...e.now, files: [...e.now.files, ...files] };
    changed();
  };
}

/** moveDraft moves the draft of a new conversation to the address that it has just got. */
export function moveDraft(to: string) {
  const e = entry('');
  drafts.delete('');
  store('', '');
  drafts.set(to, e);
  store(to, e.now.text);
  changed();
}

/** giveBack puts a message that was not sent before what is typed and attached. */
export function giveBack(conversation: string, said: Said) {
  const { text, files } = draftOf(conversation);
  changeDraft(conversation, { text: [said.text, text].filter((t) => t.trim() !== '').join('\n\n'), files: [...(said.attachments ?? []), ...files] });
}

/** forgetTyped removes drafts and kept arguments, for whoever uses the tab next. */
export function forgetTyped() {
  drafts.clear();
  try {
    for (const key of Object.keys(sessionStorage)) if (/^junctor\.(draft|args)\./.test(key)) sessionStorage.removeItem(key);
  } catch {
    // There is nothing to forget without storage.
  }
  changed();
}
