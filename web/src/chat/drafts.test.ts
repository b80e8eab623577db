import { beforeEach, expect, it, vi } from 'vitest';
import { memoryStorage } from '../lib/storage.test-helper';
import { attachTo, changeDraft, draftOf, forgetTyped, giveBack, moveDraft, onDrafts, readDraft, writeDraft } from './drafts';

beforeEach(() => {
  vi.stubGlobal('sessionStorage', memoryStorage());
  forgetTyped();
});

const file = (name: string) => ({ name, mimeType: 'text/plain', data: '', size: 1 });
const names = (conversation: string) => draftOf(conversation).files.map((f) => f.name);

it('keeps a draft for each conversation', () => {
  writeDraft('', 'new');
  changeDraft('a', { text: 'for a', files: [file('1')] });
  expect([readDraft(''), readDraft('a'), readDraft('b')]).toEqual(['new', 'for a', '']);
  expect([names(''), names('a')]).toEqual([[], ['1']]);
  expect(draftOf('b')).toBe(draftOf('b')); // React compares them
  writeDraft('a', '');
  expect([readDraft('a'), names('a')]).toEqual(['', ['1']]);
  expect(Object.keys(sessionStorage)).toHaveLength(1);
});

it('reads the text of a draft after a reload', () => {
  sessionStorage.setItem('junctor.draft.a', 'of before');
  expect(readDraft('a')).toBe('of before');
});

it('moves a draft with a new conversation that gets its address, and the files that are still being read', () => {
  writeDraft('', 'the next question');
  const late = attachTo('');
  attachTo('')([file('1')]);
  let changes = 0;
  const end = onDrafts(() => changes++);
  moveDraft('s1');
  late([file('2')]);
  end();
  expect([readDraft(''), readDraft('s1')]).toEqual(['', 'the next question']);
  expect([names(''), names('s1')]).toEqual([[], ['1', '2']]);
  expect(Object.keys(sessionStorage)).toEqual(['junctor.draft.s1']);
  expect(changes).toBe(2);
});

it('gives a message back before what is typed and attached', () => {
  giveBack('a', { text: 'first', attachments: [file('1')] });
  giveBack('a', { text: 'earlier', attachments: [file('0')] });
  expect([readDraft('a'), names('a')]).toEqual(['earlier\n\nfirst', ['0', '1']]);
  giveBack('a', { text: '', attachments: [file('9')] });
  expect([readDraft('a'), names('a')]).toEqual(['earlier\n\nfirst', ['9', '0', '1']]);
  expect(sessionStorage.getItem('junctor.draft.a')).toBe('earlier\n\nfirst');
});

it('works without storage', () => {
  vi.stubGlobal('sessionStorage', undefined);
  writeDraft('a', 'x');
  expect(readDraft('a')).toBe('x');
});

it('forgets everything typed when somebody signs out', () => {
  writeDraft('a', 'x');
  sessionStorage.setItem('junctor.args.1', '{}');
  sessionStorage.setItem('other', '1');
  const late = attachTo('a');
  forgetTyped();
  late([file('1')]);
  expect(Object.keys(sessionStorage)).toEqual(['other']);
  expect(draftOf('a')).toEqual({ text: '', files: [] });
});
