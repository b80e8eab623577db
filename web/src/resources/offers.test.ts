import { expect, test } from 'vitest';
import { asDraft, expand, variables } from './offers';

test('URI templates', () => {
  expect(variables('file:///{path}/x{?a,b*}{+path}')).toEqual(['path', 'a', 'b']);
  expect(expand('demo://text/{id}', { id: 'a b' })).toBe('demo://text/a%20b');
  expect(expand('x://{+path}', { path: 'a/b' })).toBe('x://a/b');
  expect(expand('x://y{?a,b}', { b: '1&2' })).toBe('x://y?b=1%262');
  expect(expand('x://y{?a}', {})).toBe('x://y');
});

test('a prompt as a draft', () => {
  expect(asDraft([{ role: 'user', content: { type: 'text', text: 'hello' } }])).toBe('hello');
  expect(asDraft([{ role: 'user', content: { text: 'a' } }, { role: 'assistant', content: { text: 'b' } }, { role: 'user', content: { type: 'image' } }])).toBe('User: a\n\nAssistant: b');
});
