import { beforeEach, expect, it, vi } from 'vitest';
import { memoryStorage } from '../lib/storage.test-helper';
import { presetsOf, setPreset } from './presets';

beforeEach(() => vi.stubGlobal('localStorage', memoryStorage()));

it('keeps presets by tool and name', () => {
  expect(presetsOf('fs:read')).toEqual({});
  expect(setPreset('fs:read', 'notes', { path: 'notes.txt' })).toBe(true);
  setPreset('fs:read', 'other', { path: 'b' });
  setPreset('fs:write', 'notes', { path: 'c' });
  expect(presetsOf('fs:read')).toEqual({ notes: { path: 'notes.txt' }, other: { path: 'b' } });
  setPreset('fs:read', 'notes', undefined);
  setPreset('fs:read', 'other', undefined);
  expect(presetsOf('fs:read')).toEqual({});
  expect(presetsOf('fs:write')).toEqual({ notes: { path: 'c' } });
});

it('survives storage that is damaged or disabled', () => {
  localStorage.setItem('junctor.presets', '[1');
  expect(presetsOf('fs:read')).toEqual({});
  vi.stubGlobal('localStorage', undefined);
  expect(presetsOf('fs:read')).toEqual({});
  expect(setPreset('fs:read', 'a', {})).toBe(false);
});
