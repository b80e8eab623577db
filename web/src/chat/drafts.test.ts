import { beforeEach, expect, it, vi } from 'vitest';
import { memoryStorage } from '../lib/storage.test-helper';
import { clearTypedInput, draftAttacher, getDraft, getDraftText, moveDraft, restoreToDraft, setDraftText, subscribeDrafts, updateDraft } from './drafts';

beforeEach(() => {
  vi.stubGlobal('sessionStorage', memoryStorage());
  clearTypedInput();
});

const file = (name: string) => ({ name, mimeType: 'text/plain', data: '', size: 1 });
const names = (conversation: string) => getDraft(conversation).files.map((f) => f.name);

it('keeps a draft for each conversation', () => {
  setDraftText('', 'new');
  updateDraft('a', { text: 'for a', files: [file('1')] });
  expect([getDraftText(''), getDraftText('a'), getDraftText('b')]).toEqual(['new', 'for a', '']);
  expect([names(''), names('a')]).toEqual([[], ['1']]);
  expect(getDraft('b')).toBe(getDraft('b')); // React compares them
  setDraftText('a', '');
  expect([getDraftText('a'), names('a')]).toEqual(['', ['1']]);
  expect(Object.keys(sessionStorage)).toHaveLength(1);
});

it('reads the text of a draft after a reload', () => {
  sessionStorage.setItem('junctor.draft.a', 'of before');
  expect(getDraftText('a')).toBe('of before');
});

it('moves the draft of a new conversation to its session id, with the files that are still being read', () => {
  setDraftText('', 'the next question');
  const late = draftAttacher('');
  draftAttacher('')([file('1')]);
  let changes = 0;
  const end = subscribeDrafts(() => changes++);
  moveDraft('s1');
  late([file('2')]);
  end();
  expect([getDraftText(''), getDraftText('s1')]).toEqual(['', 'the next question']);
  expect([names(''), names('s1')]).toEqual([[], ['1', '2']]);
  expect(Object.keys(sessionStorage)).toEqual(['junctor.draft.s1']);
  expect(changes).toBe(2);
});

it('restores a message before the text and files of the draft', () => {
  restoreToDraft('a', { text: 'first', attachments: [file('1')] });
  restoreToDraft('a', { text: 'earlier', attachments: [file('0')] });
  expect([getDraftText('a'), names('a')]).toEqual(['earlier\n\nfirst', ['0', '1']]);
  restoreToDraft('a', { text: '', attachments: [file('9')] });
  expect([getDraftText('a'), names('a')]).toEqual(['earlier\n\nfirst', ['9', '0', '1']]);
  expect(sessionStorage.getItem('junctor.draft.a')).toBe('earlier\n\nfirst');
});

it('works without storage', () => {
  vi.stubGlobal('sessionStorage', undefined);
  setDraftText('a', 'x');
  expect(getDraftText('a')).toBe('x');
});

it('removes all drafts and stored arguments on sign-out', () => {
  setDraftText('a', 'x');
  sessionStorage.setItem('junctor.args.1', '{}');
  sessionStorage.setItem('other', '1');
  const late = draftAttacher('a');
  clearTypedInput();
  late([file('1')]);
  expect(Object.keys(sessionStorage)).toEqual(['other']);
  expect(getDraft('a')).toEqual({ text: '', files: [] });
});
