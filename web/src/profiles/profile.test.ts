import { describe, expect, it } from 'vitest';
import type { ProfileConfig } from '../lib/api';
import { configFromDraft, draftFromProfile, groupByServer } from './profile';

describe('drafts of profiles', () => {
  const roundTrip = (config: ProfileConfig) => configFromDraft(draftFromProfile({ name: 'p', servers: [], toolCount: 0, config }), config);
  it('return the configuration that they were made of', () => {
    for (const c of [
      {},
      { servers: [] },
      { servers: ['github', '!fs'], tags: ['crm'], tools: ['*', '!*:delete_*'] },
      { description: 'for coding', mode: 'meta', instructions: 'Work on branches.', approval: 'ask' as const, rate: { calls: 120, perMs: 1500 } },
    ])
      expect(roundTrip(c)).toEqual(c);
  });
  it('read lists with commas and lines', () => {
    expect(configFromDraft({ ...draftFromProfile(), tools: ' a:*,\n !a:x ,' })).toEqual({ tools: ['a:*', '!a:x'] });
    expect(configFromDraft({ ...draftFromProfile(), servers: '*' }, { servers: [] })).toEqual({ servers: ['*'] });
  });
});

it('tools are grouped by server', () => {
  expect(groupByServer(['a:x', 'a:y:z', 'b:x'])).toEqual([
    ['a', ['x', 'y:z']],
    ['b', ['x']],
  ]);
});
