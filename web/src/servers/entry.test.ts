import { describe, expect, it } from 'vitest';
import { parseClaudeCommands } from './claude';
import { entryFromForm, formFromEntry } from './entry';

describe('claude mcp add', () => {
  it('is converted to an entry', () => {
    expect(parseClaudeCommands('claude mcp add files -- npx -y @modelcontextprotocol/server-filesystem "/home/my files"')).toEqual({ files: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/home/my files'] } });
    expect(parseClaudeCommands('$ claude mcp add --transport http sentry https://mcp.sentry.dev/mcp --header "Authorization: Bearer x"')).toEqual({ sentry: { url: 'https://mcp.sentry.dev/mcp', headers: { Authorization: 'Bearer x' } } });
    expect(parseClaudeCommands('claude mcp add -t sse -H "X-Key: 1" linear https://mcp.linear.app/sse')).toEqual({ linear: { url: 'https://mcp.linear.app/sse', headers: { 'X-Key': '1' } } });
    expect(parseClaudeCommands('claude mcp add github --env GITHUB_TOKEN=abc --scope user \\\n  -- docker run -i ghcr.io/github/server')).toEqual({ github: { command: 'docker', args: ['run', '-i', 'ghcr.io/github/server'], env: { GITHUB_TOKEN: 'abc' } } });
    expect(parseClaudeCommands(`claude mcp add-json weather '{"command":"weather","args":["-v"]}'`)).toEqual({ weather: { command: 'weather', args: ['-v'] } });
    expect(parseClaudeCommands('claude mcp add a -- x\nclaude mcp add b -- y')).toEqual({ a: { command: 'x' }, b: { command: 'y' } });
  });
  it('is distinguished from other text, and reports missing parts', () => {
    for (const text of ['', '{"mcpServers":{}}', 'npx server', 'claude mcp list\n']) expect(parseClaudeCommands(text)).toBeNull();
    expect(() => parseClaudeCommands('claude mcp add files')).toThrow('a command or URL');
    expect(() => parseClaudeCommands('claude mcp add files -e TOKEN -- x')).toThrow('NAME=value');
  });
});

describe('the form of a server', () => {
  it('converts an entry and back, including keys without a field', () => {
    for (const entry of [
      { command: 'npx', args: ['-y', 'a b', "it's", '"q"', ''], env: { TOKEN: '[hidden 1]', B: 'x=y' }, timeoutMs: 5 },
      { url: 'https://example.com/mcp', headers: { Authorization: 'Bearer ${TOKEN}' }, proxy: true },
      { command: 'x' },
      { openapi: '/srv/shop.yaml', operations: { include: ['GET /**'] } },
      { openapi: 'https://api.example.com/openapi.json', baseUrl: 'https://api.example.com/v1', headers: { 'X-Key': '${KEY}' }, credentials: { key: '[hidden 1]' } },
    ]) {
      const { form, rest } = formFromEntry('name', entry);
      expect({ ...rest, ...entryFromForm(form) }).toEqual(entry);
    }
  });
});
