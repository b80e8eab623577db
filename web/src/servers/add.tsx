import { useState } from 'react';
import { get, send, type GetResponse } from '../lib/api';
import { useQuery } from '../lib/use';
import { Badge, Button, Dialog, EmptyState, ErrorNote, Field, Note, Skeleton, Tabs, useToast } from '../ui/ui';
import { ApiError } from '../lib/api';
import { parseClaudeCommands } from './claude';
import { entryFromForm, formFromEntry, splitArgs, type ServerForm } from './entry';

const emptyForm: ServerForm = { name: '', kind: 'program', command: '', args: '', env: '', url: '', headers: '', openapi: '', baseUrl: '' };

type Tab = 'form' | 'paste' | 'import';

export function AddServer({ tab: initialTab, existingNames, onClose, onDone }: { tab: string; existingNames: string[]; onClose: () => void; onDone: (names: string[]) => void }) {
  const [tab, setTab] = useState<Tab>(initialTab === 'import' || initialTab === 'paste' ? initialTab : 'form');
  return (
    <Dialog title="Add servers" open wide onClose={onClose}>
      <Tabs
        label="How to add servers"
        value={tab}
        onChange={setTab}
        tabs={[
          { id: 'form', label: 'One server' },
          { id: 'paste', label: 'Paste' },
          { id: 'import', label: 'Import' },
        ]}
      />
      {tab === 'form' && <ServerEditor existingNames={existingNames} onClose={onClose} onDone={onDone} />}
      {tab === 'paste' && <PasteServers onClose={onClose} onDone={onDone} />}
      {tab === 'import' && <ImportServers onClose={onClose} onDone={onDone} />}
    </Dialog>
  );
}

/** EditServer changes the entry of a server in the configuration file. */
export function EditServer({ name, onClose, onDone }: { name: string; onClose: () => void; onDone: () => void }) {
  const path = `/api/servers/${encodeURIComponent(name)}`;
  const entry = useQuery<{ server: Record<string, unknown> }>(path + '/config', (s) => get(path + '/config', s));
  return (
    <Dialog title={`Edit ${name}`} open wide onClose={onClose}>
      {entry.error ? <ErrorNote error={entry.error} retry={() => void entry.reload()} /> : !entry.data ? <Skeleton rows={5} /> : <ServerEditor existingNames={[]} edit={{ name, entry: entry.data.server }} onClose={onClose} onDone={onDone} />}
    </Dialog>
  );
}

