// A reporter of node --test for TestWebPage: one JSON object per line for each
// test, and for the output of the tests.
import { inspect } from 'node:util';
import { basename } from 'node:path';

export default async function* report(source) {
  for await (const { type, data } of source) {
    if (type === 'test:stdout' || type === 'test:stderr') yield JSON.stringify({ output: data.message }) + '\n';
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.details?.type === 'suite') continue;
    const error = data.details?.error;
    yield JSON.stringify({
      test: `${basename(data.file ?? '', '.test.mjs')}: ${data.name}`,
      passed: type === 'test:pass',
      skip: data.skip === true ? 'no reason given' : data.skip,
      seconds: (data.details?.duration_ms ?? 0) / 1000,
      error: error && inspect(error.cause ?? error, { depth: 4 }),
    }) + '\n';
  }
}
