import { expect, test } from 'vitest';
import { expandTemplate, promptText, templateVariables } from './catalog';

test('URI templates', () => {
  expect(templateVariables('file:///{path}/x{?a,b*}{+path}')).toEqual(['path', 'a', 'b']);
  expect(expandTemplate('demo://text/{id}', { id: 'a b' })).toBe('demo://text/a%20b');
  expect(expandTemplate('x://{+path}', { path: 'a/b' })).toBe('x://a/b');
  expect(expandTemplate('x://y{?a,b}', { b: '1&2' })).toBe('x://y?b=1%262');
  expect(expandTemplate('x://y{?a}', {})).toBe('x://y');
});

test('a prompt as text for a draft', () => {
  expect(promptText([{ role: 'user', content: { type: 'text', text: 'hello' } }])).toBe('hello');
  expect(promptText([{ role: 'user', content: { text: 'a' } }, { role: 'assistant', content: { text: 'b' } }, { role: 'user', content: { type: 'image' } }])).toBe('User: a\n\nAssistant: b');
});