/** useAddServers returns a function that sends servers to the gateway, and the state of the last request. */
function useAddServers(onDone: (names: string[]) => void) {
  const toast = useToast();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const add = async (path: string, body: unknown, replaced?: string) => {
    setBusy(true);
    setError(null);
    try {
      const { added = [replaced ?? ''] } = await send<{ added?: string[] }>(replaced ? 'PUT' : 'POST', path, body);
      toast(replaced ? `${replaced} saved` : added.length === 1 ? `${added[0]} added` : `${added.length} servers added`, 'ok');
      onDone(added);
    } catch (e) {
      setError(e instanceof ApiError ? e : new ApiError(0, '', String(e)));
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, setError, add };
}

function ServerEditor({ existingNames, edit, onClose, onDone }: { existingNames: string[]; edit?: { name: string; entry: Record<string, unknown> }; onClose: () => void; onDone: (names: string[]) => void }) {
  const parsedEntry = useState(() => edit && formFromEntry(edit.name, edit.entry))[0];
  const [form, setForm] = useState(parsedEntry?.form ?? emptyForm);
  const [rest, setRest] = useState(() => (parsedEntry && Object.keys(parsedEntry.rest).length > 0 ? JSON.stringify(parsedEntry.rest, null, 2) : ''));
  const { busy, error, setError, add } = useAddServers(onDone);
  const change = (part: Partial<ServerForm>) => setForm({ ...form, ...part });
  const submit = () => {
    try {
      const more = rest.trim() ? (JSON.parse(rest) as Record<string, unknown>) : {};
      if (edit) void add(`/api/servers/${encodeURIComponent(edit.name)}`, { server: { ...more, ...entryFromForm(form) } }, edit.name);
      else void add('/api/servers', { servers: { mcpServers: { [form.name.trim()]: { ...more, ...entryFromForm(form) } } } });
    } catch (e) {
      setError(new ApiError(400, '', e instanceof Error ? e.message : String(e)));
    }
  };
  const nameTaken = existingNames.includes(form.name.trim());
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      <div className="segmented" role="group" aria-label="Kind of server">
        <button type="button" aria-pressed={form.kind === 'program'} onClick={() => change({ kind: 'program' })}>
          Local program
        </button>
        <button type="button" aria-pressed={form.kind === 'url'} onClick={() => change({ kind: 'url' })}>
          URL
        </button>
        <button type="button" aria-pressed={form.kind === 'openapi'} onClick={() => change({ kind: 'openapi' })}>
          OpenAPI
        </button>
      </div>
      <Field label="Name" hint={nameTaken ? <span className="bad-text">A server with this name already exists.</span> : 'Letters, digits, hyphens and underscores'}>
        {(id) => <input id={id} value={form.name} required readOnly={edit !== undefined} pattern="[A-Za-z0-9_\-]{1,64}" autoFocus autoComplete="off" placeholder="files" onChange={(e) => change({ name: e.target.value })} />}
      </Field>
      {form.kind === 'program' ? (
        <>
          <Field label="Command">{(id) => <input id={id} className="mono" value={form.command} required autoComplete="off" placeholder="npx" onChange={(e) => change({ command: e.target.value })} />}</Field>
          <Field label="Arguments" hint={splitArgs(form.args).length > 0 ? `Parsed as: ${JSON.stringify(splitArgs(form.args))}` : 'As in a shell: quote arguments that contain spaces'}>
            {(id) => <input id={id} className="mono" value={form.args} autoComplete="off" placeholder="-y @modelcontextprotocol/server-filesystem /home/me" onChange={(e) => change({ args: e.target.value })} />}
          </Field>
          <Field label="Environment" hint="One NAME=value per line. What looks like a secret is stored in .env and not in the file.">
            {(id) => <textarea id={id} className="mono" rows={2} value={form.env} spellCheck={false} placeholder="GITHUB_TOKEN=${GITHUB_TOKEN}" onChange={(e) => change({ env: e.target.value })} />}
          </Field>
        </>
      ) : form.kind === 'openapi' ? (
        <>
          <Field label="OpenAPI document" hint="A URL, or a file on the gateway's machine. Its operations become tools.">
            {(id) => <input id={id} className="mono" value={form.openapi} required autoComplete="off" placeholder="https://api.example.com/openapi.json" onChange={(e) => change({ openapi: e.target.value })} />}
          </Field>
          <Field label="Address of the service" hint="Leave empty for the one in the document">
            {(id) => <input id={id} className="mono" type="url" value={form.baseUrl} autoComplete="off" placeholder="https://api.example.com" onChange={(e) => change({ baseUrl: e.target.value })} />}
          </Field>
          <Field label="Headers" hint="One Name: value per line, sent to the service. Credentials by security scheme go into More settings.">
            {(id) => <textarea id={id} className="mono" rows={2} value={form.headers} spellCheck={false} placeholder="Authorization: Bearer ${TOKEN}" onChange={(e) => change({ headers: e.target.value })} />}
          </Field>
        </>
      ) : (
        <>
          <Field label="URL" hint="Streamable HTTP or SSE, detected automatically">
            {(id) => <input id={id} className="mono" type="url" value={form.url} required autoComplete="off" placeholder="https://example.com/mcp" onChange={(e) => change({ url: e.target.value })} />}
          </Field>
          <Field label="Headers" hint="One Name: value per line. Leave empty if you sign in with the browser.">
            {(id) => <textarea id={id} className="mono" rows={2} value={form.headers} spellCheck={false} placeholder="Authorization: Bearer ${TOKEN}" onChange={(e) => change({ headers: e.target.value })} />}
          </Field>
        </>
      )}
      <details className="fold" open={rest !== '' || undefined}>
        <summary>More settings</summary>
        <Field label="Settings as JSON" hint={<>Such as timeoutMs, sessionMode or tags; see the reference of mcpServers in Settings</>}>
          {(id) => <textarea id={id} className="mono" rows={rest.split('\n').length + 1} value={rest} spellCheck={false} placeholder={form.kind === 'openapi' ? '{ "credentials": { "apiKey": "${API_KEY}" } }' : '{ "timeoutMs": 60000 }'} onChange={(e) => setRest(e.target.value)} />}
        </Field>
      </details>
      {form.kind === 'program' && !edit && <Note tone="warn">The program runs on the gateway's machine with your user's permissions. Add only programs that you trust.</Note>}
      {error && <ErrorNote error={error} />}
      <div className="row end">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="primary" type="submit" busy={busy} disabled={nameTaken}>
          {edit ? 'Save' : 'Add'}
        </Button>
      </div>
    </form>
  );
}

