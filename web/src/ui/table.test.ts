import { expect, it } from 'vitest';
import { cellText, tableFrom } from './table';

it('finds lists of objects', () => {
  expect(tableFrom([{ a: 1 }, { b: 2, a: 3 }])).toEqual({ key: '', columns: ['a', 'b'], rows: [{ a: 1 }, { b: 2, a: 3 }] });
  expect(tableFrom({ total: 2, items: [{ id: 1 }] })).toMatchObject({ key: 'items', columns: ['id'] });
  const wide = [Object.fromEntries(Array.from({ length: 13 }, (_, i) => [`c${i}`, i]))];
  for (const other of [null, 'x', [], [1], [{}, 1], [[]], {}, { a: [{ x: 1 }], b: [{ y: 1 }] }, wide, [{}]]) expect(tableFrom(other), JSON.stringify(other)).toBeNull();
});

it('shows a cell on one line', () => {
  expect([null, undefined, 0, false, 'a', { b: [1] }].map(cellText)).toEqual(['', '', '0', 'false', 'a', '{"b":[1]}']);
});
