// What is typed and not sent yet, for each conversation, over views and reloads of this tab.

const prefix = 'junctor.draft.';

export function readDraft(conversation: string): string {
  try {
    return sessionStorage.getItem(prefix + conversation) ?? '';
  } catch {
    return '';
  }
}

export function writeDraft(conversation: string, text: string) {
  try {
    if (text) sessionStorage.setItem(prefix + conversation, text);
    else sessionStorage.removeItem(prefix + conversation);
  } catch {
    // Without storage a draft lasts as long as the view.
  }
}

/**
 * nextDraft returns the draft to show when the address changes from one
 * conversation to another; '' is a new one. A new conversation that has just
 * got its address takes along what is typed.
 */
export function nextDraft(from: string, to: string, session: string, text: string): string {
  if (from !== '' || to !== session) return readDraft(to);
  writeDraft('', '');
  writeDraft(to, text);
  return text;
}

/** forgetTyped removes drafts and kept arguments, for whoever uses the tab next. */
export function forgetTyped() {
  try {
    for (const key of Object.keys(sessionStorage)) if (/^junctor\.(draft|args)\./.test(key)) sessionStorage.removeItem(key);
  } catch {
    // There is nothing to forget without storage.
  }
}
