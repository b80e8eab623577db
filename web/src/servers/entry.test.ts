import { describe, expect, it } from 'vitest';
import { fromClaude } from './claude';
import { entryOf, formOf } from './entry';

describe('claude mcp add', () => {
  it('becomes an entry', () => {
    expect(fromClaude('claude mcp add files -- npx -y @modelcontextprotocol/server-filesystem "/home/my files"')).toEqual({ files: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/home/my files'] } });
    expect(fromClaude('$ claude mcp add --transport http sentry https://mcp.sentry.dev/mcp --header "Authorization: Bearer x"')).toEqual({ sentry: { url: 'https://mcp.sentry.dev/mcp', headers: { Authorization: 'Bearer x' } } });
    expect(fromClaude('claude mcp add -t sse -H "X-Key: 1" linear https://mcp.linear.app/sse')).toEqual({ linear: { url: 'https://mcp.linear.app/sse', headers: { 'X-Key': '1' } } });
    expect(fromClaude('claude mcp add github --env GITHUB_TOKEN=abc --scope user \\\n  -- docker run -i ghcr.io/github/server')).toEqual({ github: { command: 'docker', args: ['run', '-i', 'ghcr.io/github/server'], env: { GITHUB_TOKEN: 'abc' } } });
    expect(fromClaude(`claude mcp add-json weather '{"command":"weather","args":["-v"]}'`)).toEqual({ weather: { command: 'weather', args: ['-v'] } });
    expect(fromClaude('claude mcp add a -- x\nclaude mcp add b -- y')).toEqual({ a: { command: 'x' }, b: { command: 'y' } });
  });
  it('is told from other text, and says what is missing', () => {
    for (const text of ['', '{"mcpServers":{}}', 'npx server', 'claude mcp list\n']) expect(fromClaude(text)).toBeNull();
    expect(() => fromClaude('claude mcp add files')).toThrow('a command or URL');
    expect(() => fromClaude('claude mcp add files -e TOKEN -- x')).toThrow('NAME=value');
  });
});

describe('the form of a server', () => {
  it('shows an entry and makes the same one, keys that it has no field for included', () => {
    for (const entry of [
      { command: 'npx', args: ['-y', 'a b', "it's", '"q"', ''], env: { TOKEN: '[hidden 1]', B: 'x=y' }, timeoutMs: 5 },
      { url: 'https://example.com/mcp', headers: { Authorization: 'Bearer ${TOKEN}' }, proxy: true },
      { command: 'x' },
      { openapi: '/srv/shop.yaml', operations: { include: ['GET /**'] } },
      { openapi: 'https://api.example.com/openapi.json', baseUrl: 'https://api.example.com/v1', headers: { 'X-Key': '${KEY}' }, credentials: { key: '[hidden 1]' } },
    ]) {
      const { form, rest } = formOf('name', entry);
      expect({ ...rest, ...entryOf(form) }).toEqual(entry);
    }
  });
});
