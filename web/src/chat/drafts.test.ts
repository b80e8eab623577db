import { beforeEach, expect, it, vi } from 'vitest';
import { memoryStorage } from '../lib/storage.test-helper';
import { forgetTyped, nextDraft, readDraft, writeDraft } from './drafts';

beforeEach(() => vi.stubGlobal('sessionStorage', memoryStorage()));

it('keeps a draft for each conversation', () => {
  writeDraft('', 'new');
  writeDraft('a', 'for a');
  expect(nextDraft('', 'a', 'just-made', 'new')).toBe('for a');
  expect(nextDraft('a', 'b', 'a', 'for a')).toBe('');
  expect(nextDraft('b', '', 'b', '')).toBe('new');
  writeDraft('a', '');
  expect(readDraft('a')).toBe('');
  expect(Object.keys(sessionStorage)).toHaveLength(1);
});

it('moves a draft with a new conversation that gets its address', () => {
  writeDraft('', 'the next question');
  expect(nextDraft('', 's1', 's1', 'the next question')).toBe('the next question');
  expect([readDraft(''), readDraft('s1')]).toEqual(['', 'the next question']);
});

it('works without storage', () => {
  vi.stubGlobal('sessionStorage', undefined);
  writeDraft('a', 'x');
  expect(readDraft('a')).toBe('');
});

it('forgets everything typed when somebody signs out', () => {
  writeDraft('a', 'x');
  sessionStorage.setItem('junctor.args.1', '{}');
  sessionStorage.setItem('other', '1');
  forgetTyped();
  expect(Object.keys(sessionStorage)).toEqual(['other']);
});
