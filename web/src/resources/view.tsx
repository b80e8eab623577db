import { useEffect, useId, useMemo, useState } from 'react';
import { setDraftText } from '../chat/drafts';
import { ApiError, type Status } from '../lib/api';
import { plural } from '../lib/format';
import { href, navigate, useDebounced, useQuery, useRoute } from '../lib/use';
import { Icon } from '../ui/icons';
import { ResultView } from '../ui/result';
import { readResource, ServerContext, type ResourceContents } from '../ui/resource';
import { Badge, Button, EmptyState, ErrorNote, Skeleton } from '../ui/ui';
import { completeArgument, expandTemplate, listEntries, mcpRequest, promptText, type CatalogEntry, type EntryArgument, type PromptMessage } from './catalog';

const kindOptions = [
  ['', 'Everything'],
  ['prompt', 'Prompts'],
  ['resource', 'Resources'],
  ['template', 'Templates'],
] as const;

const keyOf = (o: CatalogEntry) => [o.server, o.kind, o.uri ?? o.name];

/** ResourcesView lists the resources and prompts of all servers. */
export function ResourcesView({ status }: { status?: Status }) {
  const { parts, query } = useRoute();
  const [, server, kind, name] = parts;
  const text = (query.get('q') ?? '').toLowerCase();
  const kindFilter = query.get('kind') ?? '';
  const connected = useMemo(() => (status?.servers ?? []).filter((s) => s.status === 'connected').map((s) => s.name), [status]);
  const list = useQuery<CatalogEntry[]>(status ? `catalog ${connected.join(' ')}` : null, async (signal) => (await Promise.all(connected.map((s) => listEntries(s, signal)))).flat());
  const shown = (list.data ?? []).filter((o) => (!kindFilter || o.kind === kindFilter) && (!text || `${o.server} ${o.name} ${o.title ?? ''} ${o.uri ?? ''} ${o.description ?? ''}`.toLowerCase().includes(text)));
  const selected = list.data?.find((o) => keyOf(o).join('\n') === [server, kind, name].join('\n'));
  const setFilters = (change: Record<string, string>) => navigate(href(parts, { q: query.get('q') ?? '', kind: kindFilter, ...change }), true);
  return (
    <div className={`tools split ${selected ? 'has-detail' : ''}`}>
      <section className="split-list" aria-label="Resources and prompts">
        <header className="view-head">
          <h1 className="grow">Resources</h1>
          <span className="muted small" role="status">
            {list.data && plural(shown.length, 'entry', 'entries')}
          </span>
        </header>
        <div className="filters">
          <div className="searchbox">
            <Icon name="search" size={16} />
            <input type="search" aria-label="Search resources and prompts" placeholder="Search" value={query.get('q') ?? ''} onChange={(e) => setFilters({ q: e.target.value })} />
          </div>
          <select aria-label="Kind" value={kindFilter} onChange={(e) => setFilters({ kind: e.target.value })}>
            {kindOptions.map(([id, label]) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </select>
        </div>
        {list.error && !list.data ? (
          <ErrorNote error={list.error} retry={() => void list.reload()} />
        ) : !list.data ? (
          <Skeleton rows={6} />
        ) : shown.length === 0 ? (
          <EmptyState icon="file" title={list.data.length === 0 ? 'No resources and prompts' : 'No matches'}>
            {list.data.length === 0 && 'None of the connected servers has any.'}
          </EmptyState>
        ) : (
          <ul className="offer-list">
            {shown.slice(0, 1000).map((o) => (
              <li key={keyOf(o).join('\n')}>
                <a className="offer-row" href={href(['resources', ...keyOf(o)], { q: query.get('q') ?? '', kind: kindFilter })} aria-current={o === selected ? 'page' : undefined}>
                  <span className="row">
                    <strong className="grow ellipsis">{o.title || o.name}</strong> <Badge>{o.kind}</Badge>
                  </span>
                  <span className="muted small ellipsis">
                    {o.server} {o.description && `· ${o.description}`}
                  </span>
                </a>
              </li>
            ))}
          </ul>
        )}
      </section>
      <section className="split-detail" aria-label="Details">
        {selected ? <EntryDetails key={keyOf(selected).join('\n')} entry={selected} /> : <EmptyState icon="file" title="Nothing selected">Choose a resource to read it, or a prompt to use it in a chat.</EmptyState>}
      </section>
    </div>
  );
}

interface ReadState {
  busy?: boolean;
  error?: ApiError;
  contents?: ResourceContents[];
  messages?: PromptMessage[];
}

function EntryDetails({ entry: o }: { entry: CatalogEntry }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [readState, setReadState] = useState<ReadState>({});
  const missing = (o.arguments ?? []).filter((a) => a.required && !values[a.name]);
  const filled = Object.fromEntries(Object.entries(values).filter(([, v]) => v !== ''));
  const load = async () => {
    setReadState({ busy: true });
    try {
      if (o.kind === 'prompt') {
        const { messages } = await mcpRequest<{ messages?: PromptMessage[] }>(o.server, 'prompts/get', { name: o.name, arguments: filled });
        setReadState({ messages: messages ?? [] });
      } else setReadState({ contents: await readResource(o.server, o.kind === 'template' ? expandTemplate(o.uri ?? '', filled) : (o.uri ?? '')) });
    } catch (e) {
      setReadState({ error: e instanceof ApiError ? e : new ApiError(0, '', String(e)) });
    }
  };
  return (
    <div className="detail">
      <header className="view-head">
        <Button className="only-narrow" kind="quiet" icon="back" aria-label="Back to the list" onClick={() => navigate('#/resources')} />
        <h2 className="grow ellipsis">{o.title || o.name}</h2>
        <Badge>{o.kind}</Badge>
      </header>
      <div className="detail-scroll" tabIndex={0} role="group" aria-label={o.title || o.name}>
        <p className="muted">
          of <a href={href(['servers', o.server])}>{o.server}</a> {o.mimeType && <code>{o.mimeType}</code>}
        </p>
        {o.uri && <p className="mono small wrap">{o.uri}</p>}
        {o.description && <p className="wrap">{o.description}</p>}
        <form
          className="stack"
          onSubmit={(e) => {
            e.preventDefault();
            if (missing.length === 0) void load();
          }}
        >
          {(o.arguments ?? []).map((a) => (
            <ArgumentField key={a.name} entry={o} argument={a} values={values} onChange={(v) => setValues((all) => ({ ...all, [a.name]: v }))} />
          ))}
          <div className="row">
            <Button kind="primary" icon="right" type="submit" busy={readState.busy} disabled={missing.length > 0}>
              {o.kind === 'prompt' ? 'Show' : 'Read'}
            </Button>
            {missing.length > 0 && <span className="muted small">Fill in {missing.map((a) => a.name).join(', ')}.</span>}
          </div>
        </form>
        {readState.error && <ErrorNote error={readState.error} />}
        {readState.contents && (
          <ServerContext value={o.server}>
            {readState.contents.length === 0 ? <p className="muted">The resource is empty.</p> : <ResultView result={{ content: readState.contents.map((resource) => ({ type: 'resource', resource })) }} />}
          </ServerContext>
        )}
        {readState.messages && (
          <section className="stack">
            <div className="row">
              <h3 className="grow">{plural(readState.messages.length, 'message')}</h3>
              <Button
                kind="primary"
                icon="chat"
                disabled={promptText(readState.messages) === ''}
                onClick={() => {
                  setDraftText('', promptText(readState.messages ?? []));
                  navigate('#/chat');
                }}
              >
                Start a chat
              </Button>
            </div>
            {readState.messages.map((m, i) => (
              <div key={i} className="card">
                <h4>{m.role}</h4>
                <ResultView result={{ content: m.content ? [m.content] : [] }} />
              </div>
            ))}
          </section>
        )}
      </div>
    </div>
  );
}

/** ArgumentField is an input with the server's suggestions for an argument. */
function ArgumentField({ entry, argument, values, onChange }: { entry: CatalogEntry; argument: EntryArgument; values: Record<string, string>; onChange: (v: string) => void }) {
  const id = useId();
  const value = values[argument.name] ?? '';
  const debouncedValue = useDebounced(value, 150);
  const [suggestions, setSuggestions] = useState<string[]>([]);
  const others = JSON.stringify(values);
  useEffect(() => {
    const abort = new AbortController();
    completeArgument(entry, argument.name, debouncedValue, JSON.parse(others) as Record<string, string>, abort.signal).then(
      (list) => !abort.signal.aborted && setSuggestions(list),
      () => {}, // most servers do not support completion
    );
    return () => abort.abort();
  }, [entry, argument.name, debouncedValue, others]);
  return (
    <div className="field">
      <label htmlFor={id}>
        {argument.name} {!argument.required && <span className="muted small">optional</span>}
      </label>
      <input id={id} list={`${id}-values`} value={value} autoComplete="off" onChange={(e) => onChange(e.target.value)} />
      <datalist id={`${id}-values`}>
        {suggestions.map((v) => (
          <option key={v} value={v} />
        ))}
      </datalist>
      {argument.description && <div className="hint">{argument.description}</div>}
    </div>
  );
}
