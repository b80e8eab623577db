import { expect, test } from 'vitest';
import { delimitFormulas } from './formulas';
import { highlight } from './highlight';

test('formulas are found, prices and code are left alone', () => {
  expect(delimitFormulas('so \\(a^2\\) is')).toBe('so $$a^2$$ is');
  expect(delimitFormulas('\\[\nx = 1\n\\]')).toBe('\n$$\nx = 1\n$$\n');
  expect(delimitFormulas('with $x^2 + 1$ and $n$')).toBe('with $$x^2 + 1$$ and $$n$$');
  expect(delimitFormulas('from $5 to $10, or $5-$6')).toBe('from $5 to $10, or $5-$6');
  expect(delimitFormulas('`$x^2$` and\n```sh\necho $a_b $c_d\n```\n')).toBe('`$x^2$` and\n```sh\necho $a_b $c_d\n```\n');
  expect(delimitFormulas('```\n$x_1$')).toBe('```\n$x_1$');
  expect(delimitFormulas('$$x$$')).toBe('$$x$$');
});

test('known languages are highlighted', () => {
  expect(highlight('def f(): return 1', 'python')).toBeTruthy();
  expect(highlight('x', 'nolanguage')).toBeUndefined();
});
