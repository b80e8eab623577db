// The gateway that the tests of the page share: real MCP servers, good and
// bad, and a scripted model. The tests of a file use one gateway in turn.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { gateway, launchBrowser, pageTests, servers, withOwnGateway } from './fixture.mjs';
import { script } from './script.mjs';

const longName = 'a-server-with-quite-a-long-name-that-does-not-want-to-end'; // must not break the layout

/** shared starts one gateway and one browser for the tests of a file; prepare is called with the gateway before the first test. */
export function shared(prepare = async () => {}) {
  const home = mkdtempSync(join(tmpdir(), 'junctor-page-'));
  const folder = join(home, 'notes');
  const note = join(folder, 'note.txt');
  const fixture = { home, folder, note };
  before(async () => {
    mkdirSync(folder);
    fixture.chrome = await launchBrowser();
    fixture.g = await gateway({
      home,
      script: JSON.parse(JSON.stringify(script).replaceAll('{{note}}', note)),
      config: {
        // By default the graph is a file beside the program, shared with other tests and earlier runs.
        mcpServers: { everything: servers.everything, memory: { ...servers.memory, env: { MEMORY_FILE_PATH: join(home, 'memory.jsonl') } }, files: servers.files(folder), hostile: servers.hostile, broken: { command: '/nonexistent/program' }, [longName]: { ...servers.memory, enabled: false } },
        toolRules: [
          { pattern: 'files:write_file', approval: 'ask' },
          { pattern: 'everything:*', tags: ['demo'] },
          { pattern: 'memory:delete_*', enabled: false },
        ],
      },
      tools: ['everything:trigger-elicitation-request', 'memory:read_graph', 'files:write_file', 'hostile:markup'],
    });
    await prepare(fixture.g);
  });
  after(async () => {
    await fixture.chrome?.close();
    await fixture.g?.stop();
    rmSync(home, { recursive: true, force: true });
  });
  fixture.withPage = pageTests(() => fixture);
  fixture.withOwnGateway = (...args) => withOwnGateway(() => fixture, ...args);
  return fixture;
}