function PasteServers({ onClose, onDone }: { onClose: () => void; onDone: (names: string[]) => void }) {
  const [text, setText] = useState('');
  const [replace, setReplace] = useState(false);
  const { busy, error, setError, add } = useAddServers(onDone);
  const submit = () => {
    let servers: unknown;
    try {
      const claude = parseClaudeCommands(text);
      if (claude) return void add('/api/servers', { servers: { mcpServers: claude }, replace });
    } catch (e) {
      return setError(new ApiError(400, '', e instanceof Error ? e.message : String(e)));
    }
    try {
      servers = JSON.parse(text);
    } catch {
      // The gateway accepts comments and trailing commas, but the request body has to be JSON.
      try {
        servers = JSON.parse(stripJsonComments(text));
      } catch (e) {
        setError(new ApiError(400, '', `Invalid JSON: ${e instanceof Error ? e.message : e}`));
        return;
      }
    }
    void add('/api/servers', { servers, replace });
  };
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      <Field label="Configuration" hint="A client's complete configuration file, its mcpServers object, one named server, or lines of claude mcp add">
        {(id) => (
          <textarea
            id={id}
            className="mono"
            rows={12}
            autoFocus
            spellCheck={false}
            value={text}
            placeholder={'{\n  "mcpServers": {\n    "files": {\n      "command": "npx",\n      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"]\n    }\n  }\n}'}
            onChange={(e) => setText(e.target.value)}
          />
        )}
      </Field>
      <label className="check">
        <input type="checkbox" checked={replace} onChange={(e) => setReplace(e.target.checked)} /> Replace servers with the same name
      </label>
      {error && <ErrorNote error={error} />}
      <div className="row end">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="primary" type="submit" busy={busy} disabled={!text.trim()}>
          Add
        </Button>
      </div>
    </form>
  );
}

/** stripJsonComments removes comments and trailing commas from JSON; strings are left unchanged. */
export function stripJsonComments(text: string): string {
  return text
    .replace(/("(?:\\.|[^"\\])*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (_, s: string | undefined) => s ?? '')
    .replace(/("(?:\\.|[^"\\])*")|,(?=\s*[}\]])/g, (_, s: string | undefined) => s ?? '');
}

const candidateTone = { new: 'ok', same: 'neutral', differs: 'warn', self: 'neutral' } as const;
const candidateLabel = { new: 'new', same: 'already added', differs: 'differs from the added server', self: 'Junctor itself' } as const;

function ImportServers({ onClose, onDone }: { onClose: () => void; onDone: (names: string[]) => void }) {
  const importable = useQuery<GetResponse<'/api/import'>>('import', (s) => get('/api/import', s));
  const [chosenNames, setChosenNames] = useState<Set<string> | null>(null);
  const { busy, error, add } = useAddServers(onDone);
  const list = importable.data?.candidates ?? [];
  const selectable = list.filter((c) => c.state === 'new' || c.state === 'differs');
  const chosen = chosenNames ?? new Set(list.filter((c) => c.state === 'new').map((c) => c.as));
  if (importable.error) return <ErrorNote error={importable.error} retry={() => void importable.reload()} />;
  if (!importable.data) return <Skeleton rows={4} />;
  if (list.length === 0) {
    return (
      <EmptyState icon="search" title="No servers found on this machine">
        Searched the configuration files of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Gemini CLI, Codex, Zed, Cline, Continue, Roo Code, LM Studio and Kiro.
      </EmptyState>
    );
  }
  return (
    <div>
      <p className="muted">Servers are not started until you import them. The configuration files of the other programs are not changed.</p>
      <ul className="candidates">
        {list.map((c, i) => (
          <li key={`${c.client} ${c.as} ${i}`}>
            <label className={selectable.includes(c) ? '' : 'off'}>
              <input
                type="checkbox"
                disabled={!selectable.includes(c)}
                checked={chosen.has(c.as) && selectable.includes(c)}
                onChange={(e) => {
                  const next = new Set(chosen);
                  if (e.target.checked) next.add(c.as);
                  else next.delete(c.as);
                  setChosenNames(next);
                }}
              />
              <span className="grow min0">
                <span className="row tight">
                  <strong className="ellipsis">{c.as}</strong>
                  <Badge tone={candidateTone[c.state]}>{candidateLabel[c.state]}</Badge>
                  <span className="muted small">{c.client}</span>
                </span>
                <span className="block mono small ellipsis muted">{c.starts}</span>
                {c.secrets && c.secrets.length > 0 && <span className="block small warn-text">Contains a secret in plain text ({c.secrets.join(', ')}). It will be stored in the .env file next to the configuration.</span>}
                {c.notes?.map((n, j) => (
                  <span key={j} className="block small muted wrap">
                    {n}
                  </span>
                ))}
              </span>
            </label>
          </li>
        ))}
      </ul>
      {importable.data.problems?.map((p) => (
        <Note key={p} tone="warn">
          {p}
        </Note>
      ))}
      {error && <ErrorNote error={error} />}
      <div className="row end">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="primary" busy={busy} disabled={chosen.size === 0} onClick={() => void add('/api/import', { names: [...chosen] })}>
          Import {chosen.size || ''}
        </Button>
      </div>
    </div>
  );
}
